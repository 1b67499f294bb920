"""tertium-multi: calibrated metric for about 100 languages, with a source, a reference or both.

The model is a fine-tuned multilingual-e5-small whose upper layers read all texts jointly
(`joint_network`). Its embedding table is stored in 4 bits per weight, as published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, cast

import numpy as np

from tertium.core.arrays import BoolArray, FloatArray
from tertium.core.segment import REQUIRED_INPUTS, Against, Segment
from tertium.core.spans import Span
from tertium.metrics.base.metric import NOTHING, distinct_texts
from tertium.metrics.base.scorer import check_same_inputs
from tertium.metrics.base.text_warnings import Flags, flag_compared, flag_texts
from tertium.metrics.bundled.calibrated_metric import (
    CalibratedMetric,
    PreparedRows,
    settings_suffix,
)
from tertium.metrics.bundled.input_rows import INPUT_MODES, Row, RowNetwork
from tertium.metrics.bundled.row_scorer import (
    MultiSettings,
    RowScorer,
    piece_errors,
)
from tertium.metrics.bundled.scales import (
    OTHER_FAMILIES,
    AnnotationScheme,
    HumanScale,
    MqmScale,
    SpanThresholds,
    extract_spans,
)
from tertium.text.language_codes import language_family, parse_language_pair
from tertium.text.language_identification import (
    WRONG_LANGUAGE_WARNING,
    flag_other_language,
    flag_wrong_language,
    identify_language,
)
from tertium.text.scripts import is_other_script, language_scripts

MODEL = "tertium-multi"


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
    network: ClassVar[type[RowNetwork]] = RowScorer

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
        return settings_suffix(maps)

    @property
    def reader(self) -> RowScorer:
        return cast(RowScorer, super().reader)

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

    def row_values(self, prepared: PreparedRows) -> FloatArray:
        """Return score, MQM score and probability that an MQM annotator marks no error."""
        sums = self.negative_error_sums(prepared)
        no_error = self.settings.clean[prepared.mode](sums)
        return np.column_stack([super().row_values(prepared), no_error])

    def describe(self, values: FloatArray, mode: Against) -> dict[str, FloatArray]:
        columns = super().describe(values, mode)
        points = columns.pop("MQM points")
        return {**columns, "no error": values[:, 2], "MQM points": points}

    def spans(self, segments: Sequence[Segment]) -> list[tuple[Span, ...]]:
        """Return the error spans of each translation, compared with its best reference."""
        self.check(segments)
        mode = self.input_mode(segments)
        limits = {n: self._span_thresholds(s, mode) for n, s in enumerate(segments)}
        marked = {n: thresholds for n, thresholds in limits.items() if thresholds}
        prepared = self.prepare([segments[n] for n in marked])
        offsets = self.reader.tokenizer.token_offsets([segments[n].hypothesis for n in marked])
        spans: list[tuple[Span, ...]] = [()] * len(segments)
        for number, places, row in zip(marked, offsets, self._best_rows(prepared), strict=True):
            hypothesis, _, reference = prepared.rows[row]
            if hypothesis != reference:
                errors = piece_errors(prepared.outputs[row])
                spans[number] = extract_spans(
                    hypothesis, places, errors, self.marks, marked[number]
                )
        return spans

    def _span_thresholds(self, segment: Segment, mode: Against) -> SpanThresholds | None:
        """Return the thresholds for the target language, or None if no span is to be shown.

        Without `lp`, the language is detected in the hypothesis or else in its reference.
        """
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
        scores = self.calibrate(prepared, self.scale)
        owners = prepared.owners
        order = np.lexsort([-scores, owners])
        best: list[int] = order[np.unique(owners[order], return_index=True)[1]].tolist()
        return best

    @property
    def span_note(self) -> str:
        if self.all_spans:
            return ""
        return (
            "only spans with an expected precision of 50 % or more are shown; "
            f"{replace(self, all_spans=True).spec} marks all suspected errors"
        )

    def flags(self, segments: Sequence[Segment]) -> Flags:
        mode = self.input_mode(segments)
        hypotheses = [segment.hypothesis for segment in segments]
        target = parse_language_pair(self.lp)[1:]
        windowed = self.reader.find_windowed(distinct_texts(segments, mode))
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
