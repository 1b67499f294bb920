"""Scores that mean something: what a model that ships says of a pair, as people would say it.

What its network says of a text is judged once and kept; a scale of people (`scales`), crowds or
experts, makes a score of it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from tertium.arrays import BoolArray, Float32Array, FloatArray
from tertium.cache.database import Part
from tertium.cache.memory import recall, remember
from tertium.encoders.encoder import Reader, count_unread
from tertium.errors import LanguageError
from tertium.metrics.base.explanation import Explanation, TextComparison
from tertium.metrics.base.metric import Over, SegmentMetric, comparisons, over_references
from tertium.metrics.flagship.packaged import Packaged, PackagedSettings, load_packaged
from tertium.metrics.flagship.scales import ExpertScale, HumanScale, LengthCost
from tertium.models.trained import EqualByWeights
from tertium.runtime import Precision
from tertium.segment import Segment
from tertium.text.language_identification import (
    are_english,
    are_few_words,
    is_not_english,
    looks_english,
)

KEPT_AT_ONCE = 4096  # pairs judged between two writings to the cache
MOST_POINTS = 25  # that experts take from a segment under MQM, however bad it is
Scale = Literal["da", "mqm"]
CITATION = """\
@software{tertium,
    title = "tertium: a toolkit that judges machine translation",
    author = "{The tertium developers}", year = "2026"
}"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Assessment(EqualByWeights, SegmentMetric):
    """Expected direct assessment of a translation, 0 to 1, by a model that ships.

    A hypothesis equal to its reference scores 1, and nothing else does. `references` takes the best
    or the mean over several. `scale` is whose scores are expected: what crowds say of a text (da),
    or what experts leave of it who add up its errors (mqm), 1 less the points they take over 25.
    """

    citation: ClassVar[str] = CITATION

    references: Over = "best"
    scale: Scale = "da"
    precision: Precision = "fp32"

    @property
    def model(self) -> Packaged:
        """What ships under the metric's name."""
        return load_packaged(self.name)

    @property
    def beside(self) -> str:
        """What moves scores beside the weights, as signatures say it."""
        return ""

    @property
    def weights_hash(self) -> str:
        return self.model.hash + self.beside

    @property
    def fingerprint(self) -> str:
        """What decides all that the network says of a row, beside precision."""
        return self.model.fingerprint

    @property
    def learned(self) -> tuple[str, ...]:
        return (f"{self.name}@{self.model.hash[:8]}{self.beside}",)

    @property
    @abstractmethod
    def reader(self) -> Reader:
        """What reads texts for the model."""

    def texts(self, segments: Sequence[Segment]) -> list[str]:
        """The distinct texts of segments that are read."""
        return list(dict.fromkeys(t for s in segments for t in (s.hypothesis, *s.references)))

    def warnings(self, segments: Sequence[Segment]) -> dict[str, int]:
        unread = count_unread([self.reader], self.texts(segments))
        return {**super().warnings(segments), **unread}

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        fields = {
            "model": self.learned[0],
            "prec": self.precision,
            "maxlen": str(self.reader.max_length),
            "trunc": str(self.reader.count_truncated(self.texts(segments))),
        }
        if any(len(s.references) > 1 for s in segments):
            fields["refs"] = self.references
        return fields if self.scale == "da" else {**fields, "scale": self.scale}

    def points(self, segments: Sequence[Segment]) -> FloatArray:
        """What experts are expected to take from each segment under MQM, 0 to 25."""
        self.check(segments)
        return expected_points(replace(self, scale="mqm").segment_scores(segments))

    def recall_or_judge(
        self,
        version: int,
        keys: Sequence[str],
        judge: Callable[[list[int]], Iterable[FloatArray | Float32Array]],
    ) -> list[Float32Array]:
        """What the network says of each row, (k,), by a key that holds all of its texts.

        Each distinct row is judged once; what was said of it is kept with the vectors. `judge` is
        given the places of rows; `version` changes where the same weights say something else.
        """
        fingerprint = f"{self.name}-{version}:{self.fingerprint}:{self.precision}"
        places = {key: n for n, key in reversed(list(enumerate(keys)))}
        known = recall(fingerprint, list(places))
        missing = sorted(n for key, n in places.items() if key not in known)
        for start in range(0, len(missing), KEPT_AT_ONCE):
            some = missing[start : start + KEPT_AT_ONCE]
            parts = {
                keys[n]: Part(np.asarray(said, dtype=np.float32), (), False)
                for n, said in zip(some, judge(some), strict=True)
            }
            remember(fingerprint, parts)
            known |= parts
        return [known[key].matrix for key in keys]


def expected_points(scores: FloatArray) -> FloatArray:
    """What experts take who leave such scores of segments under MQM."""
    points: FloatArray = MOST_POINTS * (1 - scores)
    return points


def name_rows(columns: Mapping[str, FloatArray]) -> list[dict[str, float]]:
    """What columns say of each row, by their names.

    >>> name_rows({"score": np.array([0.5, 1.0])})
    [{'score': 0.5}, {'score': 1.0}]
    """
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def are_missing(hypotheses: Sequence[str], others: Sequence[str]) -> BoolArray:
    """Which hypotheses are blank beside a text that is not: experts take all points for that.

    >>> are_missing(["a", " ", ""], ["A", "B", ""])
    array([False,  True, False])
    """
    pairs = zip(hypotheses, others, strict=True)
    return np.array([not a.strip() and bool(b.strip()) for a, b in pairs], dtype=bool)


@dataclass(frozen=True, kw_only=True)
class AssessmentSettings(PackagedSettings, HumanScale):
    """What the `config.json` of an English model declares: a scale of crowds, one of experts."""

    experts: ExpertScale


@dataclass(frozen=True, kw_only=True, eq=False)
class EnglishAssessment(Assessment):
    """Expected direct assessment of a translation into English, beside its references alone."""

    @property
    @abstractmethod
    def settings(self) -> AssessmentSettings:
        """What the model's `config.json` says, as its metric declares it."""

    @property
    def human_scale(self) -> HumanScale:
        """What raw scores mean, or sums of errors."""
        return self.settings.experts if self.scale == "mqm" else self.settings

    @property
    def cost(self) -> LengthCost | None:
        """What longer references cost, if they do."""
        return None

    @property
    def beside(self) -> str:
        return f"+{self.cost}" if self.cost else ""

    @abstractmethod
    def judge(self, hypotheses: Sequence[str], references: Sequence[str]) -> FloatArray:
        """What the network says of each pair of texts, no two of them the same."""

    def said(self, hypotheses: Sequence[str], references: Sequence[str]) -> FloatArray:
        """What the network says of each pair, (pairs,), whatever scale is asked for."""
        pairs = list(zip(hypotheses, references, strict=True))

        def judge(places: list[int]) -> FloatArray:
            left, right = zip(*(pairs[n] for n in places), strict=True)
            return self.judge(left, right)[:, None]

        keys = [f"{len(a)} {a}{b}" for a, b in pairs]
        found = self.recall_or_judge(3, keys, judge)
        return np.array(found, dtype=np.float64).reshape(len(pairs))

    def raw_scores(self, hypotheses: Sequence[str], references: Sequence[str]) -> FloatArray:
        """What the network says of each pair, less what the reference's length costs."""
        return self._with_cost(self.said(hypotheses, references), references)

    def _with_cost(self, said: FloatArray, references: Sequence[str]) -> FloatArray:
        return said + self.cost.shift(references) if self.cost else said

    def pair_scores(
        self, said: FloatArray, hypotheses: Sequence[str], references: Sequence[str]
    ) -> FloatArray:
        """The score of each pair, (pairs,), of what the network says of it."""
        raw = self._with_cost(said, references)
        if self.scale == "mqm":
            words = np.array([max(len(text.split()), 1) for text in references], dtype=np.float64)
            raw = self.settings.experts.errors(raw, words, are_missing(hypotheses, references))
        same = np.array([a == b for a, b in zip(hypotheses, references, strict=True)], dtype=bool)
        return np.where(same, 1.0, self.human_scale.calibrate(raw))

    def check(self, segments: Sequence[Segment]) -> None:
        super().check(segments)
        if not looks_english([s.references[0] for s in segments]):
            raise LanguageError(
                f"{self.name} judges translations into English, and these references are not: "
                "use tertium-multi or chrf, or sentsim / bertscore with encoder=use"
            )

    def warnings(self, segments: Sequence[Segment]) -> dict[str, int]:
        # Too few words for `check` to refuse them, and yet clearly another language's together; of
        # more words all were counted there, and some may be.
        first = [s.references[0] for s in segments]
        foreign = are_few_words(first) and not are_english(first)
        count = len(first) if foreign else sum(map(is_not_english, first))
        return super().warnings(segments) | ({"reference not English": count} if count else {})

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        owners, left, right = comparisons(segments, "reference")
        scores = self.pair_scores(self.said(left, right), left, right)
        return over_references(scores, owners, self.references)

    def uncertainty(self, scores: FloatArray, segments: Sequence[Segment] = ()) -> FloatArray:
        return self.human_scale.deviation(scores)

    def percentile(self, scores: FloatArray) -> FloatArray:
        """The share, in percent, of system outputs that score lower; its card says of which."""
        return self.human_scale.percent(scores)

    @abstractmethod
    def compare(
        self, hypothesis: str, reference: str, values: Mapping[str, float]
    ) -> TextComparison:
        """A hypothesis beside a reference, piece by piece, with the values of the pair."""

    def explain(self, segment: Segment) -> Explanation:
        """The score and what is known of it, and each piece's best partner in the other text."""
        self.check([segment])
        owners, left, right = comparisons([segment], "reference")
        said = self.said(left, right)  # once, whatever is made of it
        scores = self.pair_scores(said, left, right)
        left_by_experts = replace(self, scale="mqm").pair_scores(said, left, right)
        values = name_rows(
            {
                "score": scores,
                "uncertainty": self.uncertainty(scores),
                "percentile": self.percentile(scores),
                "MQM points": expected_points(left_by_experts),
            }
        )
        found = tuple(map(self.compare, left, right, values))
        score = float(over_references(scores, owners, self.references)[0])
        return Explanation(metric=self.spec, score=score, comparisons=found)
