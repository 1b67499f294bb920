"""The command `report`: scores, comparisons, charts and segments as one HTML page."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Annotated, ClassVar

from tertium.core.errors import MissingInputError, UsageError
from tertium.core.options import Compute, FileKind, InFile, Option, Output
from tertium.core.result import Result, View
from tertium.data.challenge_sets import ChallengeSet, join_challenges, read_challenge
from tertium.evaluation.check_command import CheckOptions
from tertium.evaluation.checking import check
from tertium.evaluation.metric_choice import MetricOptions, default_metrics
from tertium.evaluation.rows import find_scorable
from tertium.evaluation.significance_options import SignificanceTests
from tertium.files.text_inputs import InputFiles
from tertium.metrics.base.judge_options import JudgeServer
from tertium.metrics.base.metric import Metric
from tertium.output.page.report import Report, report
from tertium.studies.challenge import ChallengeStudy, challenge

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class PageOptions:
    """What a page shows besides scores and segments.

    Attributes
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
    """

    group: ClassVar[str] = "Output"
    human: Annotated[InFile | None, Option(group="Input")] = None
    challenge: Annotated[tuple[str, ...], Option(group="Metrics", metavar="SET", file="read")] = ()
    checks: Annotated[bool, Option(group="Metrics")] = False
    title: Annotated[str, Option(metavar="TEXT")] = ""
    count: Annotated[int, Option("-n", "--count")] = 8
    explain_with: Annotated[str | None, Option(metavar="METRIC")] = None


def report_files(
    inputs: InputFiles,
    metrics: MetricOptions,
    tests: SignificanceTests,
    output: Output,
    compute: Compute,
    judge: JudgeServer,
    page: PageOptions,
) -> View:
    """Write a self-contained HTML page that shows how systems and metrics differ.

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
    if page.explain_with is not None:
        explainer = replace(metrics, metrics=(page.explain_with,)).load(texts, default_metrics)[0]
    more: list[Result] = []
    if page.checks:
        more.append(check(texts.testset, settings=CheckOptions().settings(texts)))
    if page.challenge:
        challenge_sets = [read_challenge(source) for source in page.challenge]
        more.append(_run_challenge(join_challenges(challenge_sets), loaded))
    result = report(
        texts.testset,
        loaded,
        tests=tests,
        human=page.human,
        explain=page.count,
        explain_with=explainer,
        title=page.title,
        more=more,
    )
    return View(result=result, bare="", files=[(result, path) for path in files or ["report.html"]])


def _run_challenge(pairs: ChallengeSet, metrics: Sequence[Metric]) -> ChallengeStudy:
    """Evaluate the metrics that can score the pairs of a challenge set."""
    segments = []
    for contrast in pairs.contrasts:
        segments += [contrast.better, contrast.worse]
    usable: list[Metric] = []
    for metric in metrics:
        scorable = [*compress(segments, find_scorable(segments, metric))]
        try:
            metric.check(scorable or segments)
        except MissingInputError as error:
            logger.warning("%s cannot score challenge set %s: %s", metric.spec, pairs.name, error)
            continue
        usable.append(metric)
    if not usable:
        raise UsageError(f"--challenge {pairs.name}: no metric can score it; add another metric")
    return challenge(pairs, usable)
