"""Where rows of long texts are cut into windows that a network has positions for.

Where one text of a row has more pieces, all of them are cut into the same number of windows, the
n-th of a translation beside the n-th of its source: the translation into equal ones and the others
at the same shares of their length; a cut moves to the end of a sentence or a word nearby.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from tertium.text.bounds import JUDGED_PIECES

SLACK = 0.05  # of a window, which a cut may move by, either way
# a window grows by a slack at both ends, twice where it follows the translation's, and by rounding
GROWTH = 1 + 6 * SLACK
WORD = "▁"  # what the first piece of a word begins with
SENTENCE_ENDS = tuple(".!?…。！？؟।")


def align_windows(texts: Sequence[Sequence[str]], room: int) -> list[tuple[slice, ...]]:
    """Windows of at most `room` pieces over texts given as pieces, the translation first.

    One window holds everything where it fits; beyond `JUDGED_PIECES` of the longest text the rest
    of all texts is left out.

    >>> align_windows([["▁a"] * 4, ["▁b"] * 2], room=4)
    [(slice(0, 4, None), slice(0, 2, None))]
    >>> align_windows([["▁a"] * 10, ["▁b"] * 5], room=7)
    [(slice(0, 5, None), slice(0, 2, None)), (slice(5, 10, None), slice(2, 5, None))]
    """
    longest = max(map(len, texts))
    if longest <= room:
        return [tuple(slice(0, len(text)) for text in texts)]
    share = min(1.0, JUDGED_PIECES / longest)
    sizes = [round(len(text) * share) for text in texts]
    count = math.ceil(max(sizes) * GROWTH / room)
    shares = [n / count for n in range(1, count)]
    own = _cut(texts[0], shares, sizes[0])
    if int(SLACK * sizes[0] / count):  # else it is too short to say where others go on
        shares = [cut.stop / sizes[0] for cut in own[:-1]]
    others = [_cut(text, shares, size) for text, size in zip(texts[1:], sizes[1:], strict=True)]
    return list(zip(own, *others, strict=True))


def _cut(pieces: Sequence[str], shares: Sequence[float], size: int) -> list[slice]:
    """The first `size` pieces, cut near these shares of them."""
    slack = int(SLACK * size / (len(shares) + 1))
    breaks = [_nearest_break(pieces, int(share * size), slack) for share in shares]
    return [slice(start, stop) for start, stop in pairwise([0, *breaks, size])]


def _nearest_break(pieces: Sequence[str], target: int, slack: int) -> int:
    """The place within the slack where a sentence ends, else a word, else the target."""
    near = sorted(range(target - slack, target + slack + 1), key=lambda place: abs(place - target))
    ends = (p for p in near if slack and pieces[p - 1].endswith(SENTENCE_ENDS))
    words = (p for p in near if slack and pieces[p].startswith(WORD))
    return next(ends, next(words, target))
