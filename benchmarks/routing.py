"""Precision that a route promises, and precision that it reaches on other judged rows of WMT24.

Good translations have an ESA score of at least 80 and no major error. A route promises its target
with 95 % confidence, for rows like those of the fit: other documents of the same pairs.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from unittest import mock

import numpy as np
from papers.number_cells import cell_table, number_cell

from tertium.core.errors import DataError
from tertium.core.resampling import make_rng
from tertium.core.result import Cell
from tertium.core.spans import Span
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.judgments import read_judgments
from tertium.data.record_files import read_records
from tertium.decide import route as route_module
from tertium.decide.route import (
    PUBLISH,
    JudgedRows,
    Route,
    decide_by_score,
    fit_route,
    precision_bounds,
    read_judged_rows,
)
from tertium.evaluation.checking import find_errors
from tertium.evaluation.rows import Row, RowScores, score_rows
from tertium.output.text import render_table

TRAIN, DEV = "modern/train/esa", "modern/dev/esa"
HUMAN_PREFIXES = ("ref", "human")  # system names of human translations start with these
DEV_ROWS = 1200  # judged rows of each language pair
SEED = 2025
TARGETS = (0.7, 0.8, 0.9, 0.95)


@lru_cache(maxsize=2)
def read_sample(folder: str, size: int) -> dict[str, list[dict[str, object]]]:
    """Return judged rows of systems, drawn at random, by language pair."""
    rng, sample = make_rng(SEED), {}
    for path in sorted((DatasetFolder.open().root / folder).rglob("*.jsonl.gz")):
        rows = [
            record
            for _, record in read_records(path)
            if record.get("reference") and not record["system"].lower().startswith(HUMAN_PREFIXES)
        ]
        numbers = sorted(rng.choice(len(rows), min(size, len(rows)), replace=False))
        sample[rows[0]["lp"]] = [rows[n] for n in numbers]
    return sample


@dataclass(frozen=True)
class Experiment:
    """Rows to fit a route on, and other rows to apply it to."""

    fitted: str
    applied: str
    fit: Sequence[dict[str, object]]
    test: Sequence[dict[str, object]]


def experiments(train_rows: int) -> Iterator[Experiment]:
    """Yield halves of all pairs together, then of single pairs, without a common document."""
    train, dev = read_sample(TRAIN, train_rows), read_sample(DEV, DEV_ROWS)
    everything = [row for rows in train.values() for row in rows]
    if everything:
        halves = split_documents(everything)
        yield Experiment("7 pairs, half", "same pairs, other documents", *halves)
    for lp, rows in dev.items():
        for name, pair in zip(("half", "other half"), ordered(split_documents(rows)), strict=True):
            yield Experiment(f"{lp}, {name}", "same pair, other documents", *pair)


def split_documents(
    rows: Sequence[dict[str, object]],
) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Split rows into two halves without a common document."""
    names = sorted({str(row["doc"]) for row in rows})
    chosen = {*make_rng(SEED).permutation(names)[: len(names) // 2].tolist()}
    left = [row for row in rows if row["doc"] in chosen]
    return left, [row for row in rows if row["doc"] not in chosen]


def ordered(halves: tuple[list, list]) -> list[tuple[list, list]]:
    return [halves, halves[::-1]]


class RowCache:
    """Scores and findings of all rows, computed once, for fits on parts of them."""

    def __init__(self, rows: Sequence[Row], metric: str) -> None:
        self.index = {_key(row): n for n, row in enumerate(rows)}
        [self.scores], self.findings = score_rows(rows, [metric]), find_errors(rows)

    def score(self, rows: Sequence[Row], specs: Sequence[str]) -> list[RowScores]:
        places = [self.index[_key(row)] for row in rows]
        own = self.scores
        flags = {kind: mask[places] for kind, mask in own.flags.items()}
        values, signatures = own.values[places], own.signatures
        return [
            RowScores(metric=own.metric, values=values, flags=flags, signatures=signatures)
            for _ in specs
        ]

    def find(self, rows: Sequence[Row]) -> list[tuple[Span, ...]]:
        return [self.findings[self.index[_key(row)]] for row in rows]


def _key(row: Row) -> tuple[str, str, str, str]:
    return row.lp, row.system, row.document, row.segment.hypothesis + (row.segment.source or "")


def to_judged_rows(rows: Sequence[dict[str, object]]) -> JudgedRows:
    return read_judged_rows([*read_judgments(rows).split_by_language_pair().values()])


def published_rows(route: Route, rows: JudgedRows, cache: RowCache) -> np.ndarray:
    """Return which rows a route publishes, (n,)."""
    outcomes = route_module.decide_by_conditions(cache.find(rows.rows), route.conditions)
    stage = route.stages[0]
    [scores] = cache.score(rows.rows, [stage.metric])
    return np.array(
        [
            outcome is None
            and scores.is_reliable[n]
            and decide_by_score(stage.pairs.get(row.lp), scores.oriented[n]) == PUBLISH
            for n, (row, (outcome, _)) in enumerate(zip(rows.rows, outcomes, strict=True))
        ]
    )


def describe(
    experiment: Experiment, cache: RowCache, metric: str, target: float
) -> list[Cell | str]:
    """Fit and apply one route; return a row of the table."""
    fit, test = to_judged_rows(experiment.fit), to_judged_rows(experiment.test)
    head: list[Cell | str] = [experiment.fitted, experiment.applied, number_cell(100 * target, 0)]
    with (
        mock.patch.object(route_module, "score_rows", cache.score),
        mock.patch.object(route_module, "find_errors", cache.find),
    ):
        try:
            route = fit_route(fit, metric, target_precision=target)
        except DataError as error:
            best = str(error).partition("The best is ")[2].partition(",")[0]
            return [*head, *[number_cell(float("nan"), 1)] * 3, f"refused, best {best}"]
    published = published_rows(route, test, cache)
    good = route.criteria.flag_good(test)[published]
    count = len(good)
    if not count:
        return [*head, number_cell(0, 1), *[number_cell(float("nan"), 1)] * 2, "nothing published"]
    low, high = precision_bounds(np.array([good.sum()]), np.array([float(count)]), 0.025)
    verdict = "kept" if good.mean() >= target else "missed"
    verdict += ", significantly" if high[0] < target else ""
    interval = f"{100 * low[0]:.1f} to {100 * high[0]:.1f}"
    reached = number_cell(100 * float(good.mean()), 1)
    return [*head, number_cell(100 * count / len(published), 1), reached, interval, verdict]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("metric", nargs="?", default="chrf", help="metric of routes")
    parser.add_argument("--train", type=int, default=2000, help="judged rows of a training pair")
    args = parser.parse_args(arguments)
    samples = [read_sample(TRAIN, args.train), read_sample(DEV, DEV_ROWS)]
    rows = to_judged_rows([row for part in samples for own in part.values() for row in own]).rows
    header = ["fitted on", "applied to", "target %", "published %", "good %", "95 % interval", ""]
    cache = RowCache(rows, args.metric)
    lines = [
        describe(experiment, cache, args.metric, target)
        for experiment in experiments(args.train)
        for target in TARGETS
    ]
    title = f"Route by {args.metric}"
    table = cell_table(header, lines, title=title, text_columns=(0, 1, 5, 6))
    print(render_table(table))
