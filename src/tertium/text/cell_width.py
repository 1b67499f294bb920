"""Width of texts in a terminal, in cells: CJK characters take two, combining marks none."""

from __future__ import annotations

import re

# Latin, Greek, Cyrillic, dashes, arrows and signs: one cell each, found without rich's tables
_NARROW = re.compile(
    "[ -~\u00a1-\u00ac\u00ae-\u02af\u0370-\u0377\u0391-\u03a1\u03b1-\u0482\u048a-\u052f"
    "\u2010-\u2027\u2190-\u2193\u2200-\u22ff]*"
)
_WORD = re.compile(r"\s*\S+\s*")


def cell_width(text: str) -> int:
    """Return the number of cells of a text of one line.

    >>> cell_width("chrF ↑"), cell_width("语言")
    (6, 4)
    """
    if _NARROW.fullmatch(text):
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def wrap_line(line: str, width: int) -> list[str]:
    """Break a line at blanks so that each part fits; a longer word is cut.

    >>> wrap_line("a long system name", 8), wrap_line("语言模型", 4)
    (['a long', 'system', 'name'], ['语言', '模型'])
    """
    if cell_width(line) <= width:
        return [line]
    lines = [""]
    for word in _WORD.findall(line):
        if cell_width(lines[-1] + word.rstrip()) <= width:
            lines[-1] += word
        elif cell_width(word.rstrip()) <= width:
            lines.append(word)
        else:
            lines += _cut(word, width)
    return [line.rstrip() for line in lines if line]


def _cut(word: str, width: int) -> list[str]:
    """Cut a word that is longer than a line into parts of at most `width` cells."""
    parts = [""]
    for character in word:
        if cell_width(parts[-1] + character) > width:
            parts.append("")
        parts[-1] += character
    return parts
