"""Shorten names for charts and tables while keeping them distinct."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate, takewhile

from tertium.output.markup import Markup, element
from tertium.text.cell_width import cell_width

ELLIPSIS = "…"
_SEPARATOR = re.compile(r"[\s_.,:;/|+@#-]")


def shorten_names(names: Sequence[str], max_length: int) -> list[str]:
    """Shorten names to at most `max_length` characters; names that fit are unchanged.

    Removes the common prefix and suffix first, then the middle of names that are still too long.

    >>> shorten_names(["newstest2017-de-en", "newstest2017-zh-en"], 12)
    ['…de-en', '…zh-en']
    >>> shorten_names(["a", "one-system-of-a-very-long-name"], 12)
    ['a', 'one-s…g-name']
    """
    shortened = list(names)
    for cut in (_without_prefix, _without_suffix):
        if len(set(shortened)) > 1 and max(map(cell_width, shortened)) > max_length:
            shortened = cut(shortened)
    # share of the start: half, or another that keeps the names distinct
    for share in (0.5, 0.8, 0.2):
        middle = [_without_middle(name, max_length, share) for name in shortened]
        if len(set(middle)) == len(set(names)):
            return middle
    number = {name: f"{n} " for n, name in enumerate(dict.fromkeys(names), start=1)}
    return [
        number[name] + _without_middle(cut, max_length - len(number[name]), 0.5)
        for name, cut in zip(names, shortened, strict=True)
    ]


def name_markup(name: str, short: str) -> Markup:
    """Return a name for a page, isolated from the text direction, with the full one as tooltip."""
    if name == short:
        return element("bdi", name)
    visible = element("bdi", short, title=name, aria_hidden="true")
    return element("span", visible, element("bdi", name, class_="hidden"))


def _without_prefix(names: list[str]) -> list[str]:
    """Remove the words that all names start with, unless a name would be empty."""
    columns = zip(*names, strict=False)
    prefix = "".join(c[0] for c in takewhile(lambda c: len(set(c)) == 1, columns))
    ends = [hit.end() for hit in _SEPARATOR.finditer(prefix)]
    start = ends[-1] if ends else 0
    if start < 2 or any(len(name) == start for name in names):
        return names
    return [ELLIPSIS + name[start:] for name in names]


def _without_suffix(names: list[str]) -> list[str]:
    return [name[::-1] for name in _without_prefix([name[::-1] for name in names])]


def _without_middle(name: str, max_length: int, share: float) -> str:
    if cell_width(name) <= max_length:
        return name
    head = int((max_length - 1) * share)
    start = _prefix_of_width(name, head)
    end = _prefix_of_width(name[::-1], max_length - 1 - head)[::-1]
    return start + ELLIPSIS + end


def _prefix_of_width(text: str, width: int) -> str:
    """Return the longest prefix of a text that is at most `width` columns wide."""
    total_widths = accumulate(map(cell_width, text))
    return text[: sum(total <= width for total in total_widths)]
