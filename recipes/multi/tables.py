"""Build the tables of training rows: comparisons, judgments, paragraphs, damage, teacher scores.

    python -m recipes.multi.tables --parts parts/ --processes 8

This command precomputes what needs a loop over rows: paragraphs and damaged outputs.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipes.multi.batching import Floats, Ints, TableSampler, TextPool, expand_ranges, rows_table
from recipes.multi.damage import FATAL, Damager
from recipes.multi.e5 import Pieces
from recipes.multi.packed_rows import (
    ESA,
    HELD_OUT_LINES,
    MODE_SHARES,
    MQM,
    MQM_TAGS,
    NO_TAGS,
    TAGS_OF,
    Outputs,
    Shares,
    material_of,
)
from recipes.multi.store import Store

MAX_OUTPUTS_PER_SEGMENT = 8  # of a segment in one batch
MAX_PARAGRAPH_PIECES, LINES_PER_BLOCK = 480, 6
DEFAULT_PARAGRAPHS, DEFAULT_DAMAGE, DISTILLED_OUTPUTS = 120_000, 240_000, 252_000
DERIVED = "derived"


def wait_for_file(path: Path, seconds: int = 600) -> Path:
    """Wait until a file exists and return its path."""
    for _ in range(5 * seconds):
        if path.exists():
            return path
        time.sleep(0.2)
    raise TimeoutError(f"{path} does not exist after {seconds} s")


class Parts:
    """The packed parts, opened on first use, with all texts in one pool."""

    def __init__(self, folder: Path, device: str) -> None:
        self.folder, self.pool = folder, TextPool(device)

    def _open(self, name: str) -> tuple[Store, int]:
        wait_for_file(self.folder / name / "READY")
        store = Store.open(self.folder / name)
        return store, self.pool.add(store.pieces, store.lengths())

    @cached_property
    def rankings(self) -> tuple[Store, int]:
        return self._open("rankings")

    @cached_property
    def judgments(self) -> tuple[Store, int]:
        return self._open("judgements")

    @cached_property
    def comparisons(self) -> TableSampler:
        return comparison_sampler(*self.rankings)

    @cached_property
    def outputs(self) -> OutputTexts:
        wait_for_file(self.folder / "outputs/READY")
        return OutputTexts(self.pool, self.folder / "outputs")

    def derived(self, name: str) -> Path:
        return wait_for_file(self.folder / DERIVED / name)


def store_texts(store: Store, base: int, rows: Ints | slice = slice(None)) -> Ints:
    """Return the pool numbers of texts, (rows, 3)."""
    columns = [store.columns[c][rows] for c in ("hypothesis", "source", "reference")]
    texts = np.stack(columns, 1).astype(np.int64)
    return np.where(texts >= 0, texts + base, -1)


def compared_rows(store: Store) -> Ints:
    """Return all rows that occur in comparisons."""
    return np.unique(store.columns["comparisons"][:, :2]).astype(np.int64)


def comparison_sampler(store: Store, base: int) -> TableSampler:
    """Return segments with their outputs and the votes on each pair.

    A segment with more than `MAX_OUTPUTS_PER_SEGMENT` outputs becomes several random subsets.
    """
    rng = np.random.default_rng(1)
    left, right, _, outcome = store.columns["comparisons"].T.astype(np.int64)
    low, high = np.minimum(left, right), np.maximum(left, right)
    key, inverse, votes = np.unique(
        low * len(store) + high, return_inverse=True, return_counts=True
    )
    for_low = np.bincount(inverse, (outcome > 0) == (left == low), len(key))
    low, high = np.divmod(key, len(store))
    _, segment = np.unique(
        store.columns["source"][low].astype(np.int64) << 32 | store.columns["reference"][low],
        return_inverse=True,
    )
    order = np.argsort(segment, kind="stable")
    rows, sizes, pairs, counts, sampling_weights = [], [], [], [], []
    for part in np.split(order, np.flatnonzero(np.diff(segment[order])) + 1):
        outputs = np.unique(np.concatenate([low[part], high[part]]))
        copies, limit = 1, MAX_OUTPUTS_PER_SEGMENT
        if len(outputs) > limit:
            copies = -(-2 * len(outputs) // limit)
        for _ in range(copies):
            subset = outputs
            if copies > 1:
                subset = np.sort(rng.choice(outputs, limit, replace=False))
            own = part[np.isin(low[part], subset) & np.isin(high[part], subset)]
            if len(own):
                a, b = np.searchsorted(subset, low[own]), np.searchsorted(subset, high[own])
                pairs.append(np.stack([a, b, for_low[own] / votes[own], np.sqrt(votes[own])], 1))
                rows.append(subset)
                sizes.append(len(subset))
                counts.append(len(own))
                sampling_weights.append(np.sqrt(len(part)) / copies)
    chosen = np.concatenate(rows)
    table = rows_table(store_texts(store, base, chosen), np.full((len(chosen), 3), np.nan))
    table.row_starts = np.concatenate([[0], np.cumsum(sizes)])
    table.pairs = np.concatenate(pairs).astype(np.float32)
    table.pair_starts = np.concatenate([[0], np.cumsum(counts)])
    table.margin_starts = np.zeros(len(sizes) + 1, np.int64)
    return TableSampler(table, 1.0, MODE_SHARES, np.array(sampling_weights, np.float32))


def human_targets(store: Store) -> Floats:
    """Return human scores (rows, scales), NaN on the scales that were not used."""
    kind = store.columns["kind"]
    scale = np.where(kind == MQM, 1, np.where(kind == ESA, 2, 0))
    targets = np.full((len(store), 3), np.nan, np.float32)
    targets[np.arange(len(store)), scale] = store.columns["score"].clip(-4, 3)
    return targets


def row_marks(store: Store) -> tuple[Floats, Ints]:
    """Return error spans sorted by row, without the row column, and the start of each row."""
    marks = store.columns["marks"]
    marks = marks[np.argsort(marks[:, 0], kind="stable")]
    count = np.bincount(marks[:, 0].astype(np.int64), minlength=len(store))
    return marks[:, 1:].astype(np.float32), np.concatenate([[0], np.cumsum(count)])


def row_tags(store: Store) -> Ints:
    """Return the kind of tags of each row."""
    kinds = np.array([TAGS_OF[kind] for kind in sorted(TAGS_OF)])[store.columns["kind"]]
    return np.where(store.columns["marked"] > 0, kinds, NO_TAGS).astype(np.int64)


def row_sampling_weights(store: Store, shares: Shares) -> Floats:
    """Return the sampling weight of each row."""
    factor = np.array([shares.factor(name) for name in store.names])[store.columns["set"]]
    # human references among the systems count half: raters of some datasets score them low
    return np.asarray(factor * np.where(store.columns["human"] > 0, 0.5, 1.0), np.float32)


def judgment_sampler(
    store: Store, base: int, targets: Floats, shares: Shares, share: float
) -> TableSampler:
    """Return a sampler of judged rows."""
    marks, starts = row_marks(store)
    table = rows_table(
        store_texts(store, base),
        targets,
        tags=row_tags(store),
        clean=store.columns["clean"].astype(np.float32),
        marks=marks,
        mark_starts=starts,
    )
    return TableSampler(table, share, MODE_SHARES, row_sampling_weights(store, shares))


def paragraph_sampler(
    pool: TextPool,
    store: Store,
    base: int,
    targets: Floats,
    shares: Shares,
    share: float,
    groups: ParagraphRows,
) -> TableSampler:
    """Return joined neighbors: scores averaged by length, spans shifted."""
    texts, lengths = store_texts(store, base, groups.rows), store.lengths()
    size = np.maximum(lengths[store.columns["hypothesis"][groups.rows]], 1).astype(np.float64)
    begins, count = groups.starts[:-1], np.diff(groups.starts)
    total = np.add.reduceat(size, begins)
    mean = np.add.reduceat(targets[groups.rows] * size[:, None], begins) / total[:, None]
    preceding = np.cumsum(size) - size
    preceding -= np.repeat(preceding[begins], count)
    marks, starts = row_marks(store)
    where, owner = expand_ranges(starts[groups.rows], np.diff(starts)[groups.rows])
    shifted = marks[where]
    shifted[:, :2] += preceding[owner, None]
    kinds = row_tags(store)[groups.rows]
    is_uniform = np.maximum.reduceat(kinds, begins) == np.minimum.reduceat(kinds, begins)
    marked = np.bincount(owner, minlength=len(groups.rows))
    mark_starts = np.concatenate([[0], np.cumsum(np.add.reduceat(marked, begins))])
    table = rows_table(
        join_columns(pool, texts, count),
        mean.astype(np.float32),
        weights=1.5,
        tags=np.where(is_uniform, kinds[begins], NO_TAGS),
        clean=np.minimum.reduceat(store.columns["clean"][groups.rows], begins),
        marks=shifted,
        mark_starts=mark_starts,
    )
    sampling_weights = row_sampling_weights(store, shares)[groups.rows[begins]]
    return TableSampler(table, share, MODE_SHARES, sampling_weights)


def join_columns(pool: TextPool, texts: Ints, count: Ints) -> Ints:
    """Join texts (rows, 3) in groups of `count` rows, (groups, 3); -1 where one is missing."""
    begins = np.cumsum(count) - count
    joined = np.full((len(count), 3), -1, np.int64)
    for role in range(3):
        is_complete = np.minimum.reduceat(texts[:, role], begins) >= 0
        if is_complete.any():
            rows, _ = expand_ranges(begins[is_complete], count[is_complete])
            first = pool.join(texts[rows, role], count[is_complete])
            joined[is_complete, role] = first + np.arange(is_complete.sum())
    return joined


@dataclass(frozen=True)
class ParagraphRows:
    """Neighboring rows of documents: paragraph n is rows[starts[n]:starts[n + 1]]."""

    rows: Ints
    starts: Ints

    @classmethod
    def load(cls, path: Path) -> ParagraphRows:
        with np.load(path) as stored:
            return cls(stored["rows"], stored["starts"])


def find_paragraphs(store: Store, limit: int, rng: np.random.Generator) -> ParagraphRows:
    """Draw paragraphs of 2 to 10 neighbors by one system, within the length limit."""
    columns, lengths = store.columns, store.lengths()
    order = np.lexsort((columns["order"], columns["document"]))
    sizes = np.stack(
        [
            np.where(columns[c] >= 0, lengths[columns[c]], 0)[order]
            for c in ("hypothesis", "source", "reference")
        ],
        1,
    )
    document, place = columns["document"][order], columns["order"][order]
    has_reference = columns["reference"][order] >= 0
    is_next = (
        (document[1:] == document[:-1])
        & (document[1:] >= 0)
        & (place[1:] - place[:-1] > 0)
        & (place[1:] - place[:-1] <= 2)
        & (has_reference[1:] == has_reference[:-1])
    )
    totals = np.concatenate([np.zeros((1, 3)), np.cumsum(sizes, 0)])
    stops = np.append(np.flatnonzero(~is_next), len(order) - 1)
    starts = rng.permutation(np.flatnonzero(is_next))[:limit]
    last = stops[np.searchsorted(stops, starts)]  # the end of the run of neighbors
    end = np.minimum(starts + rng.integers(1, 10, len(starts)), last)
    while True:  # shorten paragraphs that are too long
        is_too_long = ((totals[end + 1] - totals[starts]).max(1) > MAX_PARAGRAPH_PIECES) & (
            end > starts
        )
        if not is_too_long.any():
            break
        end = end - is_too_long
    starts, end = starts[end > starts], end[end > starts]
    where, _ = expand_ranges(starts, end - starts + 1)
    return ParagraphRows(order[where], np.concatenate([[0], np.cumsum(end - starts + 1)]))


class OutputTexts:
    """FLORES outputs in the pool, and a sample of line blocks for distillation."""

    def __init__(self, pool: TextPool, folder: Path) -> None:
        self.outputs = Outputs(folder)
        self.base = pool.add(self.outputs.pieces, np.diff(self.outputs.offsets))
        self.systems = np.array(self.outputs.systems)  # (systems, 3) columns

    def texts(self, lines: Ints, systems: Ints) -> Ints:
        columns = self.systems[systems]
        return np.asarray(self.base + lines[:, None] * len(self.outputs.names) + columns)

    def sample(self, limit: int) -> tuple[Ints, Ints]:
        """Return lines and systems of rows, in blocks of `LINES_PER_BLOCK` lines."""
        blocks = (self.outputs.lines - HELD_OUT_LINES) // LINES_PER_BLOCK
        chosen = np.random.default_rng(5).permutation(blocks * len(self.systems))[
            : limit // LINES_PER_BLOCK
        ]
        first, system = LINES_PER_BLOCK * (chosen // len(self.systems)), chosen % len(self.systems)
        lines = (first[:, None] + np.arange(LINES_PER_BLOCK)).reshape(-1)
        return lines, np.repeat(system, LINES_PER_BLOCK)

    def into_english(self, systems: Ints) -> NDArray[np.bool_]:
        english = self.outputs.column["en"]
        return np.asarray(self.systems[systems, 2] == english)

    def from_english(self, systems: Ints) -> NDArray[np.bool_]:
        return np.asarray(self.systems[systems, 1] == self.outputs.column["en"])

    def third_sources(self, texts: Ints, lines: Ints, rng: np.random.Generator) -> Ints:
        """Return the rows with their source replaced by a third language."""
        columns = np.array([self.outputs.column[n] for n in self.outputs.languages])
        third = columns[rng.integers(len(columns), size=len(texts))]
        changed = texts.copy()
        changed[:, 1] = self.base + lines * len(self.outputs.names) + third
        return np.where(changed[:, 1:2] == changed[:, 2:], texts, changed)


def output_paragraphs(
    pool: TextPool, texts: Ints, scores: Floats, limit: int, rng: np.random.Generator
) -> tuple[Ints, Floats]:
    """Join 2 to `LINES_PER_BLOCK` lines of blocks, with scores averaged by length."""
    blocks = rng.permutation(len(texts) // LINES_PER_BLOCK)[:limit]
    count = rng.integers(2, LINES_PER_BLOCK + 1, len(blocks))
    first = LINES_PER_BLOCK * blocks + rng.integers(0, LINES_PER_BLOCK - count + 1)
    rows, _ = expand_ranges(first, count)
    begins = np.cumsum(count) - count
    size = np.maximum(pool.lengths[texts[rows, 0]], 1).astype(float)
    mean = np.add.reduceat(scores[rows] * size[:, None], begins)
    mean /= np.add.reduceat(size, begins)[:, None]
    return join_columns(pool, texts[rows], count), mean.astype(np.float32)


def damage_sampler(pool: TextPool, outputs: OutputTexts, path: Path, share: float) -> TableSampler:
    """Return outputs or references paired with a damaged copy that must score lower."""
    with np.load(path) as stored:
        columns = {name: stored[name] for name in stored.files}
    first = pool.add(columns["pieces"], columns["sizes"])
    count = len(columns["sizes"])
    intact = outputs.texts(columns["lines"], columns["systems"])
    is_reference = columns["bare"] > 0  # the reference as hypothesis, given the source
    intact[is_reference] = np.stack(
        [intact[is_reference, 2], intact[is_reference, 1], np.full(is_reference.sum(), -1)], 1
    )
    damaged_rows = intact.copy()
    damaged_rows[:, 0] = first + np.arange(count)
    texts = np.stack([intact, damaged_rows], 1).reshape(-1, 3)
    targets = np.full((2 * count, 3), np.nan, np.float32)
    targets[1::2][columns["costs"] >= FATAL] = -2.5
    spans = columns["spans"]  # unit, first piece, end
    span_counts = np.bincount(spans[:, 0], minlength=count)
    marks = np.column_stack([spans[:, 1:], np.tile([2.0, 0.0, 1.0], (len(spans), 1))])
    # omissions have no span, so these rows get no tags
    tags = np.stack([np.zeros(count), np.where(span_counts > 0, MQM_TAGS, NO_TAGS)], 1)
    table = rows_table(
        texts,
        targets,
        tags=tags.reshape(-1).astype(np.int64),
        clean=np.tile([-1.0, 0.0], count),
        marks=marks.astype(np.float32),
        mark_starts=np.concatenate(
            [[0], np.cumsum(np.stack([np.zeros(count, int), span_counts], 1).reshape(-1))]
        ),
    )
    table.weights = np.tile(np.array([0, 0.5], np.float32), count)
    table.row_starts = 2 * np.arange(count + 1)
    table.pair_starts = np.zeros(count + 1, np.int64)
    pairs = np.tile(np.array([0, 1], np.float32), (count, 1))
    table.margins = np.column_stack([pairs, columns["costs"]]).astype(np.float32)
    table.margin_starts = np.arange(count + 1)
    return TableSampler(table, share, MODE_SHARES)


def make_damage(job: tuple[Path, int, int]) -> dict[str, NDArray[Any]]:
    """Damage a number of random outputs and return columns."""
    parts, count, seed = job
    outputs = Outputs(parts / "outputs")
    damager = Damager(Pieces(parts / "encoder/tokenizer.json").names)
    rng = np.random.default_rng(seed)
    training_lines = outputs.lines - HELD_OUT_LINES
    rows: list[tuple[int, int, int, float]] = []
    texts, spans = [], []
    while len(rows) < count:
        line, system = int(rng.integers(training_lines)), int(rng.integers(len(outputs.systems)))
        own, source, target = outputs.systems[system]
        intact = outputs.texts(line, system)
        is_reference = rng.random() < 0.3
        if is_reference:
            intact = (intact[2], intact[1], None)
        other = outputs.text(int(rng.integers(training_lines)), own)
        third = outputs.column[outputs.languages[int(rng.integers(len(outputs.languages)))]]
        if third in (source, target):
            continue
        damaged = damager.damage(material_of(intact, other, outputs.text(line, third)), rng)
        if damaged is not None:
            spans += [(len(rows), start, end) for start, end in damaged.spans]
            rows.append((line, system, int(is_reference), damaged.cost))
            texts.append(damaged.text)
    lines, systems, is_reference_column, costs = (
        np.array(column) for column in zip(*rows, strict=True)
    )
    return {
        "lines": lines,
        "systems": systems,
        "bare": is_reference_column,
        "costs": costs,
        "pieces": np.concatenate(texts).astype(np.int32),
        "sizes": np.array([len(text) for text in texts]),
        "spans": np.array(spans, np.int64).reshape(-1, 3),
    }


def join_damage(parts: Sequence[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Concatenate the columns of several processes."""
    begins = np.cumsum([0, *(len(part["lines"]) for part in parts)])
    for part, begin in zip(parts, begins, strict=False):
        part["spans"][:, 0] += begin
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def save_arrays(path: Path, columns: dict[str, NDArray[Any]]) -> None:
    partial = path.with_suffix(".part.npz")
    np.savez(partial, allow_pickle=False, **columns)
    partial.rename(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", type=Path, required=True, help="folder of packed data")
    parser.add_argument("--processes", type=int, default=8, help="number of processes (default: 8)")
    parser.add_argument(
        "--paragraphs", type=int, default=DEFAULT_PARAGRAPHS, help="number of paragraphs"
    )
    parser.add_argument(
        "--damaged", type=int, default=DEFAULT_DAMAGE, help="number of damaged outputs"
    )
    args = parser.parse_args()
    folder = args.parts / DERIVED
    folder.mkdir(parents=True, exist_ok=True)
    wait_for_file(args.parts / "judgements/READY")
    store = Store.open(args.parts / "judgements")
    groups = find_paragraphs(store, args.paragraphs, np.random.default_rng(3))
    save_arrays(folder / "groups.npz", {"rows": groups.rows, "starts": groups.starts})
    print(len(groups.starts) - 1, "paragraphs of", len(groups.rows), "rows", flush=True)
    wait_for_file(args.parts / "outputs/READY")
    jobs = [
        (args.parts, -(-args.damaged // args.processes), 100 + n) for n in range(args.processes)
    ]
    with multiprocessing.get_context("fork").Pool(args.processes) as pool:
        columns = join_damage(pool.map(make_damage, jobs))
    save_arrays(folder / "damage.npz", columns)
    print(len(columns["sizes"]), "damaged,", len(columns["spans"]), "spans", flush=True)


if __name__ == "__main__":
    main()
