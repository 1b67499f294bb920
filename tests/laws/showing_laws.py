"""Laws of output: printed, written and displayed results equal those of the library.

Commands run in this process on a file of the same test set; pages and fragments are parsed.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
from tests.laws.trial import RESAMPLES, Trial, hold, run_command, run_well

from tertium.cli.output import to_json
from tertium.data.testset import TestSet
from tertium.evaluation.explaining import explain
from tertium.evaluation.scoring import Evaluation
from tertium.reporting.page.report import read_asset
from tertium.reporting.tables.evaluations import comparison_table, segment_table, system_table
from tertium.reporting.tables.table import render_table

PAIRS = 30  # translations compared with one of another system
STYLES = ("text", "tsv", "md", "latex")
FRAMES = (".jsonl", ".tsv", ".csv", ".parquet")
VOID = {"meta", "br", "hr", "img", "input", "link", "col", "wbr"}
HANDLERS = ("onerror", "onload", "onclick", "onmouseover")


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


def texts_come_back_from_a_file(trial: Trial) -> int:
    """A test set that is written and read again has the same texts."""
    again = TestSet.from_records(trial.records)
    same = again.systems == {k: tuple(v) for k, v in trial.testset.systems.items()}
    hold(same, "other hypotheses")
    hold(
        [list(r) for r in again.references] == [list(r) for r in trial.testset.references],
        "other references",
    )
    hold(list(again.sources) == list(trial.testset.sources), "other sources")
    return len(trial.segments)


def the_command_scores_as_the_library(trial: Trial) -> int:
    """`score -f json -sl` prints the records of the library, digit by digit."""
    printed = run_well(
        ["score", "-t", trial.records, "-m", trial.subject.spec, "-f", "json", "-sl", "-q"]
    ).json
    records = printed if isinstance(printed, list) else [printed]
    hold(records == plain(trial.evaluation.records()), "other records")
    return len(trial.segments)


def plain(records: Any) -> Any:
    """Return records after a JSON round trip."""
    return json.loads(to_json(records))


def tables_hold_what_the_library_returns(trial: Trial) -> int:
    """Every table format prints the library's table; TSV has full precision."""
    evaluation, style = trial.evaluation, drawn(trial, STYLES)
    call = ["score", "-t", trial.records, "-m", trial.subject.spec, "-q", "-f", style]
    for printed, table in (
        (run_well(call).out, system_table(evaluation, None, warnings=False)),
        (run_well([*call, "-sl"]).out, segment_table(evaluation, None)),
    ):
        expected = render_table(table, style)
        hold(printed == expected, f"{style}: {printed[:200]!r}, not {expected[:200]!r}")
    if style == "tsv":
        _hold_tsv(printed, evaluation)
    return len(trial.segments)


def drawn(trial: Trial, choices: Sequence[Any]) -> Any:
    """Choose an output variant by the seed."""
    return choices[trial.seed % len(choices)]


def _hold_tsv(text: str, evaluation: Evaluation) -> None:
    rows = list(csv.reader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE))
    (metric,) = evaluation.metrics
    expected = sorted(v for s in evaluation.metric_scores(metric) for v in s.segments.tolist())
    values = sorted(_floats(row[1:]) for row in rows[1:])
    flat = sorted(value for row in values for value in row)
    hold(len({len(row) for row in rows}) == 1, "ragged rows")
    hold(
        all(any(math.isclose(w, f, rel_tol=1e-9, abs_tol=1e-9) for f in flat) for w in expected),
        "the TSV lacks a score",
    )


def _floats(cells: list[str]) -> list[float]:
    values = []
    for cell in cells:
        try:
            values.append(float(cell))
        except ValueError:
            continue
    return values


def files_hold_what_the_library_returns(trial: Trial) -> int:
    """`score -o` in every format and `--to-json` write the library's own numbers."""
    evaluation, suffix = trial.evaluation, drawn(trial, FRAMES)
    frame = evaluation.to_frame()
    file, saved = trial.folder / f"scores{suffix}", trial.folder / "scores.json"
    run_well(
        [
            "score",
            "-t",
            trial.records,
            "-m",
            trial.subject.spec,
            "-q",
            "-o",
            file,
            "--to-json",
            saved,
        ]
    )
    records = _read_table(file)
    hold([list(record) for record in records] == [list(frame.columns)] * len(frame), "columns")
    values = [float(record["score"]) for record in records]
    hold(values == frame["score"].tolist(), f"{suffix}: other scores")
    hold(json.loads(saved.read_text("utf-8")) == plain(evaluation.records()), "--to-json")
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


def comparisons_are_sound(trial: Trial) -> int:
    """p-values are in (0, 1] (undefined for a single segment); equal systems do not differ."""
    result = trial.comparison
    (spec,) = result.metrics
    p_values, clusters = result.p_values[spec], result.clusters[spec]
    lone = len(trial.testset) < 2
    off = ~np.eye(len(p_values), dtype=bool)
    sound = np.isnan(p_values[off]) if lone else (p_values[off] > 0) & (p_values[off] <= 1)
    hold(sound.all() and (p_values.diagonal() == 1).all(), f"p-values {p_values.tolist()}")
    hold(min(clusters) == 1, f"clusters {clusters}")
    outputs = list(trial.testset.systems.values())
    for a in range(len(outputs)):
        for b in range(a):
            if list(outputs[a]) == list(outputs[b]):
                hold(lone or p_values[a, b] == 1, f"equal systems differ with p {p_values[a, b]}")
                hold(clusters[a] == clusters[b], "equal systems are in two clusters")
    finite = [n for n in numbers_in(result.records(segments=True)) if not math.isfinite(n)]
    hold(lone or not finite, "a number of the comparison is not finite")
    return len(outputs) * (len(outputs) - 1) // 2


def the_command_compares_as_the_library(trial: Trial) -> int:
    result = trial.comparison
    call = [
        "compare",
        "-t",
        trial.records,
        "-m",
        trial.subject.spec,
        "-q",
        "--resamples",
        RESAMPLES,
    ]
    printed = run_well([*call, "-f", "json"]).json
    hold(printed == plain(result.records()), "other records")
    style = drawn(trial, STYLES)
    expected = render_table(comparison_table(result, None, warnings=False), style)
    hold(run_well([*call, "-f", style]).out == expected, f"{style}: another table")
    return 2 * len(trial.testset.systems)


def explanations_are_sound(trial: Trial) -> int:
    """An explanation has the score and finite numbers, and the command prints the same."""
    segments = trial.segments[:3]
    values = trial.metric.score(segments).segments
    for segment, value in zip(segments, values, strict=True):
        values = explain(segment, metric=trial.metric)
        finite = all(math.isfinite(number) for number in numbers_in(values.as_dict()))
        hold(finite, "a number of the explanation is not finite")
        hold(
            abs(values.score - value) <= 2e-5 * max(1.0, abs(value)),
            f"explains {values.score!r}, not {value!r}",
        )
        hold_fragment(values._repr_html_())
        call = [
            "explain",
            "-m",
            trial.subject.spec,
            f"--translation-text={segment.hypothesis}",
            f"--source-text={segment.source}",
            *(f"--reference-text={reference}" for reference in segment.references),
        ]
        hold(run_well([*call, "-f", "json"]).json == plain(values.as_dict()), "another explanation")
        run_well(call)
    return len(segments)


def displays_are_whole(trial: Trial) -> int:
    """Notebook output is well-formed HTML without scripts."""
    hold_fragment(trial.scores._repr_html_())
    hold_fragment(trial.evaluation._repr_html_())
    if len(trial.testset.systems) > 1:
        hold_fragment(trial.comparison._repr_html_())
    return len(trial.segments)


def reports_are_whole(trial: Trial) -> int:
    """Reports are well-formed HTML with no scripts but our own, whatever the texts contain."""
    file = trial.folder / "report.html"
    several = len(trial.testset.systems) > 1
    command = (
        ["report", "--explain", 2, "--resamples", RESAMPLES, "-o"]
        if several
        else ["score", "--report"]
    )
    run_well([*command, file, "-t", trial.records, "-m", trial.subject.spec, "-q"])
    page = Page(file.read_text("utf-8"))
    hold(page.open == [], f"unclosed {page.open[:3]}")
    hold(page.scripts == read_asset("page.html").count("<script"), f"{page.scripts} scripts")
    hold(not page.handlers, f"attributes {page.handlers[:3]}")
    return len(trial.segments)


def hold_fragment(html: str) -> None:
    page = Page(html)
    hold(not page.open, f"unclosed {page.open[:3]}")
    hold(page.scripts == 0, f"{page.scripts} scripts")
    hold(not page.handlers, f"attributes {page.handlers[:3]}")


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
        self.handlers += [name for name, _ in attrs if name in HANDLERS]
        if tag == "script":
            self.scripts += 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handlers += [name for name, _ in attrs if name in HANDLERS]

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()
        elif tag not in VOID:
            self.open.append(f"/{tag}")


def rankings_are_sound(trial: Trial) -> int:
    """Probabilities are in [0, 1] and sum to 1 over both orders; equal texts get 1/2."""
    ranker = trial.subject.ranker
    rng, everything = trial.rng(), trial.segments
    size, several = len(trial.testset), len(trial.testset.systems)
    places = rng.permutation(len(everything))[:PAIRS]
    other_rows = (places + size * rng.integers(0, several, len(places))) % len(everything)
    left, right = [everything[n] for n in places], [everything[n] for n in other_rows]
    chances = ranker.prefer(left, right)
    hold(((chances >= 0) & (chances <= 1)).all(), f"chances {chances.tolist()[:5]}")
    both = chances + ranker.prefer(right, left)
    hold(np.allclose(both, 1.0, rtol=0, atol=1e-6), "two orders do not add up to 1")
    equal = [a.hypothesis == b.hypothesis for a, b in zip(left, right, strict=True)]
    hold((chances[equal] == 0.5).all(), "equal translations are not even")
    hold((ranker.prefer(left, left) == 0.5).all(), "a translation beats itself")
    order = rng.permutation(len(left))
    again = ranker.prefer([left[n] for n in order], [right[n] for n in order])
    _hold_chances(again, chances[order], "in another order")
    reads_all = trial.subject.kind == "metric" and trial.metric.reads_corpus
    for n in range(0 if reads_all else min(3, len(left))):
        single = ranker.prefer([left[n]], [right[n]])
        _hold_chances(single, chances[[n]], "single")
    return len(left)


def _hold_chances(values: Any, expected: Any, where: str) -> None:
    off = values != expected
    hold(not off.any(), f"{where}: {values[off][:1]} and not {expected[off][:1]}")


def the_command_ranks_as_the_library(trial: Trial) -> int:
    matrix = trial.subject.ranker.rank(trial.testset)
    call = ["rank", "-t", trial.records, "-m", trial.subject.spec, "-q", "-sl"]
    records = run_well([*call, "-f", "json"]).json
    for record in records:
        hold(record["segments"] == matrix[record["system"]].tolist(), "other chances")
    run_well([*call, "-f", drawn(trial, STYLES)])
    sums = matrix.values.sum(axis=0)
    hold(np.allclose(sums, len(matrix.systems) / 2, atol=1e-6), "chances do not add up")
    return len(trial.segments)


def own_errors_alone(trial: Trial) -> int:
    """A metric without its required inputs raises a one-line error with a remedy."""
    bare = trial.folder / "bare.jsonl"
    rows = [
        json.dumps({"mt": s.hypothesis})
        for s in trial.testset.segments(next(iter(trial.testset.systems)))
    ]
    bare.write_text("\n".join(rows) + "\n", encoding="utf-8")
    printed = run_command(["score", "-t", bare, "-m", trial.subject.spec, "-q"])
    hold(printed.code == 2, f"exit {printed.code}")
    hold(printed.err.startswith("tertium: error: ") and printed.err.count("\n") == 1, printed.err)
    return len(rows)
