"""Tokenize packed parts: piece ids of all texts, columns, and spans by pieces.

python -m recipes.multi.store parts/rankings --encoder parts/encoder
"""

from __future__ import annotations

import argparse
import json
import lzma
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipes.multi.e5 import Pieces

IntArray = NDArray[np.int64]
MAX_PIECES = 510  # per text: 512 positions less two special tokens
BATCH = 50_000
ARCHIVE, FLORES_LINES = "flores.tar.xz", 2009


@dataclass(frozen=True)
class Store:
    """One packed part; the pieces of text n lie between `offsets` n and n + 1."""

    pieces: NDArray[np.int32]
    offsets: IntArray
    columns: dict[str, NDArray[Any]]
    names: list[str]

    @classmethod
    def open(cls, folder: Path) -> Store:
        with np.load(folder / "rows.npz") as stored:
            columns = {name: stored[name] for name in stored.files}
        if (folder / "marks.npy").exists():
            columns["marks"] = np.load(folder / "marks.npy")
        names = json.loads((folder / "names.json").read_text())
        return cls(np.load(folder / "pieces.npy"), np.load(folder / "offsets.npy"), columns, names)

    def text(self, number: int) -> NDArray[np.int32] | None:
        if number < 0:
            return None
        return self.pieces[self.offsets[number] : self.offsets[number + 1]]

    def lengths(self) -> IntArray:
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.columns["hypothesis"])


def read_lines(path: Path) -> list[str]:
    return lzma.decompress(path.read_bytes()).decode("utf-8").split("\n")


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


def write_pieces(folder: Path, lines: list[str], pieces: Pieces) -> None:
    flat, sizes = [], []
    for n in range(0, len(lines), BATCH):
        encoded = [ids[:MAX_PIECES] for ids in pieces.encode(lines[n : n + BATCH])]
        flat.append(np.fromiter((i for ids in encoded for i in ids), np.int32))
        sizes += [len(ids) for ids in encoded]
    np.save(folder / "pieces.npy", np.concatenate(flat))
    np.save(folder / "offsets.npy", np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))


def place_spans(
    spans: NDArray[np.float32], hypotheses: NDArray[np.generic], lines: list[str], pieces: Pieces
) -> NDArray[np.float32]:
    """Convert spans in code points (row, start, end, ...) to pieces; drop empty ones."""
    numbers = hypotheses[spans[:, 0].astype(int)].astype(int)
    order = np.unique(numbers)
    edges: dict[int, NDArray[np.int64]] = {}
    for n in range(0, len(order), BATCH):
        part = order[n : n + BATCH]
        for number, places in zip(part, pieces.places([lines[i] for i in part]), strict=True):
            edges[int(number)] = np.array(places[:MAX_PIECES], np.int64).reshape(-1, 2)
    piece_spans = []
    for span, number in zip(spans, numbers, strict=True):
        edge = edges[int(number)]
        inside = np.flatnonzero((edge[:, 1] > span[1]) & (edge[:, 0] < span[2]))
        if len(inside):
            piece_spans.append((span[0], inside[0], inside[-1] + 1, *span[3:]))
    return np.array(piece_spans, np.float32).reshape(-1, 6)


def prepare(folder: Path, pieces: Pieces) -> None:
    """Write the arrays that `Store.open` reads."""
    if (folder / ARCHIVE).exists():
        names, blocks = read_outputs(folder / ARCHIVE)
        count = min(len(lines) for lines in blocks.values())
        write_pieces(folder, [blocks[name][n] for n in range(count) for name in names], pieces)
        (folder / "outputs.json").write_text(json.dumps(names))
    else:
        lines = read_lines(folder / "texts.xz")
        write_pieces(folder, lines, pieces)
        with np.load(folder / "rows.npz") as stored:
            spans, hypotheses = stored["spans"], stored["hypothesis"]
        np.save(folder / "marks.npy", place_spans(spans, hypotheses, lines, pieces))
    (folder / "READY").touch()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+", help="folders of packed parts")
    parser.add_argument("--encoder", type=Path, required=True, help="folder of the pruned encoder")
    args = parser.parse_args()
    pieces = Pieces(args.encoder / "tokenizer.json")
    for folder in args.folders:
        prepare(folder, pieces)
        print("prepared", folder, flush=True)


if __name__ == "__main__":
    main()
