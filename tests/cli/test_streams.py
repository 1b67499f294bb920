"""Standard streams, pipes, full disks, interrupts, terminals and odd bytes."""

from __future__ import annotations

import io
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from tests.builders import EXAMPLES, write_jsonl
from tests.cli.conftest import Run

from tertium.cli import main
from tertium.core.errors import DataError
from tertium.data.record_files import parse_json

TEXT, REFERENCE = (str(EXAMPLES / f"{n}.en.txt") for n in ("system-good", "reference-a"))
RECORDS = EXAMPLES / "examples.jsonl"
SCORE = f"{sys.executable} -m tertium score -t {RECORDS} -m chrf"
ONLY_UNIX = pytest.mark.skipif(sys.platform == "win32", reason="streams and devices of Unix")


def shell(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", command],
        capture_output=True,
        encoding="utf-8",
        check=False,
        env={**os.environ, **environment},
    )


@ONLY_UNIX
def test_closed_streams_are_no_error() -> None:
    silent = shell(f"{SCORE} >&-")
    assert (silent.returncode, silent.stdout, silent.stderr) == (0, "", "")
    wrong = shell(f"{SCORE}:nothing=1 2>&-")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    short = shell(f"{SCORE} -sl -f tsv | head -1")
    assert short.stdout.count("\n") == 1
    assert "Error" not in short.stderr


def test_output_is_utf8_in_any_locale() -> None:
    done = shell(SCORE, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "chrF ↑" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_full_disk_is_a_one_line_error() -> None:
    done = shell(f"{SCORE} > /dev/full")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "No space left" in done.stderr


def test_an_interrupt_during_the_import_is_no_traceback() -> None:
    code = (
        "import sys; from tertium.__main__ import run\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'tertium.cli': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting()); sys.exit(run())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "tertium: interrupted\n")


def test_interrupt_has_no_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class InterruptedInput(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(InterruptedInput()))
    error = run(f"score -t - -r {TEXT} -m chrf", code=130).err
    assert error == "tertium: interrupted\n"


def test_standard_input_is_a_system(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run(f"score -t {TEXT} -r {REFERENCE} -m chrf -f json").json
    stream = io.TextIOWrapper(io.BytesIO(Path(TEXT).read_bytes()), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", stream)
    record = run(f"score -t - -r {REFERENCE} -m chrf -f json").json
    assert (record["system"], record["score"]) == ("stdin", expected["score"])


def test_unwritable_output_fails_early(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    # root may write everywhere, so os.access is replaced
    monkeypatch.setattr("os.access", lambda path, mode: str(path) != str(tmp_path))
    assert "no permission" in run(f"score -t missing -m chrf -o {tmp_path}/a.json", code=2).err


@ONLY_UNIX
def test_links_and_devices_stay_what_they_are(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("link.json").symlink_to("goal.json")
    Path("null.json").symlink_to("/dev/null")
    run(f"score -t {RECORDS} -m chrf -q -o link.json null.json")
    assert Path("link.json").is_symlink()
    assert Path("goal.json").read_text().startswith("[")
    assert Path("/dev/null").is_char_device()


# Control characters, and values that readers must refuse


@pytest.mark.parametrize("style", ["text", "tsv", "md", "latex", "csv"])
def test_control_characters_of_names_are_not_printed(
    style: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["--names", "\x1b[31mred\x07\x9b", "-f", style]
    assert main(["score", "-t", TEXT, "-r", REFERENCE, "-m", "chrf", "-q", *names]) == 0
    printed = capsys.readouterr().out
    assert "red" in printed
    assert not {"\x1b", "\x07", "\x9b"} & {*printed}


def test_control_characters_in_warnings_and_errors_are_replaced(tmp_path: Path, run: Run) -> None:
    row = {"system": "a\x1b[2J", "segment": 1, "mt": "", "ref": "x"}
    file = write_jsonl(tmp_path / "set.jsonl", [row])
    warning = run(f"score -t {file} -m chrf -f json").err
    assert warning == "tertium: warning: empty hypothesis: a␛[2J 1\n"
    write_jsonl(file, [row, {**row, "system": "b", "ref": "another\x1b"}])
    error = run(f"score -t {file} -m chrf", code=2).err
    assert "another list of references" in error
    assert "\x1b" not in error


@pytest.mark.parametrize("text", ['{"a": 1, "b": 2, "a": 3}', '[{"b": {"a": 1, "a": 1}}]'])
def test_repeated_key_is_an_error(text: str) -> None:
    with pytest.raises(DataError, match=r"x, line 1: .*the key 'a' occurs twice in one object"):
        parse_json(text, "x, line 1")
    assert parse_json('[{"a": 1}, {"a": 1}]', "x") == [{"a": 1}, {"a": 1}]


# Terminals: every name and number is visible at any width


def read_terminal(width: int, command: str, terminal: str = "xterm") -> str:
    """Return what a command prints on a terminal of this width."""
    needs = "needs a pseudo-terminal of Linux or macOS"
    fcntl, pty, termios = (
        pytest.importorskip(name, reason=needs) for name in ("fcntl", "pty", "termios")
    )
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    words = [sys.executable, "-m", "tertium", *command.split()]
    environment = {**os.environ, "COLUMNS": str(width), "TERM": terminal}
    process = subprocess.Popen(words, stdout=theirs, stderr=subprocess.PIPE, env=environment)
    os.close(theirs)
    chunks = []
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # Linux raises it when the other end is closed
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(ours)
    _, errors = process.communicate()
    assert process.returncode == 0, errors.decode()
    return b"".join(chunks).decode()


def remove_colors(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_dumb_terminal_gets_no_escape_codes() -> None:
    command = f"score -q -t {RECORDS} -m chrf"
    assert "\x1b[1m" in read_terminal(80, command)
    assert "\x1b" not in read_terminal(80, command, "dumb")


@pytest.mark.parametrize("width", [40, 80])
def test_narrow_terminal_shows_all_columns(width: int) -> None:
    command = f"compare -q -t {RECORDS} -m bleu chrf ter --paired-bs-n 20"
    text = remove_colors(read_terminal(width, command))
    for system in ("good (baseline)", "fair", "poor"):
        lines = [line for line in text.splitlines() if line.split("  ")[0].strip() == system]
        assert len(lines) == 3, "one line for each metric"
        for line in lines:
            assert "±" in line
            assert re.search(r"\s[123]$", line), "the rank"
            assert system.startswith("good") or re.search(r"0\.\d{4}", line), "the p-value"
