"""Results as HTML: a page is a list of sections, and a notebook shows the same sections.

The content security policy of a page allows only its own scripts, by hash, so that text from
segments can never run. A page needs no network access.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from itertools import groupby
from typing import Any

from tertium.core.atomic import PathLike, write_text
from tertium.core.charts import Chart, HeatMap
from tertium.core.result import Cell, Column, MarkedLine, Result, Section, Table
from tertium.output.charts.draw import draw
from tertium.output.markup_builder import (
    Markup,
    collapsible,
    element,
    escape,
    join,
    render_line,
    scrollable,
)
from tertium.version import __version__

EARLY_SCRIPT = "theme"  # in the head: it runs before the first paint
SCRIPTS = ("elements", "tables")
MAX_PAGE_ROWS = 10_000  # browsers get slow with more rows
MAX_NOTEBOOK_ROWS = 100
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True)
class Block:
    """A part of a page with scripts, which `script/` has by name; notebooks leave it out."""

    html: Markup
    scripts: Sequence[str]


@dataclass(frozen=True)
class Renderer:
    """Renders the parts of sections, either for a page or for a notebook."""

    is_page: bool

    def render(self, contents: Sequence[Any], level: int) -> Markup:
        """Return the parts of a section; charts that follow each other share a row."""
        parts = []
        for is_chart, group in groupby(contents, key=lambda part: isinstance(part, Chart)):
            if is_chart:
                parts.append(element("div", *map(render_figure, group), class_="figures"))
            else:
                parts += [self._part(part, level) for part in group]
        return join(parts)

    def _part(self, part: Any, level: int) -> Markup:
        match part:
            case Section():
                return self.section(part, level)
            case Table():
                limit = MAX_PAGE_ROWS if self.is_page else MAX_NOTEBOOK_ROWS
                return render_table(part, sortable=self.is_page, max_rows=limit)
            case HeatMap():
                return render_heat_map(part)
            case MarkedLine():
                return render_line(part)
            case Block():
                return part.html if self.is_page else Markup("")
            case list():
                return (
                    element("ul", *(element("li", item) for item in part)) if part else Markup("")
                )
        return element("p", part, dir="auto")

    def section(self, section: Section, level: int) -> Markup:
        """Return a section with a heading of a level, or for the reader to expand.

        Drawings replace the tables that text output has instead.
        """
        contents = section.contents
        if any(isinstance(part, HeatMap | MarkedLine) for part in contents):
            contents = [part for part in contents if not isinstance(part, Table)]
        html = self.render(contents, level + 1)
        if section.is_collapsed:
            return collapsible(section.title, html)
        if not section.title:
            return html
        name = _anchor(section.title) if self.is_page else None
        heading = element(f"h{level}", section.title)
        return element("section", heading, html, id=name, aria_label=section.title)


def _anchor(title: str) -> str:
    return re.sub(r"\W+", "-", title.lower()).strip("-")


def write(result: Result, path: PathLike) -> None:
    """Write the page of a result."""
    write_text(path, render_page(result))


def render_page(result: Result) -> str:
    """Return a self-contained page."""
    sections = result.sections()
    title = result.page_title
    navigation: list[Section] = [section for section in sections if section.title]
    if len(sections) == 1 and sections[0].title == title:
        sections = [replace(sections[0], title="")]
    contents = Renderer(is_page=True).render(sections, level=2)
    scripts = [*SCRIPTS, *(name for block in _blocks(sections) for name in block.scripts)]
    early = _join_scripts([EARLY_SCRIPT])
    script = _join_scripts(scripts)
    values = {
        "title": title,
        "subtitle": result.page_subtitle,
        "navigation": _render_navigation(navigation) if navigation[1:] else "",
        "contents": contents,
        "version": __version__,
        "style": Markup(read_asset("charts.css") + read_asset("page.css")),
        "policy": _content_security_policy(early, script),
        "early_script": Markup(early),
        "script": Markup(script),
    }
    return str(fill_template("page.html", values))


def render_result(result: Result) -> str:
    """Return a result for a notebook, in a container with the style sheet of pages."""
    sections = [*result.sections()]
    if len(sections) == 1:
        sections = [replace(sections[0], title="")]
    contents = Renderer(is_page=False).render(sections, level=3)
    style = element("style", Markup(read_asset("charts.css")))
    return str(element("div", style, contents, class_="tertium"))


def render_fragment(contents: Sequence[Any]) -> Markup:
    """Return parts of a section without headings, such as an explanation in a list."""
    return Renderer(is_page=False).render(contents, level=4)


def render_figure(chart: Chart) -> Markup:
    """Return a chart with its caption."""
    return element("figure", element("figcaption", chart.caption), draw(chart))


def _blocks(sections: Sequence[Any]) -> Iterator[Block]:
    for part in sections:
        if isinstance(part, Section):
            yield from _blocks(part.contents)
        elif isinstance(part, Block):
            yield part


def _render_navigation(sections: Sequence[Section]) -> Markup:
    items = []
    for section in sections:
        link = element("a", section.title, href=f"#{_anchor(section.title)}")
        items.append(element("li", link))
    return element("nav", element("ul", *items), aria_label="Sections")


@lru_cache(maxsize=16)
def read_asset(name: str) -> str:
    """Return the text of a template, style sheet or script of pages."""
    return (files("tertium.output.page") / name).read_text(encoding="utf-8")


def fill_template(name: str, values: Mapping[str, str]) -> Markup:
    """Return a template with its placeholders replaced; texts that are not markup are escaped."""

    def value_of(match: re.Match[str]) -> str:
        value = values[match[1]]
        return value if isinstance(value, Markup) else escape(value)

    return Markup(_PLACEHOLDER.sub(value_of, read_asset(name)))


def _join_scripts(names: Sequence[str]) -> str:
    return "".join(read_asset(f"script/{name}.js") for name in names)


def _content_security_policy(*scripts: str) -> str:
    digests = [hashlib.sha256(script.encode("utf-8")).digest() for script in scripts]
    allowed = " ".join(f"'sha256-{base64.b64encode(d).decode('ascii')}'" for d in digests)
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def render_table(table: Table, *, sortable: bool = False, max_rows: int | None = None) -> Markup:
    """Return a table for a page or a notebook; the first column is the row header.

    A sortable table has a button in each header, and may have filters. `script/tables.js` sorts its
    rows by the full values, leaves the footer in place, and adds the fields of the filters.
    """
    visible = table.visible
    rows = Table(visible, table.rows[:max_rows]).cells()
    cautions = []
    for line in table.headlines:
        cautions.append(element("p", line, class_="caution"))
    notes = []
    for line in table.notes:
        notes.append(element("p", line, class_="note"))
    if len(rows) < len(table.rows):
        cut = f"The first {len(rows):,} of {len(table.rows):,} rows; files have all."
        notes.append(element("p", cut, class_="note"))
    if not rows:
        nothing = element("p", f"No {table.title.lower() or 'rows'}.") if visible else ""
        return join([*cautions, nothing, *notes])
    head = [_header_cell(column, sortable) for column in visible]
    body = [_row(row, visible) for row in rows]
    foot = [_row(row, visible) for row in table.footer]
    filters = [str(n) for n, column in enumerate(visible) if column.name in table.filters]
    grid = element(
        "table",
        element("caption", table.title) if table.title else "",
        element("thead", element("tr", *head)),
        element("tbody", *body),
        element("tfoot", *foot) if foot else "",
        class_="sortable" if sortable else None,
        data_filters=" ".join(filters) if sortable and filters else None,
    )
    return join([*cautions, scrollable(grid, table.title or "table"), *notes])


def _header_cell(column: Column, sortable: bool) -> Markup:
    name = element("bdi", column.name)
    sorts = sortable and bool(column.name)
    return element(
        "th",
        element("button", name, type="button") if sorts else name,
        scope="col",
        class_=None if column.is_text else "number",
        aria_sort="none" if sorts else None,
    )


def _row(cells: Sequence[Cell], columns: Sequence[Column]) -> Markup:
    """Return a row, whose first cell is its header."""
    parts = []
    for n, (cell, column) in enumerate(zip(cells, columns, strict=True)):
        if isinstance(cell.value, list):
            contents = join(map(render_line, cell.value))
            style = "lines"
        else:
            contents = _text(cell, column)
            style = "" if column.is_text else "number"
        is_number = isinstance(cell.value, int | float)
        part = element(
            "td" if n else "th",
            contents,
            _bar(cell.bar),
            scope=None if n else "row",
            class_=f"{style} {cell.emphasis}".strip() or None,
            data_value=repr(cell.value) if is_number else None,
        )
        parts.append(part)
    return element("tr", *parts)


def _text(cell: Cell, column: Column) -> Markup:
    """Return the text of a cell; a narrow column has the range of a number below it."""
    if column.is_text:
        return element("bdi", cell.text)
    parts = re.split(r" (?=[(\[])", cell.text, maxsplit=1)
    if len(parts) == 1:
        return escape(cell.text)
    return join([element("span", part, class_="range") for part in parts], " ")


def _bar(length: float | None) -> str:
    """Return a bar to the right of the middle, or to the left if its length is negative."""
    if length is None:
        return ""
    style = "bar gain" if length >= 0 else "bar cost"
    return element("span", class_=style, style=f"--v:{abs(length):.3f}")


MAX_TOKENS = 60  # of a text in a heat map
SHADE_COUNT = 20  # of a heat map; `charts.css` has a class for each


def render_heat_map(heat_map: HeatMap) -> Markup:
    """Return a heat map as a table.

    Texts are truncated after `MAX_TOKENS` tokens, which the caption states.
    """
    rows = heat_map.rows[:MAX_TOKENS]
    columns = heat_map.columns[:MAX_TOKENS]
    is_truncated = max(heat_map.values.shape) > MAX_TOKENS
    note = f" (first {MAX_TOKENS} tokens)" if is_truncated else ""
    head = [element("th", element("span", name, dir="auto"), scope="col") for name in columns]
    lines = []
    for i, name in enumerate(rows):
        shades = [_shade(heat_map, (i, j)) for j in range(len(columns))]
        lines.append(element("tr", element("th", element("bdi", name), scope="row"), *shades))
    table = element(
        "table",
        element("caption", heat_map.title + note),
        element("thead", element("tr", element("td"), *head)),
        element("tbody", *lines),
        class_="heat",
    )
    return scrollable(table, heat_map.title)


def _shade(heat_map: HeatMap, place: tuple[int, int]) -> Markup:
    value = float(heat_map.values[place])
    if value != value:
        return element("td")
    tooltip = heat_map.tooltips.get(place)
    is_framed = heat_map.has_frames and tooltip is not None
    step = round(SHADE_COUNT * min(max(value, 0.0), 1.0))
    return element(
        "td",
        f"{value:.2f}".replace("0.", "."),
        element("span", " best", class_="hidden") if is_framed else "",
        class_=f"h{step} framed" if is_framed else f"h{step}",
        title=tooltip,
    )
