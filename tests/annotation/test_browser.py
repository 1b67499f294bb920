"""The rater's page in a real browser: by keyboard, mouse and touch, offline and after a reload."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx2 as httpx
import numpy as np
import pytest
from tests.annotation.running_server import (
    EMOJI,
    FAMILY,
    RunningServer,
    fill_disk,
    make_campaign,
    submit_score,
    with_context_and_suspicions,
)
from tests.output.chromium import Browser

from tertium.people.annotation_store import MANAGER, Event
from tertium.people.campaign import Campaign
from tertium.people.rater_answers import RaterAnswer

TAB, ENTER, LEFT, RIGHT, HOME, END, DELETE = 9, 13, 37, 39, 36, 35, 46
CTRL, SHIFT = 2, 8
SAVED = "document.querySelector('#saved').className === 'ok'"
TEXT = ".output .markable"

Serve = Callable[[Campaign], RunningServer]


def open_page(browser: Browser, server: RunningServer, person: str = "anna") -> None:
    """Open the page of a person without answers and close the help, by keyboard."""
    browser.allowed_host = server.address
    browser.open(server.link(person))
    if browser.evaluate("document.querySelector('#dialog').open"):
        browser.press("Escape", 27)
        browser.wait("!document.querySelector('#dialog').open")


def tab_to(browser: Browser, selector: str) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(30):
        if browser.evaluate(f"document.activeElement.matches({json.dumps(selector)})"):
            return
        browser.press("Tab", TAB)
    raise AssertionError(f"Tab does not reach {selector}")


def press_times(browser: Browser, key: str, code: int, count: int, modifiers: int = 0) -> None:
    for _ in range(count):
        browser.press(key, code, modifiers=modifiers)


def content(browser: Browser, selector: str) -> str:
    return str(browser.evaluate(f"document.querySelector({json.dumps(selector)})?.textContent"))


def draft(server: RunningServer, task: int = 0, person: str = "anna") -> dict[str, Any]:
    """Return what the server has stored of a task."""
    state = server.session.state.raters[person].states[task]
    [output, *_] = state.outputs
    marks = [(m["start"], m["end"], m["severity"]) for m in output.get("marks", ())]
    return {"status": state.status, "score": output.get("score"), "marks": marks}


def answers(server: RunningServer) -> list[RaterAnswer]:
    return server.session.state.answers()


def test_esa_by_keyboard_alone(browser: Browser, serve: Serve) -> None:
    server = serve(make_campaign("esa"))
    open_page(browser, server)
    tab_to(browser, TEXT)
    press_times(browser, "ArrowRight", RIGHT, 8)
    press_times(browser, "ArrowRight", RIGHT, 7, SHIFT)
    browser.press("2", 50)  # at once, before the browser reports the selection
    press_times(browser, "End", END, 1)
    press_times(browser, "ArrowLeft", LEFT, 5, SHIFT)
    browser.press("1", 49)
    browser.press("Delete", DELETE)  # removes the mark at the cursor
    browser.press("z", 90, modifiers=CTRL)
    assert content(browser, "#announcement") == "Undone"
    tab_to(browser, "input[type=range]")
    press_times(browser, "PageUp", 33, 2)
    press_times(browser, "ArrowRight", RIGHT, 1)
    browser.press("Enter", ENTER, modifiers=CTRL)
    browser.wait("document.querySelector('h2').textContent === 'Task 2'")
    browser.wait(SAVED)
    [answer] = answers(server)
    assert answer.score == 71
    spans = [(span.of(EMOJI), span.severity) for span in answer.spans]
    assert spans == [("🐶 barks", "major"), ("loud.", "minor")]
    assert browser.problems == []


def test_offsets_count_code_points_and_never_cut_a_character(
    browser: Browser, serve: Serve
) -> None:
    server = serve(make_campaign("esa", texts=(("Eine Familie.", FAMILY),)))
    open_page(browser, server)
    tab_to(browser, TEXT)
    press_times(browser, "ArrowRight", RIGHT, 2)
    press_times(browser, "ArrowRight", RIGHT, 1, SHIFT)
    browser.press("2", 50)
    # half a combining sequence, and half a surrogate pair
    for text_part, unit in (("i\u0301", 1), ("👧", 1)):
        start = len(FAMILY[: FAMILY.index(text_part)].encode("utf-16-le")) // 2 + unit
        browser.evaluate(
            f"(() => {{ const box = document.querySelector('{TEXT}'); let left = {start};"
            "const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);"
            "let node = walker.nextNode();"
            "while (left >= node.length) { left -= node.length; node = walker.nextNode(); }"
            "getSelection().setBaseAndExtent(node, left, node, left + 1); })()"
        )
        browser.press("1", 49)
    browser.wait(SAVED)
    marks = draft(server)["marks"]
    parts = [FAMILY[start:end] for start, end, _ in marks]
    assert parts == ["👩‍👩‍👧", "i\u0301", "👩‍👩‍👧"]
    assert marks[0] == (2, 7, "major")
    assert content(browser, TEXT) == FAMILY


def test_offsets_agree_with_python(browser: Browser, serve: Serve) -> None:
    """Of random strings with characters of one to several UTF-16 units and code points."""
    browser.allowed_host = (server := serve(make_campaign("da"))).address
    browser.open(server.address)
    generator = np.random.default_rng(1)
    pieces = ["a", " ", "é", "e\u0301", "中", "🐶", "👩‍👩‍👧", "🇩🇪", "\u200f", "ש", "𝒳", "क्षि"]
    texts = ["".join(generator.choice(pieces, 12)) for _ in range(50)]
    actual = browser.evaluate(
        "import('/static/offsets.js').then(({TextIndex}) => "
        f"{json.dumps(texts)}.map((text) => {{ const index = new TextIndex(text, 'en');"
        "return [index.length, Array.from({length: index.length}, (_, n) => index.slice(n, n + 1)),"
        "index.units.map((unit) => index.toPoint(unit))]; }))"
    )
    for text, (length, characters, points) in zip(texts, actual, strict=True):
        assert (length, characters) == (len(text), [*text])
        assert points == [*range(len(text) + 1)]


def test_idle_time_is_not_counted(browser: Browser, serve: Serve) -> None:
    browser.allowed_host = (server := serve(make_campaign("da"))).address
    browser.open(server.address)
    steps = (
        "let now = 0; const clock = new WorkClock(() => now); const times = [];"
        "clock.start(); now = 10_000; times.push(clock.take());"
        "now += 3_600_000; times.push(clock.take());"  # an hour without an action
        "now += 5_000; clock.stop(); now += 50_000; clock.start(); now += 1_000;"
        "times.push(clock.take()); return times;"
    )
    script = f"import('/static/clock.js').then(({{WorkClock}}) => {{ {steps} }})"
    assert browser.evaluate(script) == [10_000, 30_000, 6_000]


def test_the_text_cannot_be_edited(browser: Browser, serve: Serve) -> None:
    open_page(browser, serve(make_campaign("esa")))
    tab_to(browser, TEXT)
    for key, code in (("x", 88), ("Backspace", 8), ("Enter", ENTER), (" ", 32)):
        browser.press(key, code)
    browser.send("Input.insertText", text="新しい")
    assert content(browser, TEXT) == EMOJI


def point_of(browser: Browser, word: str) -> tuple[float, float]:
    """Return the middle of a word in the translation, in pixels."""
    place = browser.evaluate(
        f"(() => {{ const node = document.querySelector('{TEXT}').firstChild;"
        f"const start = node.data.indexOf({json.dumps(word)}); const range = new Range();"
        f"range.setStart(node, start); range.setEnd(node, start + {len(word)});"
        "const box = range.getBoundingClientRect();"
        "return [box.left, box.right, box.top + box.height / 2]; })()"
    )
    return (place[0] + place[1]) / 2, place[2]


def test_marks_by_touch_and_mouse(browser: Browser, serve: Serve) -> None:
    server = serve(make_campaign("esa", texts=(("Der Hund.", "The dog barks loud."),)))
    open_page(browser, server)
    for word in ("dog", "barks"):
        x, y = point_of(browser, word)
        point = {"x": x, "y": y}
        browser.send("Input.dispatchTouchEvent", type="touchStart", touchPoints=[point])
        browser.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        browser.wait(f"getSelection().toString().endsWith('{word}')")
    browser.click(f"{TEXT} ~ .row .severity.major")
    browser.wait("document.querySelector('.mark.major')?.textContent === 'dog barks'")
    browser.click(".mark-row .remove")
    (x, y), (end, _) = point_of(browser, "loud"), point_of(browser, ".")
    for kind, place in (("mousePressed", x), ("mouseMoved", end), ("mouseReleased", end)):
        browser.send(
            "Input.dispatchMouseEvent", type=kind, x=place, y=y, button="left", clickCount=1
        )
    browser.wait("getSelection().toString().length > 1")
    browser.click(f"{TEXT} ~ .row .severity.minor")
    browser.choose(".mark-row select", "major")
    browser.wait(SAVED)
    [(start, end_point, severity)] = draft(server)["marks"]
    assert (end_point, severity) == (19, "major")
    assert 14 <= start <= 17


def test_answers_wait_in_the_page_while_offline(browser: Browser, serve: Serve) -> None:
    server = serve(make_campaign("da"))
    open_page(browser, server)
    browser.wait(SAVED)
    network = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    browser.send("Network.emulateNetworkConditions", offline=True, **network)
    for score in ("40", "50"):
        browser.choose("input[type=range]", score)
        browser.click("#submit")
    browser.wait("document.querySelector('#saved').textContent.startsWith('No connection')")
    assert answers(server) == []
    assert browser.evaluate("Object.keys(localStorage).filter((k) => k[7] === '/').length") >= 4
    browser.send("Network.emulateNetworkConditions", offline=False, **network)
    browser.wait(SAVED)
    assert [answer.score for answer in answers(server)] == [40, 50]
    ids = [event.id for event in server.session.store.events()]
    assert len(ids) == len({*ids})


def test_reload_and_back_keep_everything(browser: Browser, serve: Serve) -> None:
    server = serve(make_campaign("da"))
    open_page(browser, server)
    browser.choose("input[type=range]", "33")
    browser.click("#submit")
    browser.choose("input[type=range]", "44")
    browser.evaluate("document.querySelector('textarea').value = 'typed'")  # and not yet left
    browser.evaluate("window.isOld = true")
    browser.send("Page.reload")
    browser.wait("!window.isOld && document.querySelector('textarea')?.value === 'typed'")
    assert content(browser, "h2") == "Task 2"
    assert content(browser, ".score-value") == "44"
    browser.wait(SAVED)
    browser.evaluate("history.back()")
    browser.wait("document.querySelector('h2').textContent === 'Task 1'")
    assert content(browser, ".score-value") == "33"
    browser.choose("input[type=range]", "35")
    browser.wait(SAVED)
    assert [(a.item, a.score) for a in answers(server)] == [("i0", 35)]
    assert draft(server, 1)["status"] == "open"


def test_a_second_tab_shows_the_newest_answer(browser: Browser, serve: Serve) -> None:
    server = serve(make_campaign("da"))
    open_page(browser, server)
    browser.wait(SAVED)
    headers = {"Authorization": f"Bearer {server.tokens['anna']}"}
    body = {"events": [submit_score(0, 77)]}
    httpx.post(f"{server.address}api/events", json=body, headers=headers, trust_env=False)
    browser.evaluate("window.dispatchEvent(new Event('focus'))")
    browser.wait("document.querySelector('.score-value').textContent === '77'")


def test_a_full_disk_keeps_the_answer_in_the_page(browser: Browser, serve: Serve) -> None:
    server = serve(make_campaign("da"))
    open_page(browser, server)
    browser.wait(SAVED)
    fill_disk(server.session.store)
    browser.evaluate("document.querySelector('textarea').value = 'x'.repeat(19000)")
    browser.choose("input[type=range]", "60")
    browser.click("#submit")
    browser.wait("document.querySelector('#saved').textContent.includes('disk is full')")
    server.session.store._database.execute("PRAGMA max_page_count = 1000000")
    browser.wait(SAVED)
    assert [answer.score for answer in answers(server)] == [60]


def test_skip_break_and_the_end(browser: Browser, serve: Serve) -> None:
    server = serve(make_campaign("da", texts=(("Eins.", "One."), ("Zwei.", "Two."))))
    open_page(browser, server)
    browser.click("#submit")
    assert content(browser, "#problem") == "Translation: give a score first"
    browser.click("#break")
    browser.press("Escape", 27)
    browser.wait("!document.querySelector('#dialog').open")
    browser.click("#skip-task")
    browser.choose("#skip-more", "typo")
    browser.evaluate("document.querySelectorAll('#dialog .primary')[0].click()")
    browser.choose("input[type=range]", "90")
    browser.click("#submit")
    browser.wait("document.querySelector('h2').textContent === 'All tasks are done'")
    browser.wait(SAVED)
    [scored] = answers(server)
    expected = "I do not know this language or subject well enough: typo"
    assert (server.session.state.raters["anna"].states[0].reason, scored.score) == (expected, 90)
    kinds = [event.body["kind"] for event in server.session.store.events()]
    assert {"open", "break", "resume", "skip", "change", "submit", "leave"} == {*kinds}


def test_mqm_asks_for_categories(browser: Browser, serve: Serve) -> None:
    server = serve(make_campaign("mqm"))
    open_page(browser, server)
    tab_to(browser, ".block:not(.output) .markable")
    press_times(browser, "ArrowRight", RIGHT, 3, SHIFT)
    browser.press("3", 51)
    browser.wait("document.activeElement.tagName === 'SELECT'")  # the category
    browser.click("#submit")
    assert content(browser, "#problem") == "Translation: choose a category for every mark"
    browser.choose(".mark-row select:last-of-type", "Accuracy/Omission")
    browser.click("button.missing")
    browser.choose(".mark-row:last-of-type select:last-of-type", "Other")
    browser.click("#submit")
    browser.wait("document.querySelector('h2').textContent === 'Task 2'")
    browser.wait(SAVED)
    [answer] = answers(server)
    [span] = answer.spans
    assert (span.side, span.start, span.end) == ("source", 0, 3)
    assert (span.severity, span.category) == ("critical", "Accuracy/Omission")
    assert [error.category for error in answer.missing] == ["Other"]


@pytest.mark.slow
def test_ranking_and_post_editing(browser: Browser, serve: Serve) -> None:
    server = serve(make_campaign("ranking"))
    open_page(browser, server)
    browser.click(".output:nth-of-type(1) input[value='2']")
    browser.click("#submit")
    assert content(browser, "#problem") == "Translation B: give a rank first"
    browser.click(".output:nth-of-type(2) input[value='1']")
    browser.click("#submit")
    browser.wait(SAVED)
    assert [(a.system, a.rank) for a in answers(server)] == [("beta", 2), ("alpha", 1)]
    server = serve(make_campaign("post-edit"))
    open_page(browser, server)
    browser.choose(".edit textarea", "The dog 🐶 barks loudly.")
    assert content(browser, ".edit .note") == "Changes: 1; words: 5"
    browser.click("#submit")
    browser.click("#submit")  # nothing to correct
    browser.wait(SAVED)
    assert [a.edited for a in answers(server)] == ["The dog 🐶 barks loudly.", FAMILY]


@pytest.mark.slow
def test_suspicions_context_and_glossary_are_shown(browser: Browser, serve: Serve) -> None:
    server = serve(with_context_and_suspicions(make_campaign("esa")))
    open_page(browser, server)
    assert content(browser, ".mark.suspected") == "🐶"
    assert content(browser, ".context .text:last-child") == "Before."
    browser.choose("input[type=range]", "50")
    browser.click("#submit")
    browser.wait(SAVED)
    assert [span.message for span in answers(server)[0].spans] == ["prefilled by tertium-multi"]
    browser.choose("input[type=range]", "50")
    browser.click("#submit")
    assert content(browser, ".glossary dl") == "KommissionCommission"


@pytest.mark.slow
def test_languages_and_directions(browser: Browser, serve: Serve) -> None:
    campaign = make_campaign("da", target_language="ar")
    open_page(browser, serve(campaign))
    assert browser.evaluate("document.querySelector('.output .text').dir") == "rtl"
    browser.choose("#language", "ar")
    browser.wait("document.documentElement.dir === 'rtl'")
    assert content(browser, "#submit") == "حفظ ومتابعة"
    assert browser.evaluate("document.querySelector('.block .text').dir") == "ltr"
    browser.choose("#language", "en")
    browser.wait("document.documentElement.dir === 'ltr'")


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 360])
def test_nothing_is_wider_than_the_window(browser: Browser, serve: Serve, width: int) -> None:
    campaign = make_campaign("contrastive-esa")
    long = replace(campaign.items[0], source="x" * 300)
    server = serve(replace(campaign, id="", items=(long, *campaign.items[1:])))
    browser.resize(width, 800)
    open_page(browser, server)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    browser.open(server.link(MANAGER))
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
def test_the_manager_page_shows_progress_and_acts(browser: Browser, serve: Serve) -> None:
    server = serve(make_campaign("da"))
    browser.allowed_host = server.address
    browser.open(server.link(MANAGER))
    browser.wait("document.querySelector('#raters tbody tr')")
    assert content(browser, "#raters tbody tr") == "anna0 / 40–not started–––"
    browser.click("#stop")
    browser.click("#dialog .primary")
    browser.wait("document.querySelector('#stop').textContent === 'Reopen'")
    browser.open(server.link("anna"))
    assert content(browser, "h2") == "This campaign is closed"


def test_an_open_page_learns_that_the_campaign_is_closed(browser: Browser, serve: Serve) -> None:
    server = serve(make_campaign("da"))
    open_page(browser, server)
    server.session.store.append([Event("0" * 32, MANAGER, {"kind": "stop"})])
    browser.choose("input[type=range]", "10")
    browser.wait("document.querySelector('h2').textContent === 'This campaign is closed'")
    assert draft(server)["score"] == 10  # the action was not lost


@pytest.mark.parametrize(
    ("fragment", "message"),
    [("", "The link is incomplete"), ("#wrong", "this link is not valid")],
)
def test_bad_links_are_explained(
    browser: Browser, serve: Serve, fragment: str, message: str
) -> None:
    server = serve(make_campaign("da"))
    browser.allowed_host = server.address
    browser.open(server.address + fragment)
    assert message in content(browser, "#task")
