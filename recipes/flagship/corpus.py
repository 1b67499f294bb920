"""Stage 1: build the training corpus as one table of texts, pairs and comparisons.

    python -m recipes.flagship.corpus --data DIR -o corpus/

Pairs of a hypothesis and a reference come from the rankings of wmt11, 13, 15 and 16, da/wmt16,
expert MQM scores, unlabeled outputs of WMT18 systems, outputs of other systems used as
pseudo-references, references used as hypotheses, and damaged versions of all these. Comparisons
state which of two pairs of a segment is better. da/wmt15 is the development set. Segments whose
reference occurs in a development set (da/wmt15, modern/dev) or test set (da/wmt17,
rankings/wmt12) are dropped.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipes.flagship.damage import KINDS, damage
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.judgments import JudgmentSet
from tertium.data.rankings import RankingSet
from tertium.data.ratings import drop_overlap, normalize_reference

IntArray = NDArray[np.int64]

RANKINGS = ("wmt11", "wmt13", "wmt15", "wmt16")
DEV_SETS = ("modern/dev/mqm/ted21", "modern/dev/da/wmt22", "modern/dev/da/wmt22liv")
ORIGINS = ("ranking", "da", "mqm", "wmt18", "pseudo", "copy", "damage", "source copy")
CASE_ONLY_DAMAGE = ("case lost",)  # invisible to an uncased teacher
MIN_MQM_DIFFERENCE = 1.0


@dataclass(frozen=True)
class Corpus:
    """Texts, pairs (rows of `hypothesis` and `reference`) and their labels.

    `segment` groups comparable pairs. `origin` indexes ORIGINS. `parent` is the pair that a damaged
    one was made from (-1: none) and `kind` the damage. `better` and `worse` are pairs. `scored` are
    pairs with a direct assessment (`scores`). `dev` are the pairs of da/wmt15.
    """

    texts: list[str]
    hypothesis: IntArray
    reference: IntArray
    segment: IntArray
    origin: IntArray
    parent: IntArray
    kind: IntArray
    better: IntArray
    worse: IntArray
    scored: IntArray
    scores: NDArray[np.float64]
    dev: IntArray  # pairs of da/wmt15
    dev_scores: NDArray[np.float64]
    dev_lp: IntArray

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        with gzip.open(folder / "texts.json.gz", "wt", encoding="utf-8") as file:
            json.dump(self.texts, file, ensure_ascii=False)
        arrays = {k: v for k, v in vars(self).items() if k != "texts"}
        np.savez_compressed(folder / "arrays.npz", **arrays)

    @classmethod
    def load(cls, folder: Path) -> Corpus:
        with gzip.open(folder / "texts.json.gz", "rt", encoding="utf-8") as file:
            texts = json.load(file)
        with np.load(folder / "arrays.npz") as arrays:
            return cls(texts, **{key: arrays[key] for key in arrays.files})


@dataclass
class Builder:
    """Collect distinct texts, pairs and comparisons."""

    texts: dict[str, int] = field(default_factory=dict)
    pairs: dict[tuple[int, int], int] = field(default_factory=dict)
    rows: list[tuple[int, int, int, int]] = field(default_factory=list)
    better: list[int] = field(default_factory=list)
    worse: list[int] = field(default_factory=list)
    scored: list[tuple[int, float]] = field(default_factory=list)
    dev: list[tuple[int, float, int]] = field(default_factory=list)
    segments: dict[int, int] = field(default_factory=dict)

    def add_pair(
        self, hypothesis: str, reference: str, origin: str, parent: int = -1, kind: int = -1
    ) -> int:
        h = self.texts.setdefault(hypothesis, len(self.texts))
        r = self.texts.setdefault(reference, len(self.texts))
        if (h, r) not in self.pairs:
            self.pairs[h, r] = len(self.pairs)
            self.segments.setdefault(r, len(self.segments))
            self.rows.append((self.segments[r], ORIGINS.index(origin), parent, kind))
        return self.pairs[h, r]

    def add_comparison(self, better: int, worse: int) -> None:
        if better != worse:
            self.better.append(better)
            self.worse.append(worse)

    def to_corpus(self) -> Corpus:
        keys = np.array(list(self.pairs), dtype=np.int64)
        rows = np.array(self.rows, dtype=np.int64)
        dev = np.array([(row, lp) for row, _, lp in self.dev], dtype=np.int64)
        return Corpus(
            texts=list(self.texts),
            hypothesis=keys[:, 0],
            reference=keys[:, 1],
            segment=rows[:, 0],
            origin=rows[:, 1],
            parent=rows[:, 2],
            kind=rows[:, 3],
            better=np.array(self.better),
            worse=np.array(self.worse),
            scored=np.array([row for row, _ in self.scored]),
            scores=np.array([score for _, score in self.scored]),
            dev=dev[:, 0],
            dev_scores=np.array([s for _, s, _ in self.dev]),
            dev_lp=dev[:, 1],
        )


def pairs_into_english(data: DatasetFolder, name: str) -> list[str]:
    return [lp for lp in data.find(name).lps if lp.endswith("-en")]


def build(data: DatasetFolder, seed: int = 1) -> Corpus:
    """Build the corpus without held-out references."""
    rng = np.random.default_rng(seed)
    builder = Builder()
    held_out: list[JudgmentSet | RankingSet] = [
        data.judgments(name, lp)
        for name in ("da/wmt15", "da/wmt17", *DEV_SETS)
        for lp in pairs_into_english(data, name)
    ]
    held_out += [
        data.rankings("rankings/wmt12", lp) for lp in pairs_into_english(data, "rankings/wmt12")
    ]
    references = add_rankings(builder, data, held_out)
    add_judgments(builder, data, held_out)
    add_wmt18(builder, data, held_out, rng, references)
    add_pseudo_references(builder, rng)
    add_copies(builder, rng)
    add_source_copies(builder, rng, references)
    add_damage(builder, rng)
    for lp_number, lp in enumerate(pairs_into_english(data, "da/wmt15")):
        for judgment in data.judgments("da/wmt15", lp).judgments:
            segment = judgment.segment
            row = builder.add_pair(segment.hypothesis, segment.references[0], "da")
            builder.dev.append((row, judgment.score, lp_number))
    return builder.to_corpus()


def add_rankings(
    builder: Builder, data: DatasetFolder, held_out: list[JudgmentSet | RankingSet]
) -> dict[str, str]:
    """Add human comparisons; return reference -> source."""
    sources: dict[str, str] = {}
    for year in RANKINGS:
        for lp in pairs_into_english(data, f"rankings/{year}"):
            ranking = drop_overlap(data.rankings(f"rankings/{year}", lp), held_out).without_ties()
            sources |= add_ranking(builder, ranking)
    return sources


def add_ranking(builder: Builder, ranking: RankingSet) -> dict[str, str]:
    """Add the comparisons of one dataset; return reference -> source."""
    sources: dict[str, str] = {}
    rows: dict[int, int] = {}
    for left, right, verdict in zip(ranking.left, ranking.right, ranking.verdicts, strict=True):
        for n in (int(left), int(right)):
            if n not in rows:
                segment = ranking.segments[n]
                rows[n] = builder.add_pair(segment.hypothesis, segment.references[0], "ranking")
                sources[segment.references[0]] = segment.source or ""
        a, b = rows[int(left)], rows[int(right)]
        builder.add_comparison(*((a, b) if verdict == 1.0 else (b, a)))
    return sources


def add_judgments(
    builder: Builder, data: DatasetFolder, held_out: list[JudgmentSet | RankingSet]
) -> None:
    """Add direct assessments of wmt16, and comparisons from MQM scores."""
    for lp in pairs_into_english(data, "da/wmt16"):
        for judgment in drop_overlap(data.judgments("da/wmt16", lp), held_out).judgments:
            segment = judgment.segment
            row = builder.add_pair(segment.hypothesis, segment.references[0], "da")
            builder.scored.append((row, judgment.score))
    by_item: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for record in read_mqm(data, "news21"):
        row = builder.add_pair(record["hypothesis"], record["reference"], "mqm")
        by_item[record["reference"]].append((row, float(record["score"])))
    for rows in by_item.values():
        for a, score_a in rows:
            for b, score_b in rows:
                if score_a - score_b >= MIN_MQM_DIFFERENCE:
                    builder.add_comparison(a, b)


def read_mqm(data: DatasetFolder, part: str) -> Iterable[dict[str, Any]]:
    with gzip.open(data.root / f"mqm/{part}.zh-en.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def add_wmt18(
    builder: Builder,
    data: DatasetFolder,
    held_out: list[JudgmentSet | RankingSet],
    rng: np.random.Generator,
    sources: dict[str, str],
    share: float = 0.5,
) -> None:
    """Add unlabeled outputs of WMT18 systems."""
    held_out_references = {
        normalize_reference(r) for part in held_out for s in part.segments for r in s.references
    }
    task = data.metrics_task("wmt18-metrics-task")
    for lp in task.with_outputs:
        if not lp.endswith("-en"):
            continue
        testset = task.testset(lp)
        for system in testset.systems:
            for segment in testset.segments(system):
                reference = segment.references[0]
                if (
                    rng.random() < share
                    and normalize_reference(reference) not in held_out_references
                ):
                    builder.add_pair(segment.hypothesis, reference, "wmt18")
                    sources[reference] = segment.source or ""


def add_pseudo_references(builder: Builder, rng: np.random.Generator, count: int = 60_000) -> None:
    """Add pairs of two outputs of a segment, one used as the reference."""
    texts = list(builder.texts)
    by_reference: dict[int, list[int]] = defaultdict(list)
    for h, r in builder.pairs:
        by_reference[r].append(h)
    groups = [hypotheses for hypotheses in by_reference.values() if len(hypotheses) > 1]
    for group in rng.integers(len(groups), size=count):
        a, b = rng.choice(groups[group], size=2, replace=False)
        builder.add_pair(texts[a], texts[b], "pseudo")


def add_copies(builder: Builder, rng: np.random.Generator) -> None:
    """Add every reference as its own hypothesis, better than two of its hypotheses."""
    texts = list(builder.texts)
    rows_of: dict[int, list[int]] = defaultdict(list)
    for (h, r), row in builder.pairs.items():
        if h != r and builder.rows[row][1] != ORIGINS.index("pseudo"):
            rows_of[r].append(row)
    for r, rows in rows_of.items():
        copy = builder.add_pair(texts[r], texts[r], "copy")
        for row in rng.choice(rows, size=min(2, len(rows)), replace=False):
            builder.add_comparison(copy, int(row))


def add_source_copies(
    builder: Builder, rng: np.random.Generator, sources: dict[str, str], share: float = 0.1
) -> None:
    """Add untranslated sources as hypotheses, worse than the reference."""
    for reference, source in sources.items():
        if source and source != reference and rng.random() < share:
            copied = builder.add_pair(source, reference, "source copy")
            builder.add_comparison(builder.add_pair(reference, reference, "copy"), copied)


def add_damage(builder: Builder, rng: np.random.Generator, count: int = 150_000) -> None:
    """Add damaged texts, each worse than its original."""
    texts = list(builder.texts)
    undamaged = [
        (row, h, r)
        for (h, r), row in builder.pairs.items()
        if builder.rows[row][1] != ORIGINS.index("source copy")
    ]
    copies = [entry for entry in undamaged if entry[1] == entry[2]]
    names = list(KINDS)
    count_done = 0
    while count_done < count:
        pool = copies if rng.random() < 0.4 else undamaged
        row, h, r = pool[rng.integers(len(pool))]
        kind = int(rng.integers(len(names)))
        changed = damage(texts[h], names[kind], rng)
        if changed is None or (names[kind] == "empty" and rng.random() < 0.9):
            continue
        if changed == texts[r]:
            continue
        worse = builder.add_pair(changed, texts[r], "damage", parent=row, kind=kind)
        builder.add_comparison(row, worse)
        count_done += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", help="folder of human judgments (default: TERTIUM_DATA)")
    parser.add_argument("-o", "--output", type=Path, required=True, help="output folder")
    parser.add_argument("--seed", type=int, default=1, help="random seed (default: 1)")
    args = parser.parse_args()
    corpus = build(DatasetFolder.open(args.data), args.seed)
    corpus.save(args.output)
    origins = np.bincount(corpus.origin, minlength=len(ORIGINS))
    print(
        f"{len(corpus.texts)} texts, {len(corpus.hypothesis)} pairs, "
        f"{len(corpus.better)} comparisons"
    )
    print({name: int(n) for name, n in zip(ORIGINS, origins, strict=True)})


if __name__ == "__main__":
    main()
