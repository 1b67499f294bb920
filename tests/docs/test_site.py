"""Links are valid, every page is reachable, and every metric has a page."""

from __future__ import annotations

import pkgutil
import re
import runpy
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.docs.pages import DOCS, PAGES, ROOT

from tertium.core.errors import MissingResourceError
from tertium.core.registry import ALIASES, METRICS, RANKERS, resolve_scorer

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
METRIC_PAGES = [page for page in sorted((DOCS / "metrics").glob("*.md")) if page.stem != "index"]
SECTIONS = ("## When to use it", "## Limitations", "## Agreement with human scores")


def links(page: Path) -> list[Path]:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [target.partition("#")[0] for target in LINK.findall(text)]
    return [(page.parent / t).resolve() for t in targets if t and "://" not in t]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_are_valid(page: Path) -> None:
    missing = [str(target) for target in links(page) if not target.exists()]
    assert not missing


def test_every_page_is_reachable_from_the_readme() -> None:
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
    """Return the metric names on the `Names:` line of a page."""
    (line,) = re.findall(r"^Names: (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return re.findall(r"`([^`]+)`", line)


def test_every_registered_name_has_one_page() -> None:
    named = [name for page in METRIC_PAGES for name in names_of(page)]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    plugins = project["entry-points"]["tertium.metrics"]  # our own plugin
    assert sorted(named) == sorted([*METRICS.builtin, *ALIASES, *RANKERS.builtin, *plugins])


@pytest.mark.parametrize("page", METRIC_PAGES, ids=lambda p: p.stem)
def test_metric_pages_are_complete_and_match_the_metric(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    facts = dict(re.findall(r"^\| (paper|needs|range) \| (.+) \|$", text, re.MULTILINE))
    assert set(facts) == {"paper", "needs", "range"}
    assert re.search(r"^    \S", text, re.MULTILINE), "no formula"
    for section in SECTIONS:
        assert section in text
    assert re.search(r"<!-- agreement: .+? -->\n.*?<!-- end -->", text, re.DOTALL)
    for name in names_of(page):
        base = ALIASES.get(name, name).partition(":")[0]
        if base not in METRICS and base not in RANKERS:  # the checkout is not installed
            continue
        cls = resolve_scorer(base)
        better = "higher" if getattr(cls, "higher_is_better", True) else "lower"
        assert f"{better} is better" in facts["range"], name
        try:
            required = cls().required_inputs
        except MissingResourceError:  # no bundled model
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
def test_lists_follow_a_blank_line(page: Path) -> None:
    """Otherwise Python-Markdown renders the items as part of the paragraph."""
    text = re.sub(r"^```.*?^```|^<!--.*?-->", "", page.read_text("utf-8"), flags=re.M | re.DOTALL)
    joined = re.findall(r"^(?![-*] |\d+\. |[ #]).+\n(?:[-*]|\d+\.) .*", text, re.MULTILINE)
    assert not joined


def test_no_page_installs_tertium_from_a_package_index() -> None:
    """tertium is not on PyPI; `tertium[EXTRA]` adds to an installed one."""
    files = [ROOT / "README.md", ROOT / "weights" / "README.md"]
    files += [*(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.*")]
    wrong = re.compile(r"pip install [^\n`]*(?<![\w./-])tertium(?![\w\[./-])")
    texts = {file: file.read_text(encoding="utf-8", errors="replace") for file in files}
    assert [str(file) for file, text in texts.items() if wrong.search(text)] == []


def test_new_names_of_the_migration_page_exist() -> None:
    """The second column of its tables; a name may be one of a module."""
    page = (DOCS / "reference" / "migration.md").read_text("utf-8")
    new = "\n".join(re.findall(r"^\| .+ \| (.+) \|$", page, re.MULTILINE))
    names = {*re.findall(r"`(tertium(?:\.\w+)+)`", new)}
    assert len(names) > 20
    assert [name for name in sorted(names) if not is_importable(name)] == []


def is_importable(name: str) -> bool:
    """Return whether a dotted name is a module, or a name of one."""
    try:
        return pkgutil.resolve_name(name) is not None
    except (ImportError, AttributeError):
        return False


def test_building_the_site_fails_on_a_warning() -> None:
    (build,) = re.findall(r"mkdocs build (.*)", (ROOT / "Makefile").read_text("utf-8"))
    assert build.split() == ["--strict"]  # with --quiet, MkDocs does not count warnings


def test_site_links_to_other_files_become_plain_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = SimpleNamespace(File=object, Files=object)  # the tests do not need MkDocs
    monkeypatch.setitem(sys.modules, "mkdocs", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "mkdocs.structure", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "mkdocs.structure.files", files)
    follow = runpy.run_path(str(DOCS / "hooks.py"))["on_page_markdown"]
    page = SimpleNamespace(file=SimpleNamespace(src_uri="results.md"))
    pages = {"claims.md", "CHANGELOG.md"}
    site = SimpleNamespace(get_file_from_path=lambda name: name if name in pages else None)
    text = "[a](results/) [b](../LICENSE) [c](claims.md#x) [d](../CHANGELOG.md)"
    assert follow(text, page, None, site) == "a b [c](claims.md#x) [d](CHANGELOG.md)"
