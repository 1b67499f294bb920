"""The report page in a real browser: no errors, and every control works."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.mean_scores import mean_scores
from tests.output.chromium import Browser

from tertium.data.testset import TestSet
from tertium.evaluation.comparison import compare
from tertium.evaluation.scoring import score
from tertium.evaluation.system_scores import Evaluation
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.metric_agreement import MetaEvaluation
from tertium.meta.tasks import Task
from tertium.output.page.report import Report, report_meta_evaluation, report_results
from tertium.studies.meta_evaluation import AgreementStudy

TAB, ENTER = 9, 13
WHITE, BLACK = "rgb(255, 255, 255)", "rgb(17, 17, 17)"
VALUES = "#results tbody > tr:nth-child(2) > td:last-child"  # the last column of the segments


@pytest.fixture
def browser(browser):
    """Return a browser whose page must have no error when the test ends."""
    yield browser
    assert browser.problems == []


@pytest.fixture
def opened(browser, page):
    browser.open(page)
    return browser


def open_report(browser: Browser, report: Report, folder: Path) -> Path:
    path = folder / "report.html"
    report.write(path)
    browser.open(path)
    return path


def texts(browser: Browser, selector: str) -> list[str]:
    actual = browser.evaluate(
        f"[...document.querySelectorAll({json.dumps(selector)})].map((n) => n.textContent)"
    )
    return list(actual)


def read(browser: Browser, selector: str, attribute: str) -> object:
    """Return an attribute of the first element that matches."""
    return browser.evaluate(f"document.querySelector({json.dumps(selector)}).{attribute}")


def style(browser: Browser, selector: str, name: str) -> str:
    element = f"document.querySelector({json.dumps(selector)})"
    return str(browser.evaluate(f"getComputedStyle({element}).{name}"))


def labels(browser: Browser) -> list[str]:
    """Return the numbers of the visible segments in order."""
    actual = texts(browser, "#results tbody > tr.inputs > th")
    return [hit[1] for text in actual if (hit := re.match(r"# (\d+)", text))]


def count(browser: Browser) -> str:
    return texts(browser, "#count")[0]


def contrast(first: str, second: str) -> float:
    def light(color: str) -> float:
        values = [int(part) / 255 for part in color.removeprefix("rgb(").rstrip(")").split(",")]
        linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]
        return float(np.dot([0.2126, 0.7152, 0.0722], linear))

    low, high = sorted([light(first), light(second)])
    return (high + 0.05) / (low + 0.05)


def test_the_page_loads_and_shows_the_first_segments(opened):
    assert texts(opened, "h1") == ["Example"]
    sections = ["Ranking of systems", "Agreement with human scores", "Charts", "Segments"]
    assert texts(opened, "h2") == ["Overview", *sections]
    assert count(opened) == "48 segments; showing 1 to 48"
    assert opened.evaluate("document.querySelector('#loading')") is None


def test_search_finds_words_in_all_texts(opened, example):
    opened.choose("#query", "WPA3")
    opened.wait("!document.querySelector('#count').textContent.startsWith('48 ')")
    columns = [example.systems["good"], example.systems["poor"], example.sources]
    rows = zip(*columns, example.references, strict=True)
    hits = ["wpa3" in " ".join([*row[:3], *row[3]]).lower() for row in rows]
    assert count(opened).startswith(f"{sum(hits)} segment")
    assert set(texts(opened, "#results mark")) == {"WPA3"}
    opened.choose("#query", "no such words at all")
    opened.wait("document.querySelector('.empty')")
    assert count(opened).startswith("No matches")


def test_headers_sort_and_report_the_order(opened, example):
    good = score(example, "chrf").scores["good"]["chrf"].segments.round(2)
    opened.choose("#metric", "1")
    header = '#results [data-sort="left-1"]'
    for values, order in ((-good, "descending"), (good, "ascending")):
        opened.click(header)
        assert labels(opened) == [str(n + 1) for n in np.argsort(values, kind="stable")]
        assert read(opened, header, "parentNode.ariaSort") == order


def test_filters_select_matching_segments(opened, example):
    chrf = score(example, "chrf")
    good, poor = (chrf.scores[s]["chrf"].segments.round(2) for s in ("good", "poor"))
    opened.choose("#metric", "1")
    opened.choose("#min-gap", "40")
    assert count(opened).startswith(f"{int((np.abs(good - poor).round(2) >= 40).sum())} segments")
    opened.choose("#min-gap", "")
    lengths = np.array([len(text.split()) for text in example.systems["good"]])
    opened.choose("#min-length", "12")
    opened.choose("#max-length", "15")
    assert count(opened).startswith(f"{int(((lengths >= 12) & (lengths <= 15)).sum())} segments")
    opened.choose("#min-length", "")
    opened.choose("#max-length", "")
    opened.choose("#document", "0")
    assert count(opened).startswith(f"{example.documents.count(example.documents[0])} segments")
    opened.choose("#document", "-1")
    opened.choose("#warning", "0")
    assert labels(opened) == ["24"]  # the empty output of poor
    assert texts(opened, "#results .badge")[0] == "empty hypothesis"


def test_a_minimum_difference_includes_equal_values(browser, tmp_path):
    """0.3 - 0.2 is not 0.1 in binary, but is displayed as 0.1."""
    testset = TestSet(systems={"a": ("x", "y", "z"), "b": ("x", "y", "z")})
    values = {"a": [0.3, 0.3, np.nan], "b": [0.2, 0.2001, 0.1]}
    scores = {s: {"m": mean_scores("m", np.array(own), "m")} for s, own in values.items()}
    open_report(browser, report_results(Evaluation(testset, ("a", "b"), ("m",), scores)), tmp_path)
    assert texts(browser, VALUES) == ["▲ 0.1000", "▲ 0.0999", "–"]
    browser.choose("#min-gap", "0.1")
    assert texts(browser, VALUES) == ["▲ 0.1000"]


def test_filters_are_counted_shown_and_cleared(opened):
    assert opened.evaluate("$('clear').hidden") is True
    opened.click('[data-preset="warnings"]')
    assert texts(opened, "#more-title") == ["More filters (1 active)"]
    assert opened.evaluate("$('more').open") is True
    opened.choose("#query", "no such words at all")
    opened.wait("document.querySelector('.empty button')")
    assert texts(opened, "[aria-pressed=true]") == []
    opened.click(".empty button")
    assert count(opened).startswith("144 translations")
    assert texts(opened, "#more-title") == ["More filters"]
    assert opened.evaluate("document.activeElement.id") == "query"


def test_invalid_selections_are_reset(opened):
    opened.choose("#sort", "difference")
    opened.choose("#right", "-2")
    assert opened.evaluate("$('sort').value") == "number"
    opened.choose("#left", "1")
    opened.choose("#right", "2")
    opened.choose("#left", "2")  # a system compared with itself
    assert opened.evaluate("$('right').value") == "-2"


def test_a_link_to_a_segment_opens_it_or_reports_that_it_is_missing(opened):
    opened.evaluate("location.hash = '#segment-14'")
    opened.wait("document.querySelector('#results .details')")
    assert opened.evaluate("document.activeElement.closest('th').textContent").startswith("# 14")
    opened.evaluate("location.hash = '#segment-999'")
    opened.wait("$('notice').textContent")
    assert texts(opened, "#notice") == ["This page has no segment 999."]
    opened.evaluate("history.replaceState(null, '', location.pathname)")


def test_two_systems_are_compared_side_by_side(opened):
    opened.choose("#left", "1")
    opened.choose("#right", "2")
    row = "#results tbody:nth-of-type(4) "
    left, right = texts(opened, f"{row} .output")
    assert left == "Does the kilo cost today really only 1.80 Euro?"
    assert texts(opened, f"{row} del") == ["Does", "cost", "1.80"]
    assert texts(opened, f"{row} ins") == ["Costs", "8.10"]
    assert right.startswith("Costs the kilo today really only 8.10")
    assert texts(opened, "#results thead th")[3:] == ["fair: BLEU ↑", "poor: BLEU ↑", "difference"]
    legend = ["only in fair", "only in poor", "▲ fair better", "▼ poor better"]
    assert texts(opened, "#legend > *") == legend
    opened.choose("#page", "1.5")
    opened.click("#show-differences")
    assert texts(opened, "#legend > *") == legend[2:]
    assert texts(opened, "#results del") == []


def test_warnings_are_shown_at_their_translation(opened):
    opened.choose("#left", "1")
    opened.choose("#right", "2")
    opened.choose("#warning", "0")
    assert texts(opened, "#results .badge") == ["empty hypothesis"]
    assert texts(opened, "#results .output:has(.badge) .text") == [""], "not that of fair"


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


def test_words_that_differ_are_marked_in_runs(opened):
    run = "markDifferences({}, {}, {}).filter((part) => part.nodeName)"
    run += ".map((part) => part.textContent)"
    for first, second, gone, new in DIFFERENCES:
        a, b = json.dumps(first), json.dumps(second)
        assert opened.evaluate(run.format(a, b, '"del"')) == gone, first
        assert opened.evaluate(run.format(b, a, '"ins"')) == new, second


def test_search_ignores_case_and_accents(opened):
    run = "{ $('query').value = %s; state.terms = parseTerms(); highlightTerms(%s).filter("
    run += "(part) => part.nodeName).map((part) => part.textContent) }"
    for query, text, actual in SEARCHES:
        assert opened.evaluate(run % (json.dumps(query), json.dumps(text))) == actual, query


@pytest.mark.parametrize(
    ("preset", "sort", "rows"),
    [
        ("metrics", "metricDisagreement", "144 translations"),
        ("human", "humanDisagreement", "120 translations"),  # 40 segments of 3 systems
        ("systems", "gap", "48 segments"),
    ],
)
def test_presets_are_one_click_away(opened, preset, sort, rows):
    opened.click(f'[data-preset="{preset}"]')
    assert read(opened, "#sort", "value") == sort
    assert read(opened, f'[data-preset="{preset}"]', "ariaPressed") == "true"
    assert count(opened).startswith(rows)


@pytest.mark.parametrize(
    ("preset", "description"),
    [
        ("metric", "between the highest and lowest metric rank"),
        ("human", "minus human rank"),
    ],
)
def test_the_largest_disagreement_comes_first_with_its_size(opened, preset, description):
    opened.click(f'[data-preset^="{preset}"]')
    head = f"#results [data-sort={preset}Disagreement]"
    assert texts(opened, head) == ["disagreement"]
    assert read(opened, head, "parentNode.ariaSort") == "descending"
    actual = texts(opened, VALUES)
    sizes = [abs(int(text.rstrip(" %").replace("−", "-"))) for text in actual]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1] > 0
    opened.click("#results .expand")
    line = next(t for t in texts(opened, "#results .details tbody tr") if description in t)
    assert line.endswith(actual[0])
    opened.click(head)
    assert read(opened, head, "parentNode.ariaSort") == "ascending"


def test_explanations_are_loaded_on_demand(opened):
    opened.click('[data-preset="explanations"]')
    assert labels(opened) == ["4"]
    opened.click("#results tbody:nth-of-type(1) .expand")
    assert texts(opened, "#results .details summary") == ["BERTScore · fair", "WMD · fair"]
    assert texts(opened, "#results table.heat") == []
    for place in (1, 2):
        opened.click(f"#results .details details:nth-of-type({place}) summary")
    opened.wait("document.querySelectorAll('#results table.heat').length == 4")  # two references
    assert len(texts(opened, "#results td.framed")) > 5
    assert style(opened, "#results td.h20", "backgroundColor") not in ("rgba(0, 0, 0, 0)", WHITE)


def test_clicking_a_dot_opens_its_translation(opened):
    dot = "document.querySelector('circle[data-row=\"41\"]')"  # segment 14, system poor
    opened.evaluate(f"{dot}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
    assert texts(opened, "#results .details caption") == ["All scores"]
    where = "document.activeElement.closest('th').textContent"
    assert opened.evaluate(where).startswith("# 14poor")


def test_tables_sort_and_keep_the_footer_below(opened):
    table = "#overview > .scroll table"
    opened.click(f"{table} thead th:nth-child(8) button")  # TER, descending first
    assert texts(opened, f"{table} tbody th")[0].startswith("poor")
    assert read(opened, f"{table} th:nth-child(8)", "ariaSort") == "descending"
    for _ in range(2):
        opened.click("#agreement-with-human-scores thead th:nth-child(2) button")
        rows = texts(opened, "#agreement-with-human-scores table:first-of-type tr > :first-child")
        assert rows[4] == "human scores"  # below the header and three metrics
        assert "human scores" not in rows[:4]


def test_the_theme_follows_the_system_and_the_button(opened):
    def paper() -> str:
        return style(opened, "body", "backgroundColor")

    assert paper() == WHITE
    opened.media(scheme="dark")
    dark = paper()
    assert dark != WHITE
    opened.click("#theme")
    assert paper() == WHITE  # light, whatever the system says
    opened.click("#theme")
    opened.media(scheme="light")
    assert paper() == dark
    opened.click("#theme")


def test_the_saved_theme_is_applied_before_the_body(opened, page):
    opened.evaluate("storedTheme('dark')")
    opened.open(page, ready="document.body && document.documentElement.dataset.theme === 'dark'")
    opened.wait("document.documentElement.dataset.ready")
    assert texts(opened, "#theme") == ["Theme: dark"]
    assert "setTheme(theme)" in texts(opened, "head script")[0]
    opened.evaluate("storedTheme('auto')")


COLORS = """["ink", "muted", "accent", "good", "bad", "fit", "edge"].map((name) => {
    const probe = document.createElement("p");
    probe.style.cssText = `color: var(--${name}); background: var(--raised)`;
    document.body.append(probe);
    const style = getComputedStyle(probe);
    const found = [name, style.color, style.backgroundColor];
    probe.remove();
    return found;
})"""
HEAT_COLORS = """(() => {
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_heat_maps_have_enough_contrast(opened, scheme):
    """WCAG AA: a contrast of 4.5 for ink, muted text, links and marks, of 3 for edges."""
    opened.media(scheme=scheme)
    for name, ink, paper in opened.evaluate(COLORS):
        assert contrast(ink, paper) >= (3 if name == "edge" else 4.5), name
    pairs = opened.evaluate(HEAT_COLORS)
    assert min(contrast(ink, paper) for ink, paper in pairs) >= 4.5
    assert len({paper for _, paper in pairs}) == 21


def test_the_keyboard_reaches_the_content_first(opened):
    opened.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    opened.press("Tab", TAB)
    assert opened.evaluate("document.activeElement.className") == "skip"
    outline = opened.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    opened.evaluate("document.querySelector('#results .expand').focus()")
    opened.press("Enter", ENTER)
    assert texts(opened, "#results .details caption") == ["All scores"]
    assert opened.evaluate("document.activeElement.ariaExpanded") == "true"


def test_a_screen_reader_finds_landmarks_names_and_headers(opened):
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
    assert texts(opened, "table:not(:has(caption)):not([aria-label] table)") == []


def test_no_width_makes_the_page_scroll_sideways(opened):
    for width in (320, 390, 768, 1280, 1920):
        opened.resize(width, 900)
        for preset in ("metrics", "systems"):
            opened.click(f'[data-preset="{preset}"]')
            if width < 721:  # where segments stand below each other, and their headers are hidden
                room = "(({scrollWidth, clientWidth}) => scrollWidth - clientWidth)"
                assert opened.evaluate(f"{room}(document.querySelector('#results'))") == 0
                focus = "(() => { const b = document.querySelector('#results thead button');"
                focus += "b.focus(); return document.activeElement === b; })()"
                assert opened.evaluate(focus) is False
            opened.click("#results .expand")
            assert read(opened, "html", "scrollWidth") <= width


def test_a_printed_page_is_light_complete_and_without_controls(opened):
    opened.evaluate("document.documentElement.dataset.theme = 'dark'")
    opened.media(scheme="dark", kind="print")
    assert style(opened, "#controls", "display") == "none"
    assert style(opened, "body", "backgroundColor") == WHITE
    assert contrast(style(opened, "body", "color"), WHITE) > 10
    assert contrast(style(opened, ".muted", "color"), WHITE) > 4.5
    opened.evaluate(
        "window.addEventListener('beforeprint', () => { window.open_ = "
        "document.querySelector('#overview details').open; })"
    )
    pdf = opened.send("Page.printToPDF", printBackground=True)["data"]
    assert len(pdf) > 50_000
    assert opened.evaluate("window.open_") is True  # the p-values
    assert read(opened, "#overview details", "open") is False


def test_a_fragment_follows_the_theme_of_its_notebook(browser, example, tmp_path):
    """Text is dark on a white notebook under a dark system theme, and light in a dark notebook."""
    path = write_notebook(tmp_path / "notebook.html", score(example, "chrf")._repr_html_())
    browser.media(scheme="dark")
    browser.open(path, ready="document.querySelector('.tertium')")
    assert contrast(style(browser, ".tertium .note", "color"), WHITE) > 4.5
    browser.evaluate("document.body.setAttribute('data-jp-theme-light', 'false')")
    assert contrast(style(browser, ".tertium .note", "color"), BLACK) > 4.5


def write_notebook(path: Path, *outputs: str) -> Path:
    content = "<!doctype html><meta charset=utf-8><body>" + "".join(outputs)
    path.write_text(content, encoding="utf-8")
    return path


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


def test_hostile_texts_are_shown_and_never_run(browser, tmp_path):
    systems = {"<b>bold</b>": HOSTILE, 'quote"s & </script>': HOSTILE[::-1]}
    testset = TestSet(
        systems=systems,
        references=tuple((text, f"{text} again") for text in HOSTILE),
        sources=HOSTILE,
        documents=tuple(f"<i>{n % 2}</i>" for n in range(len(HOSTILE))),
    )
    results = compare(testset, ["chrf", "bleu"], resamples=50)
    open_report(browser, report_results(results, title=HOSTILE[1]), tmp_path)
    assert texts(browser, "h1") == [HOSTILE[1]]
    assert browser.evaluate("typeof window.hacked") == "undefined"
    for place, outputs in enumerate(systems.values()):
        browser.choose("#left", str(place))
        browser.choose("#right", "-2")
        browser.click("#results .expand")
        assert texts(browser, "#results td.output .text") == list(outputs)
    assert browser.evaluate("typeof window.hacked") == "undefined"
    assert texts(browser, "#results script, #results img, #results i, h1 script") == []
    browser.choose("#left", "0")
    hebrew = "document.querySelectorAll('#results td.output .text')[4]"
    assert browser.evaluate(f"getComputedStyle({hebrew}).direction") == "rtl"


def test_a_long_line_is_compared_and_does_not_stretch_the_page(browser, tmp_path):
    words = [f"w{n}" for n in range(2000)]
    line, shorter = " ".join(words), " ".join(words[:1000] + words[1001:])
    testset = TestSet(systems={"a": (line,), "b": (shorter,)}, references=((line,),))
    open_report(browser, report_results(compare(testset, ["chrf"], resamples=5)), tmp_path)
    assert texts(browser, "#results del") == ["w1000"]
    assert texts(browser, "#results ins") == []
    assert read(browser, "#results tbody", "offsetHeight") < 700
    boxes = "[...document.querySelectorAll('#results .text')].map((box) => box.ariaLabel)"
    assert browser.evaluate(boxes) == ["reference of segment 1", "a, segment 1", "b, segment 1"]
    assert read(browser, "#results .text", "tabIndex") == 0


def test_one_system_without_references_has_a_page(browser, tmp_path):
    testset = TestSet(systems={"only": ("one", "", "three")}, sources=("a", "b", "c"))
    scores = {"only": {"mine": mean_scores("mine", np.array([0.1, np.nan, 0.3]), "Mine")}}
    report = report_results(Evaluation(testset, ("only",), ("mine",), scores))
    open_report(browser, report, tmp_path)
    assert count(browser) == "3 translations; showing 1 to 3"
    assert texts(browser, "#results td.number") == ["0.1000", "–", "0.3000"]
    assert read(browser, "[data-preset=human]", "ariaDisabled") == "true"
    browser.click("[data-preset=human]")
    assert "needs human scores: --human FILE" in texts(browser, "#notice")[0]
    assert texts(browser, "#needs-metrics") == ["needs two metrics: -m chrf ter"]


def test_a_page_with_system_scores_only_has_no_segments(browser, tmp_path):
    scores = {m: {"A": 1.0, "B": 2.0, "C": a} for m, a in (("one", 3.0), ("two", 0.0))}
    human = {"A": 0.1, "B": 0.2, "C": 0.3}
    dataset = AlignedScores.align("de-en", [], human_systems=human, system_scores=scores)
    task = Task(sets=("de-en",), level="system", resamples=0)
    study = AgreementStudy(
        results=MetaEvaluation([dataset]).run([task]),
        sets=(dataset,),
        human_data={},
        statistics=("pearson",),
        level="system",
    )
    open_report(browser, report_meta_evaluation(study), tmp_path)
    assert "no segments" in texts(browser, "#loading")[0]
    assert len(texts(browser, "#charts figure")) == 2


def test_thirty_thousand_translations_stay_usable(browser, tmp_path):
    rng = np.random.default_rng(5)
    words = np.array([f"word{n}" for n in range(500)])
    lines = [" ".join(rng.choice(words, 12)) for _ in range(3000)]
    names = [f"system-{n}" for n in range(10)]
    systems = {name: [f"{line} {name}" for line in lines] for name in names}
    testset = TestSet(systems=systems, references=[(line,) for line in lines])
    scores = {s: {m: mean_scores(m, rng.random(3000), m) for m in ("one", "two")} for s in names}
    report = report_results(Evaluation(testset, tuple(names), ("one", "two"), scores))
    assert open_report(browser, report, tmp_path).stat().st_size < 3_000_000
    browser.click('[data-preset="metrics"]')
    assert count(browser) == "30,000 translations; showing 1 to 50"
    assert len(texts(browser, "#results tbody tr.inputs")) == 50
    browser.click("#next")
    assert count(browser).endswith("51 to 100")
    browser.choose("#page", "600")
    assert count(browser).endswith("29,951 to 30,000")
    assert read(browser, "#next", "disabled") is True
