"""Run every command and snippet of README and docs, and compare the output with the page.

All output and all files are also compared with what was recorded (`tests/golden/transcripts.py`).
`pages` explains how pages mark them; `workspace` creates the folder they run in. Commands that take
hours or need missing data are only parsed.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.docs.pages import PAGES, ROOT, Step, blocks, matches, split_comment, steps
from tests.docs.workspace import build, parse_command, run_command
from tests.golden.store import FOLDER, file_name
from tests.golden.transcripts import Transcript

INT8_TOLERANCE = 0.03  # between kinds of processors
PAGES_FOLDER = FOLDER / "pages"  # transcripts; `python -m tests.golden.record` writes them


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A separate folder for each page, so that pages do not depend on each other."""
    build(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_page_commands_run_and_print_what_is_shown(
    page: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    monkeypatch.syspath_prepend(str(workspace))  # undone with everything a page installs
    monkeypatch.delenv("TERTIUM_DATA", raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", "")  # a page may start a server; undone afterwards
    monkeypatch.setenv("COLUMNS", "100")  # argparse wraps help to the terminal width
    module = ModuleType(f"page_{page.stem.replace('-', '_')}")  # dataclasses look up their module
    monkeypatch.setitem(sys.modules, module.__name__, module)
    namespace = module.__dict__
    text = page.read_text(encoding="utf-8")
    transcript = Transcript()
    for step in steps(text):
        where = f"{page.relative_to(ROOT)}, line {step.line}"
        if not step.run:
            parse_command(step.code)
            continue
        with transcript.step(_title(step)) as shown:
            printed = _run(step, where, namespace, shown)
        if step.expected is not None:
            # a snippet may use a metric of an earlier one
            used = step.code + printed if step.kind == "shell" else text
            tolerance = INT8_TOLERANCE if "tertium-" in used else 0.0
            assert matches(step.expected, printed, tolerance), (
                f"{where}: {step.code}\n--- the page shows\n{step.expected}\n--- printed\n{printed}"
            )
    if transcript.steps:
        transcript.check(_golden_file(page))


def _golden_file(page: Path) -> Path:
    """Return the file of what the commands of a page print and write."""
    return PAGES_FOLDER / f"{file_name(str(page.relative_to(ROOT)))}.txt.gz"


def test_every_golden_file_belongs_to_a_page() -> None:
    assert {*PAGES_FOLDER.iterdir()} <= {_golden_file(page) for page in PAGES}


def _title(step: Step) -> str:
    """Return how a transcript calls a step: a snippet by its last line."""
    if step.kind == "shell":
        return " ".join(step.code.split())
    return f"{step.kind}: {step.code.strip().splitlines()[-1].strip()}"


def _run(step: Step, where: str, namespace: dict[str, Any], shown: dict[str, str]) -> str:
    if step.kind.startswith("file: "):
        file = Path(step.kind.removeprefix("file: "))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(step.code, encoding="utf-8")
        return ""
    if step.kind == "shell":
        try:
            fails = "tertium: error" in (step.expected or "")
            return run_command(step.code, fails=fails, shown=shown)
        except Exception as error:
            raise AssertionError(f"{where}: {step.code}") from error
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            code = compile("\n" * step.line + step.code, where, "exec", dont_inherit=True)
            exec(code, namespace)
        except Exception as error:
            raise AssertionError(f"{where}:\n{step.code}") from error
    shown["stdout"] = out.getvalue()
    return out.getvalue()


def test_steps_are_extracted_from_a_page() -> None:
    page = (
        "```console\n$ tertium list \\\n    bleu  # short\nBLEU ...\n$ tertium list models\n```\n"
        "```bash\ntertium train x -o y  # takes hours\n\n# a remark\n```\n"
        "<!-- setup\nx = 1\n-->\n\n```python\nprint(x)\n```\n\n```text\n1\n```\n```text\nno\n```\n"
    )
    found = [(s.kind, s.code.strip(), (s.expected or "").strip(), s.run) for s in steps(page)]
    assert found == [
        ("shell", "tertium list     bleu", "BLEU ...", True),
        ("shell", "tertium list models", "", True),
        ("shell", "tertium train x -o y", "", False),
        ("python", "x = 1", "", True),
        ("python", "print(x)", "1", True),
    ]
    assert split_comment("a '#b' # c") == ("a '#b'", "c")
    assert split_comment("pip install x#y") == ("pip install x#y", "")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_are_in_console_bash_or_python_blocks(page: Path) -> None:
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.kind not in ("console", "bash", "sh", "python", "setup"):
            command = r"^(\$ |>>> )" if block.kind == "text" else r"^(\$ |tertium |>>> )"
            hidden = re.search(command, block.body, re.MULTILINE)
            assert hidden is None, f"{page.name}, line {block.line}: use console, bash or python"


def test_wrong_commands_fail(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace)
    with pytest.raises(AssertionError):
        run_command("tertium score -t ours.txt --no-such-option")
    with pytest.raises(AssertionError):
        parse_command("tertium train esim --no-such-option -o x")
    with pytest.raises(AssertionError):
        run_command("pip install '.[nothing]'")
    with pytest.raises(AssertionError):
        run_command("make nothing")
