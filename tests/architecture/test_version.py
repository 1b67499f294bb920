"""One source of the version: `tertium/version.py`; what has to repeat it says the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tertium.version import __version__

ROOT = Path(__file__).parents[2]


def test_the_package_reads_its_version_from_the_source() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"]
    assert project["project"]["dynamic"] == ["version"]
    read_from = project["tool"]["setuptools"]["dynamic"]["version"]
    assert read_from == {"attr": "tertium.version.__version__"}


def test_the_models_and_the_citation_have_the_same_version() -> None:
    weights = tomllib.loads((ROOT / "weights" / "pyproject.toml").read_text(encoding="utf-8"))
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert weights["project"]["version"] == __version__
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [__version__]


def test_both_distributions_carry_their_license() -> None:
    ours, theirs = ROOT / "LICENSE", ROOT / "weights" / "LICENSE"
    assert theirs.read_bytes() == ours.read_bytes()


def test_the_changelog_knows_the_version_or_waits_for_it() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[(.+?)\]", changes, re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert headings[1:2] in ([], [__version__])
