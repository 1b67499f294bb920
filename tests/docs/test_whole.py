"""The pages are one whole: links lead somewhere, all can be reached, every metric has its page."""

from __future__ import annotations

import re
import runpy
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.docs.pages import DOCS, PAGES, ROOT

from tertium.errors import MissingResourceError
from tertium.registry import ALIASES, METRICS, RANKERS, resolve_scorer

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
METRIC_PAGES = [page for page in sorted((DOCS / "metrics").glob("*.md")) if page.stem != "index"]
SECTIONS = ("## When to use it", "## Limitations", "## Agreement with human scores")


def links(page: Path) -> list[Path]:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [target.partition("#")[0] for target in LINK.findall(text)]
    return [(page.parent / t).resolve() for t in targets if t and "://" not in t]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    missing = [str(target) for target in links(page) if not target.exists()]
    assert not missing


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md" or not page.is_file():
            continue
        seen.add(page)
        waiting += links(page)
    assert {page.resolve() for page in PAGES} <= seen


def names_of(page: Path) -> list[str]:
    """The names on the line that says which metrics a page is about."""
    (line,) = re.findall(r"^Names: (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return re.findall(r"`([^`]+)`", line)


def test_every_registered_name_has_one_page_and_every_page_a_name() -> None:
    named = [name for page in METRIC_PAGES for name in names_of(page)]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    plugins = project["entry-points"]["tertium.metrics"]  # ours, registered as others would
    assert sorted(named) == sorted([*METRICS.builtin, *ALIASES, *RANKERS.builtin, *plugins])


@pytest.mark.parametrize("page", METRIC_PAGES, ids=lambda p: p.stem)
def test_a_metric_page_is_complete_and_agrees_with_the_metric(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    facts = dict(re.findall(r"^\| (paper|needs|range) \| (.+) \|$", text, re.MULTILINE))
    assert set(facts) == {"paper", "needs", "range"}
    assert re.search(r"^    \S", text, re.MULTILINE), "no formula"
    for section in SECTIONS:
        assert section in text
    assert re.search(r"<!-- agreement: .+? -->\n.*?<!-- end -->", text, re.DOTALL)
    for name in names_of(page):
        base = ALIASES.get(name, name).partition(":")[0]
        if base not in METRICS and base not in RANKERS:  # a checkout that is not installed
            continue
        cls = resolve_scorer(base)
        better = "higher" if getattr(cls, "higher_is_better", True) else "lower"
        assert f"{better} is better" in facts["range"], name
        try:
            required = cls().required_inputs
        except MissingResourceError:  # nothing ships for it yet
            continue
        expected = " and ".join(sorted(required)) or "references or source"
        assert facts["needs"].startswith(expected), name


def test_the_metrics_index_links_every_page() -> None:
    assert set(METRIC_PAGES) <= set(links(DOCS / "metrics" / "index.md"))


def test_the_site_lists_every_page() -> None:
    listed = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    inside = [page.relative_to(DOCS).as_posix() for page in PAGES if page.is_relative_to(DOCS)]
    assert len(listed) == len({*listed})
    assert {*inside} <= {*listed}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_list_begins_behind_a_blank_line(page: Path) -> None:
    """The site's Markdown takes its items for the end of a paragraph otherwise."""
    text = re.sub(r"^```.*?^```|^<!--.*?-->", "", page.read_text("utf-8"), flags=re.M | re.DOTALL)
    joined = re.findall(r"^(?![-*] |\d+\. |[ #]).+\n(?:[-*]|\d+\.) .*", text, re.MULTILINE)
    assert not joined


def test_building_the_site_fails_on_a_warning() -> None:
    (build,) = re.findall(r"mkdocs build (.*)", (ROOT / "Makefile").read_text("utf-8"))
    assert build.split() == ["--strict"]  # with --quiet MkDocs counts no warning


def test_links_of_the_site_to_what_is_no_page_keep_their_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = SimpleNamespace(File=object, Files=object)  # MkDocs is no requirement of the tests
    monkeypatch.setitem(sys.modules, "mkdocs", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "mkdocs.structure", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "mkdocs.structure.files", files)
    follow = runpy.run_path(str(DOCS / "hooks.py"))["on_page_markdown"]
    page = SimpleNamespace(file=SimpleNamespace(src_uri="results.md"))
    pages = {"claims.md", "CHANGELOG.md"}
    site = SimpleNamespace(get_file_from_path=lambda name: name if name in pages else None)
    text = "[a](results/) [b](../LICENSE) [c](claims.md#x) [d](../CHANGELOG.md)"
    assert follow(text, page, None, site) == "a b [c](claims.md#x) [d](CHANGELOG.md)"
