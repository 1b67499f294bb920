"""Transcripts of commands: what they print, their exit codes, and the files they write.

Parts that change from run to run are replaced: paths, versions, dates, times, sizes and ports. Of
HTML pages the visible text is stored, of workbooks and Parquet files the cells. The end of a long
file is stored as a digest, but not where a network gave numbers.

Numbers of commands without a network are equal on every machine. Where the name of a network
occurs, numbers may differ by `FP32_TOLERANCE`. On another kind of machine than the one that
recorded the transcripts (see `store`), numbers of networks may differ by `INT8_TOLERANCE`, lines
that are sorted by score may change places, and one such step in four may have any other output if
its exit code and the names of its files are the same. Without AVX512, about ten steps need that.
"""

from __future__ import annotations

import contextlib
import difflib
import gzip
import hashlib
import io
import os
import re
import sys
import zipfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from tests.golden import store

from tertium.models.checkpoint import bundled_models_folder
from tertium.version import __version__

MAX_FILE = 4000  # characters
SHOWN_LINES = 60  # of differences
TEXT_FILES = frozenset(
    ".txt .tsv .csv .json .jsonl .md .xml .sarif .xliff .po .toml .yml .svg .tex .cfg .arb .bib "
    ".strings .tmx .log .py .src .ref .out".split()
)
NETWORKS = re.compile(
    r"tertium-(small|base|multi)|bert|sentsim|wmd|smd|\bsss\b|esim|bilstm|svr|rte-r|pairwise|blend"
    r"|tertium rank",
    re.IGNORECASE,
)
VOLATILE = (
    (re.escape(__version__), "VERSION"),
    (r"\b20\d\d-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?", "DATE"),
    (r"\b\d\d:\d\d:\d\d\b", "TIME"),
    (r"\b(127\.0\.0\.1|localhost):\d+", "HOST"),
    (r"\b(Python|torch|numpy|Linux)[ -/]\d[\w.+-]*", r"\1 VERSION"),
    (r"(wrote \S+ )\(\d+\.\d MB\)", r"\1(SIZE)"),
    (r"\babout [\d,.]+ (s|min|h) saved", "about DURATION saved"),
    (r"\b\d[\d,.]* rows per second", "N rows per second"),
    (r'("seconds"|"rows_per_second"): [\d.e-]+', r"\1: N"),
    (r"\b1[5-9]\d{17}\b", "TIME"),  # in nanoseconds
    (r"0x[0-9a-f]{6,}", "ADDRESS"),
    (r"\bpid \d+", "pid N"),
    # `tertium list models` tells where models are, or how to install them
    (r"(location, or command to install\n *)─+", r"\1─"),
    (
        r"(?m)( \d+   )((package [\w-]+|(models )?folder): |tertium setup install ).*",
        r"\1LOCATION",
    ),
    (r"(?m)^(models folder|Hugging Face cache): .*", r"\1: LOCATION"),
)
RUN_STATE = "_done"  # a folder in which `corpus` notes its progress
NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")


class VisibleText(HTMLParser):
    """Collects the text of a page that a reader can see."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.hidden += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self.hidden and data.strip():
            self.texts.append(" ".join(data.split()))


def describe_file(path: Path, is_neural: bool) -> str:
    """Return the content of a file as text; empty if it has none that can be compared."""
    if RUN_STATE in path.parts:
        return ""
    suffix = path.suffix.lower()
    data = path.read_bytes()
    if suffix == ".gz":
        data, suffix = gzip.decompress(data), Path(path.stem).suffix
    if suffix == ".html":
        page = VisibleText()
        page.feed(data.decode())
        text = "\n".join(page.texts)
    elif suffix == ".xlsx":
        text = read_cells(path)
    elif suffix == ".parquet":
        import pyarrow.parquet

        text = "\n".join(map(str, pyarrow.parquet.read_table(path).to_pylist()))
    elif suffix == ".zip":
        text = "\n".join(sorted(zipfile.ZipFile(io.BytesIO(data)).namelist()))
    elif suffix in TEXT_FILES:
        text = data.decode(errors="replace")
    else:
        return ""
    return shorten(normalize(text), is_neural)


def read_cells(path: Path) -> str:
    """Return the cells of a workbook, one row per line."""
    import openpyxl

    lines = []
    for sheet in openpyxl.load_workbook(path):
        lines.append(f"[{sheet.title}]")
        for row in sheet.iter_rows(values_only=True):
            lines.append("\t".join("" if cell is None else str(cell) for cell in row))
    return "\n".join(lines)


def shorten(text: str, is_neural: bool) -> str:
    """Replace the end of a long text by its digest."""
    if len(text) <= MAX_FILE:
        return text
    end = text.rfind("\n", 0, MAX_FILE)
    end = MAX_FILE if end < 0 else end
    digest = "" if is_neural else hashlib.sha256(text[end:].encode()).hexdigest()[:16]
    return f"{text[:end]}\n... {len(text[end:].splitlines())} more lines {digest}".rstrip()


def normalize(text: str) -> str:
    """Replace what changes from run to run."""
    for folder, name in ((str(Path.cwd()), "FOLDER"), (str(store.FOLDER.parents[1]), "ROOT")):
        text = text.replace(folder, name)
    if cache := os.environ.get("TERTIUM_CACHE"):
        text = text.replace(cache, "CACHE")
    text = text.replace(str(bundled_models_folder()), "MODELS").replace(sys.prefix, "PREFIX")
    text = text.replace(str(Path.home()), "HOME").replace("\r", "\\r").replace("\x1b", "\\e")
    for pattern, replacement in VOLATILE:
        text = re.sub(pattern, replacement, text)
    return "\n".join(line.rstrip() for line in text.splitlines())


class Transcript:
    """The commands of one golden file, in order."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    @contextlib.contextmanager
    def step(self, command: str) -> Iterator[dict[str, str]]:
        """Record a command: its output, which the caller puts into the dict, and its files."""
        before, shown = list_files(), dict[str, str]()
        yield shown
        is_neural = bool(NETWORKS.search(command + "".join(shown.values())))
        parts = [f"$ {normalize(command)}"]
        for name, text in shown.items():
            if text.strip():
                parts += [f"--- {name}" if name != "stdout" else "", normalize(text)]
        for path, state in list_files().items():
            if before.get(path) != state:
                change = "changed" if path in before else "wrote"
                parts += [f"--- {change} {normalize(str(path))}", describe_file(path, is_neural)]
        self.steps.append("\n".join(part for part in parts if part))

    def check(self, path: Path) -> None:
        """Compare with the recorded transcript, or record it."""
        if store.is_recording():
            old = read_steps(path) if path.is_file() else {}
            texts = [
                old[key] if key in old and is_same_step(old[key], text) else text
                for key, text in number_steps(self.steps).items()
            ]
            store.write_file(path, "\n\n".join(texts) + "\n")
            return
        assert path.is_file(), f"{path.name} is missing: {store.how_to_record(path)}"
        expected, found = read_steps(path), number_steps(self.steps)
        lines: list[str] = []
        tolerated = 0 if store.is_recording_machine() else max(2, len(found) // 4)
        page_is_neural = any(map(NETWORKS.search, found.values()))
        for key in dict.fromkeys([*expected, *found]):
            old_text, new_text = expected.get(key, ""), found.get(key, "")
            is_neural = page_is_neural and key.startswith("$ python: ")
            if is_same_step(old_text, new_text, is_neural=is_neural):
                continue
            has_same_results = list_results(old_text) == list_results(new_text)
            if tolerated and has_same_results and (is_neural or NETWORKS.search(old_text)):
                tolerated -= 1
                continue
            lines.append(f"in {key}:")
            old_lines, new_lines = old_text.splitlines(), new_text.splitlines()
            diff = difflib.unified_diff(old_lines, new_lines, lineterm="", n=1)
            lines += [*diff][2:]
        shown = "\n".join(lines[:SHOWN_LINES])
        assert not lines, f"if this is intended: {store.how_to_record(path)}\n{shown}"


def list_files() -> dict[Path, tuple[int, int]]:
    """Return the files of the current folder, with size and time of change."""
    files = sorted(path for path in Path().rglob("*") if path.is_file())
    return {
        path: (path.stat().st_size, path.stat().st_mtime_ns)
        for path in files
        if "__pycache__" not in path.parts and not path.name.endswith(("-shm", "-wal"))
    }


def read_steps(path: Path) -> dict[str, str]:
    text = store.read_file(path).removesuffix("\n")
    return number_steps(re.split(r"\n\n(?=\$ )", text))


def number_steps(steps: list[str]) -> dict[str, str]:
    """Return steps by their command, numbered where it occurs again."""
    numbered: dict[str, str] = {}
    for step in steps:
        command = key = step.partition("\n")[0]
        while key in numbered:
            key = f"{command} (again: {len(numbered)})"
        numbered[key] = step
    return numbered


def list_results(step: str) -> list[str]:
    """Return the files that a step wrote, and its exit code."""
    lines = step.splitlines()
    return [
        line + (lines[number + 1] if line == "--- exit code" else "")
        for number, line in enumerate(lines)
        if line.startswith("--- ") and line != "--- stderr"
    ]


def is_same_step(expected: str, found: str, *, is_neural: bool = False) -> bool:
    """Compare two transcripts of a command; numbers of networks may differ."""
    if expected == found:
        return True
    if not is_neural and not NETWORKS.search(expected):
        return False
    if store.is_recording_machine():
        return has_same_numbers(expected, found, store.FP32_TOLERANCE)
    return has_same_numbers(expected, found, store.INT8_TOLERANCE) or has_same_numbers(
        sort_lines(expected), sort_lines(found), store.INT8_TOLERANCE
    )


def sort_lines(text: str) -> str:
    return "\n".join(sorted(text.splitlines(), key=lambda line: NUMBER.sub("", line)))


def has_same_numbers(expected: str, found: str, tolerance: float) -> bool:
    """Compare two texts up to white space, rules and decimal numbers."""
    old_numbers, new_numbers = NUMBER.findall(expected), NUMBER.findall(found)
    old_text, new_text = (
        re.sub(r"[─-]+", "-", " ".join(NUMBER.sub("#", text).split())) for text in (expected, found)
    )
    return old_text == new_text and all(
        store.is_same(float(old), float(new), tolerance)
        for old, new in zip(old_numbers, new_numbers, strict=True)
    )
