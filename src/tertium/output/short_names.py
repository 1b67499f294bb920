"""Shorten names for charts and tables while keeping them distinct."""

from __future__ import annotations

import os.path
import re
from collections.abc import Sequence
from itertools import accumulate

from tertium.text.printable import cell_width

ELLIPSIS = "…"
_LAST_WORD = re.compile(r"[^\s_.,:;/|+@#-]+\Z")


def shorten_names(names: Sequence[str], max_length: int) -> list[str]:
    """Shorten names to at most `max_length` characters; names that fit are unchanged.

    Removes the common prefix and suffix first, then the middle of names that are still too long.

    >>> shorten_names(["newstest2017-de-en", "newstest2017-zh-en"], 12)
    ['…de-en', '…zh-en']
    >>> shorten_names(["a", "one-system-of-a-very-long-name"], 12)
    ['a', 'one-s…g-name']
    """
    shortened = list(names)
    for direction in (1, -1):  # the suffix is the prefix of the reversed names
        if len(set(shortened)) > 1 and max(map(cell_width, shortened)) > max_length:
            cut = _without_prefix([name[::direction] for name in shortened])
            shortened = [name[::direction] for name in cut]
    middle = [_without_middle(name, max_length) for name in shortened]
    if len(set(middle)) == len(set(names)):
        return middle
    number = {name: f"{n} " for n, name in enumerate(dict.fromkeys(names), start=1)}
    return [
        number[name] + _without_middle(cut, max_length - len(number[name]))
        for name, cut in zip(names, shortened, strict=True)
    ]


def _without_prefix(names: list[str]) -> list[str]:
    """Remove the words that all names start with, unless a name would be empty."""
    start = len(_LAST_WORD.sub("", os.path.commonprefix(names)))  # noqa: RUF071 (of characters)
    if start < 2 or start in map(len, names):
        return names
    return [ELLIPSIS + name[start:] for name in names]


def _without_middle(name: str, max_length: int) -> str:
    if cell_width(name) <= max_length:
        return name
    head = (max_length - 1) // 2
    start = _prefix_of_width(name, head)
    end = _prefix_of_width(name[::-1], max_length - 1 - head)[::-1]
    return start + ELLIPSIS + end


def _prefix_of_width(text: str, width: int) -> str:
    """Return the longest prefix of a text that is at most `width` columns wide."""
    total_widths = accumulate(map(cell_width, text))
    return text[: sum(total <= width for total in total_widths)]
