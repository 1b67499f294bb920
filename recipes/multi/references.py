"""Use human references as hypotheses that must beat clearly worse outputs given the source.

    python -m recipes.multi.references --parts parts/

This command flags training texts that occur in development or test sets; these are never used as
hypotheses. References only appear in comparisons and get no score: raters of some datasets score
references low, and most datasets do not rate them.
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
LOW_QUANTILE = 1 / 3  # outputs below count as clearly worse than a reference
MIN_SCORE_GAP = 0.4  # between a rated second reference and the output
PREFERENCE_SHARE = 0.85  # of raters would prefer the reference
OUT_OF_ENGLISH = 2.0  # sampling weight
SOURCE_ONLY = (1.0, 0.0, 0.0)


def find_leaks(lines: Sequence[str], held_out: Iterable[str]) -> Flags:
    """Flag lines that occur in held-out texts, compared by letters and digits."""
    held_out_texts = {normalize_text(text) for text in held_out}
    return np.array([normalize_text(line) in held_out_texts for line in lines], np.bool_)


def write_leaks(parts: Path) -> None:
    """Write `derived/leaks-PART.npy`, a flag for each text of a part."""
    held_out = read_lines(tables.wait_for_file(parts / "held-out/texts.xz"))
    names, blocks = read_outputs(parts / "outputs" / ARCHIVE)
    lines = {name: read_lines(parts / name / "texts.xz") for name in ("judgements", "rankings")}
    leaks_by_part = {name: find_leaks(texts, held_out) for name, texts in lines.items()}
    count = min(len(block) for block in blocks.values())
    flags = np.zeros((count, len(names)), np.bool_)
    for column, name in enumerate(names):
        if "-" not in name:  # FLORES texts; system outputs are not references
            flags[:, column] = find_leaks(blocks[name][:count], held_out)
    leaks_by_part["outputs"] = flags.reshape(-1)
    (parts / tables.DERIVED).mkdir(parents=True, exist_ok=True)
    for name, leaks in leaks_by_part.items():
        partial = parts / tables.DERIVED / f"leaks-{name}.part.npy"
        np.save(partial, leaks)
        partial.rename(parts / tables.DERIVED / f"leaks-{name}.npy")
        print(name, int(leaks.sum()), "of", len(leaks), "texts are held out", flush=True)


def leaked_texts(parts: Parts, name: str, base: int) -> Ints:
    """Return the pool numbers of a part's held-out texts."""
    flags: Flags = np.load(parts.derived(f"leaks-{name}.npy"))
    return np.flatnonzero(flags) + base


def is_in_lowest_third(scores: Floats) -> Flags:
    """Flag scores in the lowest third.

    >>> is_in_lowest_third(np.array([0.3, -1.0, 0.5])).tolist()
    [False, True, False]
    """
    return np.asarray(scores <= np.quantile(scores, LOW_QUANTILE))


def pair_with_references(texts: Ints, scores: Floats, leaked: Ints) -> tuple[Ints, Ints]:
    """Return low-scoring outputs (rows) and their references as source-only rows."""
    is_complete = (texts >= 0).all(1) & (texts[:, 0] != texts[:, 2]) & ~np.isin(texts[:, 2], leaked)
    rows = np.flatnonzero(is_complete)
    rows = rows[is_in_lowest_third(scores[rows])] if len(rows) else rows
    better = texts[rows]
    better[:, 0], better[:, 2] = better[:, 2], -1
    return better, rows


def pair_with_second_references(
    texts: Ints, scores: Floats, human: Flags, leaked: Ints
) -> tuple[Ints, Ints]:
    """Return low-scoring outputs and a clearly better second reference.

    The pairs keep the first reference, so every input mode is possible.
    """
    is_complete = (texts >= 0).all(1) & (texts[:, 0] != texts[:, 2])
    key = texts[:, 1] * (texts.max() + 1) + texts[:, 2]
    second_references = np.flatnonzero(is_complete & human & ~np.isin(texts[:, 0], leaked))
    outputs = np.flatnonzero(is_complete & ~human)
    if not len(second_references) or not len(outputs):
        return texts[:0], outputs[:0]
    outputs = outputs[is_in_lowest_third(scores[outputs])]
    second_references = second_references[
        np.lexsort((scores[second_references], key[second_references]))
    ]
    # the best of several second references is the last of its key
    place = np.searchsorted(key[second_references], key[outputs], side="right") - 1
    matched = second_references[np.maximum(place, 0)]
    is_better = (key[matched] == key[outputs]) & (
        scores[matched] >= scores[outputs] + MIN_SCORE_GAP
    )
    return texts[matched[is_better]], outputs[is_better]


def compare(better: Ints, worse: Ints, targets: Floats) -> Table:
    """Build units of two rows: a reference, and a worse output with its own target."""
    count = len(better)
    worse = np.where(better < 0, -1, worse)  # both rows have the same texts
    missing = np.full_like(targets, np.nan)
    both = np.stack([missing, targets], 1).reshape(-1, targets.shape[1])
    table = rows_table(np.stack([better, worse], 1).reshape(-1, 3), both)
    table.row_starts = 2 * np.arange(count + 1)
    table.pairs = np.tile(np.array([0, 1, PREFERENCE_SHARE, 1], np.float32), (count, 1))
    table.pair_starts = np.arange(count + 1)
    table.margin_starts = np.zeros(count + 1, np.int64)
    return table


def from_english(store: Store, rows: Ints) -> Flags:
    """Return whether rows of judgments are translations from English."""
    flags = np.array(["/en-" in name for name in store.names])
    return np.asarray(flags[store.columns["set"][rows]])


def language_weights(is_from_english: Flags) -> Floats:
    """Return sampling weights that favor translations from English."""
    return np.where(is_from_english, OUT_OF_ENGLISH, 1.0).astype(np.float32)


def judged_samplers(parts: Parts, texts: Ints, targets: Floats) -> list[TableSampler]:
    """Return samplers of references paired with judged outputs."""
    store, base = parts.judgments
    leaked, scores = leaked_texts(parts, "judgements", base), np.nanmean(targets, 1)
    human = store.columns["human"] > 0
    outputs = np.where(human[:, None], -1, texts)
    pairs = [
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
        for (better, rows), share, modes in pairs
        if len(rows)
    ]


def distilled_sampler(
    texts: Ints, teacher_scores: Floats, leaked: Ints, is_from_english: Flags, share: float
) -> TableSampler:
    """Return a sampler of references paired with outputs that teachers score low."""
    better, rows = pair_with_references(texts, teacher_scores.mean(1), leaked)
    return TableSampler(
        compare(better, texts[rows], teacher_scores[rows]),
        share,
        SOURCE_ONLY,
        language_weights(is_from_english[rows]),
    )


def reference_samplers(
    parts: Parts, rows: dict[str, Ints], teacher_scores: dict[str, Floats], most: int, share: float
) -> list[TableSampler]:
    """Return all samplers; `share` is their total share of units."""
    flores, (_, base) = parts.outputs, parts.rankings
    is_from_english = flores.from_english(flores.sample(most)[1])
    no_flags = np.zeros(len(rows["rankings"]), np.bool_)  # all are into English
    samplers = [
        *judged_samplers(parts, rows["judgements"], teacher_scores["judgements"]),
        distilled_sampler(
            rows["outputs"],
            teacher_scores["outputs"],
            leaked_texts(parts, "outputs", flores.base),
            is_from_english,
            0.32,
        ),
        distilled_sampler(
            rows["rankings"],
            teacher_scores["rankings"],
            leaked_texts(parts, "rankings", base),
            no_flags,
            0.2,
        ),
    ]
    for source in samplers:
        print("references", len(source.table), "by", source.modes, flush=True)
        source.sampling_share *= share
    return samplers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", type=Path, required=True, help="folder of packed data")
    write_leaks(parser.parse_args().parts)


if __name__ == "__main__":
    main()
