"""The files of the pages: complete translations, accessible, and fast with many raters."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx2 as httpx
import numpy as np
import pytest
from tests.annotation.running_server import (
    RunningServer,
    make_campaign,
    new_event,
    submit_score,
    with_context_and_suspicions,
)
from tests.annotation.test_browser import SAVED, TEXT, open_page
from tests.output.chromium import Browser

import tertium.people
from tertium.people.annotation_store import MANAGER
from tertium.people.campaign import PROTOCOLS, Campaign, write_campaign
from tertium.people.state import AnnotationSession, bind_socket

PAGE = Path(tertium.people.__file__).parent / "page"
ENGLISH = json.loads((PAGE / "languages" / "en.json").read_text(encoding="utf-8"))
RATERS = 50

Serve = Callable[[Campaign], RunningServer]


@pytest.mark.parametrize("code", ["de", "cs", "zh", "ar"])
def test_translations_are_complete(code: str) -> None:
    texts = json.loads((PAGE / "languages" / f"{code}.json").read_text(encoding="utf-8"))
    assert [*texts] == [*ENGLISH]
    for key, text in texts.items():
        assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", ENGLISH[key]))
        assert text.strip()


def test_every_text_of_the_page_has_a_translation() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in PAGE.glob("*.*"))
    used = {*re.findall(r'\btext\("([\w-]+)"', sources), *re.findall(r'data-text="(\w+)"', sources)}
    used |= {f"instructions-{protocol}" for protocol in PROTOCOLS}
    assert used <= {*ENGLISH}


def test_pages_load_nothing_from_elsewhere() -> None:
    for path in PAGE.rglob("*.*"):
        assert not re.search(r"https?://|//cdn|@import", path.read_text(encoding="utf-8")), path


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The accessibility checks of axe-core, from npm."""
    folder = tmp_path_factory.mktemp("axe")
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs npm")
    command = [npm, "pack", "axe-core@4"]
    if subprocess.run(command, cwd=folder, capture_output=True, timeout=120).returncode:
        pytest.skip("needs the network, to fetch axe-core")
    [archive] = folder.glob("*.tgz")
    with tarfile.open(archive) as opened:
        member = opened.extractfile("package/axe.min.js")
        assert member is not None
        return member.read().decode("utf-8")


def serious_findings(browser: Browser, axe: str) -> list[str]:
    browser.evaluate(f"{axe}; 0")
    found = browser.evaluate("axe.run().then((result) => result.violations)")
    return [
        f"{entry['id']}: {entry['nodes'][0]['html'][:200]}"
        for entry in found
        if entry["impact"] in ("serious", "critical")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_axe_has_no_serious_findings(
    browser: Browser, serve: Serve, axe: str, protocol: str, scheme: str
) -> None:
    server = serve(with_context_and_suspicions(make_campaign(protocol)))
    browser.media(scheme=scheme)
    browser.allowed_host = server.address
    browser.open(server.link("anna"))
    assert serious_findings(browser, axe) == []  # with the help
    open_page(browser, server)
    if protocol in ("esa", "mqm", "contrastive-esa"):
        browser.evaluate(f"document.querySelector('{TEXT}').focus()")
        for severity in ("1", "2"):
            browser.press("ArrowRight", 39)
            for _ in range(3):
                browser.press("ArrowRight", 39, modifiers=8)
            browser.press(severity, ord(severity))
            browser.evaluate(f"document.querySelector('{TEXT}').focus()")
    assert serious_findings(browser, axe) == []
    browser.click("#submit")
    browser.click("#skip-task")
    assert serious_findings(browser, axe) == []
    browser.open(server.link(MANAGER))
    assert serious_findings(browser, axe) == []


@pytest.mark.slow
def test_long_texts_with_many_marks_stay_smooth(browser: Browser, serve: Serve) -> None:
    """Prints the time to mark an error in a text of 400 words with 30 marks."""
    words = " ".join(f"word{n}" for n in range(400))
    server = serve(make_campaign("esa", texts=(("Quelle.", words),)))
    open_page(browser, server)
    times = browser.evaluate(
        f"(async () => {{ const box = document.querySelector('{TEXT}'); const times = [];"
        "box.focus();"
        "for (let n = 0; n < 31; n += 1) {"
        "  const start = performance.now();"
        "  getSelection().selectAllChildren(box);"
        "  const range = new Range(); const walker = document.createTreeWalker(box, 4);"
        "  let node = walker.nextNode();"
        "  for (let k = 0; k < 2 * n; k += 1) node = walker.nextNode();"
        "  const at = node.data.indexOf('word', 8);"
        "  getSelection().setBaseAndExtent(node, at, node, at + 4);"
        "  box.dispatchEvent(new KeyboardEvent('keydown', {key: '2', bubbles: true}));"
        "  await new Promise(requestAnimationFrame);"
        "  times.push(performance.now() - start); } return times; })()"
    )
    browser.wait(SAVED)
    print(f"\ntime of the last ten marks: {np.mean(times[-10:]):.1f} ms, with the next frame")
    assert len(server.session.state.raters["anna"].states[0].outputs[0]["marks"]) == 31


@pytest.mark.slow
def test_nothing_is_lost_when_the_server_is_killed(tmp_path: Path) -> None:
    """A client sends each event until it is confirmed, while the server is killed six times."""
    write_campaign(make_campaign("da"), tmp_path / "campaign.json")
    with bind_socket("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "tertium",
        "annotate",
        "campaign.json",
        "--listen",
        f"127.0.0.1:{port}",
    ]
    generator = np.random.default_rng(3)
    links: dict[str, str] = {}
    confirmed: list[str] = []
    waiting = [submit_score(n % 4, n % 100) for n in range(400)]
    for turn in range(7):
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        if turn == 0:
            links |= dict(process.stdout.readline().split() for _ in range(4))
        killer = threading.Timer(generator.uniform(0.05, 0.6), process.kill)
        headers = {"Authorization": f"Bearer {links['anna'].partition('#')[2]}"}
        with httpx.Client(headers=headers, timeout=20, trust_env=False) as client:
            while waiting and process.poll() is None:
                body = {"events": waiting[:3]}  # with those that may be stored already
                try:
                    response = client.post(f"http://127.0.0.1:{port}/api/events", json=body)
                except httpx.HTTPError:
                    time.sleep(0.01)
                    continue
                if turn < 6 and killer.ident is None:
                    killer.start()  # at some moment from now on
                saved = response.json()["saved"]
                confirmed += saved
                waiting = [event for event in waiting if event["id"] not in saved]
        killer.cancel()
        process.kill()
        process.wait()
    session = AnnotationSession(make_campaign("da"), tmp_path / "campaign.answers.db")
    stored = [event.id for event in session.store.events()]
    session.close()
    assert not waiting
    assert len(stored) == len({*stored}) == 400
    assert {*confirmed} == {*stored}


@pytest.mark.slow
def test_fifty_raters_at_once(tmp_path: Path) -> None:
    """Prints the response times of 50 raters who act once a second, on an idle machine."""
    names = tuple(f"r{n}" for n in range(RATERS))
    texts = tuple((f"Satz {n}. " * 8, f"Sentence {n}. " * 8) for n in range(100))
    campaign = make_campaign("esa", texts=texts)
    tasks = campaign.assignments["anna"]
    campaign = replace(campaign, id="", raters=names, assignments=dict.fromkeys(names, tasks))
    write_campaign(campaign, tmp_path / "campaign.json")
    command = [
        sys.executable,
        "-m",
        "tertium",
        "annotate",
        "campaign.json",
        "--listen",
        "127.0.0.1:0",
    ]
    process = subprocess.Popen(
        [*command, "-o", "links.tsv"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(RATERS + 1)]
    links = dict(line.split() for line in lines)
    seconds: list[float] = []

    async def work(link: str, delay: float) -> None:
        address = httpx.URL(link)
        await asyncio.sleep(delay)
        reader, writer = await asyncio.open_connection(address.host, address.port)
        for n in range(16):
            events = [new_event("submit", n, outputs=[{"score": n}])]
            body = json.dumps({"events": events}).encode()
            head = (
                f"POST /api/events HTTP/1.1\r\nHost: test\r\nContent-Length: {len(body)}\r\n"
                f"Authorization: Bearer {address.fragment}\r\n\r\n"
            )
            start = time.perf_counter()
            writer.write(head.encode() + body)
            headers = await reader.readuntil(b"\r\n\r\n")
            size = int(re.search(rb"content-length: (\d+)", headers)[1])
            answer = json.loads(await reader.readexactly(size))
            seconds.append(time.perf_counter() - start)
            assert answer["saved"] == [events[0]["id"]]
            await asyncio.sleep(max(0.0, 1 - seconds[-1]))
        writer.close()

    async def work_together() -> None:
        await asyncio.gather(*(work(links[name], n / RATERS) for n, name in enumerate(names)))

    try:
        asyncio.run(work_together())
    finally:
        process.terminate()
        process.wait()
    median, p95 = 1000 * np.quantile(seconds, [0.5, 0.95])
    load = os.getloadavg()[0]
    print(f"\n{len(seconds)} events: median {median:.1f} ms, p95 {p95:.1f} ms, load {load:.1f}")
    assert p95 < 100 or load > (os.cpu_count() or 1)
