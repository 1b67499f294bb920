"""The files of the pages: complete translations, nothing from elsewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import tertium.people
from tertium.people.campaign import PROTOCOLS

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
