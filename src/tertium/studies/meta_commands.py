"""The command `meta` and its forms: how well metrics agree with human judgments."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from tertium.core.errors import UsageError
from tertium.core.options import (
    Compute,
    InFiles,
    Names,
    Option,
    Resampling,
    Significance,
)
from tertium.core.result import field_values
from tertium.data.human_data_files import read_judgment_sets
from tertium.evaluation.judged import HumanInputs, ScoredInputs, read_judged
from tertium.evaluation.metric_choice import MetricOptions
from tertium.files.text_inputs import LanguageOptions
from tertium.meta.agreement import Grouping
from tertium.meta.tasks import Level, Test, resolve_statistic
from tertium.metrics.base.judge_run import JudgeConnection
from tertium.metrics.base.metric import Metric
from tertium.studies.diagnostics import DiagnosticReport, run_diagnostics
from tertium.studies.error_analysis import ErrorAnalysis, analyse
from tertium.studies.good_decisions import (
    Decisions,
    DifferenceScales,
    MetricRanking,
    evaluate_decisions,
    fit_difference_scales,
    rank_metrics,
)
from tertium.studies.meta_evaluation import AgreementStudy, meta_evaluate
from tertium.studies.span_agreement import SpanStudy, compare_spans


@dataclass(frozen=True, kw_only=True)
class JudgedMetrics(MetricOptions, LanguageOptions):
    """Metrics that score judged translations, which may be in several languages.

    Attributes
    ----------
    metrics
        Metrics such as bleu or chrf:word_order=2; see `tertium list`.
    target_language
        Language of the translations, for meteor, tertium-small and the tokenizer of bleu and nist;
        with --source-language also for metrics that read the source (default: detected; bleu and
        nist: none, since judgments may mix languages).
    """

    def load_judged(self) -> list[Metric]:
        """Load the metrics, with the languages of the options."""
        source, target = self.source_language or "", self.target_language or ""
        return self.load_for(self.metrics, source, target)


@dataclass(frozen=True, kw_only=True)
class Statistics(Significance):
    """Statistics of agreement, their grouping, slices and tests.

    Attributes
    ----------
    statistic
        One or more of pearson, spearman, kendall, acc-eq, acc-eq*, darr, darr17, tau-strict, tau13,
        tau14, consistency, accuracy, spa; also the names in papers, such as acc_eq, SPA,
        kendall-tau-b (default: pearson, or tau-strict for comparisons).
    level
        Segment, system or both (default: by statistic).
    grouping
        Compute a statistic within groups and average (default: by statistic).
    by
        Also show results by domain, document, length, language or any column of the judgments.
    test
        Significance test of differences (default: auto, by statistic).
    resamples
        Resamples of tests and intervals, 0 for neither.
    """

    statistic: Names = ()
    level: tuple[Level, ...] = ()
    grouping: Grouping | None = None
    by: Annotated[Names, Option(metavar="COLUMN")] = ()
    test: Test = "auto"

    def __post_init__(self) -> None:
        for name in self.statistic:
            resolve_statistic(name)  # fail before files are read

    def options(self) -> dict[str, Any]:
        """Return the options that are given, as arguments of `meta_evaluate`."""
        values = field_values(self)
        return {name: value for name, value in values.items() if value is not None}


def evaluate_metrics(
    inputs: ScoredInputs,
    metrics: JudgedMetrics,
    statistics: Statistics,
    compute: Compute,
    judge: JudgeConnection,
    *,
    confidence: Annotated[bool, Option(group="Statistics")] = False,
    pairs: Annotated[bool, Option(group="Output")] = False,
) -> AgreementStudy:
    """Measure how well metrics agree with human judgments, and whether they differ.

    Parameters
    ----------
    confidence
        Show confidence intervals.
    pairs
        Also show p-values of all pairs (in TSV only these).

    Examples
    --------
    tertium meta --human judgments.tsv --scores chrf.tsv mymetric.tsv
    tertium meta --human judgments.jsonl -m bleu chrf --statistic pearson kendall --by domain
    tertium meta --human judgments.jsonl -m bleu chrf -o report.html scatter.svg

    Notes
    -----
    docs/meta-evaluation/statistics.md describes the formats of --human and --scores. Each language
    pair becomes a column. Scores are matched to language pairs by the file name, its folder or a
    column `lp`, and to judgments by system and segment. An .svg file has scatter plots.
    """
    if not statistics.resamples and (confidence or pairs):
        raise UsageError("--confidence and --pairs need resamples, but --resamples is 0")
    if pairs and statistics.test == "none":
        raise UsageError("--pairs needs a significance test, but --test none disables it")
    study = meta_evaluate(inputs, metrics.load_judged(), **statistics.options())
    return replace(study, intervals=confidence, p_values=pairs)


def diagnose_metrics(
    inputs: ScoredInputs,
    metrics: JudgedMetrics,
    tests: Significance,
    compute: Compute,
    judge: JudgeConnection,
) -> DiagnosticReport:
    """Run diagnostics of metrics: baselines, chance, bad outputs, length and more.

    Examples
    --------
    tertium meta diagnostics --human judgments.jsonl -m bleu chrf
    tertium meta diagnostics --human judgments.jsonl -m tertium-multi -o diagnostics.html
    """
    return run_diagnostics(read_judged(inputs, metrics.load_judged()), seed=tests.seed)


def rank_by_protocol(
    protocol: Literal["wmt24", "wmt25"],
    /,
    inputs: ScoredInputs,
    metrics: JudgedMetrics,
    tests: Significance,
    compute: Compute,
    judge: JudgeConnection,
) -> MetricRanking:
    """Rank metrics by the rules of a shared task.

    Parameters
    ----------
    protocol
        The shared task: wmt24 or wmt25.

    Examples
    --------
    tertium meta protocol wmt24 --human wmt24/ --gold mqm
    tertium meta protocol wmt25 --human judgments.jsonl -m chrf tertium-multi

    Notes
    -----
    The rank is that of the average of SPA and acc_eq* over all language pairs.
    """
    judged_sets = read_judged(inputs, metrics.load_judged())
    return rank_metrics(judged_sets, protocol, **field_values(tests))


def evaluate_metric_decisions(
    inputs: ScoredInputs,
    metrics: JudgedMetrics,
    compute: Compute,
    judge: JudgeConnection,
    *,
    good_score: Annotated[float, Option(group="Statistics")],
) -> Decisions:
    """Measure how well metrics find good translations, the best output and unreliable scores.

    Parameters
    ----------
    good_score
        Human score of a good translation.

    Examples
    --------
    tertium meta decisions --good-score 80 --human judgments.jsonl -m chrf tertium-multi
    """
    judged_sets = read_judged(inputs, metrics.load_judged())
    return evaluate_decisions(judged_sets, min_good_score=good_score)


def fit_metric_thresholds(
    inputs: ScoredInputs, metrics: JudgedMetrics, compute: Compute, judge: JudgeConnection
) -> DifferenceScales:
    """Measure how often human raters agree with a score difference of two systems.

    Examples
    --------
    tertium meta thresholds --human judgments.jsonl -m chrf bleu
    """
    return fit_difference_scales(read_judged(inputs, metrics.load_judged(), level="system"))


def compare_metric_spans(
    spans: Annotated[InFiles, Option(metavar="SPANS")] = (),
    /,
    *,
    inputs: HumanInputs,
    metrics: JudgedMetrics,
    tests: Resampling,
    compute: Compute,
    judge: JudgeConnection,
) -> SpanStudy:
    """Compare error spans of metrics with those that human annotators marked.

    Parameters
    ----------
    spans
        Files of error spans (default: those that the metrics of -m mark).

    Examples
    --------
    tertium meta spans mymetric.jsonl --human modern/dev/mqm/ted21
    tertium meta spans --human mqm.tsv -m tertium-multi
    """
    return compare_spans(inputs, metrics.load_judged(), spans=spans, **field_values(tests))


def find_metric_disagreement(
    metrics: JudgedMetrics,
    compute: Compute,
    judge: JudgeConnection,
    *,
    human: Annotated[InFiles, Option(group="Input")],
    gold: Annotated[str, Option(group="Input")] = "",
    count: Annotated[int, Option("-n", "--count", group="Output")] = 0,
) -> ErrorAnalysis:
    """Compare two metrics on the translations with the best human scores.

    Parameters
    ----------
    human
        Translations with human scores.
    gold
        Human scores to use: a name in a folder (mqm) or a column of a file.
    count
        Examples of each kind to show.

    Examples
    --------
    tertium meta disagreement --human da/wmt16/*-en.jsonl.gz -m svr chrf
    tertium meta disagreement --human mine.tsv -m esim bleu --count 3

    Notes
    -----
    Of the best translations by human score (a fifth of each language pair), the table counts those
    that only one metric rates high (in the best fifth of its own scores), by word overlap with the
    reference, by unknown words (not in the references) and by length.
    """
    if count < 0:
        raise UsageError(f"--count {count}: expected 0 or more")
    if len(metrics.metrics) != 2:
        option = f"-m {' '.join(metrics.metrics)}" if metrics.metrics else "no -m"
        raise UsageError(f"{option}: expected two metrics; give -m METRIC METRIC")
    first, second = metrics.load_judged()
    return analyse(read_judgment_sets(human, gold), first, second, example_count=count)
