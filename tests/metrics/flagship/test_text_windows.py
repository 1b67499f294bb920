"""Windows over long texts are complete, aligned and never longer than the network allows."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from tertium.metrics.bundled.input_rows import align_windows
from tertium.text.length_limits import MAX_JOINT_PIECES

MAX_PIECES = 510
LENGTHS = (0, 1, 3, 20, 511, 600, 1500, 4096, 9000)


@pytest.mark.parametrize("seed", range(40))
def test_windows_cover_the_text_in_order(seed: int) -> None:
    rng = random.Random(seed)
    sizes = [rng.choice((*LENGTHS, rng.randint(0, 3000))) for _ in range(rng.choice((2, 3)))]
    texts = [[rng.choice(("▁a", "b", ".", "▁c")) for _ in range(size)] for size in sizes]
    windows = align_windows(texts, MAX_PIECES)
    share = min(1.0, MAX_JOINT_PIECES / max(*sizes, 1))
    for side, size in enumerate(sizes):
        cuts = [window[side] for window in windows]
        assert cuts[0].start == 0
        assert cuts[-1].stop == (round(size * share) if max(sizes) > MAX_PIECES else size)
        assert all(a.stop == b.start for a, b in pairwise(cuts))
        assert all(0 <= cut.stop - cut.start <= MAX_PIECES for cut in cuts)


def test_windows_contain_the_same_sentences() -> None:
    """Sentences of 20 and 30 pieces in the same order are cut at the same places."""
    left = [f"▁{n}" if k == 0 else "x" if k < 19 else "." for n in range(50) for k in range(20)]
    right = [f"▁{n}" if k == 0 else "y" if k < 29 else "。" for n in range(50) for k in range(30)]
    windows = align_windows([left, right], MAX_PIECES)
    assert len(windows) > 3
    for own, other in windows:
        assert own.stop % 20 == other.stop % 30 == 0
        assert own.stop // 20 == other.stop // 30


def test_short_text_paired_with_a_long_one_is_split_too() -> None:
    windows = align_windows([["▁a"] * 3, ["▁b"] * 2000], MAX_PIECES)
    assert [w[0].stop for w in windows][-1] == 3
    assert len(windows) == 6
