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
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from tertium.core.arrays import (
    BoolArray,
    Float32Array,
    FloatArray,
    IntArray,
    exact_dot_products,
    round_to_grid,
)
from tertium.core.errors import MissingInputError, UsageError
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
from tertium.metrics.base.scorer import HOW_TO_PROVIDE
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
Centre = Literal["auto", "aligned", "language", "none"]
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
      language. `language` subtracts the mean of the language (from `lp`, or else identified from
      the text). `aligned` also projects on the directions in which translations agree. `auto` is
      `aligned` if means and directions are stored for the encoder (`e5@8`), else `none`.

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
        if self.against != "auto":
            return
        is_missing = [not s.references for s in segments]
        if any(is_missing) and not all(is_missing):
            raise MissingInputError(
                f"{self.name}: segment {is_missing.index(True) + 1} has no references, but other "
                "segments have: choose the input with against=reference or against=source"
            )
        for number, segment in enumerate(segments, start=1):
            if not segment.references and segment.source is None:
                raise MissingInputError(
                    f"{self.name} needs references or the source, but segment {number} has "
                    f"neither: {HOW_TO_PROVIDE['references']}, or the source likewise"
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
        means = language_means(encoder.name)
        if means is None:
            if self.centre != "auto":
                raise UsageError(
                    f"centre={self.centre}: no language means are stored for encoder "
                    f"{encoder.name}; use encoder=e5@8 or centre=none"
                )
            return None
        source, target = self.languages or ("", "")
        aligned = self.centre != "language"
        directions = translation_directions(encoder.name) if aligned else None
        return LanguageCentering(means, source, target, directions)

    def calibration_key(self, encoder: Encoder, side: Side) -> str:
        """Return the key of stored calibration values: the side and the centering."""
        centering = self.centering(encoder, side)
        if centering is None:
            return side
        return f"{side}/aligned" if centering.directions else f"{side}/language"

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
        formula, centering = one_sided.formula(encoder, segments), self.centering(encoder, side)
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
        parts: list[TextComparison] = []
        for side in self.sides([segment]):
            _, texts, values = self._compare([segment], side)
            for text, row in zip(texts, values, strict=True):
                parts.append(self._explain_pair(side, segment.hypothesis, text, row))
        score = float(self.score([segment]).segments[0])
        return Explanation(metric=self.spec, score=score, comparisons=tuple(parts))

    def _explain_pair(
        self, side: Side, left: str, right: str, values: FloatArray
    ) -> TextComparison:
        encoder = self.encoder_of(side)
        kinds, centering = self.required_vectors(encoder, side), self.centering(encoder, side)
        tokens, sentences = "tokens" in kinds, "sentences" in kinds
        chunk = next(iter_chunks(encoder, [left], [right], tokens=tokens, sentences=sentences))
        chunk = centering(chunk) if centering else chunk
        pieces = [chunk.embeddings.tokens[int(row)] for row in (chunk.left[0], chunk.right[0])]
        vectors = piece_vectors(chunk, 0)
        links = tuple(self.links(*vectors)) if all(pieces) else ()
        is_greedy = bool(links) and links[0].direction != "transport"
        return TextComparison(
            side=side,
            text=right,
            values=dict(zip(self.parts, values.tolist(), strict=True)),
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

    def _encoder_inputs(self, segments: Sequence[Segment]) -> list[tuple[Encoder, list[str]]]:
        """Return each encoder with the distinct texts that it reads on both sides."""
        inputs: dict[str, tuple[Encoder, dict[str, None]]] = {}
        for side in self.sides(segments):
            encoder = self.encoder_of(side)
            _, texts = inputs.setdefault(encoder.name, (encoder, {}))
            texts.update(dict.fromkeys(distinct_texts(segments, side)))
        return [(encoder, [*texts]) for encoder, texts in inputs.values()]

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
        for side in sides:
            encoder = self.encoder_of(side)
            prefix = "src" if side == "source" and len(sides) > 1 else ""
            fields |= {f"{prefix}{key}": value for key, value in encoder.signature_fields().items()}
            centering = self.centering(encoder, side)
            if centering:
                fields |= centering.signature()
            if side == "source" and self.lp and self.wrong_language_penalty:
                fields |= {} if centering else {"lp": self.lp}
                fields["astray"] = str(normalize_number(self.wrong_language_penalty, int | float))
        truncated = sum(len(e.find_truncated(texts)) for e, texts in self._encoder_inputs(segments))
        return {**fields, "trunc": str(truncated), **self.own_signature_fields(segments)}

    def own_signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        """Return the signature fields that only this metric has."""
        return {}


ENCODER_FOLDERS: Mapping[str, str] = {"e5@8": "e5"}
MEANS, DIRECTIONS = "means.json", "directions.json"


@dataclass(frozen=True, eq=False)
class LanguageMeans:
    """Mean vector of each language, (dim,); other languages get the mean of all of them."""

    means: Mapping[str, Float32Array]
    general: Float32Array

    def __contains__(self, language: str) -> bool:
        return macrolanguage(language) in self.means

    def of(self, languages: Sequence[str]) -> Float32Array:
        """Return the means of languages, (languages, dim)."""
        rows = [self.means.get(macrolanguage(code), self.general) for code in languages]
        return np.array(rows, dtype=np.float32).reshape(len(rows), len(self.general))


@dataclass(frozen=True, eq=False)
class TranslationDirections:
    """Directions in which translations agree, the best first, as rows (directions, dim).

    Token vectors use the first `tokens` of them, sentence vectors the first `sentences`.
    """

    rows: FloatArray
    tokens: int
    sentences: int

    def __call__(self, vectors: Float32Array, count: int) -> Float32Array:
        """Project vectors on the first directions, (n, dim) -> (n, count); batch-invariant."""
        return exact_dot_products(vectors, self.rows[:count]).astype(np.float32)


@cache
def language_means(encoder: str) -> LanguageMeans | None:
    """Load the language means of an encoder, such as e5@8, or return None."""
    if encoder not in ENCODER_FOLDERS:
        return None
    means = {code: _decode_vectors(text) for code, text in _read(encoder, MEANS)["means"].items()}
    return LanguageMeans(means, np.mean(list(means.values()), axis=0))


@cache
def translation_directions(encoder: str) -> TranslationDirections | None:
    """Load the translation directions of an encoder, or return None."""
    if encoder not in ENCODER_FOLDERS:
        return None
    stored = _read(encoder, DIRECTIONS)
    rows = _decode_vectors(stored["directions"]).reshape(stored["sentences"], -1)
    return TranslationDirections(round_to_grid(rows), stored["tokens"], stored["sentences"])


def _read(encoder: str, file: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(
        files("tertium.encoders").joinpath(ENCODER_FOLDERS[encoder], file).read_text("utf-8")
    )
    return content


def _decode_vectors(text: str) -> Float32Array:
    return np.frombuffer(base64.b64decode(text), dtype="<f2").astype(np.float32)


@dataclass(frozen=True)
class LanguageCentering:
    """Centering for a language pair; empty languages are identified from each text."""

    means: LanguageMeans
    source: str = ""
    target: str = ""
    directions: TranslationDirections | None = None

    def __call__(self, chunk: Chunk) -> Chunk:
        """Return the chunk with centered vectors."""
        rows: dict[tuple[int, str], int] = {}
        indices = []
        for numbers, language in ((chunk.left, self.target), (chunk.right, self.source)):
            keys = [(n, language or identify_language(chunk.texts[n])) for n in numbers.tolist()]
            indices.append(np.array([rows.setdefault(key, len(rows)) for key in keys], np.int64))
        texts = self._center(chunk.embeddings, rows)
        return Chunk(pairs=chunk.pairs, left=indices[0], right=indices[1], embeddings=texts)

    def _center(self, texts: Embeddings, rows: dict[tuple[int, str], int]) -> Embeddings:
        centers = self.means.of([language for _, language in rows])
        vectors, pieces = [], []
        for (row, _), mean in zip(rows, centers, strict=True):
            pieces_at = [place for place, piece in enumerate(texts.tokens[row]) if piece]
            vectors.append(texts.token_vectors(row)[pieces_at] - mean)
            pieces.append(tuple(texts.tokens[row][place] for place in pieces_at))
        width = texts.vectors.shape[1]
        means = [v.mean(axis=0) if len(v) else np.zeros(width) for v in vectors]
        tokens, sentences = np.concatenate(vectors), np.array(means, dtype=np.float32)
        if self.directions:
            tokens = self.directions(tokens, self.directions.tokens)
            sentences = self.directions(sentences, self.directions.sentences)
        return Embeddings(
            vectors=tokens.astype(np.float32, copy=False),
            offsets=offsets_from_lengths([len(v) for v in vectors]),
            tokens=tuple(pieces),
            sentences=sentences,
            truncated=texts.truncated[[row for row, _ in rows]],
        )

    def flags(self, segments: Sequence[Segment]) -> Flags:
        """Flag segments with a text whose language is unknown or has no stored mean."""
        parts: list[Flags] = []
        for side, given_language in (("hypothesis", self.target), ("source", self.source)):
            texts = [getattr(segment, side) or "" for segment in segments]
            languages = [given_language or identify_language(text) for text in texts]
            is_known = np.array([language in self.means for language in languages], dtype=np.bool_)
            is_identified = as_flags(languages)
            is_text = as_flags(text.strip() for text in texts)
            parts.append({"language not identified": ~is_identified & is_text})
            parts.append({"language without a mean": is_identified & ~is_known})
        return merge_flags(parts)

    def signature(self) -> dict[str, str]:
        """Return the signature fields: languages and number of directions."""
        means = f"{self.source or 'identified'}-{self.target or 'identified'}"
        if not self.directions:
            return {"means": means}
        return {"means": means, "dirs": f"{self.directions.tokens}+{self.directions.sentences}"}
