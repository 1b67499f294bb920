"""Bundled metrics whose scores are calibrated to human scores.

The network runs once per text pair. Its raw outputs are cached and mapped to a human scale
(`scales`): direct assessment (DA) or MQM.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from tertium.arrays import Float32Array, FloatArray
from tertium.cache.vector_cache import CacheEntry, get_entries, put_entries
from tertium.encoders.encoder import TextReader
from tertium.errors import UnsupportedLanguageError
from tertium.execution import Precision
from tertium.metrics.base.explanation import Explanation, TextComparison
from tertium.metrics.base.metric import (
    ReferenceReduction,
    SegmentMetric,
    pair_texts,
    reduce_references,
)
from tertium.metrics.base.text_warnings import Flags, as_flags, flag_inputs
from tertium.metrics.flagship.bundled_model import (
    BundledModel,
    BundledModelSettings,
    load_bundled_model,
)
from tertium.metrics.flagship.scales import HumanScale, LengthPenalty, MqmScale
from tertium.models.trained_model import EqualByWeights
from tertium.segment import Segment
from tertium.text.language_identification import (
    are_english,
    is_clearly_not_english,
    is_plausibly_english,
)

CACHE_WRITE_BATCH = 4096  # rows computed between two writes to the cache
MAX_MQM_POINTS = 25  # the largest MQM penalty of a segment
Scale = Literal["da", "mqm"]
OTHER_METRICS = "use tertium-multi or chrf, or sentsim / bertscore with encoder=use"
CITATION = """\
@software{tertium,
    title = "tertium: a toolkit for machine translation evaluation",
    author = "{The tertium developers}", year = "2026"
}"""


InputMode = Literal["source", "reference", "both"]


@dataclass(frozen=True, kw_only=True, eq=False)
class CalibratedMetric(EqualByWeights, SegmentMetric):
    """Expected human score of a translation, 0 to 1, predicted by a bundled model.

    Only a hypothesis equal to its reference scores exactly 1. `references` selects the best or the
    mean score over several references. `scale` selects the human scale: `da` predicts direct
    assessment, `mqm` predicts 1 - penalty / 25 under MQM.
    """

    citation: ClassVar[str] = CITATION

    references: ReferenceReduction = "best"
    scale: Scale = "da"
    precision: Precision = "int8"

    @property
    def worst_score(self) -> float:
        return 0.0

    @property
    def model(self) -> BundledModel:
        """The model bundled under the name of the metric."""
        return load_bundled_model(self.name)

    @property
    def calibration_suffix(self) -> str:
        """Identifies in signatures the settings, besides the weights, that change scores."""
        return ""

    @property
    def weights_hash(self) -> str:
        return self.model.hash + self.calibration_suffix

    @property
    def fingerprint(self) -> str:
        """Identifies the raw outputs of the network in the cache, together with the precision."""
        return self.model.hash

    @property
    def model_ids(self) -> tuple[str, ...]:
        return (f"{self.name}@{self.model.hash[:8]}{self.calibration_suffix}",)

    @property
    @abstractmethod
    def reader(self) -> TextReader:
        """The part of the model that tokenizes texts."""

    def input_texts(self, segments: Sequence[Segment]) -> list[str]:
        """Return the distinct texts that the model reads."""
        return list(dict.fromkeys(t for s in segments for t in (s.hypothesis, *s.references)))

    def input_mode(self, segments: Sequence[Segment]) -> InputMode:
        """Return what translations are compared with."""
        return "reference"

    def flags(self, segments: Sequence[Segment]) -> Flags:
        inputs = flag_inputs([self.reader], segments, self.input_mode(segments))
        return {**super().flags(segments), **inputs}

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        fields = {
            "model": self.model_ids[0],
            "prec": self.precision,
            "maxlen": str(self.reader.max_length),
            "trunc": str(len(self.reader.find_truncated(self.input_texts(segments)))),
        }
        if any(len(s.references) > 1 for s in segments):
            fields["refs"] = self.references
        return fields if self.scale == "da" else {**fields, "scale": self.scale}

    def mqm_points(self, segments: Sequence[Segment]) -> FloatArray:
        """Return the expected MQM penalty of each segment, 0 to 25."""
        return expected_mqm_points(replace(self, scale="mqm").score(segments).segments)

    @abstractmethod
    def scale_of(self, segments: Sequence[Segment]) -> HumanScale:
        """Return the human scale of the scores of these segments."""

    def uncertainty(self, scores: FloatArray, segments: Sequence[Segment] = ()) -> FloatArray:
        return self.scale_of(segments).deviation(scores)

    def describe_score(self, score: float, segment: Segment) -> dict[str, float]:
        scale, values = self.scale_of([segment]), np.array([score])
        return {
            "score": score,
            "uncertainty": float(scale.deviation(values)[0]),
            "percentile": float(scale.percentile(values)[0]),
            "MQM points": float(self.mqm_points([segment])[0]),
        }

    def load_or_compute_outputs(
        self,
        version: int,
        keys: Sequence[str],
        compute: Callable[[list[int]], Iterable[FloatArray | Float32Array]],
    ) -> list[Float32Array]:
        """Return the raw outputs of each row, (k,), from the cache or the network.

        Increase `version` when the same weights give other outputs.
        """
        fingerprint = f"{self.name}-{version}:{self.fingerprint}:{self.precision}"
        return load_or_compute(fingerprint, keys, compute)


def load_or_compute(
    fingerprint: str,
    keys: Sequence[str],
    compute: Callable[[list[int]], Iterable[FloatArray | Float32Array]],
) -> list[Float32Array]:
    """Return the outputs of each row, (k,), from the cache or computed.

    A key identifies all texts of a row; each distinct row is computed once. `compute` takes the
    indices of missing rows.
    """
    first_rows = {key: n for n, key in reversed(list(enumerate(keys)))}
    entries = get_entries(fingerprint, list(first_rows))
    missing_rows = sorted(n for key, n in first_rows.items() if key not in entries)
    for start in range(0, len(missing_rows), CACHE_WRITE_BATCH):
        batch = missing_rows[start : start + CACHE_WRITE_BATCH]
        new_entries = {
            keys[n]: CacheEntry(np.asarray(outputs, dtype=np.float32), (), False)
            for n, outputs in zip(batch, compute(batch), strict=True)
        }
        put_entries(fingerprint, new_entries)
        entries |= new_entries
    return [entries[key].matrix for key in keys]


def expected_mqm_points(scores: FloatArray) -> FloatArray:
    """Convert scores on the MQM scale to penalty points."""
    penalties: FloatArray = MAX_MQM_POINTS * (1 - scores)
    return penalties


def rows_as_dicts(columns: Mapping[str, FloatArray]) -> list[dict[str, float]]:
    """Convert named columns to one dictionary per row.

    >>> rows_as_dicts({"score": np.array([0.5, 1.0])})
    [{'score': 0.5}, {'score': 1.0}]
    """
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


@dataclass(frozen=True, kw_only=True)
class EnglishModelSettings(BundledModelSettings, HumanScale):
    """The `config.json` of an English model: a DA scale and an MQM scale (`experts`)."""

    experts: MqmScale


@dataclass(frozen=True, kw_only=True, eq=False)
class EnglishCalibratedMetric(CalibratedMetric):
    """Reference-based calibrated metric for translations into English.

    `language` is `en` if the references are known to be English; otherwise they are checked.
    """

    language: str = ""

    def __post_init__(self) -> None:
        if self.language not in ("", "en"):
            raise UnsupportedLanguageError(
                f"{self.name} needs English references, not language={self.language}: "
                f"{OTHER_METRICS}"
            )

    @property
    def scale_spec(self) -> str:
        return replace(self, language="").spec

    @property
    @abstractmethod
    def settings(self) -> EnglishModelSettings:
        """The parsed `config.json` of the model."""

    @property
    def human_scale(self) -> HumanScale:
        """The scale of the scores: DA over raw scores, or MQM over error sums."""
        return self.settings.experts if self.scale == "mqm" else self.settings

    @property
    def length_penalty(self) -> LengthPenalty | None:
        """The penalty for longer references, if any."""
        return None

    @property
    def calibration_suffix(self) -> str:
        return f"+{self.length_penalty}" if self.length_penalty else ""

    @abstractmethod
    def run_network(self, hypotheses: Sequence[str], references: Sequence[str]) -> FloatArray:
        """Compute the raw output of each pair of texts, (pairs,), without the cache."""

    def raw_outputs(self, hypotheses: Sequence[str], references: Sequence[str]) -> FloatArray:
        """Return the cached raw network output of each pair, (pairs,), the same for all scales."""
        pairs = list(zip(hypotheses, references, strict=True))

        def compute(rows: list[int]) -> FloatArray:
            left, right = zip(*(pairs[n] for n in rows), strict=True)
            return self.run_network(left, right)[:, None]

        keys = [f"{len(a)} {a}{b}" for a, b in pairs]
        outputs = self.load_or_compute_outputs(3, keys, compute)
        return np.array(outputs, dtype=np.float64).reshape(len(pairs))

    def raw_scores(self, hypotheses: Sequence[str], references: Sequence[str]) -> FloatArray:
        """Return the raw network output of each pair with its length penalty, (pairs,)."""
        return self._penalize_length(self.raw_outputs(hypotheses, references), references)

    def _penalize_length(self, outputs: FloatArray, references: Sequence[str]) -> FloatArray:
        return outputs + self.length_penalty.shift(references) if self.length_penalty else outputs

    def pair_scores(
        self, outputs: FloatArray, hypotheses: Sequence[str], references: Sequence[str]
    ) -> FloatArray:
        """Calibrate the raw outputs of pairs, (pairs,)."""
        raw = self._penalize_length(outputs, references)
        if self.scale == "mqm":
            words = np.array([max(len(text.split()), 1) for text in references], dtype=np.float64)
            raw = self.settings.experts.errors(raw, words)
        same = np.array([a == b for a, b in zip(hypotheses, references, strict=True)], dtype=bool)
        return np.where(same, 1.0, self.human_scale.calibrate(raw))

    def check(self, segments: Sequence[Segment]) -> None:
        super().check(segments)
        if not self.language and not is_plausibly_english([s.references[0] for s in segments]):
            raise UnsupportedLanguageError(
                f"{self.name} needs English references, and most of these are not in English: "
                f"{OTHER_METRICS}; if they are English, set language=en (--target-language en)"
            )

    def flags(self, segments: Sequence[Segment]) -> Flags:
        # `check` refuses only texts that are long enough. Shorter ones are counted here if they are
        # not English together; otherwise single references may still be in another language.
        first = [s.references[0] for s in segments]
        all_count = not self.language and not are_english(first)
        is_foreign = as_flags(all_count or is_clearly_not_english(text) for text in first)
        return super().flags(segments) | {"reference not English": is_foreign}

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        owners, left, right = pair_texts(segments, "reference")
        scores = self.pair_scores(self.raw_outputs(left, right), left, right)
        return reduce_references(scores, owners, self.references)

    def scale_of(self, segments: Sequence[Segment]) -> HumanScale:
        return self.human_scale

    def percentile(self, scores: FloatArray) -> FloatArray:
        """Return the percentage of WMT system outputs that score lower (see the model card)."""
        return self.human_scale.percentile(scores)

    @abstractmethod
    def compare(
        self, hypothesis: str, reference: str, values: Mapping[str, float]
    ) -> TextComparison:
        """Align the pieces of a hypothesis and a reference; `values` belong to the pair."""

    def explain_segment(self, segment: Segment) -> Explanation:
        """Return the score, its uncertainty and percentile, and the best match of each piece."""
        owners, left, right = pair_texts([segment], "reference")
        outputs = self.raw_outputs(left, right)
        scores = self.pair_scores(outputs, left, right)
        mqm_scores = replace(self, scale="mqm").pair_scores(outputs, left, right)
        values = rows_as_dicts(
            {
                "score": scores,
                "uncertainty": self.uncertainty(scores),
                "percentile": self.percentile(scores),
                "MQM points": expected_mqm_points(mqm_scores),
            }
        )
        matches = tuple(map(self.compare, left, right, values))
        score = float(reduce_references(scores, owners, self.references)[0])
        return Explanation(metric=self.spec, score=score, comparisons=matches)
