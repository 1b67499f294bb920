"""The command `report`: scores, comparisons, charts and segments as one HTML page."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from tertium.core.options import Compute, FileKind, InFile, Option, Output
from tertium.core.result import View
from tertium.evaluation.check_command import CheckOptions
from tertium.evaluation.metric_choice import MetricOptions, default_metrics
from tertium.evaluation.significance_options import Tests
from tertium.files.text_inputs import InputFiles, column_names
from tertium.metrics.base.judge_options import JudgeServer
from tertium.output.page.report import Report, report


def report_files(
    inputs: InputFiles,
    metrics: MetricOptions,
    tests: Tests,
    output: Output,
    compute: Compute,
    judge: JudgeServer,
    *,
    human: Annotated[InFile | None, Option(group="Input")] = None,
    challenge: Annotated[tuple[str, ...], Option(group="Metrics", metavar="SET", file="read")] = (),
    checks: Annotated[bool, Option(group="Metrics")] = False,
    title: Annotated[str, Option(group="Output", metavar="TEXT")] = "",
    count: Annotated[int, Option("-n", "--count", group="Output")] = 8,
    explain_with: Annotated[str | None, Option(group="Output", metavar="METRIC")] = None,
) -> View:
    """Write a self-contained HTML page that shows how systems and metrics differ.

    Parameters
    ----------
    human
        Human scores or comparisons of segments.
    challenge
        Also evaluate the metrics on a challenge set: damage, or files.
    checks
        Also show errors that can be found without a model, as `tertium check` does.
    title
        Title of the page (default: the names of the systems).
    count
        Segments to explain.
    explain_with
        Explain them with this metric, such as a judge (default: all metrics that can).

    Examples
    --------
    tertium report -t a.txt b.txt -r reference.txt -o report.html
    tertium report -s source.txt -t a.txt b.txt c.txt -r reference.txt -m bleu chrf bertscore wmd
    tertium report -t a.txt b.txt -r reference.txt -m chrf --human ratings.csv --count 20
    tertium report -t systems.jsonl -m bleu chrf --by domain --challenge damage

    Notes
    -----
    The page works offline (default: report.html). It shows scores with intervals and clusters,
    charts, and every segment with two systems side by side. Metrics that can explain a score
    (rte-r, tertium-small, bertscore, wmd and others) explain the segments where metrics, raters or
    systems differ most. `tertium score`, `compare` and `meta` write the same page with
    -o FILE.html.
    """
    files = output.split({"results": FileKind(Report, (".html",))})["results"]
    texts = inputs.read(by=tests.by)
    loaded = metrics.load(texts, default_metrics)
    judge.stop_dry_run((texts.testset, loaded))
    explainer = None
    if explain_with is not None:
        explainer = replace(metrics, metrics=(explain_with,)).load(texts, default_metrics)[0]
    page = report(
        texts.testset,
        loaded,
        human=human,
        explain=count,
        explain_with=explainer,
        title=title,
        by=column_names(tests.by),
        challenges=challenge,
        checks=checks and CheckOptions().settings(texts),
        test=tests.test if tests.is_requested else None,
        resamples=tests.resamples,
        slice_resamples=None if tests.is_requested else tests.resamples,
        seed=tests.seed,
        alpha=tests.alpha,
    )
    return View(result=page, bare="", files=[(page, path) for path in files or ["report.html"]])
