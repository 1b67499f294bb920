"""The command `score`: scores of files by segment, document and system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from tertium.core.errors import UsageError
from tertium.core.options import Compute, Display, FileKind, Option, Output, split_kind
from tertium.core.result import Result, Table, View
from tertium.evaluation.metric_choice import MetricOptions, default_metric
from tertium.evaluation.scoring import score
from tertium.evaluation.significance_options import DEFAULT_RESAMPLES, SignificanceTests
from tertium.evaluation.sliced_result import RESULT_FILES, SlicedResult
from tertium.evaluation.system_scores import Evaluation
from tertium.files.text_inputs import InputFiles, WriteBack
from tertium.metrics.base.capabilities import can_mark_errors
from tertium.metrics.base.judge_options import JudgeServer
from tertium.metrics.base.metric import Metric

SCORE_FILES = (".tsv", ".csv", ".jsonl", ".parquet", ".xlsx")
SPAN_FILES = (".jsonl", ".tsv", ".csv", ".parquet")


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
        Print a score for each document.
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
        if self.sentence_level and self.document_level:
            raise UsageError("--sentence-level and --document-level: give only one of them")
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
        from tertium.evaluation.compare_command import compare_files

        return compare_files(inputs, metrics, tests, output, compute, judge, display)
    if tests.by and not view.is_of_systems:
        raise UsageError("--by prints scores of slices: omit -b, -sl and -dl")
    is_json = display.format == "json" and not view.score_only
    is_of_parts = view.sentence_level or view.document_level
    if confidence and is_of_parts and not (is_json or output.output):
        raise UsageError(
            "--confidence: -sl and -dl show no intervals; omit one of them, or give -o FILE.json"
        )
    if tests.resamples is not None and not confidence:
        raise UsageError("--resamples needs --confidence, --paired-bs or --paired-ar: give one")
    copies.check(inputs.translations)
    texts = inputs.read(by=tests.by)
    if view.document_level and not texts.testset.documents:
        raise UsageError("--document-level needs document ids: give them with --documents")
    loaded = metrics.load(texts, default_metric)
    files = output.split(_score_kinds(loaded, output))
    judge.stop_dry_run((texts.testset, loaded))
    evaluation = score(
        texts.testset,
        loaded,
        confidence=confidence,
        resamples=DEFAULT_RESAMPLES["bootstrap"] if tests.resamples is None else tests.resamples,
        seed=tests.seed,
    )
    if copies.write_back:
        from tertium.evaluation.writing_back import write_back

        write_back(texts.to_project(), evaluation, copies.write_back, metrics=loaded)
    results = SlicedResult(
        evaluation,
        loaded,
        tests,
        segments=not view.only_system,
        is_stored=True,
    )
    pairs: list[tuple[Result, str]] = [
        (results, path) for path in (*files["scores"], *files["results"])
    ]
    if files.get("spans"):
        from tertium.evaluation.error_marking import mark_errors

        marked = mark_errors(evaluation, loaded)
        marked.warn_about_missing_spans()
        pairs += [(marked, path) for path in files["spans"]]
    table = view.table(evaluation)
    return View(
        result=evaluation,
        printed=[table, *results.slice_tables()],
        table=results.slice_table() if tests.by else table,
        json=results.plain_records(segments=view.sentence_level),
        bare=format_scores(table.with_decimals(display.width)) if view.score_only else None,
        warns_aside=not (view.is_of_systems or view.score_only),
        files=pairs,
    )


def _score_kinds(metrics: Sequence[Metric], output: Output) -> dict[str, FileKind]:
    """Return the kinds of files; error spans only if a metric marks errors."""
    kinds = {
        "scores": FileKind(Evaluation, SCORE_FILES),
        "results": FileKind(Evaluation, RESULT_FILES),
    }
    if any(map(can_mark_errors, metrics)):
        from tertium.evaluation.error_marking import MarkedErrors

        kinds["spans"] = FileKind(MarkedErrors, SPAN_FILES)
    elif any(split_kind(text)[0] == "spans" for text in output.output):
        names = ", ".join(metric.spec for metric in metrics)
        raise UsageError(
            f"-o spans: {names} cannot mark error spans; add a metric that can, such as "
            "tertium-multi"
        )
    return kinds
