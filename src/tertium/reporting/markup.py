"""HTML and SVG that cannot be forged: whatever is not marked as markup is escaped.

`element` takes texts and markup alike; only what `element` and `join` made passes as it is. A
segment that says `<script>` is therefore a text everywhere, without anyone having to remember it.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable

# Control characters have no place in a page, except for the white space among them.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_VOID = frozenset({"br", "col", "hr", "img", "input", "meta"})
_SHAPES = frozenset({"circle", "line", "path", "polygon", "polyline", "rect"})

_TURNING = frozenset({"R", "AL", "RLE", "RLO", "RLI"})

Attribute = str | int | float | bool | None


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escape(text: str) -> Markup:
    """Text as HTML that shows it.

    >>> escape('<b> & "c"')
    '&lt;b&gt; &amp; &quot;c&quot;'
    """
    return Markup(html.escape(_CONTROL.sub("\ufffd", text)))


def join(parts: Iterable[str], between: str = "") -> Markup:
    """Markup one after the other; plain texts among it are escaped."""
    return Markup(between.join(p if isinstance(p, Markup) else escape(p) for p in parts))


def element(name: str, *children: str, **attributes: Attribute) -> Markup:
    """An element with its attributes and children.

    In names of attributes an underscore is a hyphen and one at the end is dropped; `None` and
    `False` leave an attribute out, `True` gives it without a value.

    >>> element("a", "x < y", element("br"), href="#top", aria_label="up", hidden=False)
    '<a href="#top" aria-label="up">x &lt; y<br></a>'
    """
    shown = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{shown}>")
    if name in _SHAPES and not children:
        return Markup(f"<{name}{shown}/>")
    return Markup(f"<{name}{shown}>{join(children)}</{name}>")


def set_apart(text: str, names: Iterable[str]) -> list[str]:
    """A text in parts, in which names that read from right to left turn nothing but themselves.

    Without it the order of two such names is that of neither language, and a number behind a name
    stands before it.

    >>> set_apart("empty: a 1, אב 2", ["a", "אב"])
    ['empty: a 1, ', '<bdi>אב</bdi>', ' 2']
    """
    turned = sorted({name for name in names if _turns(name)}, key=len, reverse=True)
    if not turned:
        return [text]
    parts = re.split(f"({'|'.join(map(re.escape, turned))})", text)
    return [element("bdi", part) if n % 2 else part for n, part in enumerate(parts) if part]


def _turns(text: str) -> bool:
    """Whether some of a text is read from right to left."""
    return not text.isascii() and any(unicodedata.bidirectional(c) in _TURNING for c in text)


def folded(title: str, *contents: str) -> Markup:
    """What a reader opens by its title."""
    return element("details", element("summary", title), *contents)


def scrollable(contents: Markup, label: str) -> Markup:
    """Something wide in a frame of its own, which the keyboard can reach, too."""
    return element("div", contents, class_="scroll", tabindex=0, role="region", aria_label=label)


def compact(value: float) -> str:
    """A coordinate with at most two decimals and nothing to spare.

    >>> compact(12.0), compact(0.126), compact(-0.001)
    ('12', '0.13', '0')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _attribute(key: str, value: Attribute) -> str:
    name = key.removesuffix("_").replace("_", "-")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    shown = compact(value) if isinstance(value, float) else str(value)
    return f' {name}="{escape(shown)}"'
