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

from tertium.arrays import BoolArray, Float32Array, FloatArray, IntArray
from tertium.encoders.tokenizer import TokenOffsets
from tertium.errors import UsageError
from tertium.execution import current_runtime
from tertium.metrics.base.explanation import Explanation, TextComparison
from tertium.metrics.base.metric import NOTHING, reduce_references
from tertium.metrics.base.optional_inputs import check_same_inputs
from tertium.metrics.base.text_warnings import Flags, flag_compared, flag_texts
from tertium.metrics.flagship.calibrated_metric import (
    CalibratedMetric,
    InputMode,
    expected_mqm_points,
    rows_as_dicts,
)
from tertium.metrics.flagship.error_spans import (
    OTHER_FAMILIES,
    AnnotationScheme,
    SpanThresholds,
    extract_spans,
)
from tertium.metrics.flagship.row_features import Row
from tertium.metrics.flagship.row_scorer import (
    MultiSettings,
    RowScorer,
    load_row_scorer,
    piece_errors,
)
from tertium.metrics.flagship.scales import HumanScale, MqmScale, NoErrorProbability
from tertium.models.inputs import REQUIRED_INPUTS
from tertium.segment import Segment
from tertium.spans import Span
from tertium.text.language_codes import language_family, parse_language_pair
from tertium.text.language_identification import (
    WRONG_LANGUAGE_WARNING,
    flag_other_language,
    flag_wrong_language,
    identify_language,
)
from tertium.text.scripts import is_other_script, language_scripts

MODEL = "tertium-multi"
INPUT_MODES: tuple[InputMode, ...] = ("source", "reference", "both")
# Subtracted from raw scores of wrong-language output, in standard deviations of human scores. The
# network cannot see this error in QE mode: a source does not name the target language.
WRONG_LANGUAGE_PENALTY = 2.5


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

    def input_mode(self, segments: Sequence[Segment]) -> InputMode:
        """Return the input mode of segments; without segments, that of most test sets."""
        if self.against != "auto":
            return self.against
        if not segments or segments[0].references:
            return "reference" if segments and segments[0].source is None else "both"
        return "source"

    def human_scale(self, mode: InputMode) -> HumanScale:
        scales = self.settings.experts if self.scale == "mqm" else self.settings.scales
        scale: HumanScale = getattr(scales, mode)
        return scale

    def describe_score(self, score: float, segment: Segment) -> dict[str, float]:
        no_error = float(self.assess([segment]).no_error_probability[0])
        return {**super().describe_score(score, segment), "no error": no_error}

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        mode = self.input_mode(segments)
        owners, rows = build_rows(segments, mode)
        return reduce_references(self.scores(rows, mode), owners, self.references)

    def scale_of(self, segments: Sequence[Segment]) -> HumanScale:
        return self.human_scale(self.input_mode(segments))

    def assess(self, segments: Sequence[Segment]) -> AssessmentResult:
        """Return score, uncertainty, percentile and no-error probability of each segment."""
        score, mode = self.score(segments).segments, self.input_mode(segments)
        owners, rows = build_rows(segments, mode)
        _, no_error = self._scores_and_no_error(rows, mode)
        no_error = reduce_references(no_error, owners, self.references)
        scale = self.human_scale(mode)
        return AssessmentResult(
            score=score,
            uncertainty=scale.deviation(score),
            percentile=scale.percentile(score),
            no_error_probability=np.where(self.flag_empty(segments), 0.0, no_error),
        )

    def scores(self, rows: Sequence[Row], mode: InputMode) -> FloatArray:
        """Return the calibrated score of each row, (rows,)."""
        wrong_language = self._in_wrong_language(rows)
        raw = self.raw_scores(rows) - WRONG_LANGUAGE_PENALTY * wrong_language
        return self._calibrate(rows, mode, raw, wrong_language)

    def _scores_and_no_error(
        self, rows: Sequence[Row], mode: InputMode
    ) -> tuple[FloatArray, FloatArray]:
        """Return the calibrated score and the no-error probability of each row, (rows,) each."""
        wrong_language = self._in_wrong_language(rows)
        raw = self.raw_scores(rows) - WRONG_LANGUAGE_PENALTY * wrong_language
        probability: NoErrorProbability = getattr(self.settings.clean, mode)
        no_error = probability(self._negative_error_sums(rows, mode, raw, wrong_language))
        return self._calibrate(rows, mode, raw, wrong_language), no_error

    def _calibrate(
        self, rows: Sequence[Row], mode: InputMode, raw: FloatArray, wrong_language: BoolArray
    ) -> FloatArray:
        """Map raw scores to the human scale; a copy of the reference gets 1."""
        if self.scale == "mqm":
            raw = self._negative_error_sums(rows, mode, raw, wrong_language)
        scores = self.human_scale(mode).calibrate(raw)
        same = np.array([hypothesis == reference for hypothesis, _, reference in rows], dtype=bool)
        return np.where(same, 1.0, scores)

    def _negative_error_sums(
        self, rows: Sequence[Row], mode: InputMode, raw: FloatArray, wrong_language: BoolArray
    ) -> FloatArray:
        """Return minus the expected error sum of each row, (rows,), as under MQM."""
        scale: MqmScale = getattr(self.settings.experts, mode)
        return scale.errors(raw, self.reader.count_pieces(rows), wrong_language)

    def _in_wrong_language(self, rows: Sequence[Row]) -> BoolArray:
        """Return which translations are clearly not in the target language of `lp`, (rows,)."""
        return flag_other_language([row[0] for row in rows], *parse_language_pair(self.lp)[1:])

    def raw_scores(self, rows: Sequence[Row]) -> FloatArray:
        """Return the network score of each row before calibration, (rows,)."""
        return np.array([output[0] for output in self.raw_outputs(rows)], dtype=np.float64)

    def raw_outputs(self, rows: Sequence[Row]) -> list[Float32Array]:
        """Return the cached raw outputs of each row, as `RowScorer` computes them."""
        return self.load_or_compute_outputs(
            6, list(map(row_key, rows)), lambda numbers: self.reader([rows[n] for n in numbers])
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
        mode = self.input_mode(segments)
        thresholds = [self._span_thresholds(segment, mode) for segment in segments]
        marked = [segment for segment, own in zip(segments, thresholds, strict=True) if own]
        owners, rows = build_rows(marked, mode)
        best = self._best_rows(owners, rows, mode)
        outputs = iter(self.raw_outputs([rows[n] for n in best]))
        offsets = iter(self.piece_offsets([s.hypothesis for s in marked]))
        best_rows = (rows[n] for n in best)
        spans: list[tuple[Span, ...]] = []
        for own in thresholds:
            if own is None:
                spans.append(())
                continue
            (hypothesis, _, reference), errors = next(best_rows), piece_errors(next(outputs))
            own_spans = extract_spans(hypothesis, next(offsets), errors, self.marks, own)
            spans.append(() if hypothesis == reference else own_spans)
        return spans

    def _span_thresholds(self, segment: Segment, mode: InputMode) -> SpanThresholds | None:
        """Return the thresholds for the target language, or None if no span is to be shown.

        Without `lp`, the language is detected in the hypothesis or else in its reference.
        """
        families: Mapping[str, SpanThresholds] = getattr(
            getattr(self.settings.spans, self.marks), mode
        )
        if not self.all_spans and not any(own.precise for own in families.values()):
            return None
        texts = (segment.hypothesis, *segment.references[:1])
        target = parse_language_pair(self.lp)[1:]
        language = target[0] if target else next(filter(None, map(identify_language, texts)), "")
        family = language_family(language)
        own = families.get(family, families[OTHER_FAMILIES])
        return own if self.all_spans else own.for_display()

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

    def _best_rows(self, owners: IntArray, rows: Sequence[Row], mode: InputMode) -> list[int]:
        """Return the index of the first best-scoring row of each segment."""
        scores = self.scores(rows, mode) if len(set(owners.tolist())) < len(rows) else None
        best: dict[int, int] = {}
        for n, owner in enumerate(owners.tolist()):
            if owner not in best or (scores is not None and scores[n] > scores[best[owner]]):
                best[owner] = n
        return [best[owner] for owner in sorted(best)]

    def explain_segment(self, segment: Segment) -> Explanation:
        """Return the score with its predictions, and the best match of each piece."""
        mode = self.input_mode([segment])
        owners, rows = build_rows([segment], mode)
        scores, no_error = self._scores_and_no_error(rows, mode)
        scale = self.human_scale(mode)
        values = rows_as_dicts(
            {
                "score": scores,
                "uncertainty": scale.deviation(scores),
                "percentile": scale.percentile(scores),
                "no error": no_error,
                "MQM points": expected_mqm_points(replace(self, scale="mqm").scores(rows, mode)),
            }
        )
        comparisons: list[TextComparison] = []
        for number, (row, row_values) in enumerate(zip(rows, values, strict=True)):
            parts = self.reader.comparisons(row, row_values)
            comparisons += [part for part in parts if number == 0 or part.side == "reference"]
        score = float(reduce_references(scores, owners, self.references)[0])
        return Explanation(metric=self.spec, score=score, comparisons=tuple(comparisons))

    def input_texts(self, segments: Sequence[Segment]) -> list[str]:
        _, rows = build_rows(segments, self.input_mode(segments))
        return list(dict.fromkeys(text for row in rows for text in row if text is not None))

    def flags(self, segments: Sequence[Segment]) -> Flags:
        mode = self.input_mode(segments)
        _, rows = build_rows(segments, "source")
        hypotheses, target = [row[0] for row in rows], self.lp.rpartition("-")[2]
        windowed = self.reader.find_windowed(self.input_texts(segments))
        flags = super().flags(segments)
        flags[f"language unknown to {self.name}"] = self.flag_unsupported(segments, mode)
        if mode != "reference":
            flags["empty source"] = flag_texts(segments, lambda text: not text.strip(), "source")
        flags["long text, read in windows"] = flag_compared(windowed, segments, mode)
        if self.lp:
            flags[f"translation not in {target}"] = self._in_wrong_language(rows)
        else:
            flags[WRONG_LANGUAGE_WARNING] = flag_wrong_language(hypotheses)
        return flags

    def flag_unsupported(self, segments: Sequence[Segment], mode: InputMode) -> BoolArray:
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


def row_key(row: Row) -> str:
    """Return a string that identifies the texts of a row.

    >>> row_key(("a", None, "bc"))
    '1 - 2abc'
    """
    lengths = " ".join("-" if text is None else str(len(text)) for text in row)
    return lengths + "".join(text or "" for text in row)


def mode_of_row(row: Row) -> InputMode:
    if row[2] is None:
        return "source"
    return "reference" if row[1] is None else "both"


def build_rows(segments: Sequence[Segment], mode: InputMode) -> tuple[IntArray, list[Row]]:
    """Return the index of the segment of each row, and the rows.

    >>> build_rows([Segment("a", "A", ("x", "y"))], "both")
    (array([0, 0]), [('a', 'A', 'x'), ('a', 'A', 'y')])
    >>> build_rows([Segment("a", "A", ("x", "y"))], "source")[1]
    [('a', 'A', None)]
    """
    pairs = [
        (number, (s.hypothesis, None if mode == "reference" else s.source or "", reference))
        for number, s in enumerate(segments)
        for reference in (s.references if mode != "source" else (None,))
    ]
    return np.array([owner for owner, _ in pairs], dtype=np.int64), [row for _, row in pairs]
