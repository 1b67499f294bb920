"""The report page in a real browser: no errors, and every control works."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.mean_scores import mean_scores
from tests.output.chromium import Browser

from tertium.core.scores import ScoreMatrix
from tertium.core.segment import Segment
from tertium.core.spans import Span
from tertium.data.testset import TestSet
from tertium.evaluation.comparison import compare
from tertium.evaluation.error_marking import MarkedErrors, MarkedTranslation, MarkedTranslations
from tertium.evaluation.scoring import score
from tertium.evaluation.system_scores import Evaluation
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.metric_agreement import MetaEvaluation
from tertium.meta.tasks import Task
from tertium.output.page.report import report_meta_evaluation, report_results
from tertium.studies.meta_evaluation import AgreementStudy

TAB, ENTER = 9, 13
PAPER = "rgb(255, 255, 255)"


@pytest.fixture
def opened(browser: Browser, page: Path) -> Iterator[Browser]:
    browser.open(page)
    yield browser
    assert browser.problems == []


def texts(browser: Browser, selector: str) -> list[str]:
    actual = browser.evaluate(
        f"[...document.querySelectorAll({json.dumps(selector)})].map((n) => n.textContent)"
    )
    return list(actual)


def labels(browser: Browser) -> list[str]:
    """Return the numbers of the visible segments in order."""
    actual = texts(browser, "#results tbody > tr.inputs > th")
    return [hit[1] for text in actual if (hit := re.match(r"# (\d+)", text))]


def count(browser: Browser) -> str:
    return texts(browser, "#count")[0]


def test_the_page_loads_and_shows_the_first_segments(opened: Browser) -> None:
    assert texts(opened, "h1") == ["Example"]
    assert texts(opened, "h2") == [
        "Overview",
        "Ranking of systems",
        "Agreement with human scores",
        "Charts",
        "Segments",
    ]
    assert count(opened) == "48 segments; showing 1 to 48"
    assert opened.evaluate("document.querySelector('#loading')") is None


def test_search_finds_words_in_all_texts(opened: Browser, example: TestSet) -> None:
    opened.choose("#query", "WPA3")
    opened.wait("!document.querySelector('#count').textContent.startsWith('48 ')")
    rows = [
        n
        for n in range(len(example))
        if any(
            "wpa3" in text.lower()
            for text in (
                example.sources[n],
                *example.references[n],
                example.systems["good"][n],
                example.systems["poor"][n],
            )
        )
    ]
    assert count(opened).startswith(f"{len(rows)} segment")
    assert set(texts(opened, "#results mark")) == {"WPA3"}
    opened.choose("#query", "no such words at all")
    opened.wait("document.querySelector('.empty')")
    assert count(opened).startswith("No matches")


def test_headers_sort_and_report_the_order(opened: Browser, example: TestSet) -> None:
    chrf = score(example, "chrf")
    good = chrf.scores["good"]["chrf"].segments.round(2)
    opened.choose("#metric", "1")
    opened.click('#results [data-sort="left-1"]')
    highest = [str(n + 1) for n in np.argsort(-good, kind="stable")]
    assert labels(opened) == highest
    state = "document.querySelector('#results [data-sort=\"left-1\"]').parentNode.ariaSort"
    assert opened.evaluate(state) == "descending"
    opened.click('#results [data-sort="left-1"]')
    assert opened.evaluate(state) == "ascending"
    assert labels(opened) == [str(n + 1) for n in np.argsort(good, kind="stable")]


def test_filters_select_matching_segments(opened: Browser, example: TestSet) -> None:
    chrf = score(example, "chrf")
    good, poor = (chrf.scores[s]["chrf"].segments.round(2) for s in ("good", "poor"))
    opened.choose("#metric", "1")
    opened.choose("#min-gap", "40")
    assert count(opened).startswith(f"{int((np.abs(good - poor).round(2) >= 40).sum())} segments")
    opened.choose("#min-gap", "")
    lengths = np.array([len(text.split()) for text in example.systems["good"]])
    opened.choose("#min-length", "12")
    opened.choose("#max-length", "15")
    inside = int(((lengths >= 12) & (lengths <= 15)).sum())
    assert count(opened).startswith(f"{inside} segments")
    opened.choose("#min-length", "")
    opened.choose("#max-length", "")
    opened.choose("#document", "0")
    same = list(example.documents).count(example.documents[0])
    assert count(opened).startswith(f"{same} segments")
    opened.choose("#document", "-1")
    opened.choose("#warning", "0")
    assert labels(opened) == ["24"]  # the empty output of poor
    assert texts(opened, "#results .badge")[0] == "empty hypothesis"


def test_a_minimum_difference_includes_equal_values(browser: Browser, tmp_path: Path) -> None:
    """0.3 - 0.2 is not 0.1 in binary, but is displayed as 0.1."""
    testset = TestSet(systems={"a": ("x", "y", "z"), "b": ("x", "y", "z")})
    values = {"a": [0.3, 0.3, np.nan], "b": [0.2, 0.2001, 0.1]}
    scores = {s: {"m": mean_scores("m", np.array(own), "m")} for s, own in values.items()}
    path = tmp_path / "gap.html"
    report_results(Evaluation(testset, ("a", "b"), ("m",), scores)).write(path)
    browser.open(path)
    displayed = "#results tbody > tr:nth-child(2) > td:last-child"
    assert texts(browser, displayed) == ["▲ 0.1000", "▲ 0.0999", "–"]
    browser.choose("#min-gap", "0.1")
    assert texts(browser, displayed) == ["▲ 0.1000"]
    assert browser.problems == []


def test_filters_are_counted_shown_and_cleared(opened: Browser) -> None:
    assert opened.evaluate("$('clear').hidden") is True
    opened.click('[data-preset="warnings"]')
    assert texts(opened, "#more-title") == ["More filters (1 active)"]
    assert opened.evaluate("$('more').open") is True
    opened.choose("#query", "no such words at all")
    opened.wait("document.querySelector('.empty button')")
    assert opened.evaluate("document.querySelectorAll('[aria-pressed=true]').length") == 0
    opened.click(".empty button")
    assert count(opened).startswith("144 translations")
    assert texts(opened, "#more-title") == ["More filters"]
    assert opened.evaluate("document.activeElement.id") == "query"


def test_invalid_selections_are_reset(opened: Browser) -> None:
    opened.choose("#sort", "difference")
    opened.choose("#right", "-2")
    assert opened.evaluate("$('sort').value") == "number"
    opened.choose("#left", "1")
    opened.choose("#right", "2")
    opened.choose("#left", "2")  # a system compared with itself
    assert opened.evaluate("$('right').value") == "-2"


def test_a_link_to_a_segment_opens_it_or_reports_that_it_is_missing(opened: Browser) -> None:
    opened.evaluate("location.hash = '#segment-14'")
    opened.wait("document.querySelector('#results .details')")
    assert opened.evaluate("document.activeElement.closest('th').textContent").startswith("# 14")
    opened.evaluate("location.hash = '#segment-999'")
    opened.wait("$('notice').textContent")
    assert texts(opened, "#notice") == ["This page has no segment 999."]
    opened.evaluate("history.replaceState(null, '', location.pathname)")


def test_two_systems_are_compared_side_by_side(opened: Browser) -> None:
    opened.choose("#left", "1")
    opened.choose("#right", "2")
    row = "#results tbody:nth-of-type(4) "
    left, right = texts(opened, f"{row} .output")
    assert left == "Does the kilo cost today really only 1.80 Euro?"
    assert texts(opened, f"{row} del") == ["Does", "cost", "1.80"]
    assert texts(opened, f"{row} ins") == ["Costs", "8.10"]
    assert right.startswith("Costs the kilo today really only 8.10")
    assert texts(opened, "#results thead th")[3:] == [
        "fair: BLEU ↑",
        "poor: BLEU ↑",
        "difference",
    ]
    legend = ["only in fair", "only in poor", "▲ fair better", "▼ poor better"]
    assert texts(opened, "#legend > *") == legend
    opened.choose("#page", "1.5")
    opened.click("#show-differences")
    assert texts(opened, f"{row} del") == []
    assert texts(opened, "#legend > *") == legend[2:]
    assert len(texts(opened, "#results del")) == 0


def test_warnings_are_shown_at_their_translation(opened: Browser) -> None:
    opened.choose("#left", "1")
    opened.choose("#right", "2")
    opened.choose("#warning", "0")
    assert texts(opened, "#results .badge") == ["empty hypothesis"]
    assert texts(opened, "#results .output:has(.badge) .text") == [""], "not that of fair"


def test_more_than_32_kinds_of_warnings_are_distinguished(opened: Browser) -> None:
    """Regression: shifts of 32 bits showed kind 33 as kind 1."""
    bits = "[2 ** 33, 2 ** 40 + 1].map((bits) => { data.warningBits[0] = bits; "
    kinds = "return [...Array(45).keys()].filter((kind) => hasWarningKind(0, kind)); })"
    assert opened.evaluate(f"JSON.stringify({bits}{kinds})") == "[[33],[0,40]]"


DIFFERENCES: list[tuple[str, str, list[str], list[str]]] = [
    ("a b c", "a c", ["b"], []),
    ("one two three four", "one 2 3 four", ["two three"], ["2 3"]),
    ("彼は日本に行く", "彼は中国に行く", ["日本"], ["中国"]),  # compared by character
    ("ຂ້ອຍໄປບ້ານ", "ຂ້ອຍມາບ້ານ", ["ໄປ"], ["ມາ"]),
    ("ខ្ញុំទៅ", "ខ្ញុំមក", ["ទៅ"], ["មក"]),
    ("", "new words", [], ["new words"]),
    ("same  same", "same same", [], []),  # spaces are no difference
    ("e\u0301a", "ea", ["e\u0301a"], ["ea"]),
]


def test_words_that_differ_are_marked_in_runs(opened: Browser) -> None:
    run = "markDifferences({}, {}, {}).filter((part) => part.nodeName)"
    run += ".map((part) => part.textContent)"
    for first, second, gone, new in DIFFERENCES:
        a, b = json.dumps(first), json.dumps(second)
        assert opened.evaluate(run.format(a, b, '"del"')) == gone, first
        assert opened.evaluate(run.format(b, a, '"ins"')) == new, second


SEARCHES: list[tuple[str, str, list[str]]] = [
    ("cafe", "Ein Café, ein cafe\u0301!", ["Café", "cafe\u0301"]),
    ("istanbul", "İstanbul ISTANBUL ıstanbul", ["İstanbul", "ISTANBUL", "ıstanbul"]),
    ("ΟΔΟΣ", "η οδός", ["οδός"]),
    ("か", "がか", ["か"]),  # the mark makes it another letter
    ("하", "한국 하나", ["하"]),
    ("कि", "की कि", ["कि"]),
    ('"new york" the', "the new York, the york new", ["the", "new York", "the"]),
    ("a.c", "abc a.c", ["a.c"]),
]


def test_search_ignores_case_and_accents(opened: Browser) -> None:
    run = "{ $('query').value = %s; state.terms = parseTerms(); highlightTerms(%s).filter("
    run += "(part) => part.nodeName).map((part) => part.textContent) }"
    for query, text, actual in SEARCHES:
        assert opened.evaluate(run % (json.dumps(query), json.dumps(text))) == actual, query


@pytest.mark.parametrize(
    ("preset", "sort"),
    [
        ("metrics", "metricDisagreement"),
        ("human", "humanDisagreement"),
        ("systems", "gap"),
    ],
)
def test_presets_are_one_click_away(opened: Browser, preset: str, sort: str) -> None:
    opened.click(f'[data-preset="{preset}"]')
    assert opened.evaluate("document.querySelector('#sort').value") == sort
    pressed = f"document.querySelector('[data-preset=\"{preset}\"]').ariaPressed"
    assert opened.evaluate(pressed) == "true"
    actual = {"metrics": "144 translations", "human": "120 translations", "systems": "48 segments"}
    assert count(opened).startswith(actual[preset])  # human scores: 40 segments of 3 systems


@pytest.mark.parametrize(
    ("preset", "key"), [("metrics", "metricDisagreement"), ("human", "humanDisagreement")]
)
def test_the_largest_disagreement_comes_first_with_its_size(
    opened: Browser, preset: str, key: str
) -> None:
    opened.click(f'[data-preset="{preset}"]')
    head = f"document.querySelector('#results [data-sort={key}]')"
    assert opened.evaluate(f"{head}.textContent") == "disagreement"
    assert opened.evaluate(f"{head}.parentNode.ariaSort") == "descending"
    actual = texts(opened, "#results tbody > tr:nth-child(2) > td:last-child")
    sizes = [abs(int(text.rstrip(" %").replace("−", "-"))) for text in actual]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1] > 0
    opened.click("#results .expand")
    description = {
        "metricDisagreement": "between the highest and lowest metric rank",
        "humanDisagreement": "minus human rank",
    }[key]
    line = next(t for t in texts(opened, "#results .details tbody tr") if description in t)
    assert line.endswith(actual[0])
    opened.evaluate(f"{head}.click()")
    assert opened.evaluate(f"{head}.parentNode.ariaSort") == "ascending"


def test_ranks_match_the_metric_disagreement(opened: Browser) -> None:
    """The disagreement of metrics is the highest minus the lowest rank."""
    errors = opened.evaluate(
        """rows.text.map((_, row) => {
            const found = data.columns.map((column) => ranks(column)[row]);
            return Math.max(...found) - Math.min(...found) - data.metricDisagreement[row] / 1000;
        })"""
    )
    assert np.abs(errors).max() < 0.02  # the page ranks rounded scores


def test_explanations_are_loaded_on_demand(opened: Browser) -> None:
    opened.click('[data-preset="explanations"]')
    assert labels(opened) == ["4"]
    opened.click("#results tbody:nth-of-type(1) .expand")
    titles = ["BERTScore · fair", "WMD · fair"]
    assert texts(opened, "#results .details summary") == titles
    assert texts(opened, "table.heat.shown") == []
    assert opened.evaluate("document.querySelectorAll('#results table.heat').length") == 0
    for place in (1, 2):
        opened.click(f"#results .details details:nth-of-type({place}) summary")
    opened.wait("document.querySelectorAll('#results table.heat').length == 4")  # two references
    framed = opened.evaluate("document.querySelectorAll('#results td.framed').length")
    assert framed > 5
    color = "getComputedStyle(document.querySelector('#results td.h20')).backgroundColor"
    assert opened.evaluate(color) not in ("rgba(0, 0, 0, 0)", "rgb(255, 255, 255)")


def test_clicking_a_dot_opens_its_translation(opened: Browser) -> None:
    dot = "document.querySelector('circle[data-row=\"41\"]')"  # segment 14, system poor
    opened.evaluate(f"{dot}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
    assert texts(opened, "#results .details caption") == ["All scores"]
    where = "document.activeElement.closest('th').textContent"
    assert opened.evaluate(where).startswith("# 14poor")


def test_tables_of_the_overview_sort(opened: Browser) -> None:
    table = "#overview > .scroll table"
    opened.click(f"{table} thead th:nth-child(8) button")  # TER, descending first
    assert texts(opened, f"{table} tbody th")[0].startswith("poor")
    head = f"document.querySelector('{table} th:nth-child(8)')"
    assert opened.evaluate(f"{head}.ariaSort") == "descending"


def test_sorting_keeps_the_footer_below(opened: Browser) -> None:
    for _ in range(2):
        opened.click("#agreement-with-human-scores thead th:nth-child(2) button")
        rows = texts(opened, "#agreement-with-human-scores table:first-of-type tr > :first-child")
        assert rows[4] == "human scores"  # below the header and three metrics
        assert "human scores" not in rows[:4]


def test_the_theme_follows_the_system_and_the_button(opened: Browser) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    assert opened.evaluate(paper) == "rgb(255, 255, 255)"
    opened.media(scheme="dark")
    dark = opened.evaluate(paper)
    assert dark != "rgb(255, 255, 255)"
    opened.click("#theme")
    assert opened.evaluate(paper) == "rgb(255, 255, 255)"  # light, whatever the system says
    opened.click("#theme")
    opened.media(scheme="light")
    assert opened.evaluate(paper) == dark
    opened.click("#theme")


def test_the_saved_theme_is_applied_before_the_body(opened: Browser, page: Path) -> None:
    opened.evaluate("storedTheme('dark')")
    opened.open(page, ready="document.body && document.documentElement.dataset.theme === 'dark'")
    opened.wait("document.documentElement.dataset.ready")
    assert texts(opened, "#theme") == ["Theme: dark"]
    early = "document.querySelector('head script').textContent.includes('setTheme(theme)')"
    assert opened.evaluate(early)
    opened.evaluate("storedTheme('auto')")


def test_text_has_enough_contrast_in_both_themes(opened: Browser) -> None:
    """WCAG AA: a contrast of 4.5 for ink, muted text, links and marks, of 3 for edges."""
    for scheme in ("light", "dark"):
        opened.media(scheme=scheme)
        pairs = opened.evaluate(
            """["ink", "muted", "accent", "good", "bad", "fit", "edge"].map((name) => {
                const probe = document.createElement("p");
                probe.style.cssText = `color: var(--${name}); background: var(--raised)`;
                document.body.append(probe);
                const style = getComputedStyle(probe);
                const found = [name, style.color, style.backgroundColor];
                probe.remove();
                return found;
            })"""
        )
        for name, ink, paper in pairs:
            assert contrast(ink, paper) >= (3 if name == "edge" else 4.5), f"{scheme}: {name}"


def test_numbers_have_enough_contrast_on_every_shade_of_a_heat_map(opened: Browser) -> None:
    for scheme in ("light", "dark"):
        opened.media(scheme=scheme)
        pairs = opened.evaluate(
            """(() => {
                const table = document.createElement("table");
                table.className = "heat";
                table.innerHTML = "<tbody><tr>" + Array.from({length: 21}, (_, n) =>
                    `<td class="h${n}">x</td>`).join("") + "</tr></tbody>";
                document.body.append(table);
                const page = document.createElement("canvas");
                const canvas = page.getContext("2d", {willReadFrequently: true});
                const plain = (color) => { // color-mix comes as color(srgb ...)
                    canvas.fillStyle = color;
                    canvas.fillRect(0, 0, 1, 1);
                    return `rgb(${[...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3)})`;
                };
                const found = [...table.querySelectorAll("td")].map((cell) => {
                    const style = getComputedStyle(cell);
                    return [plain(style.color), plain(style.backgroundColor)];
                });
                table.remove();
                return found;
            })()"""
        )
        assert min(contrast(ink, paper) for ink, paper in pairs) >= 4.5, scheme
        assert len({paper for _, paper in pairs}) == 21


def contrast(first: str, second: str) -> float:
    def light(color: str) -> float:
        values = [int(part) / 255 for part in color.removeprefix("rgb(").rstrip(")").split(",")]
        linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]
        return float(np.dot([0.2126, 0.7152, 0.0722], linear))

    low, high = sorted([light(first), light(second)])
    return (high + 0.05) / (low + 0.05)


def test_the_keyboard_reaches_the_content_first(opened: Browser) -> None:
    opened.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    opened.press("Tab", TAB)
    assert opened.evaluate("document.activeElement.className") == "skip"
    outline = opened.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    opened.evaluate("document.querySelector('#results .expand').focus()")
    opened.press("Enter", ENTER)
    assert texts(opened, "#results .details caption") == ["All scores"]
    assert opened.evaluate("document.activeElement.ariaExpanded") == "true"


def test_a_screen_reader_finds_landmarks_names_and_headers(opened: Browser) -> None:
    opened.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    opened.send("Accessibility.enable")  # its tree is kept up to date until it is disabled
    nodes = opened.send("Accessibility.getFullAXTree")["nodes"]
    opened.send("Accessibility.disable")
    roles: dict[str, list[str]] = {}
    for node in nodes:
        role = node.get("role", {}).get("value", "")
        roles.setdefault(role, []).append(node.get("name", {}).get("value", ""))
    assert {"banner", "main", "contentinfo", "search"} <= set(roles)
    assert {"Sections", "Pages of segments"} <= set(roles["navigation"])
    for kind in ("button", "combobox", "searchbox", "spinbutton", "checkbox", "link", "region"):
        assert all(name.strip() for name in roles[kind]), kind
    assert all(name for name in roles.get("image", []) + roles.get("img", []))
    unnamed = opened.evaluate(
        "[...document.querySelectorAll('table')].filter((t) => !t.caption && "
        "!t.closest('[aria-label]')).length"
    )
    assert unnamed == 0


def test_segment_buttons_have_descriptive_labels(opened: Browser) -> None:
    opened.click('[data-preset="explanations"]')
    button = "document.querySelector('#results .expand')"
    label = opened.evaluate(f"{button}.ariaLabel")
    row = re.fullmatch(r"Scores, explanations of (segment \d+, (?:good|fair|poor))", label)
    assert row, label
    opened.click("#results .expand")
    assert opened.evaluate(f"{button}.ariaLabel") == f"Close the scores of {row[1]}"
    displayed = opened.evaluate(
        f"document.getElementById({button}.getAttribute('aria-controls'))?.className"
    )
    assert displayed == "details"
    assert opened.evaluate("document.querySelector('#results .output .text').lang") == ""
    assert opened.evaluate("document.querySelector('#results bdi[lang]').lang") == ""


def test_hidden_headers_of_a_narrow_page_take_no_focus(opened: Browser) -> None:
    opened.resize(390, 800)
    focus = "(() => { const b = document.querySelector('#results thead button'); b.focus();"
    assert opened.evaluate(f"{focus} return document.activeElement === b; }})()") is False


def test_no_width_makes_the_page_scroll_sideways(opened: Browser) -> None:
    for width in (320, 390, 768, 1280, 1920):
        opened.resize(width, 900)
        for preset in ("metrics", "systems"):
            opened.click(f'[data-preset="{preset}"]')
            if width < 721:  # where segments stand below each other, and their headers are hidden
                room = "(({scrollWidth, clientWidth}) => scrollWidth - clientWidth)"
                assert opened.evaluate(f"{room}(document.querySelector('#results'))") == 0
            opened.click("#results .expand")
            assert opened.evaluate("document.documentElement.scrollWidth") <= width


def test_translations_keep_a_minimum_width_next_to_many_scores(
    browser: Browser, example: TestSet, human_scores: ScoreMatrix, tmp_path: Path
) -> None:
    """Five metrics and human scores in a window of 800 pixels left no room for text."""
    metrics = ["bleu", "chrf", "ter", "chrf:word_order=2", "chrf:char_order=3"]
    path = tmp_path / "numbers.html"
    report_results(compare(example, metrics, resamples=5), human=human_scores).write(path)
    browser.open(path)
    box = "document.querySelector('#results td.output').getBoundingClientRect().width"
    for preset in ("metrics", "systems"):
        browser.click(f'[data-preset="{preset}"]')
        for width in (390, 721, 800, 1000, 1001, 1280):
            browser.resize(width, 900)
            assert browser.evaluate(box) > 150, (preset, width)
            assert browser.evaluate("document.documentElement.scrollWidth") <= width


def test_a_printed_page_is_light_complete_and_without_controls(opened: Browser) -> None:
    opened.media(scheme="dark", kind="print")
    displayed = "getComputedStyle(document.querySelector('#controls')).display"
    assert opened.evaluate(displayed) == "none"
    ink = opened.evaluate("getComputedStyle(document.body).color")
    assert contrast(ink, "rgb(255, 255, 255)") > 10
    opened.evaluate(
        "window.addEventListener('beforeprint', () => { window.open_ = "
        "document.querySelector('#overview details').open; })"
    )
    pdf = opened.send("Page.printToPDF", printBackground=True)["data"]
    assert len(pdf) > 50_000
    assert opened.evaluate("window.open_") is True  # the p-values
    assert opened.evaluate("document.querySelector('#overview details').open") is False


def test_a_page_prints_light_in_the_dark_theme(opened: Browser) -> None:
    opened.evaluate("document.documentElement.dataset.theme = 'dark'")
    opened.media(scheme="dark", kind="print")
    ink = opened.evaluate("getComputedStyle(document.querySelector('.muted')).color")
    assert contrast(ink, "rgb(255, 255, 255)") > 4.5
    assert opened.evaluate("getComputedStyle(document.body).backgroundColor") == PAPER


def test_all_columns_fit_on_paper(opened: Browser) -> None:
    opened.media(kind="print")
    opened.resize(700, 1000)  # A4 between its margins
    frames = "[...document.querySelectorAll('.scroll')]"
    assert set(opened.evaluate(f"{frames}.map((f) => getComputedStyle(f).overflowX)")) == {
        "visible"
    }
    wide = opened.evaluate(
        "document.querySelector('#overview table').getBoundingClientRect().right"
    )
    assert wide <= 700
    foot = "getComputedStyle(document.querySelector('#agreement-with-human-scores tfoot')).display"
    assert opened.evaluate(foot) == "table-row-group"  # else on every page of a long table
    cell = "document.querySelector('#results td.output')"  # two systems stay side by side
    assert opened.evaluate(f"getComputedStyle({cell}).display") == "table-cell"
    assert opened.evaluate(f"{cell}.nextSibling.offsetTop === {cell}.offsetTop")


def test_a_fragment_follows_the_theme_of_its_notebook(
    browser: Browser, example: TestSet, tmp_path: Path
) -> None:
    """Text is dark on a white notebook under a dark system theme, and light in a dark notebook."""
    displayed = score(example, "chrf")._repr_html_()
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><meta charset=utf-8><body>{displayed}", encoding="utf-8")
    browser.media(scheme="dark")
    browser.open(path, ready="document.querySelector('.tertium')")
    ink = "getComputedStyle(document.querySelector('.tertium .note')).color"
    assert contrast(browser.evaluate(ink), PAPER) > 4.5
    browser.evaluate("document.body.setAttribute('data-jp-theme-light', 'false')")
    assert contrast(browser.evaluate(ink), "rgb(17, 17, 17)") > 4.5


def marked_notebook(path: Path, *texts: str) -> Path:
    """Write two outputs of one notebook with a minor and a major error in each text."""
    spans = (Span(0, 1, severity="minor"), Span(1, 3, severity="major"))
    entries = [
        MarkedTranslation(system="a", item=n, segment=Segment(text), score=0.0, spans=own)
        for n, text in enumerate(texts)
        for own in (spans, (Span(0, 1, severity="bad"),))
    ]
    marked = MarkedTranslations(metric="human", label="Human raters", translations=tuple(entries))
    displayed = MarkedErrors([marked])._repr_html_()
    path.write_text(
        f"<!doctype html><meta charset=utf-8><body>{displayed}{displayed}", encoding="utf-8"
    )
    return path


def test_the_line_below_a_mark_is_not_cut_and_joined_letters_stay_joined(
    browser: Browser, tmp_path: Path
) -> None:
    browser.open(
        marked_notebook(tmp_path / "marked.html", "سلام"), ready="document.querySelector('mark')"
    )
    cut = (
        "[...document.querySelectorAll('mark')].map((mark) => mark.getBoundingClientRect().bottom"
        " - mark.closest('p').getBoundingClientRect().bottom)"
    )
    assert max(browser.evaluate(cut)) <= 0
    wide = "(() => {{ const box = document.createElement('bdi'); box.innerHTML = {};"
    wide += "document.querySelector('.lines p').append(box);"
    wide += "const found = box.getBoundingClientRect().width; box.remove(); return found; }})()"
    plain, marked = (
        browser.evaluate(wide.format(json.dumps(text)))
        for text in ("سلام", "س<mark class=major>لا</mark>م")
    )
    assert marked == pytest.approx(plain, abs=0.1)


HOSTILE = (
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 2</script>",
    '"><img src="https://example.org/x.png" onerror="window.hacked = 3">',
    "<!--<script> {{data}} {{script}} \\u003cb\\u003e",
    "שלום עולם, this is mixed عربي 123 text",
    "a\u0301\u0323\u0308 Z\u0335\u0321\u035a\u0353\u0301a\u0337\u0302l\u0336g\u0334o\u0335",
    "word " * 2000,
    "日本語のテキストには空白がない。",
    "x" * 5000,
    "javascript:alert(1) \x00 \x1b[31m \u202e reversed",
)


def hostile_set() -> TestSet:
    names = ("<b>bold</b>", 'quote"s & </script>')
    return TestSet(
        systems={names[0]: HOSTILE, names[1]: HOSTILE[::-1]},
        references=tuple((text, f"{text} again") for text in HOSTILE),
        sources=HOSTILE,
        documents=tuple(f"<i>{n % 2}</i>" for n in range(len(HOSTILE))),
    )


def test_a_right_to_left_name_does_not_reorder_its_context(
    browser: Browser, tmp_path: Path
) -> None:
    systems = {"نظام الترجمة": ["", "a dog"], "מערכת 2": ["", "a cat"], "z": ["a cat", ""]}
    results = compare(TestSet(systems=systems, references=[["a cat"]] * 2), "chrf", resamples=20)
    report = report_results(results)
    report.write(tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    assert texts(browser, "h1") == ["نظام الترجمة, מערכת 2, z"]
    direction = "getComputedStyle(document.querySelector('h1')).direction"
    assert browser.evaluate(direction) == "ltr"
    note = "warning: empty hypothesis: <bdi>نظام الترجمة</bdi> 1, <bdi>מערכת 2</bdi> 1, z 1</p>"
    assert note in results._repr_html_()
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<bdi>نظام الترجمة</bdi>, <bdi>מערכת 2</bdi>, z</h1>" in page


def test_hostile_texts_are_shown_and_never_run(browser: Browser, tmp_path: Path) -> None:
    testset = hostile_set()
    path = tmp_path / "hostile.html"
    report = report_results(compare(testset, ["chrf", "bleu"], resamples=50), title=HOSTILE[1])
    report.write(path)
    browser.open(path)
    assert texts(browser, "h1") == [HOSTILE[1]]
    assert browser.evaluate("typeof window.hacked") == "undefined"
    for system in (0, 1):
        browser.choose("#left", str(system))
        browser.choose("#right", "-2")
        browser.click("#results .expand")
        displayed: list[str] = texts(browser, "#results td.output .text")
        assert displayed == list(list(testset.systems.values())[system])
    assert browser.evaluate("typeof window.hacked") == "undefined"
    assert texts(browser, "#results script, #results img, #results i, h1 script") == []
    assert direction(browser, 4) == "rtl"
    assert browser.problems == []


def test_text_without_spaces_is_measured_in_characters(browser: Browser, tmp_path: Path) -> None:
    lines = ("我们明天早上去图书馆看书。", "𠀀𠀁好", "今天 下雨。")
    testset = TestSet(systems={"a": lines}, references=[(line,) for line in lines])
    report = report_results(score(testset, ["chrf"]))
    report.write(tmp_path / "chinese.html")
    browser.open(tmp_path / "chinese.html")
    assert browser.evaluate("[...rows.lengths]") == [13, 3, 6]
    browser.choose("#sort", "length")
    assert labels(browser) == ["2", "3", "1"]
    assert browser.evaluate("$('min-length').labels[0].textContent") == "Characters from"
    browser.choose("#max-length", "5")
    assert labels(browser) == ["2"]
    assert browser.problems == []


def direction(browser: Browser, place: int) -> Any:
    browser.choose("#left", "0")
    box = f"document.querySelectorAll('#results td.output .text')[{place}]"
    return browser.evaluate(f"getComputedStyle({box}).direction")


def test_a_long_line_is_compared_and_does_not_stretch_the_page(
    browser: Browser, tmp_path: Path
) -> None:
    words = [f"w{n}" for n in range(2000)]
    testset = TestSet(
        systems={"a": (" ".join(words),), "b": (" ".join(words[:1000] + words[1001:]),)},
        references=((" ".join(words),),),
    )
    path = tmp_path / "long.html"
    report_results(compare(testset, ["chrf"], resamples=5)).write(path)
    browser.open(path)
    assert texts(browser, "#results del") == ["w1000"]
    assert texts(browser, "#results ins") == []
    assert browser.evaluate("document.querySelector('#results tbody').offsetHeight") < 700
    boxes = "[...document.querySelectorAll('#results .text')].map((box) => box.ariaLabel)"
    assert browser.evaluate(boxes) == ["reference of segment 1", "a, segment 1", "b, segment 1"]
    assert browser.evaluate("document.querySelector('#results .text').tabIndex") == 0
    assert browser.problems == []


def test_sixty_very_long_lines_open_at_once(browser: Browser, tmp_path: Path) -> None:
    """This took 19 seconds when 2,000-word pairs had alignment tables of 4 million cells."""
    rng = np.random.default_rng(3)
    vocabulary = [f"w{n}" for n in range(900)]
    lines = [rng.choice(vocabulary, (500, 800)[n % 2]).tolist() for n in range(60)]
    outputs = [
        tuple(" ".join(w for w in line if rng.random() > 0.15) for line in lines) for _ in "ab"
    ]
    testset = TestSet(
        systems=dict(zip("ab", outputs, strict=True)),
        references=[(" ".join(line), " ".join(line[::-1])) for line in lines],
    )
    path = tmp_path / "very-long.html"
    report_results(compare(testset, ["bleu"], resamples=5)).write(path)
    browser.open(path)
    sizes = (
        "(() => { const found = [], plain = Uint16Array;"
        "window.Uint16Array = function (size) { found.push(size); return new plain(size); };"
        "comparisons.clear(); runQuery(); window.Uint16Array = plain; return found; })()"
    )
    assert 100_000 < max(browser.evaluate(sizes)) <= 400_000  # of 500 words; 800 are too many
    assert len(texts(browser, "#results del")) > 1000
    assert browser.problems == []


def test_one_system_without_references_has_a_page(browser: Browser, tmp_path: Path) -> None:
    testset = TestSet(systems={"only": ("one", "", "three")}, sources=("a", "b", "c"))
    values = np.array([0.1, np.nan, 0.3])
    scores = {"only": {"mine": mean_scores("mine", values, "Mine")}}
    path = tmp_path / "one.html"
    report_results(Evaluation(testset, ("only",), ("mine",), scores)).write(path)
    browser.open(path)
    assert count(browser) == "3 translations; showing 1 to 3"
    assert texts(browser, "#results td.number") == ["0.1000", "–", "0.3000"]
    button = "document.querySelector('[data-preset=human]')"
    assert browser.evaluate(f"{button}.ariaDisabled") == "true"
    browser.click("[data-preset=human]")
    assert "needs human scores: --human FILE" in texts(browser, "#notice")[0]
    assert texts(browser, "#needs-metrics") == ["needs two metrics: -m chrf ter"]
    assert browser.problems == []


def test_a_page_with_system_scores_only_has_no_segments(browser: Browser, tmp_path: Path) -> None:
    scores = {m: {"A": 1.0, "B": 2.0, "C": a} for m, a in (("one", 3.0), ("two", 0.0))}
    dataset = AlignedScores.align(
        "de-en", [], human_systems={"A": 0.1, "B": 0.2, "C": 0.3}, system_scores=scores
    )
    task = Task(sets=("de-en",), level="system", resamples=0)
    path = tmp_path / "systems.html"
    study = AgreementStudy(
        results=MetaEvaluation([dataset]).run([task]),
        sets=(dataset,),
        human_data={},
        statistics=("pearson",),
        level="system",
    )
    report_meta_evaluation(study).write(path)
    browser.open(path)
    assert "no segments" in texts(browser, "#loading")[0]
    assert len(texts(browser, "#charts figure")) == 2
    assert browser.problems == []


def test_thirty_thousand_translations_stay_usable(browser: Browser, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    words = np.array([f"word{n}" for n in range(500)])
    lines = [" ".join(rng.choice(words, 12)) for _ in range(3000)]
    names = [f"system-{n}" for n in range(10)]
    testset = TestSet(
        systems={name: [f"{line} {name}" for line in lines] for name in names},
        references=[(line,) for line in lines],
    )
    scores = {
        name: {m: mean_scores(m, rng.random(3000), m) for m in ("one", "two")} for name in names
    }
    path = tmp_path / "many.html"
    report_results(Evaluation(testset, tuple(names), ("one", "two"), scores)).write(path)
    assert path.stat().st_size < 3_000_000
    browser.open(path)
    browser.click('[data-preset="metrics"]')
    assert count(browser) == "30,000 translations; showing 1 to 50"
    assert browser.evaluate("document.querySelectorAll('#results tbody tr.inputs').length") == 50
    browser.click("#next")
    assert count(browser).endswith("51 to 100")
    browser.choose("#page", "600")
    assert count(browser).endswith("29,951 to 30,000")
    assert browser.evaluate("document.querySelector('#next').disabled") is True
    assert browser.problems == []
