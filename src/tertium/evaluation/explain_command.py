"""The command `explain`: why a translation has its score, or which of several wins."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tertium.core.errors import UsageError
from tertium.core.options import Option, Output
from tertium.core.result import View
from tertium.core.segment import Segment, check_surrogates
from tertium.evaluation.explaining import explain
from tertium.evaluation.metric_choice import load_scorer
from tertium.files.text_inputs import STDIN, InputFiles
from tertium.metrics.base.explanation import DEFAULT_TOP, Explanation
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.ranker import Ranker
from tertium.metrics.judge.server_options import JudgeConnection

MetricName = Annotated[
    str | None, Option("-m", "--metrics", "--model", metavar="METRIC", group="Metrics")
]


def explain_texts(
    inputs: InputFiles,
    output: Output,
    judge: JudgeConnection,
    *,
    text: Annotated[bool, Option(group="Input")] = False,
    segment: Annotated[int | None, Option(group="Input")] = None,
    metric: MetricName = None,
    count: Annotated[int, Option("-n", "--count", group="Output")] = DEFAULT_TOP,
) -> View:
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
    paths = output.paths(Explanation)
    segments = _make_segments(inputs, segment) if text else _read_segment(inputs, segment)
    scorer: str | Metric | Ranker | None = metric
    if metric and inputs.target_language:
        scorer = load_scorer(metric, inputs.source_language or "", inputs.target_language)
    explanation = explain(*segments, metric=scorer)
    return View(
        result=explanation,
        printed=explanation.top_sections(count),
        warnings=[f"warning: {kind}" for kind in explanation.warnings],
        warns_aside=True,
        files=[(explanation, path) for path in paths],
    )


def _make_segments(inputs: InputFiles, number: int | None) -> list[Segment]:
    """Return a segment for each sentence of -t."""
    if number is not None:
        raise UsageError("--segment is for files: omit it, or omit --text")
    if not inputs.translations:
        raise UsageError("no translation: give it with -t TEXT")
    if not inputs.references and inputs.sources is None:
        raise UsageError("nothing to compare the translation with: give -r TEXT or -s TEXT")
    for option, texts in {
        "-t": inputs.translations,
        "-s": [inputs.sources or ""],
        "-r": inputs.references,
    }.items():
        for text in texts:
            check_surrogates(text, option)
    return [Segment(text, inputs.sources, inputs.references) for text in inputs.translations]


def _read_segment(inputs: InputFiles, number: int | None) -> list[Segment]:
    """Return a segment of each system."""
    files = [*inputs.translations, *inputs.references, inputs.sources or STDIN]
    for file in files:
        if file != STDIN and not Path(file[:4096]).exists():
            raise UsageError(f"{file}: no such file; give --text if -t, -s and -r are sentences")
    testset = inputs.read().testset
    if number is None and len(testset) > 1:
        raise UsageError(f"{len(testset)} segments: choose one with --segment N")
    number = number or 1
    if not 1 <= number <= len(testset):
        raise UsageError(f"--segment {number}: expected 1 to {len(testset)}")
    return [testset.segments(system)[number - 1] for system in testset.systems]
