"""Train the bundled heads BiLSTM, attention and ESIM: `python -m recipes.heads -o OUT`.

As `tertium train` does with the recipe `ours`: on comparisons, then on da/wmt15 and da/wmt16. The
epoch is chosen on a held-out tenth. da/wmt17 and rankings/wmt12 are test sets; segments whose
reference occurs in held-out data are dropped. Takes six minutes on an H200 (`--device cuda`).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from papers.experiments import read_judgments, read_rankings

from tertium.core.registry import METRICS, resolve
from tertium.core.runtime import runtime
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.judgments import JudgmentSet
from tertium.data.rankings import RankingSet
from tertium.data.ratings import drop_overlap
from tertium.meta.agreement import pearson
from tertium.models.training_data import TrainingSets, remove_leaks

SETS, TEST = ("da/wmt15", "da/wmt16"), "da/wmt17"
PREFERENCES = ("wmt11", "wmt13", "wmt15", "wmt16")
SEED = 1
HEADS = ("bilstm", "bilstm-attention", "esim")


def split_tenth(sets: Sequence[JudgmentSet]) -> tuple[list[JudgmentSet], list[JudgmentSet]]:
    """Split off every tenth judgment; references do not occur on both sides."""
    dev_sets = [replace(one, judgments=one.judgments[::10]) for one in sets]
    return [drop_overlap(one, dev_sets) for one in sets], dev_sets


def read_training_data(
    datasets: DatasetFolder,
) -> tuple[TrainingSets, list[JudgmentSet], list[JudgmentSet]]:
    """Return training sets without leaked references, the held-out tenth, and the test sets."""
    train, dev = split_tenth([one for name in SETS for one in read_judgments(datasets, name)])
    rankings = [one for y in PREFERENCES for one in read_rankings(datasets, f"rankings/{y}")]
    tests = read_judgments(datasets, TEST)
    held_out: list[JudgmentSet | RankingSet] = [
        *dev,
        *tests,
        *read_rankings(datasets, "rankings/wmt12"),
    ]
    return remove_leaks(TrainingSets(train, rankings), held_out), dev, tests


def train(name: str, encoder: str, data: TrainingSets, dev: Sequence[JudgmentSet]) -> Any:
    """Train a head by the recipe of the bundled models."""
    cls: Any = resolve(METRICS, name, "metric")
    recipe = cls.recipes["ours"]
    return cls.train(
        data.all,
        dev=dev,
        options=replace(recipe.options, seed=SEED),
        encoder=encoder,
        **recipe.settings,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of human judgments (default: TERTIUM_DATA)")
    parser.add_argument("--encoder", default="minilm", help="minilm, mpnet, dir/PATH ...")
    parser.add_argument("--head", nargs="+", default=[*HEADS], choices=HEADS)
    parser.add_argument("--device", default="auto", help="cpu, cuda, mps (default: auto)")
    parser.add_argument("-o", "--output", type=Path, required=True, help="output folder")
    args = parser.parse_args()
    data, dev, tests = read_training_data(DatasetFolder.open(args.data))
    with runtime(device=args.device):
        for name in args.head:
            metric = train(name, args.encoder, data, dev)
            metric.save(args.output / name)
            for test in tests:
                r = float(pearson(test.scores, metric.score(test.segments).segments))
                print(f"{name} {TEST} {test.lp}: r = {r:.3f}", flush=True)


if __name__ == "__main__":
    main()
