"""Build HTML and SVG; text is escaped unless it has the type `Markup`.

`element` and `join` return `Markup`. All other text, such as a segment that contains `<script>`,
is escaped automatically.

Texts with marked error spans as HTML.

`<mark>` elements must nest. Where spans overlap, one is split into pieces with the same number.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

from tertium.core.result import MarkedLine
from tertium.core.spans import Side, Span, split_at_spans
from tertium.text.printable import FORBIDDEN_IN_XML

_VOID_ELEMENTS = frozenset({"br", "col", "hr", "img", "input", "meta"})
_SVG_SHAPES = frozenset({"circle", "line", "path", "polygon", "polyline", "rect"})

Attribute = str | int | float | bool | None


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


def escape(text: str) -> Markup:
    """Escape text for HTML.

    >>> escape('<b> & "c"')
    '&lt;b&gt; &amp; &quot;c&quot;'
    """
    return Markup(html.escape(FORBIDDEN_IN_XML.sub("\ufffd", text)))


def join(parts: Iterable[str], separator: str = "") -> Markup:
    """Concatenate markup; plain text is escaped."""
    return Markup(separator.join(p if isinstance(p, Markup) else escape(p) for p in parts))


def element(name: str, *children: str, **attributes: Attribute) -> Markup:
    """Return an element with attributes and children.

    Underscores in attribute names become hyphens; a trailing underscore is dropped. `None` and
    `False` omit an attribute, `True` writes it without a value.

    >>> element("a", "x < y", element("br"), href="#top", aria_label="up", hidden=False)
    '<a href="#top" aria-label="up">x &lt; y<br></a>'
    """
    attribute_text = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID_ELEMENTS:
        return Markup(f"<{name}{attribute_text}>")
    if name in _SVG_SHAPES and not children:
        return Markup(f"<{name}{attribute_text}/>")
    return Markup(f"<{name}{attribute_text}>{join(children)}</{name}>")


def collapsible(title: str, *contents: str) -> Markup:
    """Return a section that the reader expands."""
    return element("details", element("summary", title), *contents)


def scrollable(contents: Markup, label: str) -> Markup:
    """Return a scrolling frame that is also reachable by keyboard."""
    return element("div", contents, class_="scroll", tabindex=0, role="region", aria_label=label)


def format_coordinate(value: float) -> str:
    """Format a coordinate with at most two decimals.

    >>> format_coordinate(12.0), format_coordinate(0.126), format_coordinate(-0.001)
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
    text = format_coordinate(value) if isinstance(value, float) else str(value)
    return f' {name}="{escape(text)}"'


def mark_error_spans(text: str, spans: Iterable[Span], side: Side = "hypothesis") -> Markup:
    """Return a text with `<mark>` elements around the spans of one side.

    >>> mark_error_spans("a <b> c", [Span(2, 5, severity="minor", category="Style")])
    'a <mark class="minor" title="minor: Style" data-span="0" data-severity="minor" \
data-category="Style">&lt;b&gt;</mark> c'
    """
    side_spans = sorted((s for s in spans if s.side == side), key=lambda s: (s.start, -s.end))
    number = {id(span): n for n, span in enumerate(side_spans)}
    pieces = []
    for piece, covering in split_at_spans(text, side_spans, side):
        inner = escape(piece)
        for span in sorted(covering, key=lambda s: -number[id(s)]):
            inner = _mark(inner, span, number[id(span)])
        pieces.append(inner)
    return join(pieces)


def _mark(inner: Markup, span: Span, number: int) -> Markup:
    kind = ": ".join(part for part in (span.severity, span.category) if part)
    probability = "" if span.chance is None else f", probability {span.chance:.2f}"
    return element(
        "mark",
        inner,
        class_=span.severity,
        title=kind + probability + (span.message and f": {span.message}"),
        data_span=number,
        data_side=None if span.side == "hypothesis" else span.side,
        data_severity=span.severity,
        data_category=span.category or None,
        data_rater=span.rater or None,
        data_chance=None if span.chance is None else repr(span.chance),
    )


def render_line(line: MarkedLine) -> Markup:
    """Return a paragraph with marked errors in the direction of its text."""
    if line.side == "note":
        return element("p", line.text, class_="note")
    if line.side == "reference":
        return element("p", f"reference: {line.text}", dir="auto", class_="muted")
    style = "source muted" if line.side == "source" else None
    return element(
        "p", mark_error_spans(line.text, line.spans, line.side), dir="auto", class_=style
    )
