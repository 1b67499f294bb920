"""One class name, one class: a reader who meets a name knows which is meant."""

from __future__ import annotations

import re
from pathlib import Path

import tertium

PACKAGE = Path(tertium.__file__).parent
# `compat` answers to the names of other tools, some of which are ours as well
MIRRORS = {"compat"}
CLASS = re.compile(r"^ *class ([A-Za-z]\w*)[(:]", re.MULTILINE)


def test_no_two_classes_have_one_name() -> None:
    homes: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        if place.parts[0] in MIRRORS:
            continue
        for name in CLASS.findall(path.read_text(encoding="utf-8")):
            homes.setdefault(name, []).append(str(place))
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}
