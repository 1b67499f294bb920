"""Training batches without a loop over rows: texts lie on the device, a batch is a few numbers.

A worker process that joins texts row by row makes about 100,000 pieces a second, an H200 learns
from ten times as many. So the pieces of all texts lie on the device once (`TextPool`), rows are columns
of numbers that point at them (`Table`), a batch is drawn by indexing, and its layout is made where
it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recipes.multi.e5 import END, START
from recipes.multi.network import Batch, Ragged

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Generator = np.random.Generator
LONGEST = 510  # pieces of a text: what the positions hold
POOL = 16  # batches whose units are sorted together
SCALES = 3


def expand_ranges(first: Ints, count: Ints) -> tuple[Ints, Ints]:
    """All numbers of the ranges [first, first + count), and to which range each belongs.

    >>> ranges(np.array([5, 1]), np.array([2, 3]))[0].tolist()
    [5, 6, 1, 2, 3]
    """
    owner = np.repeat(np.arange(len(count)), count)
    begins = np.cumsum(count) - count
    return np.arange(len(owner)) - begins[owner] + np.asarray(first)[owner], owner


class TextPool:
    """Texts of several parts under one numbering, their pieces on the device."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._parts: list[NDArray[np.int32]] = []
        self._sizes: list[Ints] = []
        self.count = 0

    def add(self, pieces: NDArray[np.int32], sizes: Ints) -> int:
        """Takes in texts one behind the other; the number of the first."""
        begin = self.count
        self._parts.append(pieces)
        self._sizes.append(np.asarray(sizes, np.int64))
        self.count += len(sizes)
        for name in ("pieces", "lengths", "offsets"):
            self.__dict__.pop(name, None)
        return begin

    def join(self, numbers: Ints, sizes: Ints) -> int:
        """Takes in texts that are several others joined: `sizes` of `numbers` each."""
        lengths = self.whole[numbers]
        where, _ = expand_ranges(self.offsets[numbers], lengths)
        flat = np.concatenate(self._parts)[where]
        ends = np.concatenate([[0], np.cumsum(lengths)])[np.cumsum(sizes)]
        return self.add(flat, np.diff(ends, prepend=0))

    @property
    def whole(self) -> Ints:
        return np.concatenate(self._sizes)

    @cached_property
    def offsets(self) -> Ints:
        return np.asarray(np.cumsum(self.whole) - self.whole)

    @cached_property
    def lengths(self) -> Ints:
        """The pieces of each text that are read."""
        return np.minimum(self.whole, LONGEST)

    @cached_property
    def pieces(self) -> Tensor:
        return torch.from_numpy(np.concatenate(self._parts)).to(self.device)


def _none(width: int) -> Floats:
    return np.zeros((0, width), np.float32)


def _unset() -> Ints:
    return np.zeros(0, np.int64)


@dataclass
class Table:
    """Rows as columns. A unit is what must stay in one batch; its rows lie together.

    `pairs` (better, worse, share, weight) and `margins` (whole, damaged, cost) number rows from
    their unit's first; `marks` are (first piece, end, severity, category, share of raters).
    """

    texts: Ints  # (rows, 3): hypothesis, source, reference; -1 where absent
    row_starts: Ints  # (units + 1,)
    targets: Floats  # (rows, scales)
    weights: Floats  # (rows,)
    tags: Ints  # (rows,)
    clean: Floats  # (rows,)
    pairs: Floats = field(default_factory=lambda: _none(4))
    pair_starts: Ints = field(default_factory=_unset)
    margins: Floats = field(default_factory=lambda: _none(3))
    margin_starts: Ints = field(default_factory=_unset)
    marks: Floats = field(default_factory=lambda: _none(5))
    mark_starts: Ints = field(default_factory=_unset)

    def __post_init__(self) -> None:
        units, rows = len(self.row_starts), len(self.texts) + 1
        for name, size in (("pair_starts", units), ("margin_starts", units), ("mark_starts", rows)):
            if not len(getattr(self, name)):  # none at all
                setattr(self, name, np.zeros(size, np.int64))

    def __len__(self) -> int:
        return len(self.row_starts) - 1

    def take(self, units: Ints) -> Table:
        """These units, in this order; a unit may come more than once."""

        def some(starts: Ints, chosen: Ints) -> tuple[Ints, Ints]:
            count = starts[chosen + 1] - starts[chosen]
            return expand_ranges(starts[chosen], count)[0], np.concatenate([[0], np.cumsum(count)])

        rows, row_starts = some(self.row_starts, units)
        pairs, pair_starts = some(self.pair_starts, units)
        margins, margin_starts = some(self.margin_starts, units)
        marks, mark_starts = some(self.mark_starts, rows)
        return Table(
            self.texts[rows],
            row_starts,
            self.targets[rows],
            self.weights[rows],
            self.tags[rows],
            self.clean[rows],
            self.pairs[pairs],
            pair_starts,
            self.margins[margins],
            margin_starts,
            self.marks[marks],
            mark_starts,
        )

    def owners(self) -> Ints:
        """The unit of each row."""
        return np.repeat(np.arange(len(self)), np.diff(self.row_starts))

    def costs(self, lengths: Ints) -> Ints:
        """Pieces of each row."""
        return np.where(self.texts >= 0, lengths[self.texts] + 2, 0).sum(1)


def join_tables(tables: Sequence[Table]) -> Table:
    joined: dict[str, Any] = {}
    for column in fields(Table):
        parts = [getattr(table, column.name) for table in tables]
        if column.name.endswith("_starts"):
            ends = np.cumsum([0, *(part[-1] for part in parts)])
            moved = [part[1:] + end for part, end in zip(parts, ends, strict=False)]
            joined[column.name] = np.concatenate([[0], *moved])
        else:
            joined[column.name] = np.concatenate(parts)
    return Table(**joined)


def rows_table(
    texts: Ints,
    targets: Floats,
    *,
    weights: float = 1.0,
    tags: Ints | None = None,
    clean: Floats | None = None,
    **marks: Any,
) -> Table:
    """A table whose units are single rows."""
    count = len(texts)
    return Table(
        texts,
        np.arange(count + 1),
        targets.astype(np.float32),
        np.full(count, weights, np.float32),
        np.zeros(count, np.int64) if tags is None else tags,
        np.full(count, -1, np.float32) if clean is None else clean.astype(np.float32),
        **marks,
    )


@dataclass
class TableSampler:
    """A table to draw from: its share of units, how often each, and the shares of views."""

    table: Table
    share: float
    modes: tuple[float, float, float]  # source, reference, both
    sampling_weights: Floats | None = None

    @cached_property
    def _cumulative(self) -> NDArray[np.float64]:
        sampling_weights = (
            np.ones(len(self.table))
            if self.sampling_weights is None
            else self.sampling_weights.astype(float)
        )
        return np.cumsum(sampling_weights / sampling_weights.sum())

    def draw(self, count: int, rng: Generator) -> Table:
        """Units at random, each in a view; what is absent stays so."""
        units = np.searchsorted(self._cumulative, rng.random(count) * 0.999999)
        table = self.table.take(units)
        mode = rng.choice(3, count, p=self.modes)[table.owners()]
        texts = table.texts
        whole = (texts[:, 1] >= 0) & (texts[:, 2] >= 0)
        texts[whole & (mode == 0), 2] = -1
        texts[whole & (mode == 1), 1] = -1
        return table


def iter_batch_tables(
    sources: Sequence[TableSampler], lengths: Ints, budget: int, rng: Generator
) -> Iterator[Table]:
    """Batches of about `budget` pieces, units of similar length together."""
    shares = np.array([source.share for source in sources])
    shares = shares / shares.sum()
    tried = [(s, s.draw(400, rng)) for s in sources]
    mean = sum(
        share * table.costs(lengths).sum() / len(table)
        for share, (_, table) in zip(shares, tried, strict=True)
    )
    while True:
        counts = rng.multinomial(int(POOL * budget / mean), shares)
        pool = join_tables([s.draw(n, rng) for s, n in zip(sources, counts, strict=True) if n])
        costs = pool.costs(lengths)
        longest = np.maximum.reduceat(costs, pool.row_starts[:-1])
        order = np.argsort(longest, kind="stable")
        whole = np.add.reduceat(costs, pool.row_starts[:-1])[order]
        number = np.cumsum(whole) // budget
        # the last one may be small: its units would weigh too much
        there = np.unique(number)
        for n in rng.permutation(there[: max(len(there) - 1, 1)]):
            yield pool.take(order[number == n])


def pack_batch(
    table: Table, pool: TextPool
) -> tuple[Ints, dict[str, tuple[int, int]], dict[str, int]]:
    """What a batch needs as one array of numbers, where each part lies, and its sizes."""
    row, role = np.nonzero(table.texts >= 0)
    number = table.texts[row, role]
    sizes = pool.lengths[number] + 2
    rank = np.zeros(len(row), np.int64)
    row_sizes = np.bincount(row, sizes, len(table.texts)).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    parts = {
        "first": pool.offsets[number],
        "sizes": sizes,
        "row": row,
        "role": role,
        "text_starts": starts,
        "row_starts": np.concatenate([[0], np.cumsum(row_sizes)]),
    }
    facts = {
        "total": int(starts[-1]),
        "rows": len(table.texts),
        "longest text": int(sizes.max()),
        "longest row": int(row_sizes.max()),
    }
    for n in range(3):
        which = np.flatnonzero(role == n)
        rank[which] = np.arange(len(which))
        parts |= {f"first{n}": starts[which], f"size{n}": sizes[which], f"rows{n}": row[which]}
        facts[f"widest{n}"] = int(sizes[which].max(initial=0))
    parts["rank"] = rank
    ends = np.cumsum([0, *(len(part) for part in parts.values())])
    places = dict(zip(parts, zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True), strict=True))
    return np.concatenate(list(parts.values())), places, facts


def send(array: NDArray[Any], device: str) -> Tensor:
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    if device.startswith("cuda") and len(array):
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def build_batch(table: Table, pool: TextPool) -> Batch:
    """The batch that `network.make_layout` would make of the same texts, made on the device."""
    numbers, places, facts = pack_batch(table, pool)
    sent = send(numbers, pool.device)
    get = {name: sent[begin:end] for name, (begin, end) in places.items()}
    total = facts["total"]
    text_of = torch.repeat_interleave(get["sizes"], output_size=total)
    place = torch.arange(total, device=sent.device) - get["text_starts"][text_of]
    inner = get["first"][text_of] + place - 1
    ids = pool.pieces[inner.clamp(0, len(pool.pieces) - 1)].long()
    ids = torch.where(place == 0, START, ids)
    ids = torch.where(place == get["sizes"][text_of] - 1, END, ids)
    row_of = get["row"][text_of]
    in_row = torch.arange(total, device=sent.device) - get["row_starts"][row_of]
    return Batch(
        ids,
        place,
        get["role"][text_of],
        get["rank"][text_of],
        Ragged(get["text_starts"].int(), facts["longest text"], text_of, place),
        Ragged(get["row_starts"].int(), facts["longest row"], row_of, in_row),
        {n: get[f"first{n}"] for n in range(3)},
        {n: get[f"size{n}"] for n in range(3)},
        {n: get[f"rows{n}"] for n in range(3)},
        {n: facts[f"widest{n}"] for n in range(3)},
        facts["rows"],
    )


def build_targets(table: Table, width: int, device: str) -> dict[str, Tensor]:
    """What the losses want of a batch whose widest hypothesis has `width` places."""
    base = table.row_starts[:-1]

    def based(values: Floats, starts: Ints) -> Floats:
        owner = np.repeat(np.arange(len(table)), np.diff(starts))
        moved = values.copy()
        moved[:, :2] += base[owner, None]
        return moved

    rows = len(table.texts)
    owner = np.repeat(np.arange(rows), np.diff(table.mark_starts))
    begin = table.marks[:, 0].astype(np.int64)
    end = np.minimum(table.marks[:, 1].astype(np.int64), width - 1)
    where, mark = expand_ranges(begin, np.maximum(end - begin, 0))
    severity = table.marks[mark, 2].astype(np.int64) - 1
    cell = (owner[mark] * width + 1 + where) * 3 + severity  # the first place is <s>
    shares = torch.zeros(rows * width * 3, device=device)
    shares.index_put_((send(cell, device),), send(table.marks[mark, 4], device), accumulate=True)
    categories = torch.zeros(rows * width, dtype=torch.int64, device=device)
    named = send(table.marks[mark, 3].astype(np.int64), device)
    categories.index_put_((send(cell // 3, device),), named)
    return {
        "targets": send(table.targets, device),
        "weights": send(table.weights, device),
        "clean": send(table.clean, device),
        "tags": send(table.tags, device),
        "shares": shares.view(rows, width, 3).clamp(0, 1),
        "categories": categories.view(rows, width),
        "pairs": send(based(table.pairs, table.pair_starts), device),
        "margins": send(based(table.margins, table.margin_starts), device),
    }


@torch.no_grad()
def score_rows(network: Any, pool: TextPool, texts: Ints, budget: int = 200_000) -> Floats:
    """The scores of rows (rows, 3) -> (rows, scales), long rows first."""
    network.eval()
    table = rows_table(texts, np.zeros((len(texts), SCALES), np.float32))
    costs = table.costs(pool.lengths)
    order = np.argsort(-costs, kind="stable")
    number = np.cumsum(costs[order]) // budget
    scores = torch.zeros(len(texts), SCALES, device=pool.device)
    for n in np.unique(number):
        chosen = order[number == n]
        said = network(build_batch(table.take(chosen), pool))
        scores[send(chosen, pool.device)] = said.scores.float()
    network.train()
    return scores.cpu().numpy()


def select_mode(texts: Ints, mode: str) -> Ints:
    """Rows with what a view hides taken away."""
    seen = texts.copy()
    if mode == "source":
        seen[:, 2] = -1
    elif mode == "reference":
        seen[:, 1] = -1
    return seen
