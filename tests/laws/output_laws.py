"""Laws of output: printed, written and displayed results equal those of the library.

Commands run in this process on a file of the same test set; pages and fragments are parsed.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
from tests.laws.trial import RESAMPLES, Trial, require, run_command, run_successfully

from tertium.core.arrays import FloatArray
from tertium.core.result import Table
from tertium.data.record_files import to_json
from tertium.data.testset import TestSet
from tertium.evaluation.explaining import explain
from tertium.evaluation.system_scores import Evaluation
from tertium.output.html import read_asset
from tertium.output.text import render_table

MAX_PAIRS = 30  # translations compared with one of another system
TABLE_FORMATS = ("text", "tsv", "md", "latex")
FILE_SUFFIXES = (".jsonl", ".tsv", ".csv", ".parquet")
VOID_TAGS = {"meta", "br", "hr", "img", "input", "link", "col", "wbr"}
EVENT_HANDLERS = ("onerror", "onload", "onclick", "onmouseover")


def numbers_in(value: Any) -> Iterator[float]:
    """Yield all numbers inside lists and dictionaries."""
    if isinstance(value, dict):
        for part in value.values():
            yield from numbers_in(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from numbers_in(part)
    elif isinstance(value, float):
        yield value


def texts_survive_a_round_trip(trial: Trial) -> int:
    """A test set that is written and read again has the same texts."""
    again = TestSet.from_records(trial.records)
    has_same_systems = again.systems == {k: tuple(v) for k, v in trial.testset.systems.items()}
    require(has_same_systems, "the hypotheses differ")
    references = [[*texts] for texts in trial.testset.references]
    require([[*texts] for texts in again.references] == references, "the references differ")
    require(list(again.sources) == list(trial.testset.sources), "the sources differ")
    return len(trial.segments)


def score_command_equals_library(trial: Trial) -> int:
    """`score -f json -sl` prints the records of the library, digit by digit."""
    printed = trial.run("score", "-f", "json", "-sl").json
    records = printed if isinstance(printed, list) else [printed]
    require(records == after_json_round_trip(trial.evaluation.records()), "the records differ")
    return len(trial.segments)


def after_json_round_trip(records: Any) -> Any:
    """Return records after a JSON round trip."""
    return json.loads(to_json(records))


def without_warnings(result: Any, table: Table) -> Table:
    """Return a table as commands print it with -q."""
    hidden = result.warning_lines()
    return replace(table, cautions=(), notes=[note for note in table.notes if note not in hidden])


def printed_tables_equal_library(trial: Trial) -> int:
    """Every table format prints the library's table; TSV has full precision."""
    evaluation, style = trial.evaluation, choose_by_seed(trial, TABLE_FORMATS)
    systems = without_warnings(evaluation, evaluation.system_table())
    for options, table in (((), systems), (("-sl",), evaluation.segment_table())):
        printed = trial.run("score", "-f", style, *options).out
        expected = render_table(table, style)
        require(printed == expected, f"{style}: got {printed[:200]!r}, expected {expected[:200]!r}")
    if style == "tsv":
        _require_tsv_scores(printed, evaluation)
    return len(trial.segments)


def choose_by_seed(trial: Trial, choices: Sequence[Any]) -> Any:
    """Choose an output variant by the seed."""
    return choices[trial.seed % len(choices)]


def _require_tsv_scores(text: str, evaluation: Evaluation) -> None:
    rows = list(csv.reader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE))
    (metric,) = evaluation.metrics
    expected = sorted(v for s in evaluation.metric_scores(metric) for v in s.segments.tolist())
    flat = [value for row in rows[1:] for value in _floats(row[1:])]
    require(len({len(row) for row in rows}) == 1, "rows differ in length")
    require(
        all(any(math.isclose(w, f, rel_tol=1e-9, abs_tol=1e-9) for f in flat) for w in expected),
        "a score is missing in the TSV",
    )


def _floats(cells: list[str]) -> list[float]:
    return [float(cell) for cell in cells if re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", cell)]


def written_files_equal_library(trial: Trial) -> int:
    """`score -o` writes the library's own numbers in every format."""
    evaluation, suffix = trial.evaluation, choose_by_seed(trial, FILE_SUFFIXES)
    frame = evaluation.to_frame()
    file, saved = trial.folder / f"scores{suffix}", trial.folder / "scores.json"
    trial.run("score", "-o", f"scores:{file}", saved)
    records = _read_table(file)
    columns = [[*record] for record in records]
    require(columns == [[*frame.columns]] * len(frame), "the columns differ")
    values = [float(record["score"]) for record in records]
    require(values == frame["score"].tolist(), f"{suffix}: the scores differ")
    stored = json.loads(saved.read_text("utf-8"))
    for record in stored:
        del record["inputs"]  # a hash of the texts
    require(stored == after_json_round_trip(evaluation.records()), ".json: the records differ")
    return len(trial.segments)


def _read_table(file: Path) -> list[dict[str, Any]]:
    """Read the rows of a table with third-party readers."""
    if file.suffix == ".parquet":
        import pandas

        return pandas.read_parquet(file).to_dict("records")
    text = file.read_text("utf-8")
    if file.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    rows = io.StringIO(text, newline="")
    if file.suffix == ".csv":
        return list(csv.DictReader(rows))
    return list(csv.DictReader(rows, delimiter="\t", quoting=csv.QUOTE_NONE))


def comparisons_are_valid(trial: Trial) -> int:
    """p-values are in (0, 1] (undefined for a single segment); equal systems do not differ."""
    result = trial.comparison
    (spec,) = result.metrics
    p_values, clusters = result.p_values[spec], result.clusters[spec]
    is_single_segment = len(trial.testset) < 2
    off = ~np.eye(len(p_values), dtype=bool)
    others = p_values[off]
    is_valid = np.isnan(others) if is_single_segment else (others > 0) & (others <= 1)
    require(is_valid.all() and (p_values.diagonal() == 1).all(), f"p-values {p_values.tolist()}")
    require(min(clusters) == 1, f"clusters {clusters}")
    outputs = list(trial.testset.systems.values())
    for a in range(len(outputs)):
        for b in range(a):
            if list(outputs[a]) == list(outputs[b]):
                p = p_values[a, b]
                require(is_single_segment or p == 1, f"equal systems differ with p {p}")
                require(clusters[a] == clusters[b], "equal systems are in two clusters")
    not_finite = [n for n in numbers_in(result.records(segments=True)) if not math.isfinite(n)]
    require(is_single_segment or not not_finite, "a number of the comparison is not finite")
    return len(outputs) * (len(outputs) - 1) // 2


def compare_command_equals_library(trial: Trial) -> int:
    result = trial.comparison
    options = ("--resamples", RESAMPLES, "-f")
    printed = trial.run("compare", *options, "json").json
    require(printed == after_json_round_trip(result.records()), "the records differ")
    style = choose_by_seed(trial, TABLE_FORMATS)
    expected = render_table(without_warnings(result, result.comparison_table()), style)
    require(trial.run("compare", *options, style).out == expected, f"{style}: the tables differ")
    return 2 * len(trial.testset.systems)


def explanations_are_valid(trial: Trial) -> int:
    """An explanation has the score and finite numbers, and the command prints the same."""
    segments = trial.segments[:3]
    values = trial.metric.score(segments).segments
    for segment, value in zip(segments, values, strict=True):
        explanation = explain(segment, metric=trial.metric)
        finite = all(math.isfinite(number) for number in numbers_in(explanation.as_dict()))
        require(finite, "a number of the explanation is not finite")
        require(
            abs(explanation.score - value) <= 2e-5 * max(1.0, abs(value)),
            f"explained score {explanation.score!r}, expected {value!r}",
        )
        require_safe_fragment(explanation._repr_html_())
        texts = [f"--translations={segment.hypothesis}", f"--sources={segment.source}"]
        texts += [f"--references={reference}" for reference in segment.references]
        call = ["explain", "--text", "-m", trial.subject.spec, *texts]
        printed = run_successfully([*call, "-f", "json"]).json
        expected = after_json_round_trip(explanation.as_dict())
        require(printed == expected, "the explanations differ")
        run_successfully(call)
    return len(segments)


def notebook_output_is_well_formed(trial: Trial) -> int:
    """Notebook output is well-formed HTML without scripts."""
    require_safe_fragment(trial.scores._repr_html_())
    require_safe_fragment(trial.evaluation._repr_html_())
    if len(trial.testset.systems) > 1:
        require_safe_fragment(trial.comparison._repr_html_())
    return len(trial.segments)


def reports_are_well_formed(trial: Trial) -> int:
    """Reports are well-formed HTML with no scripts but our own, whatever the texts contain."""
    file = trial.folder / "report.html"
    has_several_systems = len(trial.testset.systems) > 1
    if has_several_systems:
        trial.run("report", "--count", 2, "--resamples", RESAMPLES, "-o", file)
    else:
        trial.run("score", "-o", file)
    templates = read_asset("page.html") + read_asset("segments.html")
    require_safe_fragment(file.read_text("utf-8"), templates.count("<script"))
    return len(trial.segments)


def require_safe_fragment(html: str, scripts: int = 0) -> None:
    page = Page(html)
    require(not page.open, f"unclosed {page.open[:3]}")
    require(page.scripts == scripts, f"{page.scripts} scripts")
    require(not page.handlers, f"attributes {page.handlers[:3]}")


class Page(HTMLParser):
    """Unclosed tags and active content of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.scripts = 0
        self.handlers: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handlers += [name for name, _ in attrs if name in EVENT_HANDLERS]
        if tag == "script":
            self.scripts += 1
        if tag not in VOID_TAGS:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handlers += [name for name, _ in attrs if name in EVENT_HANDLERS]

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()
        elif tag not in VOID_TAGS:
            self.open.append(f"/{tag}")


def rankings_are_valid(trial: Trial) -> int:
    """Probabilities are in [0, 1] and sum to 1 over both orders; equal texts get 1/2."""
    ranker = trial.subject.ranker
    rng, segments = trial.rng(), trial.segments
    size, system_count = len(trial.testset), len(trial.testset.systems)
    rows = rng.permutation(len(segments))[:MAX_PAIRS]
    other_rows = (rows + size * rng.integers(0, system_count, len(rows))) % len(segments)
    left, right = [segments[n] for n in rows], [segments[n] for n in other_rows]
    probabilities = ranker.prefer(left, right)
    require(
        ((probabilities >= 0) & (probabilities <= 1)).all(), f"got {probabilities.tolist()[:5]}"
    )
    both = probabilities + ranker.prefer(right, left)
    require(np.allclose(both, 1.0, rtol=0, atol=1e-6), "both orders do not sum to 1")
    equal = [a.hypothesis == b.hypothesis for a, b in zip(left, right, strict=True)]
    require((probabilities[equal] == 0.5).all(), "equal translations do not get 1/2")
    require((ranker.prefer(left, left) == 0.5).all(), "a translation and itself do not get 1/2")
    order = rng.permutation(len(left))
    again = ranker.prefer([left[n] for n in order], [right[n] for n in order])
    tolerance = trial.tolerance if trial.subject.kind == "ranker" else 0.0
    _require_equal_probabilities(again, probabilities[order], "in another order", tolerance)
    reads_all = trial.subject.kind == "metric" and trial.metric.reads_corpus
    for n in range(0 if reads_all else min(3, len(left))):
        single = ranker.prefer([left[n]], [right[n]])
        _require_equal_probabilities(single, probabilities[[n]], "one by one", tolerance)
    return len(left)


def _require_equal_probabilities(
    values: FloatArray, expected: FloatArray, where: str, tolerance: float
) -> None:
    off = ~(np.abs(values - expected) <= tolerance)
    require(not off.any(), f"{where}: got {values[off][:1]}, expected {expected[off][:1]}")


def rank_command_equals_library(trial: Trial) -> int:
    matrix = trial.subject.ranker.rank(trial.testset)
    records = trial.run("rank", "-sl", "-f", "json").json
    for record in records:
        require(record["segments"] == matrix[record["system"]].tolist(), "the probabilities differ")
    trial.run("rank", "-sl", "-f", choose_by_seed(trial, TABLE_FORMATS))
    sums = matrix.values.sum(axis=0)
    is_right = np.allclose(sums, len(matrix.systems) / 2, atol=1e-6)
    require(is_right, "the probabilities have a wrong sum")
    return len(trial.segments)


def missing_input_is_a_one_line_error(trial: Trial) -> int:
    """A metric without its required inputs raises a one-line error with a remedy."""
    bare = trial.folder / "bare.jsonl"
    texts = next(iter(trial.testset.systems.values()))
    bare.write_text("".join(json.dumps({"mt": text}) + "\n" for text in texts), encoding="utf-8")
    printed = run_command(["score", "-t", bare, "-m", trial.subject.spec, "-q"])
    require(printed.code == 2, f"exit {printed.code}")
    is_one_line = printed.err.startswith("tertium: error: ") and printed.err.count("\n") == 1
    require(is_one_line, printed.err)
    return len(texts)
