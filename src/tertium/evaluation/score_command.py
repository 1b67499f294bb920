"""The command `score`: scores of files by segment, document and system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from tertium.core.errors import UsageError
from tertium.core.options import Compute, Display, FileKind, Option, Output, split_kind
from tertium.core.result import Result, Table, View, format_number, make_page
from tertium.evaluation.metric_choice import MetricOptions, default_metric
from tertium.evaluation.paired_tests import DEFAULT_RESAMPLES
from tertium.evaluation.scoring import score
from tertium.evaluation.significance_options import Tests
from tertium.evaluation.sliced_result import RESULT_FILES, SlicedResult
from tertium.evaluation.system_scores import Evaluation
from tertium.files.text_inputs import InputFiles, WriteBack
from tertium.metrics.base.capabilities import can_mark_errors
from tertium.metrics.base.metric import Metric
from tertium.metrics.judge.server_options import JudgeServer

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

    def tables(self, evaluation: Evaluation, *, warnings: bool) -> list[Table]:
        """Return the table of segments, documents or systems."""
        if self.sentence_level:
            return [evaluation.segment_table(include_texts=self.with_texts)]
        if self.document_level:
            return [evaluation.document_table()]
        return [evaluation.system_table(warnings=warnings)]

    def bare_scores(self, evaluation: Evaluation, width: int | None) -> str:
        """Return one line of scores, one per metric, for each system, document or segment."""
        lines: list[str] = []
        for system in evaluation.systems:
            scores = [evaluation.scores[system][metric] for metric in evaluation.metrics]
            decimals = [own.decimals if width is None else width for own in scores]
            if self.sentence_level:
                columns = [own.segments.tolist() for own in scores]
            elif self.document_level:
                documents = evaluation.testset.documents
                columns = [[*own.documents(documents).values()] for own in scores]
            else:
                columns = [[own.system] for own in scores]
            for row in zip(*columns, strict=True):
                lines.append("\t".join(map(format_number, row, decimals)) + "\n")
        return "".join(lines)


def score_files(
    inputs: InputFiles,
    metrics: MetricOptions,
    tests: Tests,
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
    _check_view(tests, view, confidence, has_files=bool(output.output), display=display)
    copies.check(inputs.translations)
    output.check_suffixes(dict.fromkeys((*SCORE_FILES, *RESULT_FILES, *SPAN_FILES)))
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
    slices = tests.slice(evaluation)
    if copies.write_back:
        from tertium.evaluation.writing_back import write_back

        write_back(texts.to_project(), evaluation, copies.write_back, metrics=loaded)
    results = SlicedResult(evaluation, slices, segments=not view.only_system, is_stored=True)
    tables = view.tables(evaluation, warnings=not display.quiet and display.format != "csv")
    return View(
        result=evaluation,
        printed=[*tables, *(table for own in slices for table in own.tables())],
        table=results.slice_table() if slices else tables[0],
        json=SlicedResult(evaluation, slices, segments=view.sentence_level).plain_records(),
        bare=view.bare_scores(evaluation, display.width) if view.score_only else None,
        warns_aside=not (view.is_of_systems or view.score_only),
        files=_pair_files(files, results, loaded, tests),
    )


def _check_view(
    tests: Tests, view: ScoreView, confidence: bool, *, has_files: bool, display: Display
) -> None:
    if tests.by and not view.is_of_systems:
        raise UsageError("--by prints scores of slices: omit -b, -sl and -dl")
    if tests.resamples is not None and not confidence:
        raise UsageError("--resamples needs --confidence, --paired-bs or --paired-ar: give one")
    is_of_parts = view.sentence_level or view.document_level
    is_json = display.format == "json" and not view.score_only
    if confidence and is_of_parts and not (is_json or has_files):
        raise UsageError(
            "--confidence: -sl and -dl show no intervals; omit one of them, or give -o FILE.json"
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


def _pair_files(
    files: Mapping[str, Sequence[str]],
    results: SlicedResult,
    metrics: Sequence[Metric],
    tests: Tests,
) -> list[tuple[Result, str]]:
    """Return each file with the result that it holds; a page has significance tests."""
    evaluation = results.results
    pairs: list[tuple[Result, str]] = [(evaluation, path) for path in files["scores"]]
    for path in files["results"]:
        if path.endswith(".html"):
            from tertium.evaluation.comparison import add_significance

            tested = add_significance(evaluation, seed=tests.seed)
            page = make_page("scores", tested, metrics, slices=tests.slice(tested))
            pairs.append((page, path))
        else:
            pairs.append((results, path))
    if files.get("spans"):
        from tertium.evaluation.error_marking import mark_errors

        marked = mark_errors(evaluation, metrics)
        marked.warn_about_missing_spans()
        pairs += [(marked, path) for path in files["spans"]]
    return pairs
