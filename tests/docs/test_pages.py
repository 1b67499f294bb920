"""Every command and snippet of README and docs runs, and prints what the page shows.

`pages` says how a page marks them; `workspace` is the folder they run in. Commands that take hours
or need data that is not here are parsed by the real parser.
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


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder for each page, so that none leans on what another one wrote."""
    build(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_what_a_page_shows_is_true(
    page: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    monkeypatch.syspath_prepend(str(workspace))  # and taken off again, with what a page installs
    monkeypatch.delenv("TERTIUM_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "100")  # argparse folds help to the terminal's width
    module = ModuleType(f"page_{page.stem.replace('-', '_')}")  # dataclasses look themselves up
    monkeypatch.setitem(sys.modules, module.__name__, module)
    namespace = module.__dict__
    for step in steps(page.read_text(encoding="utf-8")):
        where = f"{page.relative_to(ROOT)}, line {step.line}"
        if not step.run:
            parse_command(step.code)
            continue
        printed = _run(step, where, namespace)
        if step.expected is not None:
            assert matches(step.expected, printed), (
                f"{where}: {step.code}\n--- the page shows\n{step.expected}\n--- printed\n{printed}"
            )


def _run(step: Step, where: str, namespace: dict[str, Any]) -> str:
    if step.kind.startswith("file: "):
        file = Path(step.kind.removeprefix("file: "))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(step.code, encoding="utf-8")
        return ""
    if step.kind == "shell":
        try:
            return run_command(step.code, fails="tertium: error" in (step.expected or ""))
        except Exception as error:
            raise AssertionError(f"{where}: {step.code}") from error
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            code = compile("\n" * step.line + step.code, where, "exec", dont_inherit=True)
            exec(code, namespace)
        except Exception as error:
            raise AssertionError(f"{where}:\n{step.code}") from error
    return out.getvalue()


def test_the_reader_of_pages_reads_them() -> None:
    page = (
        "```console\n$ tertium list \\\n    bleu  # short\nBLEU ...\n$ tertium cite bleu\n```\n"
        "```bash\ntertium train x -o y  # takes hours\n\n# a remark\n```\n"
        "<!-- setup\nx = 1\n-->\n\n```python\nprint(x)\n```\n\n```text\n1\n```\n```text\nno\n```\n"
    )
    found = [(s.kind, s.code.strip(), (s.expected or "").strip(), s.run) for s in steps(page)]
    assert found == [
        ("shell", "tertium list     bleu", "BLEU ...", True),
        ("shell", "tertium cite bleu", "", True),
        ("shell", "tertium train x -o y", "", False),
        ("python", "x = 1", "", True),
        ("python", "print(x)", "1", True),
    ]
    assert split_comment("a '#b' # c") == ("a '#b'", "c")
    assert split_comment("pip install x#y") == ("pip install x#y", "")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_command_hides_in_a_block_without_a_language(page: Path) -> None:
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.kind not in ("console", "bash", "sh", "python", "setup"):
            command = r"^(\$ |>>> )" if block.kind == "text" else r"^(\$ |tertium |>>> )"
            hidden = re.search(command, block.body, re.MULTILINE)
            assert hidden is None, f"{page.name}, line {block.line}: say console, bash or python"


def test_a_shown_output_is_compared() -> None:
    assert matches("a  b\n\n...\nz", "a b\nc d\n z\n")
    assert not matches("a b", "a b c")
    assert not matches("0.35", "0.36")


def test_a_wrong_command_is_found(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace)
    with pytest.raises(AssertionError):
        run_command("tertium score -t ours.txt --no-such-option")
    with pytest.raises(AssertionError):
        parse_command("tertium train esim --no-such-option -o x")
    with pytest.raises(AssertionError):
        run_command("pip install '.[nothing]'")
    with pytest.raises(AssertionError):
        run_command("make nothing")
