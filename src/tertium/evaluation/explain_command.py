"""The command `explain`: why a translation has its score, or which of several wins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from tertium.core.options import Option, Output
from tertium.core.result import View
from tertium.errors import UsageError
from tertium.evaluation.explaining import explain
from tertium.evaluation.metric_choice import load_scorer
from tertium.localization.inputs import STDIN, Inputs
from tertium.metrics.base.explanation import DEFAULT_TOP, Explanation
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.ranker import Ranker
from tertium.metrics.judge.server_options import JudgeConnection
from tertium.segment import Segment, check_surrogates

Sentences = Annotated[tuple[str, ...], Option(metavar="TEXT")]
MetricName = Annotated[str | None, Option("-m", "--metric", metavar="METRIC", group="Metrics")]


@dataclass(frozen=True, kw_only=True)
class SentenceOptions:
    """Texts in the command line.

    Attributes
    ----------
    translation_text
        A translation; several are compared.
    reference_text
        A reference, or several.
    source_text
        The source sentence.
    """

    group: ClassVar[str] = "Input"
    translation_text: Sentences = ()
    reference_text: Sentences = ()
    source_text: Annotated[str | None, Option(metavar="TEXT")] = None

    def segments(self) -> list[Segment]:
        """Return one segment per translation."""
        if not self.translation_text:
            raise UsageError("no translation: give --translation-text TEXT, or -t FILE --segment N")
        if not self.reference_text and self.source_text is None:
            raise UsageError(
                "nothing to compare the translation with: give --reference-text or --source-text"
            )
        texts = {
            "--translation-text": self.translation_text,
            "--source-text": (self.source_text or "",),
            "--reference-text": self.reference_text,
        }
        for option, values in texts.items():
            for text in values:
                check_surrogates(text, option)
        return [
            Segment(text, self.source_text, self.reference_text) for text in self.translation_text
        ]


def explain_texts(
    sentences: SentenceOptions,
    inputs: Inputs,
    output: Output,
    judge: JudgeConnection,
    *,
    segment: Annotated[int | None, Option(group="Input")] = None,
    metric: MetricName = None,
    top: Annotated[int, Option(group="Output")] = DEFAULT_TOP,
) -> View:
    """Explain the score of a translation: its alignment, errors, and contributions of features.

    Parameters
    ----------
    segment
        With files: the segment to explain, from 1.
    metric
        Metric or ranker (default: rte-r for English references, otherwise tertium-multi; pairwise
        for several translations with English references).
    top
        Number of features.

    Examples
    --------
    tertium explain --reference-text "The blue car stopped." \\
      --translation-text "The red car stopped."
    tertium explain -m tertium-small -t ours.txt -r reference.txt --segment 3
    tertium explain --source-text "Das blaue Auto hielt an." \\
      --translation-text "The red car stopped."
    tertium explain -m pairwise -t ours.txt theirs.txt -r reference.txt --segment 3

    Notes
    -----
    Contributions are relative to the score of the reference itself, and add up to the score.
    Without a reference the translation is compared with its source. With two or more translations,
    a ranker (or any metric) shows which one wins.
    """
    if top < 0:
        raise UsageError(f"--top {top}: expected 0 or more")
    paths = output.paths(Explanation)
    if inputs.translations:
        _check_files(sentences, inputs)
        segments = _read_segment(inputs, segment)
    else:
        files = {"-s": inputs.sources, "-r": inputs.references, "--segment": segment}
        for option, value in files.items():
            if value and sentences.translation_text:
                raise UsageError(f"{option} is for files: give -t FILE, not --translation-text")
        segments = sentences.segments()
    scorer: str | Metric | Ranker | None = metric
    if metric and inputs.target_language:
        scorer = load_scorer(metric, inputs.source_language or "", inputs.target_language)
    explanation = explain(*segments, metric=scorer)
    return View(
        result=explanation,
        printed=explanation.top_sections(top),
        warnings=[f"warning: {kind}" for kind in explanation.warnings],
        warns_aside=True,
        files=[(explanation, path) for path in paths],
    )


def _check_files(sentences: SentenceOptions, inputs: Inputs) -> None:
    """Raise an error for texts in place of files, or next to files."""
    files: dict[str, Sequence[str]] = {
        "translation": inputs.translations,
        "source": [inputs.sources] if inputs.sources else [],
        "reference": inputs.references,
    }
    for name, values in files.items():
        for value in values:
            if value != STDIN and not Path(value[:4096]).exists():
                raise UsageError(
                    f"--{name}s {value}: no such file; give a sentence with --{name}-text"
                )
    if sentences != SentenceOptions():
        raise UsageError("give either files (-s, -t, -r) or texts (--translation-text), not both")


def _read_segment(inputs: Inputs, number: int | None) -> list[Segment]:
    """Return a segment of each system."""
    testset = inputs.read().testset
    if number is None and len(testset) > 1:
        raise UsageError(f"{len(testset)} segments: choose one with --segment N")
    number = number or 1
    if not 1 <= number <= len(testset):
        raise UsageError(f"--segment {number}: expected 1 to {len(testset)}")
    return [testset.segments(system)[number - 1] for system in testset.systems]
