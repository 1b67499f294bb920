"""Create the folder in which page commands run: the example under the names that pages use."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import random
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from benchmarks.__main__ import list_benchmarks as benchmark_names
from papers.command import make_parser as make_parser_of_papers
from tests.builders import EXAMPLES, example_ratings, example_texts, write_jsonl, write_tsv
from tests.docs.cli_reference import find_parser
from tests.docs.pages import ROOT

from tertium.cli import find_command, load_command, main
from tertium.cli.arguments import build_values, parameter_types
from tertium.core.errors import UsageError
from tertium.metrics.base import judge_run

ALIASES = {
    "source.de.txt": ("src.txt", "source.txt", "out.de.txt", "ref.de.txt"),
    "reference-a.en.txt": ("ref.txt", "reference.txt", "ref1.txt"),
    "reference-b.en.txt": ("ref2.txt",),
    "system-good.en.txt": ("a.txt", "ours.txt", "out.txt", "system.txt"),
    "system-fair.en.txt": ("b.txt", "baseline.txt", "theirs.txt"),
    "system-poor.en.txt": ("c.txt",),
    "examples.jsonl": ("systems.jsonl",),
}
FILTERS = ("head", "sort")  # that a page may pipe the output into


def build(folder: Path) -> None:
    """Create the files that pages refer to."""
    shutil.copytree(EXAMPLES, folder / "examples")
    for name, copies in ALIASES.items():
        for other in copies:
            shutil.copy(EXAMPLES / name, folder / other)
    _write_judged(folder)
    _write_candidates(folder)
    _write_projects(folder)
    _write_marked_errors(folder)
    _write_data_folder(folder)
    _write_long_texts(folder)


def _write_judged(folder: Path) -> None:
    """Write judgments with texts, from the invented ratings of the example."""
    rows = []
    for rating in example_ratings():
        number = int(rating["segment"]) - 1
        names = {"source": "source.de", "reference": "reference-a.en"}
        names["hypothesis"] = f"system-{rating['system']}.en"
        rows.append({**rating, **{k: example_texts(name)[number] for k, name in names.items()}})
    write_jsonl(folder / "judgments.jsonl", rows)
    write_tsv(folder / "judgments.tsv", " ".join(rows[0]), (row.values() for row in rows))


def _write_candidates(folder: Path) -> None:
    """Write the outputs of the three systems as candidate lists."""
    outputs = zip(*(example_texts(f"system-{n}.en") for n in ("poor", "good", "fair")), strict=True)
    rows = [
        {"candidates": list(texts), "references": [reference]}
        for texts, reference in zip(outputs, example_texts("reference-a.en"), strict=True)
    ]
    write_jsonl(folder / "candidates.jsonl", rows[:6])


def _write_projects(folder: Path) -> None:
    """Write localization files: two systems and a reference, and a project of two documents."""
    text = (EXAMPLES / "localization" / "app.de.xliff").read_text()
    for name in ("mt-a.xliff", "mt-b.xliff", "human.xliff", "de/app.xliff"):
        write_file(folder / name, text)
    write_file(folder / "de" / "help.xliff", text.replace("editor.", "help."))


def _write_marked_errors(folder: Path) -> None:
    """Write error spans of annotators and of two metrics."""
    marks = {
        "mqm": [(4, 7, "major", "Accuracy"), (15, 20, "minor", "Fluency")],
        "careful": [(4, 7, "minor", "")],
        "eager": [(0, 22, "major", "")],
    }
    for name, spans in marks.items():
        fields = [
            dict(zip(("start", "end", "severity", "category"), s, strict=True)) for s in spans
        ]
        row = {"system": "A", "hypothesis": "The cat sat on a mat .", "score": 0, "spans": fields}
        write_jsonl(folder / f"{name}.jsonl", ({"segment": n, **row} for n in (1, 2)))


def _write_data_folder(folder: Path) -> None:
    """Write a folder of human judgments, and judgments that are held out."""
    rows = (folder / "judgments.jsonl").read_text().splitlines(keepends=True)
    write_file(folder / "held-out.jsonl", "".join(rows[:15]))
    write_file(folder / "my-data/da/wmt17/cs-en.jsonl", "".join(rows[:5]))
    item = {"segment": "1", "source": "x", "reference": "y", "outputs": {"a": "y", "b": "z"}}
    write_jsonl(folder / "my-data/rankings/wmt12/de-en.texts.jsonl", [item])
    lines = "segment\tjudge\tsystem_a\tsystem_b\tpreference\n1\tj\ta\tb\ta\n"
    write_file(folder / "my-data/rankings/wmt12/de-en.judgements.tsv", lines)


def _write_long_texts(folder: Path) -> None:
    """Write two lines of 5,000 words."""
    rng = random.Random(1)
    words = "the cat sat on a mat and looked at the garden with a very old house behind it".split()
    for name in ("book.txt", "book-reference.txt"):
        write_file(folder / name, " ".join(rng.choice(words) for _ in range(5000)) + "\n")


def write_file(path: Path, text: str) -> None:
    """Write a text file and its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def run_command(command: str, *, fails: bool = False, shown: dict[str, str] | None = None) -> str:
    """Run a command line and return its output; check that it succeeds, or fails if expected.

    `shown` receives the output by stream and the exit code.
    """
    words, target, mode = _redirect(shlex.split(command))
    words, *filters = _split_pipe(words)
    words = [word for pattern in words for word in _expand(pattern)]
    if words[0] != "tertium":
        check_other(words)
        return ""
    out, err = io.StringIO(), io.StringIO()
    captured = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
    with captured[0], captured[1], show_usage(err, quiet="-q" in words):
        try:
            code = main(words[1:])
        except SystemExit as stopped:  # --help
            code = int(stopped.code or 0)
    printed = out.getvalue()
    assert bool(code) == fails, f"{command}: exit code {code}: {err.getvalue()}"
    for program in filters:
        assert program[0] in FILTERS, f"pages do not pipe into {program[0]}"
        printed = subprocess.run(
            program, input=printed, capture_output=True, text=True, check=True
        ).stdout
    if target:
        with Path(target).open(mode) as file:
            file.write(printed)
        printed = ""
    if shown is not None:
        shown.update({"stdout": printed, "stderr": err.getvalue()})
        shown["exit code"] = str(code) if code else ""
    return printed + err.getvalue()


@contextlib.contextmanager
def show_usage(stream: io.StringIO, *, quiet: bool) -> Iterator[None]:
    """Write what a judge used to a stream, as a new process does: pytest has its own handlers."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("tertium: %(message)s"))
    logger = logging.getLogger(judge_run.__name__)
    if not quiet:
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def parse_command(command: str) -> None:
    """Check the options of a command without running it."""
    words, *_ = _redirect(shlex.split(command))
    words, *_ = _split_pipe(words)
    if words[0] != "tertium":
        check_other(words)
        return
    try:
        parse_arguments(words[1:])
    except UsageError as error:
        raise AssertionError(f"{command}: {error}") from error


def parse_arguments(words: list[str]) -> None:
    """Parse the words after `tertium`, and build the options of the command."""
    if words[:1] in (["--help"], ["--version"]):
        return
    name = find_command(words)
    arguments = words[len(name.split()) :]
    function = load_command(name)
    types = parameter_types(function, arguments)
    parsed = find_parser(name, arguments).parse_args(arguments)
    build_values(types, parsed)


def check_other(words: list[str]) -> None:
    """Check that other commands refer to existing extras, make targets, modules or programs."""
    program, *rest = words
    if program == "pip" and rest[:1] == ["install"] and Path(rest[-1], "pyproject.toml").is_file():
        _install(Path(rest[-1]))
    elif program == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        declared = set(extras["optional-dependencies"])
        for name in re.findall(r"\[([\w,]+)\]", " ".join(rest)):
            assert set(name.split(",")) <= declared, f"no extra {name}"
    elif program == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        requested = {word for word in rest if "=" not in word}
        assert requested <= set(targets), f"no such target: make {' '.join(rest)}"
    elif program == "python" and rest[:1] == ["-m"]:
        package, _, name = rest[1].partition(".")
        if package == "benchmarks":
            words = [name] if name else rest[2:]
            assert not words or words[0].startswith("-") or words[0] in benchmark_names()
        elif package == "papers":
            make_parser_of_papers().parse_args(rest[2:])
        else:
            assert (ROOT / "src" / rest[1].replace(".", "/")).with_suffix(".py").is_file(), words
    elif program == "ray":
        _check_ray(rest)
    else:
        assert program in ("git", "export", "cd"), f"pages do not use {program}"


def _check_ray(words: list[str]) -> None:
    """Parse a Ray command with Ray's own parser, if installed; tests/corpus runs it."""
    if importlib.util.find_spec("ray"):
        from ray.scripts.scripts import cli

        cli.commands[words[0]].make_context(words[0], words[1:])


def _install(folder: Path) -> None:
    """Create the metadata that an editable pip install would create."""
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    about = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    about.mkdir()
    lines = [f"Name: {project['name']}", f"Version: {project['version']}"]
    (about / "METADATA").write_text("Metadata-Version: 2.1\n" + "\n".join(lines) + "\n")
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
    sys.path.insert(0, str(folder.resolve()))


def _redirect(words: list[str]) -> tuple[list[str], str, str]:
    """Split off the file into which the output goes, and the mode in which it is opened."""
    for arrow, mode in ((">", "w"), (">>", "a")):
        if arrow in words:
            place = words.index(arrow)
            return words[:place], words[place + 1], mode
    return words, "", ""


def _split_pipe(words: list[str]) -> list[list[str]]:
    """Split a pipe into its commands."""
    commands: list[list[str]] = [[]]
    for word in words:
        if word == "|":
            commands.append([])
        else:
            commands[-1].append(word)
    return commands


def _expand(word: str) -> list[str]:
    if not any(c in word for c in "*?") or ("/" not in word and "." not in word):
        return [word]
    return sorted(str(path) for path in Path().glob(word)) or [word]
