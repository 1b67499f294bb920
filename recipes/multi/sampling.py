"""Sample batches of rows for `fine_tune`: several translations of each source, by kind of set."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipes.multi.batching import MAX_PIECES, TextPool

MAX_GROUP_ROWS, GROUPS_PER_POOL = 6, 6_000
# Share of rows by kind of set, and the shares of input modes where source and reference exist.
SHARES: dict[str, tuple[float, tuple[float, float, float]]] = {
    "old": (0.05, (0.3, 0.35, 0.35)),
    "da": (0.13, (0.4, 0.25, 0.35)),
    "mqm": (0.09, (0.4, 0.25, 0.35)),
    "esa": (0.10, (0.4, 0.25, 0.35)),
    "qe": (0.10, (1.0, 0.0, 0.0)),
    "rank": (0.08, (0.3, 0.35, 0.35)),
    "outputs": (0.08, (0.4, 0.3, 0.3)),
    "pivot": (0.12, (0.6, 0.0, 0.4)),
    "pivot-soft": (0.05, (1.0, 0.0, 0.0)),
    "soft": (0.17, (0.5, 0.25, 0.25)),
    "pseudo": (0.10, (0.0, 0.5, 0.5)),
    "strings": (0.04, (1.0, 0.0, 0.0)),
    "commands": (0.01, (1.0, 0.0, 0.0)),
    "flores": (0.05, (0.4, 0.3, 0.3)),
}


@dataclass
class PackedRows:
    """The rows of `recipes.multi.groups`, with all texts tokenized on the device."""

    pool: TextPool
    columns: dict[str, NDArray[Any]]
    names: list[str]

    @classmethod
    def open(cls, folder: Path, tokenizer: Path, device: str) -> PackedRows:
        from tokenizers import Tokenizer

        pool, stored_pieces = TextPool(device), folder / "pieces.npz"
        if not stored_pieces.exists():
            lines = lzma.decompress((folder / "texts.xz").read_bytes()).decode().split("\n")
            encoder = Tokenizer.from_file(str(tokenizer))
            pieces, sizes = [], []
            for start in range(0, len(lines), 50_000):
                part = encoder.encode_batch(lines[start : start + 50_000], add_special_tokens=False)
                pieces += [np.array(text.ids[:MAX_PIECES], np.int32) for text in part]
            sizes = [len(text) for text in pieces]
            np.savez(stored_pieces, pieces=np.concatenate(pieces), sizes=np.array(sizes))
        with np.load(stored_pieces) as stored:
            pool.add(stored["pieces"], stored["sizes"])
        with np.load(folder / "rows.npz") as stored:
            columns = {name: stored[name] for name in stored.files}
        columns["texts"] = np.stack(
            [columns[role] for role in ("hypothesis", "source", "reference")], 1
        ).astype(np.int64)
        return cls(pool, columns, json.loads((folder / "names.json").read_text()))

    def rows_of(self, numbers: Sequence[int]) -> NDArray[np.int64]:
        return np.flatnonzero(np.isin(self.columns["set"], list(numbers)))

    def texts_of(self, rows: NDArray[np.int64], mode: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return text numbers of rows, without the texts that their modes do not use."""
        texts = self.columns["texts"][rows].copy()
        texts[mode == 0, 2] = -1
        texts[mode == 1, 1] = -1
        return texts

    def surface(self, rows: NDArray[np.int64], mode: NDArray[np.int64]) -> NDArray[np.float32]:
        values = self.columns["features_both"][rows].astype(np.float32)
        values[mode == 0] = self.columns["features_source"][rows[mode == 0]]
        values[mode == 1, 2] = 0.0  # copied
        values[mode == 1, 4] = 0.0  # length against the source
        return values


class Groups:
    """Groups of the sets of one kind, to sample from."""

    def __init__(self, data: PackedRows, kind: str) -> None:
        numbers = [n for n, name in enumerate(data.names) if name.startswith(f"{kind}/")]
        rows = data.rows_of(numbers)
        group = data.columns["group"][rows]
        order = np.argsort(group, kind="stable")
        self.rows = rows[order]
        _, self.starts, self.sizes = np.unique(group[order], return_index=True, return_counts=True)
        sets = data.columns["set"][self.rows[self.starts]]
        set_sizes = np.bincount(sets, self.sizes)
        weights = 1 / np.sqrt(set_sizes[sets])  # rows of a set count with the root of its size
        if kind not in ("old", "qe", "strings", "commands", "flores"):
            weights = weights * np.minimum(self.sizes, MAX_GROUP_ROWS)
        self.cumulative = np.cumsum(weights / weights.sum())
        self.has_reference = data.columns["reference"][self.rows[self.starts]] >= 0

    def sample(self, count: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
        chosen = np.searchsorted(self.cumulative, rng.random(count) * 0.999999)
        return [
            self.rows[self.starts[n] : self.starts[n] + self.sizes[n]]
            if self.sizes[n] <= MAX_GROUP_ROWS
            else self.rows[
                self.starts[n] + rng.choice(self.sizes[n], MAX_GROUP_ROWS, replace=False)
            ]
            for n in chosen
        ]


@dataclass
class Step:
    """One batch: rows, their modes, the group of each, and pairs of rows of one group."""

    rows: NDArray[np.int64]
    mode: NDArray[np.int64]
    pairs: NDArray[np.int64]  # (pairs, 2) positions in `rows`


def iter_steps(
    data: PackedRows, shares: Mapping[str, tuple[float, tuple[float, ...]]], budget: int, seed: int
) -> Iterator[Step]:
    """Yield batches of about `budget` pieces; groups of similar length share a batch."""
    rng = np.random.default_rng(seed)
    groups = {kind: Groups(data, kind) for kind in shares}
    groups = {kind: own for kind, own in groups.items() if len(own.rows)}
    mean_rows = {
        kind: np.mean([len(rows) for rows in own.sample(200, rng)]) for kind, own in groups.items()
    }
    weights = np.array([shares[kind][0] / mean_rows[kind] for kind in groups])
    lengths, reference = data.pool.lengths, data.columns["reference"]
    while True:
        counts = rng.multinomial(GROUPS_PER_POOL, weights / weights.sum())
        units: list[NDArray[np.int64]] = []
        modes: list[int] = []
        for (kind, own), count in zip(groups.items(), counts, strict=True):
            sampled = own.sample(count, rng)
            drawn = rng.choice(3, count, p=shares[kind][1])
            units += sampled
            modes += [
                0 if (reference[rows] < 0).any() else int(mode)
                for rows, mode in zip(sampled, drawn, strict=True)
            ]
        sizes = []
        for rows, mode in zip(units, modes, strict=True):
            texts = data.texts_of(rows, np.full(len(rows), mode))
            sizes.append(int((np.where(texts >= 0, lengths[texts] + 2, 0)).sum()))
        longest = np.array(sizes) / [len(rows) for rows in units]
        order = np.argsort(longest, kind="stable")
        batch_of = np.cumsum(np.array(sizes)[order]) // budget
        batches = np.unique(batch_of)
        for n in rng.permutation(batches[: max(len(batches) - 1, 1)]):
            chosen = order[batch_of == n]
            yield make_step([units[i] for i in chosen], [modes[i] for i in chosen])


def prefetch(steps: Iterator[Step], size: int = 60) -> Iterator[Step]:
    """Prepare steps on another thread."""
    queue: Queue[Step] = Queue(size)

    def fill() -> None:
        for step in steps:
            queue.put(step)

    Thread(target=fill, daemon=True).start()
    while True:
        yield queue.get()


def make_step(units: Sequence[NDArray[np.int64]], modes: Sequence[int]) -> Step:
    counts = [len(rows) for rows in units]
    starts = np.cumsum([0, *counts])[:-1]
    pairs = [
        np.stack(np.triu_indices(count, 1), 1) + start
        for count, start in zip(counts, starts, strict=True)
        if count > 1
    ]
    return Step(
        np.concatenate(units),
        np.repeat(np.array(modes), counts),
        np.concatenate([np.zeros((0, 2), np.int64), *pairs]),
    )
