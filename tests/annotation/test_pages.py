"""The files of the pages: complete translations, nothing from elsewhere; and a killed server."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2 as httpx
import numpy as np
import pytest
from tests.annotation.running_server import make_campaign, submit_score

import tertium.people
from tertium.people.campaign import PROTOCOLS, write_campaign
from tertium.people.state import AnnotationSession, bind_socket

PAGE = Path(tertium.people.__file__).parent / "page"
ENGLISH = json.loads((PAGE / "languages" / "en.json").read_text(encoding="utf-8"))


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


@pytest.mark.slow
def test_nothing_is_lost_when_the_server_is_killed(tmp_path: Path) -> None:
    """A client sends each event until it is confirmed, while the server is killed six times."""
    write_campaign(make_campaign("da"), tmp_path / "campaign.json")
    with bind_socket("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    words = f"-m tertium annotate campaign.json --listen 127.0.0.1:{port}".split()
    command = [sys.executable, *words]
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
