"""Stage 8: choose the length penalty of tertium-small and recalibrate the model.

    python -m recipes.flagship.length --data DIR [--rows 4000]

Experts add up the errors of a segment; the network does not take length into account. The chosen
penalty is the smallest of a grid that gains at least `MIN_GAIN` of r on expert scores of talks (in
97.5 % of bootstrap samples of segments) and loses at most `MAX_LOSS` on da/wmt15. Results on direct
assessments of modern/dev are printed for information. The penalty is the same for all translations
of a segment, so it does not change their order.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from recipes.flagship.corpus import pairs_into_english
from recipes.flagship.ship import (
    fit_calibration,
    score_calibration_sets,
    score_percentiles,
    score_wmt18_outputs,
    write_config,
)
from tertium.core.arrays import FloatArray
from tertium.core.resampling import make_rng
from tertium.data.dataset_folder import DatasetFolder
from tertium.meta.agreement import pearson
from tertium.metrics.bundled.scales import LengthPenalty
from tertium.metrics.bundled.tertium_small import TertiumSmall
from tertium.models.checkpoint import bundled_models_folder

MIN_WORDS, MAX_WORDS = 6, 64  # nearly all references are in this range
GRID = tuple(round(0.05 * n, 2) for n in range(1, 11))
MIN_GAIN, MAX_LOSS, BOOTSTRAP_SAMPLES = 0.05, 0.002, 300
OLD_SET, EXPERT_SET, CROWD_SET = "da/wmt15", "modern/dev/mqm/ted21", "modern/dev/da/wmt22"
SCALE_KEYS = ("calibration", "uncertainty", "percentiles")


@dataclass(frozen=True)
class ScoredSet:
    """References, raw scores and human scores of a dataset."""

    references: list[str]
    raw: FloatArray
    human: FloatArray

    def dev_correlation(self, cost: float) -> float:
        """Return Pearson's r with a length penalty."""
        shift = length_penalty(cost).shift(self.references) if cost else 0.0
        return float(pearson(self.human, self.raw + shift))

    def gain_lower_bound(self, cost: float) -> float:
        """Return the 2.5 % quantile of the gain in r over bootstrap samples."""
        items = {text: number for number, text in enumerate(dict.fromkeys(self.references))}
        owner = np.array([items[text] for text in self.references])
        rows = [np.flatnonzero(owner == item) for item in range(len(items))]
        penalized, rng, gains = (
            self.raw + length_penalty(cost).shift(self.references),
            make_rng(1),
            [],
        )
        for _ in range(BOOTSTRAP_SAMPLES):
            resampled = np.concatenate([rows[n] for n in rng.integers(0, len(rows), len(rows))])
            human = self.human[resampled]
            gains.append(
                float(pearson(human, penalized[resampled]))
                - float(pearson(human, self.raw[resampled]))
            )
        return float(np.quantile(gains, 0.025))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", help="folder of human judgments (default: TERTIUM_DATA)")
    parser.add_argument("--rows", type=int, default=4000, help="rows per modern dataset")
    parser.add_argument("--each", type=int, default=40, help="outputs per WMT18 system")
    args = parser.parse_args()
    data = DatasetFolder.open(args.data)
    scored_sets = {
        name: [read(data, name, lp, args.rows) for lp in pairs_into_english(data, name)]
        for name in (OLD_SET, EXPERT_SET, CROWD_SET)
    }
    print("set", *(f"{cost:g}" for cost in (0, *GRID)), sep="\t")
    for name in scored_sets:
        print(
            name, *(f"{mean(scored_sets, name, c):.4f}" for c in (0, *GRID)), sep="\t", flush=True
        )
    ship(data, length_penalty(choose(scored_sets)), args.each)


def read(data: DatasetFolder, name: str, lp: str, rows: int) -> ScoredSet:
    """Read whole segments of a dataset in random order, about `rows` rows."""
    with gzip.open(data.find(name).file(lp), "rt", encoding="utf-8") as lines:
        scored_rows = [row for row in map(json.loads, lines) if row.get("reference")]
    items = list(dict.fromkeys(row["reference"] for row in scored_rows))
    order = np.random.default_rng(1).permutation(len(items))
    place = {items[item]: rank for rank, item in enumerate(order)}
    scored_rows.sort(key=lambda row: place[row["reference"]])
    scored_rows = scored_rows[:rows]
    references = [row["reference"] for row in scored_rows]
    raw = TertiumSmall(length="free").raw_scores(
        [(row["hypothesis"], None, row["reference"]) for row in scored_rows]
    )
    return ScoredSet(references, raw, np.array([row["score"] for row in scored_rows]))


def length_penalty(cost: float) -> LengthPenalty:
    return LengthPenalty(cost=cost, least=MIN_WORDS, most=MAX_WORDS)


def mean(scored_sets: Mapping[str, list[ScoredSet]], name: str, cost: float) -> float:
    return float(np.mean([dataset.dev_correlation(cost) for dataset in scored_sets[name]]))


def choose(scored_sets: Mapping[str, list[ScoredSet]]) -> float:
    """Return the smallest penalty that gains enough on expert scores without losing elsewhere."""
    for cost in GRID:
        gain = min(dataset.gain_lower_bound(cost) for dataset in scored_sets[EXPERT_SET])
        loss = mean(scored_sets, OLD_SET, 0) - mean(scored_sets, OLD_SET, cost)
        if gain >= MIN_GAIN and loss <= MAX_LOSS:
            return cost
    raise SystemExit(
        f"no cost gains {MIN_GAIN} on {EXPERT_SET} and loses at most {MAX_LOSS} on {OLD_SET}"
    )


def ship(data: DatasetFolder, length: LengthPenalty, each: int) -> None:
    """Write the penalty with its calibration; the calibration without penalty is kept in `free`."""
    metric, folder = TertiumSmall(), bundled_models_folder() / TertiumSmall.name
    config = dict(metric.model.config)
    config.setdefault("free", {key: config[key] for key in SCALE_KEYS})
    config["length"] = asdict(length)
    write_config(folder, config)
    config |= fit_calibration(*score_calibration_sets(data, metric))
    write_config(folder, config)
    config["percentiles"] = score_percentiles(score_wmt18_outputs(data, metric, each))
    write_config(folder, config)
    print(json.dumps({key: config[key] for key in ("length", "calibration")}, indent=1))


if __name__ == "__main__":
    main()
