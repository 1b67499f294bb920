"""Bundled metrics whose scores are calibrated to human scores.

A network reads rows of texts (`input_rows`) once. Its raw outputs are cached. Scores, uncertainty,
MQM points and explanations are computed from them on a human scale (`scales`): direct assessment
(DA) or MQM.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import ClassVar, Literal

import numpy as np

from tertium.core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from tertium.core.errors import UnsupportedLanguageError
from tertium.core.runtime import Precision, current_runtime
from tertium.core.segment import Against, Segment
from tertium.encoders.vector_cache import CacheEntry, get_entries, put_entries
from tertium.metrics.base.explanation import Explanation, TextComparison
from tertium.metrics.base.metric import (
    ReferenceReduction,
    SegmentMetric,
    distinct_texts,
    reduce_references,
)
from tertium.metrics.base.scorer import flag_empty
from tertium.metrics.base.text_warnings import Flags, flag_inputs, flag_not_english
from tertium.metrics.bundled.bundled_model import (
    BundledModel,
    BundledModelSettings,
    load_bundled_model,
)
from tertium.metrics.bundled.input_rows import (
    Row,
    RowNetwork,
    build_rows,
    load_network,
    row_key,
)
from tertium.metrics.bundled.scales import HumanScale, MqmScale
from tertium.models.trained_model import EqualByWeights
from tertium.text.language_identification import is_plausibly_english

CACHE_VERSION = 7  # increase it when the same weights give other outputs
CACHE_WRITE_BATCH = 4096  # rows computed between two writes to the cache
MAX_MQM_POINTS = 25  # the largest MQM penalty of a segment
# Subtracted from raw scores of wrong-language output, in standard deviations of human scores. The
# network cannot see this error in QE mode: a source does not name the target language.
WRONG_LANGUAGE_PENALTY = 2.5
Scale = Literal["da", "mqm"]
OTHER_METRICS = "use tertium-multi or chrf, or sentsim / bertscore with encoder=use"
CITATION = """\
@software{tertium,
    title = "tertium: a toolkit for machine translation evaluation",
    author = "{The tertium developers}", year = "2026"
}"""


@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedRows:
    """Rows of segments with the outputs of the network, from which all predictions are computed.

    `owners` are the indices of the segments, `raw` the first output of each row, with a penalty for
    translations that are clearly in another language (`failed`), (rows,) each.
    """

    mode: Against
    owners: IntArray
    rows: Sequence[Row]
    outputs: Sequence[Float32Array]
    failed: BoolArray
    raw: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class CalibratedMetric(EqualByWeights, SegmentMetric):
    """Expected human score of a translation, 0 to 1, predicted by a bundled model.

    Only a hypothesis equal to its reference scores exactly 1. `references` selects the best or the
    mean score over several references. `scale` selects the human scale: `da` predicts direct
    assessment, `mqm` predicts 1 - penalty / 25 under MQM.
    """

    network: ClassVar[type[RowNetwork]]
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
    def reader(self) -> RowNetwork:
        """The network of the model and its tokenizer."""
        return load_network(self.network, self.model, self.precision, current_runtime().device)

    @abstractmethod
    def da_scale(self, mode: Against) -> HumanScale:
        """Return the scale of direct assessment, over raw scores."""

    @abstractmethod
    def mqm_scale(self, mode: Against) -> MqmScale:
        """Return the scale of MQM, over error sums."""

    @abstractmethod
    def text_lengths(self, rows: Sequence[Row]) -> FloatArray:
        """Return the length of each row, on which error sums depend, (rows,)."""

    def input_mode(self, segments: Sequence[Segment]) -> Against:
        """Return what translations are compared with."""
        return "reference"

    def find_failed(self, rows: Sequence[Row]) -> BoolArray:
        """Flag translations that are clearly in another language than requested, (rows,)."""
        return np.zeros(len(rows), dtype=np.bool_)

    def da_raw_scores(self, prepared: PreparedRows) -> FloatArray:
        """Return the raw score of each row that the scale of direct assessment maps, (rows,)."""
        return prepared.raw

    def raw_outputs(self, rows: Sequence[Row]) -> list[Float32Array]:
        """Return the raw outputs of each row, from the cache or the network."""
        return load_or_compute(
            f"{self.name}-{CACHE_VERSION}:{self.fingerprint}:{self.precision}",
            list(map(row_key, rows)),
            lambda numbers: self.reader([rows[n] for n in numbers]),
        )

    def raw_scores(self, rows: Sequence[Row]) -> FloatArray:
        """Return the network score of each row before calibration, (rows,)."""
        return np.array([output[0] for output in self.raw_outputs(rows)], dtype=np.float64)

    def prepare(self, segments: Sequence[Segment]) -> PreparedRows:
        """Build the rows of segments and run the network on them, unless the cache has them."""
        mode = self.input_mode(segments)
        owners, rows = build_rows(segments, mode)
        outputs = self.raw_outputs(rows)
        failed = self.find_failed(rows)
        raw = np.array([output[0] for output in outputs], dtype=np.float64)
        return PreparedRows(
            mode=mode,
            owners=owners,
            rows=rows,
            outputs=outputs,
            failed=failed,
            raw=raw - WRONG_LANGUAGE_PENALTY * failed,
        )

    def calibrate(self, prepared: PreparedRows, scale: Scale) -> FloatArray:
        """Return scores on a human scale, (rows,); a copy of the reference gets 1."""
        if scale == "mqm":
            scores = self.mqm_scale(prepared.mode).calibrate(self.negative_error_sums(prepared))
        else:
            scores = self.da_scale(prepared.mode).calibrate(self.da_raw_scores(prepared))
        is_copy = [hypothesis == reference for hypothesis, _, reference in prepared.rows]
        return np.where(np.array(is_copy, dtype=np.bool_), 1.0, scores)

    def negative_error_sums(self, prepared: PreparedRows) -> FloatArray:
        """Return minus the expected error sum of each row, (rows,), as under MQM."""
        lengths = self.text_lengths(prepared.rows)
        return self.mqm_scale(prepared.mode).errors(prepared.raw, lengths, prepared.failed)

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        prepared = self.prepare(segments)
        scores = self.calibrate(prepared, self.scale)
        return reduce_references(scores, prepared.owners, self.references)

    def assess(self, segments: Sequence[Segment]) -> dict[str, FloatArray]:
        """Return the predictions for each segment, (segments,), by name.

        These are the score, the uncertainty (standard deviation of human scores around the score),
        the percentile (percentage of WMT system outputs that score lower) and the expected MQM
        points, 0 to 25.
        """
        self.check(segments)
        prepared = self.prepare(segments)
        values = reduce_references(self.row_values(prepared), prepared.owners, self.references)
        values[flag_empty(self, segments)] = self.worst_score
        return self.describe(values, prepared.mode)

    def mqm_points(self, segments: Sequence[Segment]) -> FloatArray:
        """Return the expected MQM penalty of each segment, 0 to 25."""
        return self.assess(segments)["MQM points"]

    def human_scale(self, mode: Against = "reference") -> HumanScale:
        """Return the scale of the scores in an input mode."""
        return self.mqm_scale(mode) if self.scale == "mqm" else self.da_scale(mode)

    def uncertainty(self, scores: FloatArray, segments: Sequence[Segment] = ()) -> FloatArray:
        return self.human_scale(self.input_mode(segments)).deviation(scores)

    def describe_score(self, score: float, segment: Segment) -> dict[str, float]:
        """Return the predictions for an empty translation, which has the worst score."""
        return {name: float(values[0]) for name, values in self.assess([segment]).items()}

    def row_values(self, prepared: PreparedRows) -> FloatArray:
        """Return the score and the MQM score of each row, (rows, 2)."""
        scores = [self.calibrate(prepared, scale) for scale in (self.scale, "mqm")]
        return np.column_stack(scores)

    def describe(self, values: FloatArray, mode: Against) -> dict[str, FloatArray]:
        """Return predictions by name, given the columns of `row_values`."""
        scores = values[:, 0]
        scale = self.human_scale(mode)
        return {
            "score": scores,
            "uncertainty": scale.deviation(scores),
            "percentile": scale.percentile(scores),
            "MQM points": MAX_MQM_POINTS * (1 - values[:, 1]),
        }

    def explain_segment(self, segment: Segment) -> Explanation:
        """Return the score and the other predictions for each reference, or for the source."""
        prepared = self.prepare([segment])
        columns = self.describe(self.row_values(prepared), prepared.mode)
        comparisons = []
        for number, (_, source, reference) in enumerate(prepared.rows):
            comparison = TextComparison(
                side="source" if reference is None else "reference",
                text=(source if reference is None else reference) or "",
                values={name: float(column[number]) for name, column in columns.items()},
                combined_with="source" if prepared.mode == "both" else "",
            )
            comparisons.append(comparison)
        score = reduce_references(columns["score"], prepared.owners, self.references)[0]
        return Explanation(metric=self.spec, score=float(score), comparisons=tuple(comparisons))

    def flags(self, segments: Sequence[Segment]) -> Flags:
        inputs = flag_inputs([self.reader], segments, self.input_mode(segments))
        return {**super().flags(segments), **inputs}

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        texts = distinct_texts(segments, self.input_mode(segments))
        fields = {
            "model": self.model_ids[0],
            "prec": self.precision,
            "maxlen": str(self.reader.max_length),
            "trunc": str(len(self.reader.find_truncated(texts))),
        }
        if any(len(s.references) > 1 for s in segments):
            fields["refs"] = self.references
        return fields if self.scale == "da" else {**fields, "scale": self.scale}


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


def settings_suffix(settings: object) -> str:
    """Return a suffix for signatures that identifies settings."""
    return f"+{sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]}"


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

    def da_scale(self, mode: Against) -> HumanScale:
        return self.settings

    def mqm_scale(self, mode: Against) -> MqmScale:
        return self.settings.experts

    def text_lengths(self, rows: Sequence[Row]) -> FloatArray:
        """Return the number of words of each reference, (rows,)."""
        return np.array([max(len((row[2] or "").split()), 1) for row in rows], dtype=np.float64)

    def check(self, segments: Sequence[Segment]) -> None:
        super().check(segments)
        if not self.language and not is_plausibly_english([s.references[0] for s in segments]):
            raise UnsupportedLanguageError(
                f"{self.name} needs English references, and most of these are not in English: "
                f"{OTHER_METRICS}; if they are English, set language=en (--target-language en)"
            )

    def flags(self, segments: Sequence[Segment]) -> Flags:
        # `check` refuses only texts that are long enough, and a text in another language is no
        # error if the others are English.
        is_foreign = flag_not_english(segments, check_together=not self.language)
        return super().flags(segments) | {"reference not English": is_foreign}
