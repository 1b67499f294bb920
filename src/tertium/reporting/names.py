"""Names short enough for a picture or a table that can still be told apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate, takewhile

from rich.cells import cell_len

from tertium.reporting.markup import Markup, element

CUT = "…"
_EDGE = re.compile(r"[\s_.,:;/|+@#-]")


def short_names(names: Sequence[str], longest: int) -> list[str]:
    """The names in at most so many letters, as they are where all fit.

    What all have in common at the start and at the end goes first, then the middle of those that
    are still too long. The full names belong into a title beside them.

    >>> short_names(["newstest2017-de-en", "newstest2017-zh-en"], 12)
    ['…de-en', '…zh-en']
    >>> short_names(["a", "one-system-of-a-very-long-name"], 12)
    ['a', 'one-s…g-name']
    """
    found = list(names)
    for cut in (_without_prefix, _without_suffix):
        if len(set(found)) > 1 and max(map(cell_len, found)) > longest:
            found = cut(found)
    # The share of the start: half, else one that keeps what tells the names apart.
    for share in (0.5, 0.8, 0.2):
        middle = [_without_middle(name, longest, share) for name in found]
        if len(set(middle)) == len(set(names)):
            return middle
    number = {name: f"{n} " for n, name in enumerate(dict.fromkeys(names), start=1)}
    return [
        number[name] + _without_middle(cut, longest - len(number[name]), 0.5)
        for name, cut in zip(names, found, strict=True)
    ]


def shown_name(name: str, short: str) -> Markup:
    """A name on a page, apart from the direction of the words around it.

    Where it was shortened, its title and screen readers say the whole.
    """
    if name == short:
        return element("bdi", name)
    seen = element("bdi", short, title=name, aria_hidden="true")
    return element("span", seen, element("bdi", name, class_="hidden"))


def _without_prefix(names: list[str]) -> list[str]:
    """Without the words that all begin with, where something remains of each."""
    signs = zip(*names, strict=False)
    same = "".join(sign[0] for sign in takewhile(lambda sign: len(set(sign)) == 1, signs))
    ends = [hit.end() for hit in _EDGE.finditer(same)]
    start = ends[-1] if ends else 0
    if start < 2 or any(len(name) == start for name in names):
        return names
    return [CUT + name[start:] for name in names]


def _without_suffix(names: list[str]) -> list[str]:
    turned = _without_prefix([name[::-1] for name in names])
    return [name[::-1] for name in turned]


def _without_middle(name: str, longest: int, share: float) -> str:
    if cell_len(name) <= longest:
        return name
    head = int((longest - 1) * share)
    start = _fitting(name, head)
    end = _fitting(name[::-1], longest - 1 - head)[::-1]
    return start + CUT + end


def _fitting(text: str, room: int) -> str:
    """The start of a text that takes no more room."""
    widths = accumulate(map(cell_len, text))
    return text[: sum(width <= room for width in widths)]
