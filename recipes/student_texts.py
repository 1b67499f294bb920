"""Collect texts that train the multilingual student of a sentence encoder.

    python -m recipes.student_texts --data DIR -o student/

Writes `texts.txt.xz`, one text per line, and `items.npy.xz` with rows of three text numbers: a text
in another language, its English side, and an English output for it (-1 if there is none). Texts
that occur in a test set, or in a set that chooses, are left out.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import lzma
import random
import re
import tarfile
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

SHORTEST, LONGEST = 8, 400  # characters
BETTER_SHARE = 0.4  # outputs by human score that stand for translations
OUTPUTS = 5  # of one source in rankings and in WMT18
FLORES_LINES = 997  # the development half
TRAINED = ("modern/train/*/*/*.gz", "da/wmt16/*.gz", "qe/wmt20/*.train.*", "mqm/news21*")
RANKINGS = ("wmt08", "wmt11", "wmt13", "wmt15", "wmt16")
HELD_OUT = (
    "da/wmt17/*",
    "da/multi30k/*",
    "da/wmt15/*",
    "qe/wmt20/*.dev.*",
    "qe/wmt20/*.test.*",
    "sts/*.dev.*",
    "sts/*.test.*",
    "rankings/wmt12/*.texts*",
    "modern/dev/*/*/*.gz",
)


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def normalize(text: str) -> str:
    return re.sub(r"\W+", "", unicodedata.normalize("NFKC", text).casefold())


class Collection:
    """Distinct texts with numbers, and items of them."""

    def __init__(self, held_out: set[str]) -> None:
        self.held_out = held_out
        self.numbers: dict[str, int] = {}
        self.items: list[tuple[int, int, int]] = []
        self.counts: Counter[str] = Counter()

    def is_allowed(self, *texts: str) -> bool:
        """Return whether texts have a usable length and occur in no held-out set."""
        return all(
            SHORTEST <= len(text) <= LONGEST and normalize(text) not in self.held_out
            for text in texts
        )

    def _number(self, text: str) -> int:
        return self.numbers.setdefault(" ".join(text.split()), len(self.numbers))

    def add(self, kind: str, foreign: str, english: str, output: str = "") -> None:
        number = self._number(output) if output else -1
        self.items.append((self._number(foreign), self._number(english), number))
        self.counts[kind] += 1


def read_held_out(data: Path) -> set[str]:
    paths = [path for pattern in HELD_OUT for path in data.glob(pattern)]
    texts = (
        row[key]
        for path in paths
        for row in read_rows(path)
        for key in ("source", "reference", "a", "b")
        if isinstance(row.get(key), str)
    )
    return {text for text in map(normalize, texts) if len(text) > 12}


def add_judged(collection: Collection, path: Path) -> None:
    """Add judged translations; the better ones out of English stand for references."""
    rows = [row for row in read_rows(path) if row.get("source")]
    source_language, _, target_language = rows[0]["lp"].partition("-")
    scores = sorted(float(row["score"]) for row in rows)
    lowest = scores[int((1 - BETTER_SHARE) * len(scores))]
    for row in rows:
        source, reference, output = row["source"], row.get("reference"), row["hypothesis"]
        usable = SHORTEST <= len(output) <= LONGEST
        is_good = row["score"] >= lowest and collection.is_allowed(source, output)
        if target_language == "en" and reference:
            if usable and collection.is_allowed(source, reference):
                collection.add("judged", source, reference, output)
        elif target_language == "en" and is_good:
            collection.add("judged without reference", source, output)
        elif source_language == "en" and is_good:
            collection.add("judged out of English", output, source)
        if source_language == "en" and reference and collection.is_allowed(source, reference):
            collection.add("references out of English", reference, source)


def add_outputs(
    collection: Collection, kind: str, texts: tuple[str, str], outputs: list[str]
) -> None:
    """Add some outputs of one source, with its reference."""
    if not collection.is_allowed(*texts):
        return
    usable = sorted({text for text in outputs if SHORTEST <= len(text) <= LONGEST})
    random.shuffle(usable)
    for output in usable[:OUTPUTS]:
        collection.add(kind, *texts, output)


def read_archive(path: Path) -> dict[str, list[str]]:
    """Return the lines of every text file of an archive."""
    with tarfile.open(path) as archive:
        files = {member.name: archive.extractfile(member) for member in archive if member.isfile()}
        return {
            name.removeprefix("./"): file.read().decode("utf-8", "replace").split("\n")
            for name, file in files.items()
            if file is not None
        }


def add_wmt18(collection: Collection, files: dict[str, list[str]]) -> None:
    """Add the outputs of WMT18 into English."""
    sources: dict[str, list[str]] = {}
    references: dict[str, list[str]] = {}
    outputs: defaultdict[str, list[list[str]]] = defaultdict(list)
    for name, lines in files.items():
        if match := re.search(r"system-outputs/([a-z]{2})-en/", name):
            outputs[match[1]].append(lines)
        elif match := re.search(r"-([a-z]{2})en-(src|ref)\.", name):
            (sources if match[2] == "src" else references)[match[1]] = lines
    for language, systems in outputs.items():
        for number, texts in enumerate(zip(sources[language], references[language], strict=False)):
            lines_of_systems = [lines[number] for lines in systems if number < len(lines)]
            add_outputs(collection, "WMT18", texts, lines_of_systems)


def add_flores(collection: Collection, files: dict[str, list[str]]) -> None:
    """Add the development lines of FLORES in all languages, and outputs of public systems."""
    lines = {name[:-4]: rows for name, rows in files.items() if "/" not in name}
    for language, rows in lines.items():
        if language != "en":
            for foreign, english in zip(rows[:FLORES_LINES], lines["en"], strict=False):
                if collection.is_allowed(foreign, english):
                    collection.add("FLORES", foreign, english)
    for name, rows in files.items():
        if "/" not in name:
            continue
        languages = name.split("/")[1].split(".")[0]
        into_english = languages.endswith("-en")
        language = languages.removesuffix("-en")
        for number, output in enumerate(rows[:FLORES_LINES]):
            english = lines["en"][number]
            if not SHORTEST <= len(output) <= LONGEST:
                continue
            if into_english and collection.is_allowed(lines[language][number], english):
                collection.add("FLORES outputs", lines[language][number], english, output)
            elif not into_english and collection.is_allowed(english):
                collection.add("FLORES outputs out of English", output, english)


def collect(data: Path) -> Collection:
    collection = Collection(read_held_out(data))
    for pattern in TRAINED:
        for path in sorted(data.glob(pattern)):
            add_judged(collection, path)
    for name in RANKINGS:
        for path in sorted(data.glob(f"rankings/{name}/*-en.texts*")):
            for row in read_rows(path):
                if row.get("source"):
                    texts = row["source"], row["reference"]
                    add_outputs(collection, "rankings", texts, [*row["outputs"].values()])
    add_wmt18(collection, read_archive(data / "wmt18-metrics-task.tar.xz"))
    add_flores(collection, read_archive(data / "parallel" / "flores.tar.xz"))
    with gzip.open(data / "parallel" / "tatoeba.tsv.gz", "rt", encoding="utf-8") as file:
        for line in file:
            _, foreign, english = line.rstrip("\n").split("\t")[:3]
            if collection.is_allowed(foreign, english):
                collection.add("Tatoeba", foreign, english)
    return collection


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
    arguments = parser.parse_args()
    random.seed(7)
    collection = collect(arguments.data)
    arguments.output.mkdir(parents=True, exist_ok=True)
    with lzma.open(arguments.output / "texts.txt.xz", "wt", encoding="utf-8", preset=2) as file:
        file.write("\n".join(collection.numbers))
    buffer = io.BytesIO()
    np.save(buffer, np.array(collection.items, np.int32))
    (arguments.output / "items.npy.xz").write_bytes(lzma.compress(buffer.getvalue()))
    for kind, count in collection.counts.items():
        print(f"{count:9,} {kind}")


if __name__ == "__main__":
    main()
