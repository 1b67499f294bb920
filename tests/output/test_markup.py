"""Text is escaped unless it is markup."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tertium.core.result import Cell, Table
from tertium.output.html import render_table as render_html_table
from tertium.output.markup_builder import Markup, element, escape, join

HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</td></table>", "a & b"]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_is_escaped_everywhere(text: str) -> None:
    actual = element("p", text, join([text]), title=text, data_value=text)
    inside = actual.removeprefix("<p").removesuffix("</p>")
    assert "<" not in inside
    assert inside.count('"') == 4  # the quotes around two attributes and no others


def test_markup_passes_as_it_is() -> None:
    assert element("p", element("b", "x"), Markup("<i>y</i>")) == "<p><b>x</b><i>y</i></p>"


@given(st.text())
def test_an_escaped_text_opens_no_element_and_can_be_written(text: str) -> None:
    actual = escape(text)
    assert not set(actual) & set("<>\"'")
    actual.encode("utf-8")


@given(st.text())
@example("\ufffe\uffff\x00")
def test_an_element_is_well_formed_xml(text: str) -> None:
    ElementTree.fromstring(element("text", text, data_name=text))  # SVG files are XML


def test_attributes_may_be_left_out() -> None:
    assert element("td", hidden=True, title=None, inert=False, colspan=2) == (
        '<td hidden colspan="2"></td>'
    )


def test_a_table_has_a_caption_headers_and_full_values() -> None:
    table = Table.from_cells(
        ["system", "BLEU"],
        [["a<b", Cell("1.23", 1.234567, "best")]],
        title="scores",
        notes=["x & y"],
    )
    actual = render_html_table(table, sortable=True)
    assert "<caption>scores</caption>" in actual
    assert '<th scope="row"><bdi>a&lt;b</bdi></th>' in actual
    assert '<td class="number best" data-value="1.234567">1.23</td>' in actual
    assert actual.count('aria-sort="none"') == 2
    assert "x &amp; y" in actual
