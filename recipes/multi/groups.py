"""Pack translations with human or soft scores, grouped by source, for `recipes.multi.fine_tune`.

    python -m recipes.multi.groups --data DIR --soft-labels DIR -o packed/

A group holds translations of one source by several systems: the network learns their order. Sets
of the development part keep their raw scores. Sources of soft labels are split by document: a fifth
is held out, and pairs of `UNSEEN_PAIRS` are held out altogether.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipes.multi import judgments, strings
from tertium.metrics.bundled.input_rows import Row, distinct_texts
from tertium.metrics.bundled.row_scorer import ROW_FEATURES, mean_fragmentation, row_features
from tertium.metrics.bundled.tertium_multi import TertiumMulti

Floats = NDArray[np.float32]
UNSEEN_PAIRS = ("en-sv", "en-th")
JUDGE_SHARE = 0.7  # of gemba_gpt41 in a soft score; the rest is metricx24xl
PSEUDO_REFERENCES = 2  # per source: outputs from the best quarter serve as references
PIVOT_STEPS = {"esa": 1, "mqm": 1, "da": 2, "soft": 1}  # every n-th source gets a pivot
RANKING_STEP, OUTPUT_LINES, DEV_ROWS = 3, 260, 4_000
CHUNK = 20_000


class GroupedRows:
    """Rows as columns; `within` compares rows of a group only, NaN where unknown."""

    def __init__(self) -> None:
        self.texts, self.names, self.systems = judgments.Texts(), list[str](), dict[str, int]()
        self.rows: list[Row] = []
        self.columns: dict[str, list[float]] = defaultdict(list)
        self._groups: dict[tuple[Any, ...], int] = {}

    def add(
        self,
        name: str,
        rows: Sequence[dict[str, Any]],
        scores: Iterable[float],
        within: Iterable[float],
    ) -> None:
        """Add rows of a set; `group` of a row is its source within the set."""
        self.names.append(name)
        for row, score, order in zip(rows, scores, within, strict=True):
            reference = row.get("reference") or None
            if reference == row["hypothesis"]:
                reference = None
            texts = row["hypothesis"], row["source"], reference
            self.rows.append(texts)
            key = name, row["group"]
            values = {
                **dict(
                    zip(
                        ("hypothesis", "source", "reference"),
                        map(self.texts.number, texts),
                        strict=True,
                    )
                ),
                "score": score,
                "within": order,
                "set": len(self.names) - 1,
                "group": self._groups.setdefault(key, len(self._groups)),
                "system": self.systems.setdefault(str(row.get("system")), len(self.systems)),
            }
            for column, value in values.items():
                self.columns[column].append(value)

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        text = "\n".join(self.texts.lines).encode()
        (folder / "texts.xz").write_bytes(lzma.compress(text, preset=4))
        types = {"score": np.float32, "within": np.float32}
        columns = {c: np.array(v, types.get(c, np.int32)) for c, v in self.columns.items()}
        features = {
            f"features_{view}": values for view, values in compute_features(self.rows).items()
        }
        np.savez_compressed(folder / "rows.npz", allow_pickle=False, **columns, **features)
        (folder / "names.json").write_text(json.dumps(self.names))


def compute_features(rows: Sequence[Row]) -> dict[str, NDArray[np.float16]]:
    """Return the surface features of rows, with all their texts and with the source alone."""
    tokenize = TertiumMulti().reader.tokenizer.encode_ids
    results: dict[str, list[Floats]] = {"both": [], "source": []}
    for n in range(0, len(rows), CHUNK):
        part = rows[n : n + CHUNK]
        texts = distinct_texts(part)
        pieces = dict(zip(texts, map(len, tokenize(texts)), strict=True))
        alone = [(hypothesis, source, None) for hypothesis, source, _ in part]
        results["both"].append(
            row_features(part, mean_fragmentation(part, pieces)).astype(np.float32)
        )
        results["source"].append(row_features(alone, np.zeros(len(part))).astype(np.float32))
        print(f"features of {n + len(part)} of {len(rows)} rows", flush=True)
    return {
        view: np.concatenate([np.zeros((0, len(ROW_FEATURES)), np.float32), *parts]).astype(
            np.float16
        )
        for view, parts in results.items()
    }


def standardize(values: Sequence[float] | Floats) -> Floats:
    array = np.array(values, np.float32)
    return (array - array.mean()) / max(float(array.std()), 1e-6)


def is_held_out(document: str) -> bool:
    return int(sha256(document.encode()).hexdigest(), 16) % 5 == 0


def with_group(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "group": (row.get("doc"), row["segment"], row["source"])} for row in rows]


def add_judgments(packed: GroupedRows, data: Path, held_out: judgments.HeldOut) -> None:
    for path in sorted((data / "da/wmt16").glob("*.jsonl.gz")):
        rows = [row for row in judgments.read_rows(path) if not held_out.overlaps(row)]
        z = standardize([row["score"] for row in rows])
        packed.add(f"old/wmt16/{path.name.split('.')[0]}", with_group(rows), z, z)
    known_sources: set[tuple[str, str]] = set()
    for kind, name, path in judgments.modern_files(data, "train"):
        rows = [row for row in judgments.read_rows(path) if not held_out.overlaps(row)]
        if kind == "qe":
            known_sources |= {(row["lp"], judgments.normalize_text(row["source"])) for row in rows}
        z = standardize([row["score"] for row in rows])
        packed.add(f"{kind}/{name}", with_group(rows), z, z)
    for path in sorted((data / "qe/wmt20").glob("*.train.jsonl.gz")):
        rows = [
            row
            for row in judgments.read_rows(path)
            if not held_out.overlaps(row)
            and (row["lp"], judgments.normalize_text(row["source"])) not in known_sources
        ]
        if len(rows) > 50:
            z = standardize([row["score"] for row in rows])
            packed.add(f"qe/qe20/{path.name.split('.')[0]}", with_group(rows), z, z)


def add_rankings(packed: GroupedRows, data: Path, held_out: judgments.HeldOut) -> None:
    """Add every third ranked source; `within` is the share of won minus lost comparisons."""
    for year in judgments.RANKINGS:
        for path in sorted((data / "rankings" / year).glob("*.texts.jsonl.gz")):
            pair = path.name.split(".")[0]
            balance: dict[tuple[str, str], list[int]] = defaultdict(list)
            comparisons = path.with_name(f"{pair}.judgements.tsv.gz")
            with gzip.open(comparisons, "rt", encoding="utf-8") as lines:
                for line in list(lines)[1:]:
                    segment, _, left, right, outcome = line.rstrip("\n").split("\t")
                    value = {"a": 1, "b": -1, "tie": 0}[outcome]
                    balance[segment, left].append(value)
                    balance[segment, right].append(-value)
            rows, within = [], []
            for text in list(judgments.read_rows(path))[::RANKING_STEP]:
                if held_out.overlaps(text):
                    continue
                for system, output in text["outputs"].items():
                    votes = balance.get((str(text["segment"]), system))
                    if votes:
                        rows.append({**text, "hypothesis": output, "system": system})
                        within.append(1.2 * sum(votes) / len(votes))
            if rows:
                packed.add(f"rank/{year}/{pair}", with_group(rows), [np.nan] * len(rows), within)


def add_outputs(packed: GroupedRows, data: Path) -> None:
    """Add outputs of systems on FLORES without scores: the shipped model teaches them."""
    names, blocks = judgments.read_outputs(data / judgments.FLORES)
    rng = np.random.default_rng(1)
    systems: dict[str, list[str]] = defaultdict(list)
    for name in names:
        if "-" in name:
            systems[name.split(".")[0]].append(name)
    for pair, outputs in sorted(systems.items()):
        source, target = pair.split("-")
        if source not in blocks or target not in blocks:
            continue
        rows = [
            {
                "group": int(line),
                "source": blocks[source][line],
                "reference": blocks[target][line],
                "hypothesis": blocks[output][line],
                "system": output,
            }
            for line in rng.choice(1_000, OUTPUT_LINES // max(1, len(outputs) // 2), replace=False)
            for output in outputs
        ]
        nothing = [np.nan] * len(rows)
        packed.add(f"outputs/{pair}", rows, nothing, nothing)


def soft_scores(rows: Sequence[dict[str, Any]]) -> tuple[Floats, Floats]:
    """Return standardized soft scores, and differences from the mean of their source."""
    judge, metric = (
        standardize([row["scores"][key] for row in rows]) for key in ("gemba_gpt41", "metricx24xl")
    )
    soft = standardize(JUDGE_SHARE * judge + (1 - JUDGE_SHARE) * metric)
    _, groups = np.unique([str(row["group"]) for row in rows], return_inverse=True)
    centered = soft - (np.bincount(groups, soft) / np.bincount(groups))[groups]
    return soft, (centered / centered.std()).astype(np.float32)


def add_soft_labels(packed: GroupedRows, folder: Path) -> None:
    rng = np.random.default_rng(2)
    for path in sorted(folder.glob("wmt25/*.jsonl.gz")):
        pair = path.name.split(".")[0]
        rows = with_group(
            row
            for row in judgments.read_rows(path)
            if all(row["scores"].get(k) is not None for k in ("gemba_gpt41", "metricx24xl"))
        )
        soft, within = soft_scores(rows)
        held_out = np.array([is_held_out(row["doc"]) for row in rows])
        judge = np.array([row["scores"]["gemba_gpt41"] for row in rows])
        numbers = np.flatnonzero(held_out)
        packed.add(f"dev:soft/{pair}", [rows[n] for n in numbers], judge[numbers], judge[numbers])
        if pair in UNSEEN_PAIRS:
            continue
        numbers = np.flatnonzero(~held_out)
        packed.add(f"soft/{pair}", [rows[n] for n in numbers], soft[numbers], within[numbers])
        groups: dict[Any, list[int]] = defaultdict(list)
        for n in numbers:
            groups[rows[n]["group"]].append(int(n))
        for copy in range(PSEUDO_REFERENCES):
            paired, own_scores, own_within = [], [], []
            for members in groups.values():
                ranked = sorted(members, key=lambda n: -soft[n])
                best = ranked[: max(2, len(ranked) // 4)]
                reference = rows[int(rng.choice(best))]["hypothesis"]
                for member in members:
                    if rows[member]["hypothesis"] != reference:
                        paired.append({**rows[member], "reference": reference})
                        own_scores.append(soft[member])
                        own_within.append(within[member])
            packed.add(f"pseudo/{pair}.{copy}", paired, own_scores, own_within)


def parallel_texts(packed: GroupedRows) -> dict[str, dict[str, str]]:
    """Return translations of English sources by language: references, or the best soft score."""
    result: dict[str, dict[str, str]] = defaultdict(dict)
    best: dict[tuple[str, str], float] = {}
    for n, number in enumerate(packed.columns["set"]):
        kind, pair = set_kind_and_pair(packed.names[int(number)])
        if kind not in PIVOT_STEPS or not pair.startswith("en-"):
            continue
        hypothesis, source, reference = packed.rows[n]
        target, score = pair.split("-")[1], packed.columns["score"][n]
        if kind == "soft" and score > best.get((str(source), target), -np.inf):
            best[str(source), target] = score
            result[str(source)][target] = hypothesis
        elif kind != "soft" and reference is not None:
            result[str(source)].setdefault(target, reference)
    return result


def set_kind_and_pair(name: str) -> tuple[str, str]:
    return name.split("/")[0], name.split("/")[-1].split(".")[0]


def add_pivots(packed: GroupedRows) -> None:
    """Add rows whose English source is replaced by its translation into a third language.

    Human scores of pairs without English are rare; translations into several languages share
    their English sources, so a reference of one pair can be the source of another.
    """
    rng = np.random.default_rng(4)
    translations = parallel_texts(packed)
    groups: dict[int, list[int]] = defaultdict(list)
    for n, group in enumerate(packed.columns["group"]):
        groups[int(group)].append(n)
    sets: dict[str, list[tuple[dict[str, Any], float, float]]] = defaultdict(list)
    for group, members in groups.items():
        kind, pair = set_kind_and_pair(packed.names[int(packed.columns["set"][members[0]])])
        target = pair.split("-")[-1]
        languages = sorted(set(translations.get(str(packed.rows[members[0]][1]), ())) - {target})
        if kind not in PIVOT_STEPS or group % PIVOT_STEPS[kind] or not languages:
            continue
        language = str(rng.choice(languages))
        name = f"{'pivot-soft' if kind == 'soft' else 'pivot'}/{language}-{target}"
        for n in members:
            hypothesis, source, reference = packed.rows[n]
            pivot = translations[str(source)][language]
            row = {
                "hypothesis": hypothesis,
                "source": pivot,
                "reference": reference,
                "group": group,
                "system": packed.columns["system"][n],
            }
            sets[name].append((row, packed.columns["score"][n], packed.columns["within"][n]))
    for name, own in sorted(sets.items()):
        packed.add(name, *map(list, zip(*own, strict=True)))


def add_text_pairs(packed: GroupedRows, data: Path) -> None:
    """Add right and wrong translations; a fifth of the keys is held out."""
    sets: dict[str, list[strings.TextPair]] = defaultdict(list)
    parallel = data / "parallel"
    pairs: Iterator[strings.TextPair] = iter(
        [
            *strings.short_string_pairs(parallel / "tatoeba.tsv.gz", 500),
            *strings.command_pairs(),
            *strings.flores_pairs(data / judgments.FLORES),
        ]
    )
    for pair in pairs:
        prefix = "dev:" if is_held_out(pair.key) else ""
        sets[prefix + pair.name].append(pair)
    for name, own in sorted(sets.items()):
        rows, within = [], []
        for n, pair in enumerate(own):
            for text, value in ((pair.right, pair.cost), (pair.wrong, -pair.cost)):
                rows.append(
                    {
                        "group": n,
                        "source": pair.source,
                        "reference": pair.reference,
                        "hypothesis": text,
                    }
                )
                within.append(value)
        packed.add(name, rows, [np.nan] * len(rows), within)


def add_development_sets(packed: GroupedRows, data: Path) -> None:
    """Add whole groups of each development set, about `DEV_ROWS` rows, with raw scores."""
    rng = np.random.default_rng(3)
    files = [
        ("da", f"wmt15/{p.name.split('.')[0]}", p) for p in sorted((data / "da/wmt15").glob("*.gz"))
    ]
    files += judgments.modern_files(data, "dev")
    for kind, name, path in files:
        groups: dict[Any, list[dict[str, Any]]] = defaultdict(list)
        for row in with_group(judgments.read_rows(path)):
            groups[row["group"]].append(row)
        keys = list(groups)
        chosen, count = [], 0
        for n in rng.permutation(len(keys)):
            if count >= DEV_ROWS:
                break
            chosen += groups[keys[n]]
            count += len(groups[keys[n]])
        scores = [row["score"] for row in chosen]
        packed.add(f"dev:{kind}/{name}", chosen, scores, scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of human judgments")
    parser.add_argument("--soft-labels", type=Path, required=True, help="folder of soft labels")
    parser.add_argument("-o", "--out", type=Path, required=True, help="output folder")
    args = parser.parse_args()
    held_out = judgments.gather_held_out(args.data)
    packed = GroupedRows()
    add_development_sets(packed, args.data)
    add_soft_labels(packed, args.soft_labels)
    add_judgments(packed, args.data, held_out)
    add_rankings(packed, args.data, held_out)
    add_outputs(packed, args.data)
    add_text_pairs(packed, args.data)
    add_pivots(packed)
    sizes = np.bincount(np.array(packed.columns["set"], int))
    totals: dict[str, int] = defaultdict(int)
    for name, size in zip(packed.names, sizes, strict=True):
        totals[
            "/".join(name.split("/")[:2])
            if name.startswith(("da", "mqm", "esa", "qe", "dev:"))
            else name.split("/")[0]
        ] += int(size)
    print(len(packed.rows), "rows", len(packed.texts.lines), "texts", dict(totals), flush=True)
    packed.write(args.out)


if __name__ == "__main__":
    main()
