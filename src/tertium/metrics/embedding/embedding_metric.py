"""Base class of metrics over embeddings.

A metric defines a formula for a pair of texts. The base class pairs hypotheses with references,
sources or both, streams distinct pairs through the encoder, reduces several references to one
value, and reports warnings and the signature.

Center vectors by language and project them on directions in which translations agree.

Vectors of a multilingual encoder cluster by language, which distorts the similarity of a
translation to its source. Subtracting the mean of the language removes this. What remains differs
between a word and its translation more in some directions than in others. After scaling these
differences to equal size, the directions of largest variance are those that carry meaning. Means
and directions were computed once from parallel text (`python -m recipes.languages.means`,
`directions`) and are stored with the encoder.

The language of a text comes from the language pair, or else is identified from the text alone, so
scores do not depend on other texts. Special tokens are excluded. Sentence vectors are means of
centered token vectors.
"""

from __future__ import annotations

import base64
import json
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Annotated, ClassVar, Literal

import numpy as np

from tertium.core.arrays import (
    BoolArray,
    Float32Array,
    FloatArray,
    IntArray,
    exact_dot_products,
    round_to_grid,
)
from tertium.core.errors import UsageError
from tertium.core.fields import Range, normalize_number
from tertium.core.runtime import Precision
from tertium.core.segment import REQUIRED_INPUTS, Segment
from tertium.encoders import Chunk, Embeddings, Encoder, compare_pairs, iter_chunks, load_encoder
from tertium.encoders.encoder import offsets_from_lengths
from tertium.encoders.word_vectors import WordVectorEncoder
from tertium.metrics.base.explanation import Explanation, Link, TextComparison
from tertium.metrics.base.greedy_matching import piece_vectors, round_cosines
from tertium.metrics.base.metric import (
    NOTHING,
    Metric,
    ReferenceReduction,
    Side,
    distinct_texts,
    pair_texts,
    reduce_references,
)
from tertium.metrics.base.scorer import check_same_inputs
from tertium.metrics.base.text_warnings import (
    ENGLISH,
    LANGUAGE_UNKNOWN,
    Flags,
    as_flags,
    flag_compared,
    flag_inputs,
    flag_not_english,
    flag_texts,
    merge_flags,
)
from tertium.text.language_codes import macrolanguage, parse_language_pair
from tertium.text.language_identification import (
    WRONG_LANGUAGE_WARNING,
    flag_other_language,
    flag_wrong_language,
    identify_language,
    is_mixed_language,
    is_too_short,
)
from tertium.text.scripts import is_other_script, language_scripts

Against = Literal["auto", "reference", "source", "both"]
Centre = Literal["auto", "aligned", "none"]
Formula = Callable[[Chunk], FloatArray]

SOURCE_ENCODER = "e5@8"  # `encoder=auto` against sources: a multilingual encoder
WRONG_LANGUAGE_PENALTY = 0.3  # chosen on da/wmt15, da/wmt16 and the development part of qe/wmt20


@dataclass(frozen=True, kw_only=True)
class EmbeddingMetric(Metric):
    """A metric that compares a hypothesis with its references, its source, or both.

    Settings of all embedding metrics:

    - `encoder`: `minilm@4`, `mpnet`, `e5`, `use`, `glove`, `hf/NAME@LAYER` or `dir/PATH`. `auto` is
      `minilm` for references, at the layer that was best for the metric on da/wmt15 and da/wmt16,
      and `e5` for sources.
    - `against`: `reference`, `source`, or `both` for the mean of the two scores. `auto` is the
      references if there are any, else the source.
    - `references`: `best` or `mean` value over several references.
    - `precision`: numeric precision of the encoder.
    - `lp`: language pair, such as `de-en`. Texts in other languages, or in languages that the
      encoder does not support, are counted.
    - `wrong_language_penalty`: with `lp` and sources, moves the score of a wrong-language
      translation towards that of unrelated texts: 0 not at all, 1 all the way.
    - `centre`: how vectors are centered against sources, since vectors of one model cluster by
      language. `aligned` subtracts the mean of the language (from `lp`, or else identified from the
      text) and projects on the directions in which translations agree. `auto` is `aligned` if means
      and directions are stored for the encoder (`e5@8`), else `none`.

    If one text is blank or has no token that the encoder knows, the value is `unrelated`, or
    `identical` if both texts are equal.
    """

    parts: ClassVar[tuple[str, ...]] = ("score",)  # columns of the formula's result
    reference_encoder: ClassVar[str] = "minilm@4"  # the best small English encoder and layer
    identical: ClassVar[float] = 1.0
    unrelated: ClassVar[float] = 0.0

    encoder: str = "auto"
    against: Against = "auto"
    references: ReferenceReduction = "best"
    precision: Precision = "fp32"
    lp: str = ""
    centre: Centre = "auto"
    wrong_language_penalty: Annotated[float, Range(0, 1)] = WRONG_LANGUAGE_PENALTY

    def __post_init__(self) -> None:
        parse_language_pair(self.lp)

    @abstractmethod
    def formula(self, encoder: Encoder, segments: Sequence[Segment]) -> Formula:
        """Return the function that maps a chunk of m pairs to values, (m,) or (m, parts)."""

    def links(self, left: Float32Array, right: Float32Array) -> Sequence[Link]:
        """Return the alignment of two texts, from unit vectors of their pieces, (pieces, d)."""
        return ()

    def postprocess(self, values: FloatArray, encoder: Encoder, side: Side) -> FloatArray:
        """Convert the values of all pairs, (pairs, parts), to statistics."""
        return values

    @property
    def vector_kinds(self) -> frozenset[str]:
        """The vectors that the formula uses: "tokens", "sentences" or both."""
        return frozenset({"tokens"})

    @property
    def main_part(self) -> str:
        """The column that is the score."""
        return self.parts[0]

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.parts, "segments")

    @property
    def required_inputs(self) -> frozenset[str]:
        return NOTHING if self.against == "auto" else REQUIRED_INPUTS[self.against]

    def check(self, segments: Sequence[Segment]) -> None:
        super().check(segments)
        if self.against == "auto":  # sources are not read if there are references
            check_same_inputs(
                self.name,
                [Segment("", None, s.references) if s.references else s for s in segments],
            )

    def sides(self, segments: Sequence[Segment]) -> tuple[Side, ...]:
        """Return what these segments are compared with; without segments, the references."""
        if self.against == "auto":
            has_references = not segments or bool(segments[0].references)
            return ("reference",) if has_references else ("source",)
        if self.against == "both":
            return ("reference", "source")
        return (self.against,)

    def encoder_of(self, side: Side) -> Encoder:
        auto = SOURCE_ENCODER if side == "source" else self.reference_encoder
        name = auto if self.encoder == "auto" else self.encoder
        return load_encoder(name, precision=self.precision, special=True)

    def centering(self, encoder: Encoder, side: Side) -> LanguageCentering | None:
        """Return how vectors are centered on one side, or None if they are not."""
        if side != "source" or self.centre == "none":
            return None
        centering = load_centering(encoder.name)
        if centering is None and self.centre == "aligned":
            raise UsageError(
                f"centre={self.centre}: no language means are stored for encoder "
                f"{encoder.name}; use encoder=e5@8 or centre=none"
            )
        if centering is None or not self.lp:
            return centering
        source, target = self.languages
        return replace(centering, source=source, target=target)

    def calibration_key(self, encoder: Encoder, side: Side) -> str:
        """Return the key of stored calibration values: the side and the centering."""
        return f"{side}/aligned" if self.centering(encoder, side) else side

    def required_vectors(self, encoder: Encoder, side: Side) -> frozenset[str]:
        """Return the vectors to compute: centered sentence vectors are means of token vectors."""
        return frozenset({"tokens"}) if self.centering(encoder, side) else self.vector_kinds

    @property
    def model_ids(self) -> tuple[str, ...]:
        encoders = [self.encoder_of(side) for side in self.sides(())]
        return tuple(encoder.signature_fields()["model"] for encoder in encoders)

    def required_embeddings(self, segments: Sequence[Segment]) -> list[tuple[Encoder, str]]:
        encoders = [(self.encoder_of(side), side) for side in self.sides(segments)]
        return [
            (e, part) for e, side in encoders for part in sorted(self.required_vectors(e, side))
        ]

    def statistics(self, segments: Sequence[Segment]) -> FloatArray:
        sides = []
        for side in self.sides(segments):
            owners, _, values = self._compare(segments, side)
            reduced = reduce_references(
                values, owners, self.references, higher_is_better=self.higher_is_better
            )
            sides.append(reduced)
        return np.column_stack([np.mean(sides, axis=0), np.ones(len(segments))])

    def reduce(self, totals: FloatArray) -> FloatArray:
        column = self.parts.index(self.main_part)
        return totals[..., column] / totals[..., -1]

    def _compare(
        self, segments: Sequence[Segment], side: Side
    ) -> tuple[IntArray, list[str], FloatArray]:
        """Return the segment, the other text and the values, (pairs, parts), of each pair."""
        owners, left, right = pair_texts(segments, side)
        encoder = self.encoder_of(side)
        kinds = self.required_vectors(encoder, side)
        one_sided = replace(self, against=side)  # idf weights come from the texts of this side
        formula = one_sided.formula(encoder, segments)
        centering = self.centering(encoder, side)
        values = compare_pairs(
            encoder,
            left,
            right,
            (lambda chunk: formula(centering(chunk))) if centering else formula,
            tokens="tokens" in kinds,
            sentences="sentences" in kinds,
        )
        values = values.reshape(len(left), -1)
        if side == "source":
            wrong = flag_other_language(left, *self.languages[1:])
            unrelated = np.array(self.boundary_values(False))
            values[wrong] += self.wrong_language_penalty * (unrelated - values[wrong])
        blank = np.array([not (a.strip() and b.strip()) for a, b in zip(left, right, strict=True)])
        blank |= np.isnan(values).any(axis=1)
        for row in np.flatnonzero(blank):
            values[row] = self.boundary_values(left[row].strip() == right[row].strip())
        return owners, right, self.postprocess(values, encoder, side)

    def boundary_values(self, is_equal: bool) -> Sequence[float]:
        """Return the values of two texts without vectors, which are equal or not."""
        return [self.identical if is_equal else self.unrelated] * len(self.parts)

    def explain_segment(self, segment: Segment) -> Explanation:
        """Return the score of a segment and the alignment of its pieces."""
        comparisons: list[TextComparison] = []
        for side in self.sides([segment]):
            encoder = self.encoder_of(side)
            centering = self.centering(encoder, side)
            has_tokens = "tokens" in self.required_vectors(encoder, side)
            _, texts, values = self._compare([segment], side)
            for text, row in zip(texts, values, strict=True):
                [chunk] = iter_chunks(encoder, [segment.hypothesis], [text], tokens=has_tokens)
                chunk = centering(chunk) if centering else chunk
                parts = dict(zip(self.parts, row.tolist(), strict=True))
                comparisons.append(self._compare_pieces(chunk, side, text, parts))
        score = float(self.score([segment]).segments[0])
        return Explanation(metric=self.spec, score=score, comparisons=tuple(comparisons))

    def _compare_pieces(
        self, chunk: Chunk, side: Side, text: str, values: Mapping[str, float]
    ) -> TextComparison:
        """Align the pieces of the only pair of a chunk."""
        pieces = [chunk.embeddings.tokens[int(row)] for row in (chunk.left[0], chunk.right[0])]
        vectors = piece_vectors(chunk, 0)
        links = tuple(self.links(*vectors)) if all(pieces) else ()
        is_greedy = bool(links) and links[0].direction != "transport"
        return TextComparison(
            side=side,
            text=text,
            values=values,
            hypothesis_pieces=tuple(piece for piece in pieces[0] if piece),
            other_pieces=tuple(piece for piece in pieces[1] if piece),
            links=links,
            cosines=round_cosines(exact_dot_products(*vectors)) if is_greedy else (),
        )

    @property
    def languages(self) -> tuple[str, ...]:
        """The source and target language of `lp`, or an empty tuple."""
        return parse_language_pair(self.lp)

    def flags(self, segments: Sequence[Segment]) -> Flags:
        parts = [super().flags(segments)]
        for side in self.sides(segments):
            encoder = self.encoder_of(side)
            parts.append(flag_inputs([encoder], segments, side))
            if isinstance(encoder, WordVectorEncoder):
                unknown = encoder.find_unknown_words(distinct_texts(segments, side))
                parts.append({"unknown word": flag_compared(unknown, segments, side)})
            kind = f"{LANGUAGE_UNKNOWN} {encoder.name.partition('@')[0]}"
            parts.append({kind: self._flag_unsupported(encoder, segments, side)})
            if centering := self.centering(encoder, side):
                parts.append(centering.flags(segments))
            if side == "source":
                parts.append(self._flag_language_problems(segments))
        return merge_flags(parts)

    def _flag_language_problems(self, segments: Sequence[Segment]) -> Flags:
        """Flag blank and mixed-language texts, and texts in another language than `lp`."""
        hypotheses = [segment.hypothesis for segment in segments]
        sources = [segment.source or "" for segment in segments]
        is_mixed = flag_texts(segments, is_mixed_language)
        is_mixed |= flag_texts(segments, is_mixed_language, "source")
        flags = {
            "empty source": as_flags(not text.strip() for text in sources),
            "text of two languages": is_mixed,
        }
        if not self.lp:
            return {**flags, WRONG_LANGUAGE_WARNING: flag_wrong_language(hypotheses)}
        source, target = self.languages
        flags[f"source not in {source}"] = flag_other_language(sources, source)
        flags[f"translation not in {target}"] = flag_other_language(hypotheses, target)
        return flags

    def _flag_unsupported(
        self, encoder: Encoder, segments: Sequence[Segment], side: Side
    ) -> BoolArray:
        """Flag segments with a text in a language that the encoder does not support, (n,)."""
        supported = encoder.languages
        if supported is None:
            return np.zeros(len(segments), dtype=np.bool_)
        involved = self.languages if side == "source" else self.languages[1:]
        if not set(involved) <= supported:
            return np.ones(len(segments), dtype=np.bool_)
        scripts = language_scripts(supported)
        if side == "reference":
            if supported == ENGLISH and not self.lp:
                flags = flag_not_english(segments)
                if flags.any():
                    return flags
            return flag_texts(segments, lambda text: is_other_script(text, scripts))

        def is_unsupported(text: str) -> bool:
            language = "" if self.lp or is_too_short(text) else identify_language(text)
            return is_other_script(text, scripts) or language not in supported | {""}

        return flag_texts(segments, is_unsupported) | flag_texts(segments, is_unsupported, "source")

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        sides = self.sides(segments)
        fields = {"against": "+".join(sides)}
        if "reference" in sides and any(len(s.references) > 1 for s in segments):
            fields["refs"] = self.references
        truncated: set[tuple[str, str]] = set()
        for side in sides:
            encoder = self.encoder_of(side)
            cut = encoder.find_truncated(distinct_texts(segments, side))
            truncated |= {(encoder.name, text) for text in cut}
            prefix = "src" if side == "source" and len(sides) > 1 else ""
            fields |= {f"{prefix}{key}": value for key, value in encoder.signature_fields().items()}
            centering = self.centering(encoder, side)
            if centering:
                fields |= centering.signature()
            if side == "source" and self.lp and self.wrong_language_penalty:
                fields |= {} if centering else {"lp": self.lp}
                fields["astray"] = str(normalize_number(self.wrong_language_penalty, int | float))
        return {**fields, "trunc": str(len(truncated)), **self.own_signature_fields(segments)}

    def own_signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        """Return the signature fields that only this metric has."""
        return {}


ENCODER_FOLDERS: Mapping[str, str] = {"e5@8": "e5"}
MEANS = "means.json"
DIRECTIONS = "directions.json"


def _decode_vectors(text: str) -> Float32Array:
    return np.frombuffer(base64.b64decode(text), dtype="<f2").astype(np.float32)


@cache
def load_centering(encoder: str) -> LanguageCentering | None:
    """Load the language means and directions of an encoder, such as e5@8, or return None."""
    if encoder not in ENCODER_FOLDERS:
        return None
    folder = files("tertium.encoders") / ENCODER_FOLDERS[encoder]
    means, stored = (json.loads((folder / f).read_text("utf-8")) for f in (MEANS, DIRECTIONS))
    directions = _decode_vectors(stored["directions"]).reshape(stored["sentences"], -1)
    return LanguageCentering(
        means={code: _decode_vectors(text) for code, text in means["means"].items()},
        directions=round_to_grid(directions),
        tokens=stored["tokens"],
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class LanguageCentering:
    """Centering for a language pair; empty languages are identified from each text.

    `means` are the mean vectors of languages, (dim,) each; other languages get the mean of all of
    them. `directions` are those in which translations agree, the best first, (directions, dim).
    Sentence vectors use all of them, token vectors the first `tokens`.
    """

    means: Mapping[str, Float32Array]
    directions: FloatArray
    tokens: int
    source: str = ""
    target: str = ""

    def __call__(self, chunk: Chunk) -> Chunk:
        """Return the chunk with centered vectors."""
        rows: dict[tuple[int, str], int] = {}
        indices = []
        for numbers, language in ((chunk.left, self.target), (chunk.right, self.source)):
            keys = [(n, language or identify_language(chunk.texts[n])) for n in numbers.tolist()]
            indices.append(np.array([rows.setdefault(key, len(rows)) for key in keys], np.int64))
        texts = self._center(chunk.embeddings, list(rows))
        return Chunk(pairs=chunk.pairs, left=indices[0], right=indices[1], embeddings=texts)

    def _center(self, texts: Embeddings, rows: Sequence[tuple[int, str]]) -> Embeddings:
        general = np.mean(list(self.means.values()), axis=0)
        vectors = []
        sentences = []
        pieces = []
        for row, language in rows:
            pieces_at = [place for place, piece in enumerate(texts.tokens[row]) if piece]
            mean = self.means.get(macrolanguage(language), general)
            centered = texts.token_vectors(row)[pieces_at] - mean
            vectors.append(centered)
            sentences.append(centered.mean(axis=0) if len(centered) else np.zeros_like(mean))
            pieces.append(tuple(texts.tokens[row][place] for place in pieces_at))
        return Embeddings(
            vectors=self._project(np.concatenate(vectors), self.tokens),
            offsets=offsets_from_lengths([len(v) for v in vectors]),
            tokens=tuple(pieces),
            sentences=self._project(np.array(sentences, dtype=np.float32), len(self.directions)),
            truncated=texts.truncated[[row for row, _ in rows]],
        )

    def _project(self, vectors: Float32Array, count: int) -> Float32Array:
        """Project vectors on the first directions, (n, dim) -> (n, count); batch-invariant."""
        return exact_dot_products(vectors, self.directions[:count]).astype(np.float32)

    def flags(self, segments: Sequence[Segment]) -> Flags:
        """Flag segments with a text whose language is unknown or has no stored mean."""
        parts: list[Flags] = []
        for side, given_language in (("hypothesis", self.target), ("source", self.source)):
            texts = [getattr(segment, side) or "" for segment in segments]
            languages = [given_language or identify_language(text) for text in texts]
            is_known = as_flags(macrolanguage(language) in self.means for language in languages)
            is_identified = as_flags(languages)
            is_text = as_flags(text.strip() for text in texts)
            parts.append({"language not identified": ~is_identified & is_text})
            parts.append({"language without a mean": is_identified & ~is_known})
        return merge_flags(parts)

    def signature(self) -> dict[str, str]:
        """Return the signature fields: languages and number of directions."""
        means = f"{self.source or 'identified'}-{self.target or 'identified'}"
        return {"means": means, "dirs": f"{self.tokens}+{len(self.directions)}"}
