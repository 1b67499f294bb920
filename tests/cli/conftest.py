"""Fixtures: a folder with small files, and a function that runs a command."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.builders import write_workspace

from tertium.cli import main


@dataclass(frozen=True)
class Outcome:
    """What a command printed."""

    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        """The cells of a table of tab-separated values, with its header."""
        return [line.split("\t") for line in self.out.splitlines()]


Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command line and checks its exit code."""

    def run_command(command: str, code: int = 0) -> Outcome:
        capsys.readouterr()
        found = main(shlex.split(command))
        captured = capsys.readouterr()
        assert found == code, captured.err
        return Outcome(captured.out, captured.err)

    return run_command


@pytest.fixture(scope="session")
def prepared_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    write_workspace(folder)
    return folder


@pytest.fixture
def workspace(prepared_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter a folder with the files of `tests.builders.write_workspace`."""
    shutil.copytree(prepared_files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path
