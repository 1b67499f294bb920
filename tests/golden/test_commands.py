"""Commands print and write what was recorded: each command with its main outputs, and its help.

`transcripts` says what is compared, `python -m tests.golden.record` records again. The commands of
the documentation are recorded by `tests/docs/test_pages.py`.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.builders import write_workspace
from tests.docs.cli_reference import command_parsers
from tests.golden.scripts import FILES, SCRIPTS
from tests.golden.store import FOLDER, is_recording
from tests.golden.transcripts import Transcript

from tertium.cli import main

HELP_VERSION = (3, 11)  # of Python, whose argparse wrote the help


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write small files and enter their folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("TERTIUM_DATA", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    write_workspace(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text, encoding="utf-8")
    return tmp_path


def expand(script: str) -> Iterator[str]:
    """Yield the commands of a script; braces stand for one command with each of their words."""
    for line in script.strip().splitlines():
        found = re.search(r"\{([^}]*)\}", line)
        words = found[1].split(",") if found else [""]
        for word in words:
            yield (line.replace(found[0], word) if found else line).strip()


def run(arguments: Sequence[str], shown: dict[str, str]) -> None:
    """Run a command and note what it prints and its exit code."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([*arguments])
        except SystemExit as stopped:
            code = int(stopped.code or 0)
    shown.update({"stdout": out.getvalue(), "stderr": err.getvalue()})
    shown["exit code"] = str(code) if code else ""


@pytest.mark.usefixtures("workspace")
@pytest.mark.parametrize("name", SCRIPTS)
def test_output_of_commands(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if name == "setup":  # an empty cache
        monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path_factory.mktemp("empty-cache")))
    transcript = Transcript()
    for command in expand(SCRIPTS[name]):
        with transcript.step(f"tertium {command}") as shown:
            run(shlex.split(command), shown)
    transcript.check(FOLDER / "commands" / f"{name}.txt.gz")


def test_help_of_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.version_info[:2] != HELP_VERSION:
        pytest.skip("argparse formats help differently in each version of Python")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    transcript = Transcript()
    trainings = [f"train {name}" for name in ("esim", "svr", "blend", "pairwise", "tertium-multi")]
    for command in ("", *command_parsers(), *trainings):
        with transcript.step(f"tertium {command} --help") as shown:
            run([*command.split(), "--help"], shown)
    transcript.check(FOLDER / "commands" / "help.txt.gz")


def test_every_command_is_recorded() -> None:
    commands = {name.partition("-")[0] for name in SCRIPTS} - {"general"}
    assert commands == {name.split()[0] for name in command_parsers()}
    recorded = {path.name.partition(".")[0] for path in (FOLDER / "commands").iterdir()}
    assert is_recording() or recorded == {*SCRIPTS, "help"}
