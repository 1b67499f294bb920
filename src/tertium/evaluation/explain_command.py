"""The command `explain`: why a translation has its score, or which of several wins."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tertium.core.errors import UsageError
from tertium.core.options import Option
from tertium.core.result import View
from tertium.data.testset import TestSet
from tertium.evaluation.explaining import explain
from tertium.evaluation.metric_choice import load_scorer
from tertium.files.text_inputs import STDIN, InputFiles
from tertium.metrics.base.explanation import DEFAULT_TOP, Explanation
from tertium.metrics.base.judge_run import JudgeConnection
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.ranker import Ranker

MetricName = Annotated[
    str | None, Option("-m", "--metrics", "--model", metavar="METRIC", group="Metrics")
]


def explain_texts(
    inputs: InputFiles,
    judge: JudgeConnection,
    *,
    text: Annotated[bool, Option(group="Input")] = False,
    segment: Annotated[int | None, Option(group="Input")] = None,
    metric: MetricName = None,
    count: Annotated[int, Option("-n", "--count", group="Output")] = DEFAULT_TOP,
) -> Annotated[View, Explanation]:
    """Explain the score of a translation: its alignment, errors, and contributions of features.

    Parameters
    ----------
    text
        -t, -s and -r are sentences, not files.
    segment
        With files: the segment to explain, from 1.
    metric
        Metric or ranker (default: rte-r for English references, otherwise tertium-multi; pairwise
        for several translations with English references).
    count
        Features to list.

    Examples
    --------
    tertium explain --text -r "The blue car stopped." -t "The red car stopped."
    tertium explain -m tertium-small -t ours.txt -r reference.txt --segment 3
    tertium explain --text -s "Das blaue Auto hielt an." -t "The red car stopped."
    tertium explain -m pairwise -t ours.txt theirs.txt -r reference.txt --segment 3

    Notes
    -----
    Contributions are relative to the score of the reference itself, and add up to the score.
    Without a reference the translation is compared with its source. With two or more translations,
    a ranker (or any metric) shows which one wins.
    """
    if count < 0:
        raise UsageError(f"--count {count}: expected 0 or more")
    testset = _make_testset(inputs) if text else _read_testset(inputs)
    if segment is None and len(testset) > 1:
        raise UsageError(f"{len(testset)} segments: choose one with --segment N")
    number = segment or 1
    if not 1 <= number <= len(testset):
        raise UsageError(f"--segment {number}: expected 1 to {len(testset)}")
    scorer: str | Metric | Ranker | None = metric
    if metric and inputs.target_language:
        scorer = load_scorer(metric, inputs.source_language or "", inputs.target_language)
    segments = [testset.segments(system)[number - 1] for system in testset.systems]
    explanation = explain(*segments, metric=scorer)
    return View(
        result=explanation,
        printed=explanation.top_sections(count),
        warnings=[f"warning: {kind}" for kind in explanation.warnings],
        warns_aside=True,
    )


def _make_testset(inputs: InputFiles) -> TestSet:
    """Return one segment with the sentences of -t, -s and -r."""
    if not inputs.translations:
        raise UsageError("no translation: give it with -t TEXT")
    systems = {f"-t {n}": [text] for n, text in enumerate(inputs.translations, start=1)}
    sources = None if inputs.sources is None else [inputs.sources]
    return TestSet.from_lists(systems, sources, [inputs.references] if inputs.references else None)


def _read_testset(inputs: InputFiles) -> TestSet:
    for file in (*inputs.translations, *inputs.references, inputs.sources or STDIN):
        if file != STDIN and not Path(file[:4096]).exists():
            raise UsageError(f"{file}: no such file; give --text if -t, -s and -r are sentences")
    return inputs.read().testset
