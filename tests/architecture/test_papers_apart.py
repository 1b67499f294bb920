"""The systems of the papers could be a package of their own: the rest works without their files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tertium
from tertium.models.checkpoint import has_bundled_models

FAMILIES = ("regression", "heads", "pairwise", "linguistics")


@pytest.mark.skipif(not has_bundled_models(), reason="needs the package tertium-models")
def test_package_scores_without_the_systems_of_the_papers(tmp_path: Path) -> None:
    package = Path(tertium.__file__).parent
    copy = tmp_path / "packages" / package.name
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for family in FAMILIES:
        shutil.rmtree(copy / "metrics" / family)
    texts = {"sources": "Ein Haus.\nDer Hund schläft.\n", "outputs": "A home.\nThe dog sleeps.\n"}
    texts["references"] = "A house.\nThe dog is sleeping.\n"
    for name, content in texts.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    options = ["-s", "sources", "-t", "outputs", "-r", "references", "-f", "tsv"]
    run = subprocess.run(
        [sys.executable, "-m", "tertium", "score", *options, "-m", "chrf", "tertium-multi"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(copy.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "chrF" in run.stdout
    assert "tertium-multi" in run.stdout
