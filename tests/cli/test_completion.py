"""`tertium setup completion`: scripts that complete commands, options and values."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tertium.cli import FIRST_WORDS, main

TRY = """
source completion
COMP_WORDS=({words} "$1")
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_tertium
echo "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("scripts")
    paths = {}
    with pytest.MonkeyPatch.context() as patch:
        for shell in ("bash", "zsh", "fish"):
            paths[shell] = folder / shell / "completion"
            paths[shell].parent.mkdir()
            with paths[shell].open("w") as file:
                patch.setattr("sys.stdout", file)
                assert main(["setup", "completion", shell]) == 0
    return paths


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "beginning", "expected"),
    [
        ("tertium", "", " ".join(FIRST_WORDS)),
        ("tertium", "sc", "score"),
        ("tertium setup", "", "install cache completion"),
        ("tertium setup cache", "", "clear limit"),
        ("tertium setup completion", "", "bash zsh fish"),
        ("tertium score -t a.txt", "--prec", "--precision"),
        ("tertium score --precision", "", "auto fp32 bf16 fp16 int8"),
        ("tertium score -t a.txt -f", "j", "json"),
        ("tertium score -t", "", ""),  # the shell completes file names
        ("tertium check a.xliff", "--sel", "--select"),
        ("tertium train", "es", "esim"),
        ("tertium train esim", "--ep", "--epochs"),
        ("tertium train bleu-r", "--ep", ""),
        ("tertium no-such-command", "", " ".join(FIRST_WORDS)),
    ],
)
def test_bash_completes_commands_options_and_values(
    scripts: dict[str, Path], words: str, beginning: str, expected: str
) -> None:
    command = ["bash", "-c", TRY.format(words=words), "bash", beginning]
    folder = scripts["bash"].parent
    completed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert (completed.stdout, completed.stderr) == (f"{expected}\n", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_valid(scripts: dict[str, Path], shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n", str(scripts[shell])], check=True)


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_the_same_words(scripts: dict[str, Path], tmp_path: Path) -> None:
    for line, expected in (
        ("tertium sc", "score"),
        ("tertium setup cache ", "clear limit"),
        ("tertium score --precision ", "auto bf16 fp16 fp32 int8"),
        ("tertium train esim --ep", "--epochs"),
    ):
        command = ["fish", "-c", f"source {scripts['fish']}; complete -C '{line}'"]
        environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        completed = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        assert completed.stdout.split() == expected.split()
