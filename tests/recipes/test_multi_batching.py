"""Batches built by indexing equal those of a loop over rows."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from recipes.multi import batching, tables  # noqa: E402
from recipes.multi.network import Texts, make_layout, move_batch  # noqa: E402
from recipes.multi.store import Store  # noqa: E402

RNG = np.random.default_rng(1)


def random_texts(count: int) -> tuple[np.ndarray, np.ndarray]:
    sizes = RNG.integers(0, 9, count)
    return RNG.integers(4, 90, sizes.sum()).astype(np.int32), sizes


def random_table(pool: batching.TextPool, units: int = 12) -> batching.Table:
    """Return units of one to three rows with random pairs, margins and marks."""
    sizes = RNG.integers(1, 4, units)
    rows = int(sizes.sum())
    texts = RNG.integers(0, pool.count, (rows, 3))
    texts[RNG.random(rows) < 0.3, 1] = -1
    held_out_flags = RNG.integers(0, 3, rows)
    begin = RNG.integers(0, 4, held_out_flags.sum())
    marks = np.stack([begin, begin + 2, RNG.integers(1, 4, len(begin))], 1)
    rest = np.stack([RNG.integers(0, 7, len(begin)), RNG.random(len(begin))], 1)
    table = batching.rows_table(
        texts,
        RNG.normal(size=(rows, 3)).astype(np.float32),
        marks=np.hstack([marks, rest]).astype(np.float32),
        mark_starts=np.concatenate([[0], np.cumsum(held_out_flags)]),
    )
    table.row_starts = np.concatenate([[0], np.cumsum(sizes)])
    table.pairs = np.tile(np.array([0, 1, 0.5, 2], np.float32), (int((sizes > 1).sum()), 1))
    table.pair_starts = np.concatenate([[0], np.cumsum(sizes > 1)])
    table.margin_starts = np.zeros(units + 1, np.int64)
    return table


def table_texts(table: batching.Table, pieces: np.ndarray, pool: batching.TextPool) -> list[Texts]:
    starts = np.concatenate([[0], np.cumsum(pool.full_lengths)])
    return [
        tuple(None if n < 0 else pieces[starts[n] : starts[n + 1]] for n in row)
        for row in table.texts
    ]


def test_build_batch_equals_layout_of_texts() -> None:
    pool = batching.TextPool("cpu")
    pieces, sizes = random_texts(40)
    pool.add(pieces, sizes)
    table = random_table(pool).take(np.array([3, 0, 3, 7, 11]))
    found = batching.build_batch(table, pool)
    wanted = move_batch(make_layout(table_texts(table, pieces, pool)), "cpu")
    for name in ("ids", "positions", "roles", "rank"):
        assert torch.equal(getattr(found, name), getattr(wanted, name)), name
    for name in ("texts", "rows"):
        own, other = getattr(found, name), getattr(wanted, name)
        assert own.longest == other.longest
        for part in ("starts", "owner", "place"):
            assert torch.equal(getattr(own, part), getattr(other, part)), (name, part)
    for name in ("text_starts", "text_sizes", "with_role"):
        for role in range(3):
            assert torch.equal(getattr(found, name)[role], getattr(wanted, name)[role])
    assert (found.widest, found.count) == (wanted.widest, wanted.count)


def test_build_targets_equals_loop_over_rows() -> None:
    pool = batching.TextPool("cpu")
    pool.add(*random_texts(40))
    whole = random_table(pool)
    units = np.array([5, 2, 2, 9])
    table = whole.take(units)
    targets = batching.build_targets(table, 7, "cpu")
    rows = [r for u in units for r in range(whole.row_starts[u], whole.row_starts[u + 1])]
    assert targets["targets"].numpy() == pytest.approx(whole.targets[rows])
    shares = np.zeros((len(rows), 7, 3))
    for n, row in enumerate(rows):
        for mark in whole.marks[whole.mark_starts[row] : whole.mark_starts[row + 1]]:
            start, end, severity = mark[:3].astype(int)
            shares[n, 1 + start : 1 + end, severity - 1] += mark[4]
    assert targets["shares"].numpy() == pytest.approx(shares.clip(0, 1), abs=1e-6)
    first, pairs = 0, []
    for unit in units:
        size = whole.row_starts[unit + 1] - whole.row_starts[unit]
        pairs += [[first, first + 1, 0.5, 2]] if size > 1 else []
        first += size
    assert targets["pairs"].tolist() == pairs


def test_batches_keep_units_and_respect_budget() -> None:
    pool = batching.TextPool("cpu")
    pool.add(*random_texts(40))
    source = batching.TableSampler(random_table(pool), 1.0, (0.4, 0.3, 0.3))
    batches = batching.iter_batch_tables([source], pool.lengths, 300, np.random.default_rng(1))
    for _, table in zip(range(20), batches, strict=False):
        assert 150 < table.row_lengths(pool.lengths).sum() < 450
        assert (np.diff(table.row_starts) > 0).all()
        assert ((table.texts[:, 1] >= 0) | (table.texts[:, 2] >= 0)).all()


def test_join_concatenates_texts_in_order() -> None:
    pool = batching.TextPool("cpu")
    pool.add(np.arange(10, dtype=np.int32), np.array([2, 3, 0, 5]))
    first = pool.join(np.array([3, 0, 2, 1]), np.array([2, 2]))
    assert pool.full_lengths[first:].tolist() == [7, 3]
    assert pool.pieces[-10:].tolist() == [5, 6, 7, 8, 9, 0, 1, 2, 3, 4]


def test_comparison_sampler_aggregates_votes() -> None:
    """Votes: 1 > 0 twice, 0 > 1 once, 0 > 2; rows 3 and 4 are another segment."""
    columns = {
        "hypothesis": np.arange(5),
        "source": np.array([5, 5, 5, 6, 6]),
        "reference": np.array([7, 7, 7, 8, 8]),
        "comparisons": np.array(
            [[0, 1, 0, -1], [1, 0, 0, 1], [0, 1, 0, 1], [2, 0, 0, -1], [4, 3, 0, 1]]
        ),
    }
    store = Store(np.zeros(9, np.int32), np.arange(10), columns, ["set"])
    table = tables.comparison_sampler(store, 100).table
    assert table.row_starts.tolist() == [0, 3, 5]
    assert table.texts[:, 0].tolist() == [100, 101, 102, 103, 104]
    assert table.pairs[:, :2].tolist() == [[0, 1], [0, 2], [0, 1]]
    assert table.pairs[:, 2].tolist() == pytest.approx([1 / 3, 1, 0])
    assert table.pairs[:, 3].tolist() == pytest.approx([3**0.5, 1, 1])
