"""Print untrusted texts: visible symbols for control characters, and widths in a terminal."""

from __future__ import annotations

import re

# characters that HTML or XML 1.0 does not allow, not even as references
FORBIDDEN_IN_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
# visible symbols for control characters
CONTROL_REPLACEMENTS = {code: 0x2400 + code for code in range(32)}
CONTROL_REPLACEMENTS |= {127: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
# direction overrides would reorder the rest of the line, numbers included
CONTROL_REPLACEMENTS |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD)
# Latin, Greek, Cyrillic, dashes, arrows and signs: one cell each, found without rich's tables
_NARROW = re.compile(
    "[ -~\u00a1-\u00ac\u00ae-\u02af\u0370-\u0377\u0391-\u03a1\u03b1-\u0482\u048a-\u052f"
    "\u2010-\u2027\u2190-\u2193\u2200-\u22ff]*"
)
_WORD = re.compile(r"\s*\S+\s*")


def replace_control_characters(text: str, keep: str = "\n") -> str:
    """Make untrusted text safe to print on a terminal; characters in `keep` stay.

    >>> replace_control_characters("\\x1b[31mred"), replace_control_characters("evil\\u202etxt.exe")
    ('␛[31mred', 'evil�txt.exe')
    """
    return text.translate({k: v for k, v in CONTROL_REPLACEMENTS.items() if chr(k) not in keep})


def cell_width(text: str) -> int:
    """Return the number of cells of a text of one line: CJK characters take two, marks none.

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
