"""`.ci/install.py`: each package comes from one index."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.encoders.test_install import write_wheel

SCRIPT = Path(__file__).parent.parent / ".ci" / "install.py"


@pytest.fixture
def installer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("installer", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_index(folder: Path, packages: dict[str, str]) -> str:
    """Write an index with one version of each package, and return its address."""
    for package, version in packages.items():
        page = folder / package / "index.html"
        page.parent.mkdir(parents=True)
        write_wheel(page.parent, package, {}, version)
        (wheel,) = page.parent.glob("*.whl")
        page.write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
    return folder.as_uri()


def test_a_higher_version_on_another_index_is_not_installed(installer, tmp_path):
    pytest.importorskip("uv")
    main = make_index(tmp_path / "main", {"wanted": "1.0"})
    extra = make_index(tmp_path / "extra", {"wanted": "9.9", "additional": "2.0"})
    options = installer.index_options({"index-url": [main], "extra-index-url": [extra]})
    command = [sys.executable, "-m", "uv", "pip", "install", "--no-cache", "--dry-run", "--no-deps"]
    packages = ["--python", sys.executable, "wanted", "additional"]
    done = subprocess.run([*command, *options, *packages], capture_output=True, text=True)
    installed = {line for line in done.stderr.splitlines() if line.startswith(" + ")}
    assert installed == {" + wanted==1.0", " + additional==2.0"}, done.stderr


def test_settings_of_the_environment_take_precedence(installer):
    lines = [":env:.index-url='https://a'", "global.index-url='https://b'"]
    lines += ["global.extra-index-url='https://c https://d'", "global.find-links='/wheels'"]
    for listing in (lines, lines[::-1]):
        settings = installer.parse_pip_settings("\n".join(listing))
        assert installer.list_indexes(settings) == ["https://a", "https://c", "https://d"]
        assert installer.index_options(settings)[-2:] == ["--find-links", "/wheels"]
    assert installer.list_indexes({}) == [installer.PUBLIC_INDEX]
    assert installer.index_options({"no-index": ["true"]})[0] == "--no-index"


@pytest.mark.parametrize("indexes", [["https://a"], ["https://a", "https://b"]])
def test_pip_is_used_only_with_a_single_index(installer, monkeypatch, capsys, indexes):
    commands: list[list[str]] = []

    def fail(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 1, "", "")

    monkeypatch.setattr(installer.subprocess, "run", fail)
    settings = {"index-url": indexes[:1], "extra-index-url": indexes[1:]}
    monkeypatch.setattr(installer, "read_pip_settings", lambda: settings)
    assert installer.install(["numpy"]) == 1
    uses_pip = any(command[1:3] == ["-m", "pip"] and "numpy" in command for command in commands)
    assert uses_pip == (len(indexes) == 1)
    if not uses_pip:
        assert (
            "pip would take each package from any of https://a https://b" in capsys.readouterr().err
        )
