"""The commands `score` and `compare`: scores and tests of systems, also by slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from tertium.core.atomic import PathLike
from tertium.core.errors import UsageError
from tertium.core.options import Compute, Display, Option, Output, split_kind
from tertium.core.result import Result, Table, View, make_page
from tertium.evaluation.metric_choice import MetricOptions, default_metric, default_metrics
from tertium.evaluation.paired_tests import DEFAULT_RESAMPLES, SignificanceTests, Test
from tertium.evaluation.scoring import score
from tertium.evaluation.system_scores import Evaluation
from tertium.files.text_inputs import InputFiles, WriteBack, column_names
from tertium.metrics.base.capabilities import can_mark_errors
from tertium.metrics.base.judge_run import JudgeServer
from tertium.metrics.base.metric import Metric

if TYPE_CHECKING:
    from tertium.evaluation.slice_scores import Slices


@dataclass(frozen=True, kw_only=True)
class ScoreView:
    """Which scores are printed.

    Attributes
    ----------
    score_only
        Print only the scores.
    sentence_level
        Print a score for each segment.
    document_level
        Print a score for each document, unless -sl is given.
    only_system
        Omit segment scores from JSON files.
    with_texts
        With -sl: add source, translation and reference.
    """

    group: ClassVar[str] = "Output"
    score_only: Annotated[bool, Option("-b", "--score-only")] = False
    sentence_level: Annotated[bool, Option("-sl", "--sentence-level")] = False
    document_level: Annotated[bool, Option("-dl", "--document-level")] = False
    only_system: bool = False
    with_texts: bool = False

    def __post_init__(self) -> None:
        if self.with_texts and not self.sentence_level:
            raise UsageError("--with-texts adds texts to segment scores: give -sl as well")

    @property
    def is_of_systems(self) -> bool:
        """Whether the table of systems is printed."""
        return not (self.score_only or self.sentence_level or self.document_level)

    def table(self, evaluation: Evaluation) -> Table:
        """Return the table of segments, documents or systems."""
        if self.sentence_level:
            return evaluation.segment_table(include_texts=self.with_texts)
        return evaluation.document_table() if self.document_level else evaluation.system_table()


def format_scores(table: Table) -> str:
    """Return one line of scores, one per metric, for each row of a table."""
    columns = [replace(column, text=None) for column in table.columns if column.adjustable]
    rows = [[column.cell(row).text for column in columns] for row in table.rows]
    return "".join("\t".join(row) + "\n" for row in rows)


def score_files(
    inputs: InputFiles,
    metrics: MetricOptions,
    tests: SignificanceTests,
    view: ScoreView,
    output: Output,
    copies: WriteBack,
    compute: Compute,
    judge: JudgeServer,
    display: Display,
    *,
    confidence: Annotated[bool, Option(group="Statistics")] = False,
) -> View:
    """Score one or more systems under one or more metrics.

    Parameters
    ----------
    confidence
        Show 95 % bootstrap confidence intervals.

    Examples
    --------
    tertium score -t ours.txt -r reference.txt
    tertium score -t a.txt b.txt c.txt -r ref1.txt ref2.txt -m bleu chrf++ --confidence
    tertium score -s source.txt -t ours.txt -m tertium-multi -o spans:errors.jsonl
    tertium score -t systems.jsonl -m bleu chrf -sl --with-texts -o scores.xlsx report.html

    Notes
    -----
    With --paired-bs or --paired-ar the systems are compared as by `tertium compare`.
    """
    if tests.is_requested:
        if view != ScoreView() or confidence or copies.write_back:
            raise UsageError(
                "-b, -sl, -dl, --only-system, --confidence and --write-back are not available with "
                "a paired test: omit them, or omit --paired-bs and --paired-ar"
            )
        return compare_files(inputs, metrics, tests, output, compute, judge, display)
    copies.check(inputs.translations)
    SlicedResult.check_paths(*[split_kind(text)[1] for text in output.output])
    texts = inputs.read(by=tests.by)
    if view.document_level and not texts.testset.documents:
        raise UsageError("--document-level needs document ids: give them with --documents")
    loaded = metrics.load(texts, default_metric)
    kinds: list[type[Result]] = [SlicedResult]
    if any(map(can_mark_errors, loaded)):
        from tertium.evaluation.error_marking import MarkedErrors

        kinds.append(MarkedErrors)
    elif any(split_kind(text)[0] == "spans" for text in output.output):
        specs = ", ".join(metric.spec for metric in loaded)
        raise UsageError(
            f"-o spans: {specs} cannot mark error spans; add a metric that can, "
            "such as tertium-multi"
        )
    paths, *span_files = output.split(*kinds)
    judge.stop_dry_run((texts.testset, loaded))
    evaluation = score(
        texts.testset,
        loaded,
        confidence=confidence,
        resamples=tests.resamples or DEFAULT_RESAMPLES["bootstrap"],
        seed=tests.seed,
    )
    if copies.write_back:
        from tertium.evaluation.error_marking import write_back

        write_back(texts.to_project(), evaluation, copies.write_back, metrics=loaded)
    results = SlicedResult(
        evaluation,
        loaded,
        tests,
        segments=not view.only_system,
        is_stored=True,
    )
    files: list[tuple[Result, str]] = [(results, path) for path in paths]
    if span_files:
        from tertium.evaluation.error_marking import mark_errors

        marked = mark_errors(evaluation, loaded)
        marked.warn_about_missing_spans()
        files += [(marked, path) for path in span_files[0]]
    table = view.table(evaluation)
    return View(
        result=evaluation,
        printed=[table, *results.slice_tables()],
        table=results.slice_table() if tests.by else table,
        json=results.plain_records(segments=view.sentence_level),
        bare=format_scores(table.with_decimals(display.width)) if view.score_only else None,
        warns_aside=not (view.is_of_systems or view.score_only),
        files=files,
    )


@dataclass(frozen=True, eq=False)
class SlicedResult(Result):
    """An evaluation or comparison with its slices by several columns.

    A page shows significance tests, and explanations of the metrics. `segments` tells whether
    records have the scores of segments, and `is_stored` whether these also have a hash of sources
    and references, which a later test with stored scores compares.
    """

    results: Evaluation
    metrics: Sequence[Metric] = ()
    tests: SignificanceTests = field(default_factory=SignificanceTests)
    segments: bool = True
    is_stored: bool = False

    @cached_property
    def slices(self) -> list[Slices]:
        """The results by each column; slices are tested by randomization by default."""
        if not self.tests.by:
            return []
        from tertium.evaluation.slice_scores import slice_results

        test: Test = "bootstrap" if self.tests.paired_bs else "randomization"
        return [
            slice_results(self.results, column, test=test, resamples=self.tests.resamples)
            for column in column_names(self.tests.by)
        ]

    def tables(self) -> list[Table]:
        """Return the tables of the results and of each column."""
        return [*self.results.tables(), *self.slice_tables()]

    @classmethod
    def file_kind(cls, suffix: str) -> str:
        """Return what a file holds: tables are scores."""
        return "results" if suffix in (".json", ".md", ".tex", ".html") else "scores"

    def slice_tables(self) -> list[Table]:
        """Return the tables of each column."""
        return [table for own in self.slices for table in own.tables()]

    def file_table(self, suffix: str = "") -> Table:
        """Return the table of the results without slices."""
        return self.results.file_table(suffix)

    def records(self) -> list[dict[str, Any]]:
        """Return the records of the results, then those of the slices."""
        records = self.results.records(segments=self.segments)
        if self.segments and self.is_stored:
            inputs = self.results.testset.hash_inputs()
            records = [{**record, "inputs": inputs} for record in records]
        return records + [record for own in self.slices for record in own.records()]

    def plain_records(self, *, segments: bool) -> Any:
        """Return the records to print; a single one as an object, as sacrebleu does."""
        records = self.results.records(segments=segments)
        records += [record for own in self.slices for record in own.records()]
        return records[0] if len(records) == 1 else records

    def write(self, *paths: PathLike) -> None:
        """Write files; a page compares the systems and explains scores."""
        for path in paths:
            if not str(path).endswith(".html"):
                super().write(path)
                continue
            from tertium.evaluation.comparison import Comparison, add_significance

            if isinstance(self.results, Comparison):
                tested = self
            else:
                comparison = add_significance(self.results, seed=self.tests.seed)
                tested = replace(self, results=comparison)
            page = make_page("scores", tested.results, self.metrics, slices=tested.slices)
            page.write(path)

    def slice_table(self) -> Table:
        """Return all slices as one table; of several columns, the first cells name them."""
        tables = self.slice_tables()
        if len(tables) == 1:
            return tables[0]
        joined: dict[str, list[Any]] = {}
        for table in tables:
            (by, names), *remaining = table.values().items()
            joined.setdefault("by", []).extend([by] * len(names))
            joined.setdefault("slice", []).extend(names)
            for name, values in remaining:
                joined.setdefault(name, []).extend(values)
        return Table.from_values(joined)


def compare_files(
    inputs: InputFiles,
    metrics: MetricOptions,
    tests: SignificanceTests,
    output: Output,
    compute: Compute,
    judge: JudgeServer,
    display: Display,
    *,
    pairs: Annotated[bool, Option(group="Output")] = False,
) -> View:
    """Compare systems: the first is the baseline, and every pair is tested.

    Parameters
    ----------
    pairs
        Also show p-values of all pairs (not in TSV).

    Examples
    --------
    tertium compare -t baseline.txt ours.txt -r reference.txt
    tertium compare -t a.txt b.txt c.txt -r reference.txt -m bleu chrf meteor --paired-ar
    tertium compare -t a.txt b.txt c.txt -r reference.txt -m chrf --pairs -f md
    tertium compare -t systems.jsonl -m chrf --by domain length

    Notes
    -----
    The paired bootstrap (default) gives sacrebleu's p-values. On small test sets it reports false
    differences about twice as often as --alpha allows: check a borderline p-value with --paired-ar.
    Slices (--by) are tested by randomization unless --paired-bs is given, with adjusted p-values.
    """
    from tertium.evaluation.comparison import compare

    paths = output.paths(SlicedResult)
    texts = inputs.read(by=tests.by)
    loaded = metrics.load(texts, default_metrics)
    judge.stop_dry_run((texts.testset, loaded))
    comparison = compare(
        texts.testset,
        loaded,
        test=tests.test,
        resamples=tests.resamples,
        seed=tests.seed,
        alpha=tests.alpha,
    )
    results = SlicedResult(comparison, loaded, tests)
    table = comparison.comparison_table()
    pair_tables = [comparison.pair_table(metric) for metric in comparison.metrics if pairs]
    return View(
        result=comparison,
        printed=[table, *pair_tables, *results.slice_tables()],
        table=results.slice_table() if tests.by else table,
        json=results.plain_records(segments=False),
        warnings=[*filter(None, [*comparison.warning_lines(), comparison.verdict])],
        files=[(results, path) for path in paths],
    )
