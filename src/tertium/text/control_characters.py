"""Control characters in untrusted text: visible symbols on a terminal, and what XML forbids."""

from __future__ import annotations

import re

# characters that HTML or XML 1.0 does not allow, not even as references
FORBIDDEN_IN_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
# visible symbols for control characters
CONTROL_REPLACEMENTS = {code: 0x2400 + code for code in range(32)}
CONTROL_REPLACEMENTS |= {127: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
# direction overrides would reorder the rest of the line, numbers included
CONTROL_REPLACEMENTS |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD)


def replace_control_characters(text: str, keep: str = "\n") -> str:
    """Make untrusted text safe to print on a terminal; characters in `keep` stay.

    >>> replace_control_characters("\\x1b[31mred"), replace_control_characters("evil\\u202etxt.exe")
    ('␛[31mred', 'evil�txt.exe')
    """
    return text.translate({k: v for k, v in CONTROL_REPLACEMENTS.items() if chr(k) not in keep})
