"""The commit that measured a figure."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

import papers.provenance
import pytest


def git(folder: Path, *arguments: str) -> None:
    author = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    subprocess.run(["git", "-C", str(folder), *author, *arguments], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("changed_file", "is_marked"), [("docs/results.json", False), ("papers/provenance.py", True)]
)
def test_only_changes_of_code_mark_a_figure(
    tmp_path: Path, changed_file: str, is_marked: bool
) -> None:
    """A measurement writes figures and pages in docs, which must not mark the next one."""
    for name in ("papers", "docs"):
        (tmp_path / name).mkdir()
    code = Path(shutil.copy(papers.provenance.__file__, tmp_path / "papers"))
    (tmp_path / "docs" / "results.json").write_text("{}")
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "Add files")
    with (tmp_path / changed_file).open("a") as file:
        file.write("\n")
    spec = importlib.util.spec_from_file_location("copied_provenance", code)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    version = module.code_version()
    assert ", commit " in version
    assert version.endswith("with changes") == is_marked
