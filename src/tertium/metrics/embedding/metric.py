"""What metrics over embeddings share: which texts are compared, by which encoder, and what to say.

A metric brings a formula for one comparison of two texts. Here the hypothesis meets its references,
its source or both; comparisons stream through the encoder, each distinct one made once; several
references are reduced to one value; warnings and signature say how it was done.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from tertium.arrays import Float32Array, FloatArray, IntArray, products
from tertium.encoders import Chunk, Encoder, chunks, load_encoder, pairwise
from tertium.encoders.encoder import count_unread
from tertium.encoders.static import StaticEncoder
from tertium.errors import NeedsError, UsageError
from tertium.metrics.base.explanation import Explanation, Link, TextComparison
from tertium.metrics.base.matching import piece_vectors, round_cosines
from tertium.metrics.base.metric import (
    NOTHING,
    WAYS,
    Metric,
    Over,
    Side,
    comparisons,
    distinct_texts,
    over_references,
)
from tertium.metrics.base.odd_texts import ENGLISH, count_not_english
from tertium.metrics.embedding.centring import Centring, language_means, translation_directions
from tertium.models.options import NEEDS
from tertium.runtime import Long, Precision
from tertium.segment import Segment
from tertium.specs import Range, plain
from tertium.text.language_codes import parse_pair
from tertium.text.language_identification import (
    STRAYS,
    are_in_other_language,
    count_strays,
    identify,
    is_mixed,
    is_short,
)
from tertium.text.scripts import is_foreign, scripts_of

Against = Literal["auto", "reference", "source", "both"]
Centre = Literal["auto", "aligned", "language", "none"]
Formula = Callable[[Chunk], FloatArray]

SOURCE_ENCODER = "e5@8"  # what `encoder=auto` means there: one that knows both languages
ASTRAY = 0.3  # chosen where the layer was (`python -m recipes.languages.choice`)


@dataclass(frozen=True, kw_only=True)
class EmbeddingMetric(Metric):
    """A metric that compares a hypothesis with its references, its source, or both.

    `encoder` is the name of an encoder (`minilm@4`, `mpnet`, `e5`, `use`, `glove`,
    `hf/NAME@LAYER`, `dir/PATH`); auto is `minilm` against references, at the layer that served the
    metric best on da/wmt15 and da/wmt16, and `e5` against sources. `against` says
    what hypotheses are compared with; auto is the references where there are any, else the source;
    both is the mean of the two scores. `references` takes the best or the mean over several.
    `precision` and `long` are the encoder's. `lp`, such as de-en, names the languages, so that
    texts in one that the encoder was not made for, or in another than said, are counted. Against
    sources a translation that is clearly in another language goes `astray` of the way from its
    score to that of unrelated texts: 0 leaves it where it is, 1 takes it all the way.

    Vectors of one model lie apart by language. Against sources `centre` takes the mean of a text's
    language from its vectors, of the languages in `lp`, else of the one the text is identified as
    (language), and compares them in the directions in which translations agree (aligned). auto is
    aligned where means and directions are stored for the encoder (`e5@8`), else none.

    Two texts of which one is blank, or has no piece that the encoder knows, are as far apart as the
    metric can say (`unrelated`); two equal ones as close (`identical`).
    """

    parts: ClassVar[tuple[str, ...]] = ("score",)  # the columns of a formula's result
    reference_encoder: ClassVar[str] = "minilm@4"  # the best small English one, and its layer
    identical: ClassVar[float] = 1.0
    unrelated: ClassVar[float] = 0.0

    encoder: str = "auto"
    against: Against = "auto"
    references: Over = "best"
    precision: Precision = "fp32"
    long: Long = "truncate"
    lp: str = ""
    centre: Centre = "auto"
    astray: Annotated[float, Range(0, 1)] = ASTRAY

    def __post_init__(self) -> None:
        parse_pair(self.lp)

    @abstractmethod
    def formula(self, encoder: Encoder, segments: Sequence[Segment]) -> Formula:
        """The function from a chunk of m comparisons to their values, (m,) or (m, parts)."""

    def links(self, left: Float32Array, right: Float32Array) -> Sequence[Link]:
        """What was aligned with what, by the unit vectors of pieces, (pieces, d); here nothing."""
        return ()

    def finish(self, values: FloatArray, encoder: Encoder, side: Side) -> FloatArray:
        """The values of all comparisons, (c, parts), as they go into statistics."""
        return values

    @property
    def reads(self) -> frozenset[str]:
        """Which vectors of a text the formula reads: "tokens", "sentences" or both."""
        return frozenset({"tokens"})

    @property
    def main_part(self) -> str:
        """The part that is the score."""
        return self.parts[0]

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.parts, "segments")

    @property
    def needs(self) -> frozenset[str]:
        return NOTHING if self.against == "auto" else NEEDS[self.against]

    def check(self, segments: Sequence[Segment]) -> None:
        super().check(segments)
        if self.against != "auto":
            return
        bare = [not s.references for s in segments]
        if any(bare) and not all(bare):
            raise NeedsError(
                f"{self.name}: segment {bare.index(True) + 1} has no references and others have; "
                "say with against=reference or against=source what to compare with"
            )
        for number, segment in enumerate(segments, start=1):
            if not segment.references and segment.source is None:
                raise NeedsError(
                    f"{self.name} needs references or the source, and segment {number} has "
                    f"neither: {WAYS['references']}, or the source likewise"
                )

    def sides(self, segments: Sequence[Segment]) -> tuple[Side, ...]:
        """What these segments are compared with; of none, what segments mostly have."""
        if self.against == "auto":
            bare = bool(segments) and not segments[0].references
            return ("source",) if bare else ("reference",)
        if self.against == "both":
            return ("reference", "source")
        return (self.against,)

    def encoder_of(self, side: Side) -> Encoder:
        """The encoder for one side."""
        auto = SOURCE_ENCODER if side == "source" else self.reference_encoder
        name = auto if self.encoder == "auto" else self.encoder
        return load_encoder(name, precision=self.precision, long=self.long, special=True)

    def centring(self, encoder: Encoder, side: Side) -> Centring | None:
        """How vectors are centred on one side; None where they are taken as they are."""
        if side != "source" or self.centre == "none":
            return None
        means = language_means(encoder.name)
        if means is None:
            if self.centre != "auto":
                raise UsageError(f"no means of languages are stored for encoder {encoder.name}")
            return None
        source, target = self.languages or ("", "")
        aligned = self.centre != "language"
        directions = translation_directions(encoder.name) if aligned else None
        return Centring(means, source, target, directions)

    def scale_of(self, encoder: Encoder, side: Side) -> str:
        """The scale of values, as `calibration` names it: the side, and how vectors are centred."""
        centring = self.centring(encoder, side)
        if centring is None:
            return side
        return f"{side}/aligned" if centring.directions else f"{side}/language"

    def parts_of(self, encoder: Encoder, side: Side) -> frozenset[str]:
        """Which vectors are asked of an encoder: centred sentence vectors are made of tokens'."""
        return frozenset({"tokens"}) if self.centring(encoder, side) else self.reads

    @property
    def learned(self) -> tuple[str, ...]:
        encoders = [self.encoder_of(side) for side in self.sides(())]
        return tuple(encoder.signature_fields()["model"] for encoder in encoders)

    def asks(self, segments: Sequence[Segment]) -> list[tuple[Encoder, str]]:
        encoders = [(self.encoder_of(side), side) for side in self.sides(segments)]
        return [(e, part) for e, side in encoders for part in sorted(self.parts_of(e, side))]

    def statistics(self, segments: Sequence[Segment]) -> FloatArray:
        sides = []
        for side in self.sides(segments):
            owners, _, values = self._compare(segments, side)
            reduced = over_references(
                values, owners, self.references, higher_is_better=self.higher_is_better
            )
            sides.append(reduced)
        return np.column_stack([np.mean(sides, axis=0), np.ones(len(segments))])

    def reduce(self, totals: FloatArray) -> FloatArray:
        column = self.parts.index(self.main_part)
        result: FloatArray = totals[..., column] / totals[..., -1]
        return result

    def _compare(
        self, segments: Sequence[Segment], side: Side
    ) -> tuple[IntArray, list[str], FloatArray]:
        """Of each comparison on one side its segment, its other text and its values, (c, parts)."""
        owners, left, right = comparisons(segments, side)
        encoder = self.encoder_of(side)
        parts = self.parts_of(encoder, side)
        alone = replace(self, against=side)  # so that an idf is that of this side's texts
        values = pairwise(
            encoder,
            left,
            right,
            alone.formula(encoder, segments),
            tokens="tokens" in parts,
            sentences="sentences" in parts,
            change=self.centring(encoder, side),
        )
        values = values.reshape(len(left), -1)
        if side == "source":
            strays = are_in_other_language(left, *self.languages[1:])
            values[strays] += self.astray * (np.array(self.edge(False)) - values[strays])
        blank = np.array([not (a.strip() and b.strip()) for a, b in zip(left, right, strict=True)])
        blank |= np.isnan(values).any(axis=1)
        for row in np.flatnonzero(blank):
            equal = left[row].strip() == right[row].strip()
            values[row] = self.edge(equal)
        return owners, right, self.finish(values, encoder, side)

    def edge(self, equal: bool) -> Sequence[float]:
        """The values of two texts that cannot be compared: equal ones, or any others."""
        return [self.identical if equal else self.unrelated] * len(self.parts)

    def explain(self, segment: Segment) -> Explanation:
        """The score of a segment with what was aligned with what, ready for JSON."""
        self.check([segment])
        found: list[TextComparison] = []
        for side in self.sides([segment]):
            _, texts, values = self._compare([segment], side)
            for text, row in zip(texts, values, strict=True):
                found.append(self._comparison(side, segment.hypothesis, text, row))
        score = float(self.score([segment]).segments[0])
        return Explanation(metric=self.spec, score=score, comparisons=tuple(found))

    def _comparison(self, side: Side, left: str, right: str, values: FloatArray) -> TextComparison:
        encoder = self.encoder_of(side)
        parts, centring = self.parts_of(encoder, side), self.centring(encoder, side)
        tokens, sentences = "tokens" in parts, "sentences" in parts
        chunk = next(chunks(encoder, [left], [right], tokens=tokens, sentences=sentences))
        chunk = centring(chunk, [left], [right]) if centring else chunk
        pieces = [chunk.texts.pieces[int(row)] for row in (chunk.left[0], chunk.right[0])]
        vectors = piece_vectors(chunk, 0)
        links = tuple(self.links(*vectors)) if all(pieces) else ()
        greedy = bool(links) and links[0].direction != "transport"
        return TextComparison(
            side=side,
            text=right,
            values=dict(zip(self.parts, values.tolist(), strict=True)),
            hypothesis_pieces=tuple(piece for piece in pieces[0] if piece),
            other_pieces=tuple(piece for piece in pieces[1] if piece),
            links=links,
            cosines=round_cosines(products(*vectors)) if greedy else (),
        )

    @property
    def languages(self) -> tuple[str, ...]:
        """The source and target language of `lp`, empty where it is not given."""
        return parse_pair(self.lp)

    def warnings(self, segments: Sequence[Segment]) -> dict[str, int]:
        counts = Counter(super().warnings(segments))
        for encoder, texts in self._readings(segments):
            counts.update(count_unread([encoder], texts))
            if isinstance(encoder, StaticEncoder):
                counts["unknown word"] += encoder.count_unknown(texts)
        for side in self.sides(segments):
            encoder = self.encoder_of(side)
            _, left, right = comparisons(segments, side)
            kind = f"language unknown to {encoder.name.partition('@')[0]}"
            # the source's side counts all that the references' does, where one encoder reads both
            counts[kind] = max(counts[kind], self._foreign(encoder, segments, side))
            if centring := self.centring(encoder, side):
                counts.update(centring.warnings(left, right))
            if side == "source":
                counts.update(self._languages_found(left, right))
        return {kind: count for kind, count in counts.items() if count}

    def _readings(self, segments: Sequence[Segment]) -> list[tuple[Encoder, list[str]]]:
        """Each encoder with the texts it reads, once each: both sides may share it."""
        found: dict[str, tuple[Encoder, dict[str, None]]] = {}
        for side in self.sides(segments):
            encoder = self.encoder_of(side)
            _, texts = found.setdefault(encoder.name, (encoder, {}))
            texts.update(dict.fromkeys(distinct_texts(segments, side)))
        return [(encoder, [*texts]) for encoder, texts in found.values()]

    def _languages_found(self, hypotheses: Sequence[str], sources: Sequence[str]) -> dict[str, int]:
        """How many texts are blank, of several languages, or in another one than said."""
        counts = {
            "empty source": sum(not text.strip() for text in sources),
            "text of two languages": sum(map(is_mixed, [*hypotheses, *sources])),
            STRAYS: 0 if self.lp else count_strays(hypotheses),
        }
        named = zip(("source", "translation"), (sources, hypotheses), self.languages, strict=False)
        return counts | {
            f"{kind} not in {code}": int(are_in_other_language(texts, code).sum())
            for kind, texts, code in named
        }

    def _foreign(self, encoder: Encoder, segments: Sequence[Segment], side: Side) -> int:
        """How many segments have a text in a language the encoder was not made for."""
        known = encoder.languages
        if known is None:
            return 0
        involved = self.languages if side == "source" else self.languages[1:]
        if not set(involved) <= known:
            return len(segments)
        scripts, told = scripts_of(known), known | {""}
        if side == "reference":
            if known == ENGLISH and not self.lp and (foreign := count_not_english(segments)):
                return foreign
            return sum(is_foreign(s.hypothesis, scripts) for s in segments)

        def is_strange(text: str) -> bool:
            language = "" if self.lp or is_short(text) else identify(text)
            return is_foreign(text, scripts) or language not in told

        return sum(is_strange(s.hypothesis) or is_strange(s.source or "") for s in segments)

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        sides = self.sides(segments)
        fields = {"against": "+".join(sides)}
        if "reference" in sides and any(len(s.references) > 1 for s in segments):
            fields["refs"] = self.references
        for side in sides:
            encoder = self.encoder_of(side)
            mark = "src" if side == "source" and len(sides) > 1 else ""
            fields |= {f"{mark}{key}": value for key, value in encoder.signature_fields().items()}
            centring = self.centring(encoder, side)
            if centring:
                fields |= centring.signature()
            if side == "source" and self.lp and self.astray:
                fields |= {} if centring else {"lp": self.lp}
                fields["astray"] = str(plain(self.astray, int | float))
        cut = sum(encoder.count_truncated(texts) for encoder, texts in self._readings(segments))
        return {**fields, "trunc": str(cut), **self.settings(segments)}

    def settings(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        """The metric's own part of its signature."""
        return {}
