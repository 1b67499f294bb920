"""Tables of training rows: comparisons, judgments, paragraphs, damage and teachers' scores.

    python -m recipes.multi.tables --parts parts/ --processes 8

writes what takes a loop over rows: which neighbors make paragraphs, and damaged outputs.
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
MAX_PARAGRAPH_PIECES, BLOCK = 480, 6
PARAGRAPHS, DAMAGED, DISTILLED_OUTPUTS = 120_000, 240_000, 252_000
DERIVED = "derived"


def wait_for_file(path: Path, seconds: int = 600) -> Path:
    for _ in range(5 * seconds):
        if path.exists():
            return path
        time.sleep(0.2)
    raise TimeoutError(f"{path} was not made")


class Parts:
    """What was packed, opened where it is wanted, all texts in one pool."""

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
        return comparisons(*self.rankings)

    @cached_property
    def outputs(self) -> OutputTexts:
        wait_for_file(self.folder / "outputs/READY")
        return OutputTexts(self.pool, self.folder / "outputs")

    def derived(self, name: str) -> Path:
        return wait_for_file(self.folder / DERIVED / name)


def store_texts(store: Store, base: int, rows: Ints | slice = slice(None)) -> Ints:
    """(rows, 3) numbers in the pool."""
    columns = [store.columns[c][rows] for c in ("hypothesis", "source", "reference")]
    texts = np.stack(columns, 1).astype(np.int64)
    return np.where(texts >= 0, texts + base, -1)


def compared_rows(store: Store) -> Ints:
    return np.unique(store.columns["comparisons"][:, :2]).astype(np.int64)


def comparisons(store: Store, base: int) -> TableSampler:
    """Segments with their outputs and the net result of all judges on each pair.

    A segment of more than `MAX_OUTPUTS_PER_SEGMENT` comes as several random choices of them.
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
        there = np.unique(np.concatenate([low[part], high[part]]))
        copies = (
            1
            if len(there) <= MAX_OUTPUTS_PER_SEGMENT
            else -(-2 * len(there) // MAX_OUTPUTS_PER_SEGMENT)
        )
        for _ in range(copies):
            some = (
                there
                if copies == 1
                else np.sort(rng.choice(there, MAX_OUTPUTS_PER_SEGMENT, replace=False))
            )
            own = part[np.isin(low[part], some) & np.isin(high[part], some)]
            if len(own):
                a, b = np.searchsorted(some, low[own]), np.searchsorted(some, high[own])
                pairs.append(np.stack([a, b, for_low[own] / votes[own], np.sqrt(votes[own])], 1))
                rows.append(some)
                sizes.append(len(some))
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
    """(rows, scales): what people said, on the scale on which they said it."""
    kind = store.columns["kind"]
    scale = np.where(kind == MQM, 1, np.where(kind == ESA, 2, 0))
    targets = np.full((len(store), 3), np.nan, np.float32)
    targets[np.arange(len(store)), scale] = store.columns["score"].clip(-4, 3)
    return targets


def row_marks(store: Store) -> tuple[Floats, Ints]:
    """Marks sorted by rows without their row, and where each row's begin."""
    marks = store.columns["marks"]
    marks = marks[np.argsort(marks[:, 0], kind="stable")]
    count = np.bincount(marks[:, 0].astype(np.int64), minlength=len(store))
    return marks[:, 1:].astype(np.float32), np.concatenate([[0], np.cumsum(count)])


def row_tags(store: Store) -> Ints:
    kinds = np.array([TAGS_OF[kind] for kind in sorted(TAGS_OF)])[store.columns["kind"]]
    return np.where(store.columns["marked"] > 0, kinds, NO_TAGS).astype(np.int64)


def row_sampling_weights(store: Store, shares: Shares) -> Floats:
    factor = np.array([shares.of(name) for name in store.names])[store.columns["set"]]
    # a human reference among the systems is no output; judges of some sets rate it low
    return np.asarray(factor * np.where(store.columns["human"] > 0, 0.5, 1.0), np.float32)


def judgments(
    store: Store, base: int, targets: Floats, shares: Shares, share: float
) -> TableSampler:
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


def paragraphs(
    pool: TextPool,
    store: Store,
    base: int,
    targets: Floats,
    shares: Shares,
    share: float,
    groups: ParagraphRows,
) -> TableSampler:
    """Joined neighbors of documents: scores averaged by length, marks moved."""
    texts, lengths = store_texts(store, base, groups.rows), store.lengths()
    size = np.maximum(lengths[store.columns["hypothesis"][groups.rows]], 1).astype(np.float64)
    begins, count = groups.starts[:-1], np.diff(groups.starts)
    total = np.add.reduceat(size, begins)
    mean = np.add.reduceat(targets[groups.rows] * size[:, None], begins) / total[:, None]
    before = np.cumsum(size) - size
    before -= np.repeat(before[begins], count)
    marks, starts = row_marks(store)
    where, owner = expand_ranges(starts[groups.rows], np.diff(starts)[groups.rows])
    moved = marks[where]
    moved[:, :2] += before[owner, None]
    kinds = row_tags(store)[groups.rows]
    one_kind = np.maximum.reduceat(kinds, begins) == np.minimum.reduceat(kinds, begins)
    marked = np.bincount(owner, minlength=len(groups.rows))
    mark_starts = np.concatenate([[0], np.cumsum(np.add.reduceat(marked, begins))])
    table = rows_table(
        join_columns(pool, texts, count),
        mean.astype(np.float32),
        weights=1.5,
        tags=np.where(one_kind, kinds[begins], NO_TAGS),
        clean=np.minimum.reduceat(store.columns["clean"][groups.rows], begins),
        marks=moved,
        mark_starts=mark_starts,
    )
    sampling_weights = row_sampling_weights(store, shares)[groups.rows[begins]]
    return TableSampler(table, share, MODE_SHARES, sampling_weights)


def join_columns(pool: TextPool, texts: Ints, count: Ints) -> Ints:
    """Texts (rows, 3) joined in groups of `count` rows, (groups, 3); absent stays absent."""
    begins = np.cumsum(count) - count
    joined = np.full((len(count), 3), -1, np.int64)
    for role in range(3):
        there = np.minimum.reduceat(texts[:, role], begins) >= 0
        if there.any():
            rows, _ = expand_ranges(begins[there], count[there])
            first = pool.join(texts[rows, role], count[there])
            joined[there, role] = first + np.arange(there.sum())
    return joined


@dataclass(frozen=True)
class ParagraphRows:
    """Neighbors in a document: group n is rows[starts[n]:starts[n + 1]]."""

    rows: Ints
    starts: Ints

    @classmethod
    def load(cls, path: Path) -> ParagraphRows:
        with np.load(path) as stored:
            return cls(stored["rows"], stored["starts"])


def find_paragraphs(store: Store, most: int, rng: np.random.Generator) -> ParagraphRows:
    """Random paragraphs of 2 to 10 neighbors by one system, none of its texts too long."""
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
    there = columns["reference"][order] >= 0
    follows = (
        (document[1:] == document[:-1])
        & (document[1:] >= 0)
        & (place[1:] - place[:-1] > 0)
        & (place[1:] - place[:-1] <= 2)
        & (there[1:] == there[:-1])
    )
    totals = np.concatenate([np.zeros((1, 3)), np.cumsum(sizes, 0)])
    stops = np.append(np.flatnonzero(~follows), len(order) - 1)
    starts = rng.permutation(np.flatnonzero(follows))[:most]
    last = stops[np.searchsorted(stops, starts)]  # the end of the run of neighbors
    end = np.minimum(starts + rng.integers(1, 10, len(starts)), last)
    while True:  # shorten what is too long
        long = ((totals[end + 1] - totals[starts]).max(1) > MAX_PARAGRAPH_PIECES) & (end > starts)
        if not long.any():
            break
        end = end - long
    starts, end = starts[end > starts], end[end > starts]
    where, _ = expand_ranges(starts, end - starts + 1)
    return ParagraphRows(order[where], np.concatenate([[0], np.cumsum(end - starts + 1)]))


class OutputTexts:
    """Outputs of FLORES in the pool, and a sample of blocks of lines for teachers."""

    def __init__(self, pool: TextPool, folder: Path) -> None:
        self.outputs = Outputs(folder)
        self.base = pool.add(self.outputs.pieces, np.diff(self.outputs.offsets))
        self.systems = np.array(self.outputs.systems)  # (systems, 3) columns

    def texts(self, lines: Ints, systems: Ints) -> Ints:
        columns = self.systems[systems]
        return np.asarray(self.base + lines[:, None] * len(self.outputs.names) + columns)

    def sample(self, most: int) -> tuple[Ints, Ints]:
        """Lines and systems of rows, `BLOCK` lines of a system one behind the other."""
        blocks = (self.outputs.lines - HELD_OUT_LINES) // BLOCK
        chosen = np.random.default_rng(5).permutation(blocks * len(self.systems))[: most // BLOCK]
        first, system = BLOCK * (chosen // len(self.systems)), chosen % len(self.systems)
        lines = (first[:, None] + np.arange(BLOCK)).reshape(-1)
        return lines, np.repeat(system, BLOCK)

    def into_english(self, systems: Ints) -> NDArray[np.bool_]:
        english = self.outputs.column["en"]
        return np.asarray(self.systems[systems, 2] == english)

    def from_english(self, systems: Ints) -> NDArray[np.bool_]:
        return np.asarray(self.systems[systems, 1] == self.outputs.column["en"])

    def third_sources(self, texts: Ints, lines: Ints, rng: np.random.Generator) -> Ints:
        """The same rows with the line in a third language as their source."""
        columns = np.array([self.outputs.column[n] for n in self.outputs.languages])
        third = columns[rng.integers(len(columns), size=len(texts))]
        changed = texts.copy()
        changed[:, 1] = self.base + lines * len(self.outputs.names) + third
        return np.where(changed[:, 1:2] == changed[:, 2:], texts, changed)


def output_paragraphs(
    pool: TextPool, texts: Ints, scores: Floats, most: int, rng: np.random.Generator
) -> tuple[Ints, Floats]:
    """Lines of blocks joined, two to `BLOCK`, with the mean of their scores by length."""
    blocks = rng.permutation(len(texts) // BLOCK)[:most]
    count = rng.integers(2, BLOCK + 1, len(blocks))
    first = BLOCK * blocks + rng.integers(0, BLOCK - count + 1)
    rows, _ = expand_ranges(first, count)
    begins = np.cumsum(count) - count
    size = np.maximum(pool.lengths[texts[rows, 0]], 1).astype(float)
    mean = np.add.reduceat(scores[rows] * size[:, None], begins)
    mean /= np.add.reduceat(size, begins)[:, None]
    return join_columns(pool, texts[rows], count), mean.astype(np.float32)


def damages(pool: TextPool, outputs: OutputTexts, path: Path, share: float) -> TableSampler:
    """An output or a reference as it is, beside a damaged copy that must score lower."""
    with np.load(path) as stored:
        made = {name: stored[name] for name in stored.files}
    first = pool.add(made["pieces"], made["sizes"])
    count = len(made["sizes"])
    whole = outputs.texts(made["lines"], made["systems"])
    bare = made["bare"] > 0  # the reference itself, judged by its source
    whole[bare] = np.stack([whole[bare, 2], whole[bare, 1], np.full(bare.sum(), -1)], 1)
    broken = whole.copy()
    broken[:, 0] = first + np.arange(count)
    texts = np.stack([whole, broken], 1).reshape(-1, 3)
    targets = np.full((2 * count, 3), np.nan, np.float32)
    targets[1::2][made["costs"] >= FATAL] = -2.5
    spans = made["spans"]  # unit, first piece, end
    held = np.bincount(spans[:, 0], minlength=count)
    marks = np.column_stack([spans[:, 1:], np.tile([2.0, 0.0, 1.0], (len(spans), 1))])
    # a piece that is left out leaves no place to mark; tags of such rows teach nothing
    tags = np.stack([np.zeros(count), np.where(held > 0, MQM_TAGS, NO_TAGS)], 1)
    table = rows_table(
        texts,
        targets,
        tags=tags.reshape(-1).astype(np.int64),
        clean=np.tile([-1.0, 0.0], count),
        marks=marks.astype(np.float32),
        mark_starts=np.concatenate(
            [[0], np.cumsum(np.stack([np.zeros(count, int), held], 1).reshape(-1))]
        ),
    )
    table.weights = np.tile(np.array([0, 0.5], np.float32), count)
    table.row_starts = 2 * np.arange(count + 1)
    table.pair_starts = np.zeros(count + 1, np.int64)
    pairs = np.tile(np.array([0, 1], np.float32), (count, 1))
    table.margins = np.column_stack([pairs, made["costs"]]).astype(np.float32)
    table.margin_starts = np.arange(count + 1)
    return TableSampler(table, share, MODE_SHARES)


def make_damage(job: tuple[Path, int, int]) -> dict[str, NDArray[Any]]:
    """So many outputs with their damage, as columns."""
    parts, count, seed = job
    outputs = Outputs(parts / "outputs")
    damager = Damager(Pieces(parts / "encoder/tokenizer.json").names)
    rng = np.random.default_rng(seed)
    lines_there = outputs.lines - HELD_OUT_LINES
    rows: list[tuple[int, int, int, float]] = []
    texts, spans = [], []
    while len(rows) < count:
        line, system = int(rng.integers(lines_there)), int(rng.integers(len(outputs.systems)))
        own, source, target = outputs.systems[system]
        whole = outputs.texts(line, system)
        bare = rng.random() < 0.3
        if bare:
            whole = (whole[2], whole[1], None)
        other = outputs.text(int(rng.integers(lines_there)), own)
        third = outputs.column[outputs.languages[int(rng.integers(len(outputs.languages)))]]
        if third in (source, target):
            continue
        damaged = damager.damage(material_of(whole, other, outputs.text(line, third)), rng)
        if damaged is not None:
            spans += [(len(rows), start, end) for start, end in damaged.spans]
            rows.append((line, system, int(bare), damaged.cost))
            texts.append(damaged.text)
    lines, systems, bare_, costs = (np.array(column) for column in zip(*rows, strict=True))
    return {
        "lines": lines,
        "systems": systems,
        "bare": bare_,
        "costs": costs,
        "pieces": np.concatenate(texts).astype(np.int32),
        "sizes": np.array([len(text) for text in texts]),
        "spans": np.array(spans, np.int64).reshape(-1, 3),
    }


def join_damage(parts: Sequence[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
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
    parser.add_argument("--parts", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--paragraphs", type=int, default=PARAGRAPHS)
    parser.add_argument("--damaged", type=int, default=DAMAGED)
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
        made = join_damage(pool.map(make_damage, jobs))
    save_arrays(folder / "damage.npz", made)
    print(len(made["sizes"]), "damaged,", len(made["spans"]), "spans", flush=True)


if __name__ == "__main__":
    main()
