"""tertium-multi: calibrated metric for about 100 languages, with a source, a reference or both.

The model is a fine-tuned multilingual-e5-small whose upper layers read all texts jointly
(`joint_network`). Its embedding table is stored in 4 bits per weight, as published.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import ClassVar, Literal

import numpy as np

from tertium.core.arrays import BoolArray, Float32Array, FloatArray
from tertium.core.errors import UsageError
from tertium.core.runtime import current_runtime
from tertium.core.segment import Segment
from tertium.core.spans import Span
from tertium.encoders.tokenizer import TokenOffsets
from tertium.metrics.base.metric import NOTHING
from tertium.metrics.base.optional_inputs import check_same_inputs
from tertium.metrics.base.scorer import flag_empty
from tertium.metrics.base.text_warnings import Flags, flag_compared, flag_texts
from tertium.metrics.bundled.calibrated_metric import CalibratedMetric, Pieces, PreparedRows
from tertium.metrics.bundled.input_rows import INPUT_MODES, Row
from tertium.metrics.bundled.marked_errors import (
    OTHER_FAMILIES,
    AnnotationScheme,
    SpanThresholds,
    extract_spans,
)
from tertium.metrics.bundled.row_scorer import (
    MultiSettings,
    RowScorer,
    load_row_scorer,
    piece_errors,
)
from tertium.metrics.bundled.scales import HumanScale, MqmScale
from tertium.models.input_columns import REQUIRED_INPUTS, Against
from tertium.text.language_codes import language_family, parse_language_pair
from tertium.text.language_identification import (
    WRONG_LANGUAGE_WARNING,
    flag_other_language,
    flag_wrong_language,
    identify_language,
)
from tertium.text.scripts import is_other_script, language_scripts

MODEL = "tertium-multi"


@dataclass(frozen=True, kw_only=True)
class AssessmentResult:
    """Predictions for some translations, (n,) each.

    `uncertainty` is the standard deviation of human scores around `score`, `percentile` the
    percentage of WMT system outputs that score lower, and `no_error_probability` the probability
    that an MQM annotator marks no error.
    """

    score: FloatArray
    uncertainty: FloatArray
    percentile: FloatArray
    no_error_probability: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class TertiumMulti(CalibratedMetric):
    """Expected human score of a translation, 0 to 1, in about 100 languages.

        score = calibrate(head(states, f))

    `states` are those of the network that reads all texts, `f` surface features such as chrF.
    `calibrate` is a monotone map to the human scale, fitted for each input mode. Only a hypothesis
    equal to its reference scores exactly 1.

    Inputs: the source, references, or both. Give both when the reference may be loose or wrong: the
    model falls back on the source.

    Settings:

    - `against`: `source` (QE), `reference`, `both`, or `auto` for all available inputs.
    - `scale`: `da` for direct assessment, `mqm` for 1 - penalty / 25 under MQM.
    - `references`: `best` or `mean` score over several references.
    - `lp`: language pair, such as `de-en`. Translations in another language are counted and
      penalized.
    - `marks`: annotation scheme that `spans` follows: `mqm`, `esa` or `words` (post-editing).
    - `all_spans`: mark all suspected errors. By default, only spans are marked of which annotators
      confirm at least half, and none where that cannot be expected.

    See also: `tertium-small` is faster and agrees better with humans on English references.

    >>> metric = TertiumMulti(against="reference")
    >>> metric.sentence_score("The train leaves at noon.", ["The train leaves at noon."])
    1.0
    """

    name: ClassVar[str] = MODEL
    title: ClassVar[str] = "tertium-multi"

    against: Literal["auto", "source", "reference", "both"] = "auto"
    lp: str = ""
    marks: AnnotationScheme = "mqm"
    all_spans: bool = False

    def __post_init__(self) -> None:
        parse_language_pair(self.lp)

    @property
    def required_inputs(self) -> frozenset[str]:
        return NOTHING if self.against == "auto" else REQUIRED_INPUTS[self.against]

    @property
    def scale_spec(self) -> str:
        return replace(self, lp="", marks="mqm", all_spans=False).spec

    @property
    def settings(self) -> MultiSettings:
        return self.model.settings(MultiSettings)

    @property
    def calibration_suffix(self) -> str:
        scales = self.model.config["experts" if self.scale == "mqm" else "scales"]
        parts = ("calibration", "errors") if self.scale == "mqm" else ("calibration",)
        maps = [scales[mode][part] for part in parts for mode in INPUT_MODES]
        return f"+{sha256(json.dumps(maps, sort_keys=True).encode()).hexdigest()[:8]}"

    @property
    def reader(self) -> RowScorer:
        return load_row_scorer(self.model, self.precision, current_runtime().device)

    def check(self, segments: Sequence[Segment]) -> None:
        super().check(segments)
        if self.against == "auto":
            check_same_inputs(self.name, segments)

    def input_mode(self, segments: Sequence[Segment]) -> Against:
        """Return the input mode of segments; without segments, that of most test sets."""
        if self.against != "auto":
            return self.against
        if not segments or segments[0].references:
            return "reference" if segments and segments[0].source is None else "both"
        return "source"

    def da_scale(self, mode: Against) -> HumanScale:
        return self.settings.scales[mode]

    def mqm_scale(self, mode: Against) -> MqmScale:
        return self.settings.experts[mode]

    def text_lengths(self, rows: Sequence[Row]) -> FloatArray:
        return self.reader.count_pieces(rows)

    def find_failed(self, rows: Sequence[Row]) -> BoolArray:
        target = parse_language_pair(self.lp)[1:]
        return flag_other_language([row[0] for row in rows], *target)

    def run_network(self, rows: Sequence[Row]) -> list[Float32Array]:
        return self.reader(rows)

    def piece_vectors(self, row: Row) -> Mapping[int, Pieces]:
        return self.reader.piece_vectors(row)

    def no_error_probabilities(self, prepared: PreparedRows) -> FloatArray:
        """Return the probability of each row that an MQM annotator marks no error, (rows,)."""
        return self.settings.clean[prepared.mode](self.negative_error_sums(prepared))

    def predict_rows(self, prepared: PreparedRows) -> dict[str, FloatArray]:
        columns = super().predict_rows(prepared)
        points = columns.pop("MQM points")
        return {**columns, "no error": self.no_error_probabilities(prepared), "MQM points": points}

    def describe_score(self, score: float, segment: Segment) -> dict[str, float]:
        return {**super().describe_score(score, segment), "no error": 0.0}

    def assess(self, segments: Sequence[Segment]) -> AssessmentResult:
        """Return score, uncertainty, percentile and no-error probability of each segment."""
        self.check(segments)
        prepared, is_empty = self.prepare(segments), flag_empty(self, segments)
        columns = self.calibrate(prepared, self.scale), self.no_error_probabilities(prepared)
        score, no_error = (
            np.where(is_empty, 0.0, self.reduce_rows(prepared, column)) for column in columns
        )
        scale = self.human_scale(prepared.mode)
        return AssessmentResult(
            score=score,
            uncertainty=scale.deviation(score),
            percentile=scale.percentile(score),
            no_error_probability=no_error,
        )

    @property
    def can_mark_errors(self) -> bool:
        return bool(self.settings.shape.tags) and self.settings.spans is not None

    def spans(self, segments: Sequence[Segment]) -> list[tuple[Span, ...]]:
        """Return the error spans of each translation, compared with its best reference."""
        self.check(segments)
        if not self.can_mark_errors:
            raise UsageError(
                f"{self.model_ids[0]} cannot mark errors: its weights have no tags; use "
                "`tertium explain` to see which pieces of a translation have no match"
            )
        thresholds = [self._span_thresholds(s, self.input_mode(segments)) for s in segments]
        marked = [n for n, limits in enumerate(thresholds) if limits]
        prepared = self.prepare([segments[n] for n in marked])
        offsets = self.piece_offsets([segments[n].hypothesis for n in marked])
        spans: list[tuple[Span, ...]] = [()] * len(segments)
        for place, (number, row) in enumerate(zip(marked, self._best_rows(prepared), strict=True)):
            hypothesis, _, reference = prepared.rows[row]
            limits = thresholds[number]
            if limits and hypothesis != reference:
                errors = piece_errors(prepared.outputs[row])
                spans[number] = extract_spans(
                    hypothesis, offsets[place], errors, self.marks, limits
                )
        return spans

    def _span_thresholds(self, segment: Segment, mode: Against) -> SpanThresholds | None:
        """Return the thresholds for the target language, or None if no span is to be shown.

        Without `lp`, the language is detected in the hypothesis or else in its reference.
        """
        assert self.settings.spans is not None
        families = self.settings.spans[self.marks][mode]
        if not self.all_spans and not any(limits.precise for limits in families.values()):
            return None
        texts = (segment.hypothesis, *segment.references[:1])
        target = parse_language_pair(self.lp)[1:]
        language = target[0] if target else next(filter(None, map(identify_language, texts)), "")
        limits = families.get(language_family(language), families[OTHER_FAMILIES])
        return limits if self.all_spans else limits.for_display()

    def _best_rows(self, prepared: PreparedRows) -> list[int]:
        """Return the index of the first best-scoring row of each segment."""
        scores, best = self.calibrate(prepared, self.scale), dict[int, int]()
        for row, segment in enumerate(prepared.owners.tolist()):
            if segment not in best or scores[row] > scores[best[segment]]:
                best[segment] = row
        return list(best.values())

    @property
    def span_note(self) -> str:
        if self.all_spans:
            return ""
        return (
            "only spans with an expected precision of 50 % or more are shown; "
            f"{replace(self, all_spans=True).spec} marks all suspected errors"
        )

    def piece_offsets(self, texts: Sequence[str]) -> list[TokenOffsets]:
        """Return the start and end of each piece of texts, in code points."""
        return self.reader.piece_offsets(texts)

    def flags(self, segments: Sequence[Segment]) -> Flags:
        mode = self.input_mode(segments)
        hypotheses = [segment.hypothesis for segment in segments]
        target = parse_language_pair(self.lp)[1:]
        windowed = self.reader.find_windowed(self.input_texts(segments))
        flags = super().flags(segments)
        flags[f"language unknown to {self.name}"] = self.flag_unsupported(segments, mode)
        if mode != "reference":
            flags["empty source"] = flag_texts(segments, lambda text: not text.strip(), "source")
        flags["long text, read in windows"] = flag_compared(windowed, segments, mode)
        if target:
            flags[f"translation not in {target[0]}"] = flag_other_language(hypotheses, *target)
        else:
            flags[WRONG_LANGUAGE_WARNING] = flag_wrong_language(hypotheses)
        return flags

    def flag_unsupported(self, segments: Sequence[Segment], mode: Against) -> BoolArray:
        """Flag segments with a text in a language that the encoder does not support, (n,)."""
        supported = frozenset(self.settings.languages)
        involved = parse_language_pair(self.lp)[1 if mode == "reference" else 0 :]
        if not supported.issuperset(involved):
            return np.ones(len(segments), dtype=np.bool_)
        scripts = language_scripts(supported)

        def is_unsupported(text: str) -> bool:
            return is_other_script(text, scripts) or identify_language(text) not in supported | {""}

        flags = flag_texts(segments, is_unsupported)
        if mode != "reference":
            flags |= flag_texts(segments, is_unsupported, "source")
        return flags

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        mode = self.input_mode(segments)
        fields = {"against": {"both": "source+reference"}.get(mode, mode)}
        fields |= super().signature_fields(segments)
        if self.lp:
            fields["lp"] = self.lp
        if mode == "source":
            fields.pop("refs", None)
        return fields
