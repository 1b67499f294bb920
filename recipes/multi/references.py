"""Human references as hypotheses: by the source they must beat outputs that are clearly worse.

    python -m recipes.multi.references --parts parts/

writes which texts of what trains occur in what chooses or tests: none of them stands as a
hypothesis. A reference gets no score of its own, only comparisons, as judges of some sets rate
references low and those of others never saw them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recipes.multi import tables
from recipes.multi.batching import Floats, Ints, Table, TableSampler, rows_table
from recipes.multi.pack import normalize_text
from recipes.multi.packed_rows import MODE_SHARES
from recipes.multi.store import ARCHIVE, Store, read_lines, read_outputs
from recipes.multi.tables import Parts

Flags = NDArray[np.bool_]
LOWEST = 1 / 3  # of the outputs of a table are clearly worse than a reference
AHEAD = 0.4  # of an output that is clearly worse: a second reference that people judged, too
PREFERENCE_SHARE = 0.85  # of judges would prefer the reference
OUT_OF_ENGLISH = 2.0  # times as often: there the source says least
SOURCE_ONLY = (1.0, 0.0, 0.0)


def find_leaks(lines: Sequence[str], held: Iterable[str]) -> Flags:
    """Which lines occur in what is held out, by letters and digits alone."""
    known = {normalize_text(text) for text in held}
    return np.array([normalize_text(line) in known for line in lines], np.bool_)


def write_leaks(parts: Path) -> None:
    """Writes `derived/leaks-PART.npy`, a flag for each text of a part."""
    held = read_lines(tables.wait_for_file(parts / "held-out/texts.xz"))
    names, blocks = read_outputs(parts / "outputs" / ARCHIVE)
    lines = {name: read_lines(parts / name / "texts.xz") for name in ("judgements", "rankings")}
    found = {name: find_leaks(texts, held) for name, texts in lines.items()}
    count = min(len(block) for block in blocks.values())
    flags = np.zeros((count, len(names)), np.bool_)
    for column, name in enumerate(names):
        if "-" not in name:  # the lines themselves; an output is no reference
            flags[:, column] = find_leaks(blocks[name][:count], held)
    found["outputs"] = flags.reshape(-1)
    (parts / tables.DERIVED).mkdir(parents=True, exist_ok=True)
    for name, leaks in found.items():
        partial = parts / tables.DERIVED / f"leaks-{name}.part.npy"
        np.save(partial, leaks)
        partial.rename(parts / tables.DERIVED / f"leaks-{name}.npy")
        print(name, int(leaks.sum()), "of", len(leaks), "texts are held out", flush=True)


def leaked_texts(parts: Parts, name: str, base: int) -> Ints:
    """The numbers in the pool of a part's texts that are held out."""
    flags: Flags = np.load(parts.derived(f"leaks-{name}.npy"))
    return np.flatnonzero(flags) + base


def is_in_lowest_third(scores: Floats) -> Flags:
    """The lowest third.

    >>> clearly_worse(np.array([0.3, -1.0, 0.5])).tolist()
    [False, True, False]
    """
    return np.asarray(scores <= np.quantile(scores, LOWEST))


def pair_with_references(texts: Ints, scores: Floats, leaked: Ints) -> tuple[Ints, Ints]:
    """Outputs (rows) that are clearly worse, and their references, both by the source alone."""
    whole = (texts >= 0).all(1) & (texts[:, 0] != texts[:, 2]) & ~np.isin(texts[:, 2], leaked)
    rows = np.flatnonzero(whole)
    rows = rows[is_in_lowest_third(scores[rows])] if len(rows) else rows
    better = texts[rows]
    better[:, 0], better[:, 2] = better[:, 2], -1
    return better, rows


def pair_with_second_references(
    texts: Ints, scores: Floats, human: Flags, leaked: Ints
) -> tuple[Ints, Ints]:
    """The same with a second reference of the segment, in any view: one that is clearly ahead."""
    whole = (texts >= 0).all(1) & (texts[:, 0] != texts[:, 2])
    key = texts[:, 1] * (texts.max() + 1) + texts[:, 2]
    second = np.flatnonzero(whole & human & ~np.isin(texts[:, 0], leaked))
    outputs = np.flatnonzero(whole & ~human)
    if not len(second) or not len(outputs):
        return texts[:0], outputs[:0]
    outputs = outputs[is_in_lowest_third(scores[outputs])]
    second = second[np.lexsort((scores[second], key[second]))]
    # of several the one that people liked best, the last of its key
    place = np.searchsorted(key[second], key[outputs], side="right") - 1
    beside = second[np.maximum(place, 0)]
    ahead = (key[beside] == key[outputs]) & (scores[beside] >= scores[outputs] + AHEAD)
    return texts[beside[ahead]], outputs[ahead]


def compare(better: Ints, worse: Ints, targets: Floats) -> Table:
    """Units of two rows: a reference, and an output with its own target that it must beat."""
    count = len(better)
    worse = np.where(better < 0, -1, worse)  # what one does not see the other does not
    none = np.full_like(targets, np.nan)
    both = np.stack([none, targets], 1).reshape(-1, targets.shape[1])
    table = rows_table(np.stack([better, worse], 1).reshape(-1, 3), both)
    table.row_starts = 2 * np.arange(count + 1)
    table.pairs = np.tile(np.array([0, 1, PREFERENCE_SHARE, 1], np.float32), (count, 1))
    table.pair_starts = np.arange(count + 1)
    table.margin_starts = np.zeros(count + 1, np.int64)
    return table


def from_english(store: Store, rows: Ints) -> Flags:
    """Whether rows of judgments are translations from English."""
    flags = np.array(["/en-" in name for name in store.names])
    return np.asarray(flags[store.columns["set"][rows]])


def language_weights(english: Flags) -> Floats:
    return np.where(english, OUT_OF_ENGLISH, 1.0).astype(np.float32)


def judged(parts: Parts, texts: Ints, targets: Floats) -> list[TableSampler]:
    """References beside judged outputs, and second ones, which come a fifth as often."""
    store, base = parts.judgments
    leaked, scores = leaked_texts(parts, "judgements", base), np.nanmean(targets, 1)
    human = store.columns["human"] > 0
    outputs = np.where(human[:, None], -1, texts)
    found = [
        (pair_with_references(outputs, scores, leaked), 0.4, SOURCE_ONLY),
        (pair_with_second_references(texts, scores, human, leaked), 0.08, MODE_SHARES),
    ]
    return [
        TableSampler(
            compare(better, texts[rows], targets[rows]),
            share,
            modes,
            language_weights(from_english(store, rows)),
        )
        for (better, rows), share, modes in found
        if len(rows)
    ]


def taught(texts: Ints, said: Floats, leaked: Ints, english: Flags, share: float) -> TableSampler:
    """References beside outputs that are bad by teachers, who see the reference."""
    better, rows = pair_with_references(texts, said.mean(1), leaked)
    return TableSampler(
        compare(better, texts[rows], said[rows]),
        share,
        SOURCE_ONLY,
        language_weights(english[rows]),
    )


def sources(
    parts: Parts, rows: dict[str, Ints], said: dict[str, Floats], most: int, share: float
) -> list[TableSampler]:
    """All of them, by what teachers and people `said` of the taught rows, with a share of units."""
    flores, (_, base) = parts.outputs, parts.rankings
    english = flores.from_english(flores.sample(most)[1])
    none = np.zeros(len(rows["rankings"]), np.bool_)  # all are into English
    found = [
        *judged(parts, rows["judgements"], said["judgements"]),
        taught(
            rows["outputs"],
            said["outputs"],
            leaked_texts(parts, "outputs", flores.base),
            english,
            0.32,
        ),
        taught(
            rows["rankings"], said["rankings"], leaked_texts(parts, "rankings", base), none, 0.2
        ),
    ]
    for source in found:
        print("references", len(source.table), "by", source.modes, flush=True)
        source.share *= share
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", type=Path, required=True)
    write_leaks(parser.parse_args().parts)


if __name__ == "__main__":
    main()
