"""Read judgments and texts, and keep held-out texts out of training.

A training row is dropped if its reference occurs in held-out data, or its source occurs there for
the same language pair.
"""

from __future__ import annotations

import gzip
import json
import re
import tarfile
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

Row = dict[str, Any]
RANKINGS = ("wmt08", "wmt11", "wmt13", "wmt15", "wmt16")
FLORES, FLORES_LINES = "parallel/flores.tar.xz", 2009
MAX_CHARACTERS = 4000  # more than 512 pieces can hold
_NON_ALPHANUMERIC = re.compile(r"[\W_]+")
_BREAK = re.compile(r"[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


@lru_cache(maxsize=1 << 20)
def normalize_text(text: str) -> str:
    """Return letters and digits of a text, case-folded, to detect overlap.

    >>> normalize_text("“It’s  over,” she said .") == normalize_text('"Its over", she said.')
    True
    """
    return _NON_ALPHANUMERIC.sub("", unicodedata.normalize("NFKC", text).casefold())


def read_rows(path: Path) -> Iterator[Row]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


class HeldOut:
    """Texts of the development and test sets."""

    def __init__(self) -> None:
        self.references: set[str] = set()
        self.sources: set[tuple[str, str]] = set()

    def add(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if row.get("reference"):
                self.references.add(normalize_text(row["reference"]))
            self.sources.add((row["lp"], normalize_text(row["source"])))

    def overlaps(self, row: Row) -> bool:
        """Return whether the reference or the source of a row is held out."""
        reference, source = (
            normalize_text(row.get("reference") or ""),
            normalize_text(row["source"]),
        )
        return (
            (bool(reference) and reference in self.references)
            or source in self.references
            or (row["lp"], source) in self.sources
        )


class Texts:
    """Distinct texts in order of first use, which keeps similar ones together."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str | None) -> int:
        if text is None:
            return -1
        line = _BREAK.sub(" ", text)[:MAX_CHARACTERS]
        if line not in self._numbers:
            self._numbers[line] = len(self.lines)
            self.lines.append(line)
        return self._numbers[line]


def modern_files(data: Path, part: str) -> Iterator[tuple[str, str, Path]]:
    """Yield the kind, `set/pair` and path of each file of modern/<part>."""
    for path in sorted((data / "modern" / part).glob("*/*/*.jsonl.gz")):
        kind, name = path.parts[-3], path.parts[-2]
        yield kind, f"{name}/{path.name.removesuffix('.jsonl.gz')}", path


def gather_held_out(data: Path) -> HeldOut:
    """Collect the texts of all development and test sets."""
    held_out = HeldOut()
    for name in ("wmt15", "wmt17"):
        for path in (data / "da" / name).glob("*.jsonl.gz"):
            held_out.add(read_rows(path))
    for path in (data / "rankings/wmt12").glob("*.texts.jsonl.gz"):
        held_out.add(read_rows(path))
    for part in ("dev", "test"):
        for path in (data / "qe/wmt20").glob(f"*.{part}.jsonl.gz"):
            held_out.add(read_rows(path))
    for _, _, path in modern_files(data, "dev"):
        held_out.add(read_rows(path))
    return held_out


def read_outputs(path: Path) -> tuple[list[str], dict[str, list[str]]]:
    """Read the FLORES archive: sorted names and the lines of each."""
    blocks: dict[str, list[str]] = {}
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            stream = archive.extractfile(member) if member.isfile() else None
            if stream is not None and member.name.endswith(".txt"):
                name = member.name.split("/")[-1].removesuffix(".txt")
                blocks[name] = stream.read().decode("utf-8").split("\n")[:FLORES_LINES]
    return sorted(blocks), blocks
