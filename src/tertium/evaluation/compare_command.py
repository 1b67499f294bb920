"""The command `compare`: significance tests of systems."""

from __future__ import annotations

from typing import Annotated

from tertium.core.errors import UsageError
from tertium.core.options import Compute, Display, FileKind, Option, Output
from tertium.core.result import View
from tertium.evaluation.comparison import Comparison, compare
from tertium.evaluation.metric_choice import MetricOptions, default_metrics
from tertium.evaluation.significance_options import SignificanceTests
from tertium.evaluation.sliced_result import RESULT_FILES, SlicedResult
from tertium.files.text_inputs import InputFiles
from tertium.metrics.base.judge_options import JudgeServer

COMPARISON_FILES = {"results": FileKind(Comparison, (*RESULT_FILES, ".tsv", ".csv", ".parquet"))}


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
        Also show p-values of all pairs (in TSV only these).

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
    if display.format in ("tsv", "csv") and pairs and tests.by:
        raise UsageError(f"-f {display.format} prints one table: give either --pairs or --by")
    files = output.split(COMPARISON_FILES)["results"]
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
    table = file_table = comparison.comparison_table()
    if tests.by:
        file_table = results.slice_table()
    elif pairs:
        file_table = comparison.pair_list()
    pair_tables = [comparison.pair_table(metric) for metric in comparison.metrics if pairs]
    return View(
        result=comparison,
        printed=[table, *pair_tables, *results.slice_tables()],
        table=file_table,
        json=results.plain_records(segments=False),
        warnings=[*filter(None, [*comparison.warning_lines(), comparison.verdict])],
        files=[(results, path) for path in files],
    )
