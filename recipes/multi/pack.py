"""Pack training and held-out data of tertium-multi into a few small files.

Texts are stored as lines, similar ones next to each other for compression; judgments are columns
of text numbers. A training row is dropped if its reference occurs in held-out data, or its source
occurs there for the same language pair.

    python -m recipes.multi.pack --data DIR --encoder e5-small-q4.bin --tokenizer e5/ -o parts/
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import re
import shutil
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from recipes.multi.e5 import Pieces, prune, read_published
from recipes.multi.store import read_outputs

Row = dict[str, Any]
RANKINGS = ("wmt08", "wmt11", "wmt13", "wmt15", "wmt16")
KINDS = ("da", "mqm", "esa", "qe")
CATEGORIES = ("accuracy", "omission", "fluency", "terminology", "style", "other")
MINOR, MAJOR, BAD = 1, 2, 3
_SEVERITY = {
    "minor": MINOR,
    "low": MINOR,
    "very low": MINOR,
    "medium": MINOR,
    "high": MAJOR,
    "very high": MAJOR,
    "major": MAJOR,
    "critical": MAJOR,
    "bad": BAD,
}
_NON_ALPHANUMERIC = re.compile(r"[\W_]+")
_BREAK = re.compile(r"[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
MAX_CHARACTERS = 4000  # more than 512 pieces can hold
# pieces are counted in one text in N, about 250,000 texts in all
SAMPLING_STEPS = {"outputs": 40, "tatoeba": 20, "judgements": 6, "rankings": 15}
FLORES = "parallel/flores.tar.xz"
MIN_COUNT = 5  # occurrences of a piece to stay in the vocabulary


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


class Packed:
    """Rows of several datasets as columns, with spans, documents and comparisons."""

    def __init__(self) -> None:
        self.texts, self.names = Texts(), list[str]()
        self.columns: dict[str, list[float]] = defaultdict(list)
        self.spans: list[tuple[int, int, int, int, int, float]] = []
        self.comparisons: list[tuple[int, int, int, int]] = []  # left, right, set, outcome
        self._documents: dict[tuple[str, ...], int] = {}

    def add(self, name: str, kind: str, rows: list[Row], *, standardize: bool = True) -> None:
        """Add one file of judgments under the name `set/pair`."""
        self.names.append(name)
        scores = np.array([row["score"] for row in rows], float)
        if standardize and len(scores) > 1:
            scores = (scores - scores.mean()) / max(scores.std(), 1e-6)
        for row, score in zip(rows, scores, strict=True):
            number = self._append(row, score, kind)
            for span in row.get("spans") or []:
                self._append_span(number, span, row)

    def _append(self, row: Row, score: float, kind: str) -> int:
        number_text, number = self.texts.number, len(self.columns["hypothesis"])
        marks = row.get("spans")
        clean = -1
        if marks is not None and kind in ("mqm", "esa"):
            errors = [s for s in marks if s["severity"] not in ("neutral", "no-error")]
            clean = int(not errors and not row.get("missing"))
        document = (self.names[-1], row["doc"], row["system"]) if row.get("doc") else None
        values = {
            "source": number_text(row["source"]),
            "reference": number_text(row.get("reference")),
            "hypothesis": number_text(row["hypothesis"]),
            "score": score,
            "kind": KINDS.index(kind),
            "set": len(self.names) - 1,
            "marked": int(marks is not None),
            "clean": clean,
            "order": int(re.sub(r"\D", "", str(row["segment"])) or 0),
            "document": -1
            if document is None
            else self._documents.setdefault(document, len(self._documents)),
            "human": int(bool(re.match(r"(?i)ref|human", row.get("system") or ""))),
        }
        for column, value in values.items():
            self.columns[column].append(value)
        return number

    def _append_span(self, number: int, span: Row, row: Row) -> None:
        severity = _SEVERITY.get(str(span["severity"]).lower())
        if severity is None or span["side"] != "hypothesis":
            return
        share = 1 / max(int(row.get("raters") or 1), 1) if "rater" in span else 1.0
        category = _category(str(span.get("category") or ""))
        self.spans.append((number, span["start"], span["end"], severity, category, share))

    def add_comparisons(self, name: str, folder: Path, pair: str, held_out: HeldOut | None) -> None:
        """Add one pair of a ranking set; `held_out` removes ties and overlapping rows."""
        self.names.append(name)
        rows: dict[tuple[str, str], int] = {}
        texts = sorted(read_rows(folder / f"{pair}.texts.jsonl.gz"), key=lambda t: t["segment"])
        for text in texts:
            if held_out and held_out.overlaps(text):
                continue
            for system, output in sorted(text["outputs"].items(), key=lambda item: item[1]):
                rows[str(text["segment"]), system] = self._append(
                    {**text, "hypothesis": output, "system": system}, 0.0, "da"
                )
        with gzip.open(folder / f"{pair}.judgements.tsv.gz", "rt", encoding="utf-8") as lines:
            for line in list(lines)[1:]:
                segment, _, first, second, outcome = line.rstrip("\n").split("\t")
                left, right = rows.get((segment, first)), rows.get((segment, second))
                if left is None or right is None or (held_out and outcome == "tie"):
                    continue
                value = {"a": 1, "b": -1, "tie": 0}[outcome]
                self.comparisons.append((left, right, len(self.names) - 1, value))

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        text = "\n".join(self.texts.lines).encode()
        (folder / "texts.xz").write_bytes(lzma.compress(text, preset=6))
        types = {"score": np.float32}
        columns = {c: np.array(v, types.get(c, np.int32)) for c, v in self.columns.items()}
        np.savez_compressed(
            folder / "rows.npz",
            allow_pickle=False,
            **columns,
            spans=np.array(self.spans, np.float32).reshape(-1, 6),
            comparisons=np.array(self.comparisons, np.int32).reshape(-1, 4),
        )
        (folder / "names.json").write_text(json.dumps(self.names))


def _category(name: str) -> int:
    """Return 1 + the number of a coarse error category, 0 without a name."""
    lowered = name.lower()
    if not lowered:
        return 0
    for part, coarse in (
        ("omission", 1),
        ("accuracy", 0),
        ("mistransl", 0),
        ("untransl", 0),
        ("fluency", 2),
        ("grammar", 2),
        ("spelling", 2),
        ("terminology", 3),
        ("style", 4),
    ):
        if part in lowered:
            return 1 + coarse
    return 1 + CATEGORIES.index("other")


def modern_files(data: Path, part: str) -> Iterator[tuple[str, str, Path]]:
    """Yield the kind, `set/pair` and path of each file of modern/<part>."""
    for path in sorted((data / "modern" / part).glob("*/*/*.jsonl.gz")):
        kind, name = path.parts[-3], path.parts[-2]
        yield kind, f"{name}/{path.name.removesuffix('.jsonl.gz')}", path


def sort_rows(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda r: (str(r.get("doc")), str(r["segment"]), r["hypothesis"]))


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


def pack_rankings(data: Path, held_out: HeldOut) -> Packed:
    packed = Packed()
    for name in RANKINGS:
        for path in sorted((data / "rankings" / name).glob("*.texts.jsonl.gz")):
            pair = path.name.split(".")[0]
            packed.add_comparisons(f"{name}/{pair}", path.parent, pair, held_out)
    return packed


def pack_judgments(data: Path, held_out: HeldOut) -> Packed:
    """Pack da/wmt16, modern/train, and rows of qe/wmt20 that are not in it."""
    packed, known_sources = Packed(), set[tuple[str, str]]()
    for path in sorted((data / "da/wmt16").glob("*.jsonl.gz")):
        rows = [row for row in read_rows(path) if not held_out.overlaps(row)]
        packed.add(f"wmt16/{path.name.split('.')[0]}", "da", sort_rows(rows))
    for kind, name, path in modern_files(data, "train"):
        rows = [row for row in read_rows(path) if not held_out.overlaps(row)]
        if kind == "qe":
            known_sources |= {(row["lp"], normalize_text(row["source"])) for row in rows}
        packed.add(name, kind, sort_rows(rows))
    for path in sorted((data / "qe/wmt20").glob("*.train.jsonl.gz")):
        rows = [
            r
            for r in read_rows(path)
            if not held_out.overlaps(r)
            and (r["lp"], normalize_text(r["source"])) not in known_sources
        ]
        if len(rows) > 50:
            packed.add(f"qe20/{path.name.split('.')[0]}", "qe", sort_rows(rows))
    return packed


def pack_held_out(data: Path) -> Packed:
    """Pack development sets (names `dev:`) and test sets (names `test:`) with raw scores."""
    packed = Packed()
    for part, name in (("dev", "wmt15"), ("test", "wmt17")):
        for path in sorted((data / "da" / name).glob("*.jsonl.gz")):
            pair = path.name.split(".")[0]
            packed.add(f"{part}:{name}/{pair}", "da", list(read_rows(path)), standardize=False)
    for part in ("dev", "test"):
        for path in sorted((data / "qe/wmt20").glob(f"*.{part}.jsonl.gz")):
            pair = path.name.split(".")[0]
            packed.add(f"{part}:qe20/{pair}", "qe", list(read_rows(path)), standardize=False)
    for kind, name, path in modern_files(data, "dev"):
        if kind == "qe" and name.startswith(("mlqe-dev", "mlqe-test20")):
            continue  # the same texts as qe/wmt20
        packed.add(f"dev:{name}", kind, sort_rows(read_rows(path)), standardize=False)
    for path in sorted((data / "rankings/wmt12").glob("*.texts.jsonl.gz")):
        pair = path.name.split(".")[0]
        packed.add_comparisons(f"test:wmt12/{pair}", path.parent, pair, None)
    return packed


def sample_texts(data: Path, parts: dict[str, Packed]) -> Iterator[str]:
    """Yield the texts whose pieces are counted: FLORES and a sample of the training texts."""
    names, blocks = read_outputs(data / FLORES)
    for name in names:
        yield from blocks[name] if "-" not in name else blocks[name][:: SAMPLING_STEPS["outputs"]]
    with gzip.open(data / "parallel/tatoeba.tsv.gz", "rt", encoding="utf-8") as stream:
        for number, line in enumerate(stream):
            if number % SAMPLING_STEPS["tatoeba"] == 0:
                yield line.rstrip("\n").split("\t")[1]
    for part in ("judgements", "rankings"):
        yield from parts[part].texts.lines[:: SAMPLING_STEPS[part]]


def count_pieces(pieces: Pieces, texts: Iterable[str]) -> Counter[int]:
    """Count the pieces of texts."""
    counts: Counter[int] = Counter()
    batch: list[str] = []
    for text in texts:
        batch.append(text)
        if len(batch) == 20_000:
            for ids in pieces.encode(batch):
                counts.update(ids)
            batch = []
    for ids in pieces.encode(batch):
        counts.update(ids)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of human judgments")
    parser.add_argument("--encoder", type=Path, required=True, help="e5-small-q4.bin")
    parser.add_argument("--tokenizer", type=Path, required=True, help="folder of tokenizer.json")
    parser.add_argument("--least", type=int, default=MIN_COUNT, help="minimum count of a piece")
    parser.add_argument("-o", "--out", type=Path, required=True, help="output folder")
    args = parser.parse_args()
    held_out = gather_held_out(args.data)
    parts = {
        "rankings": pack_rankings(args.data, held_out),
        "judgements": pack_judgments(args.data, held_out),
        "held-out": pack_held_out(args.data),
    }
    for name, packed in parts.items():
        packed.write(args.out / name)
        print(
            name,
            len(packed.texts.lines),
            "texts",
            len(packed.columns["score"]),
            "rows",
            len(packed.spans),
            "spans",
            len(packed.comparisons),
            "comparisons",
            flush=True,
        )
    # the archive is already well compressed
    (args.out / "outputs").mkdir(parents=True, exist_ok=True)
    shutil.copy(args.data / FLORES, args.out / "outputs")
    pieces = Pieces(args.tokenizer / "tokenizer.json")
    counts = count_pieces(pieces, sample_texts(args.data, parts))
    kept_pieces = [pieces.names[n] for n, count in counts.items() if count >= args.least]
    prune(
        read_published(args.encoder),
        args.tokenizer / "tokenizer.json",
        kept_pieces,
        args.out / "encoder",
    )
    print(len(counts), "pieces occur,", len(kept_pieces), "are kept", flush=True)


if __name__ == "__main__":
    main()
