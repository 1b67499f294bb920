"""Stage 9: fit the expert (MQM) scale of tertium-small and tertium-base.

    python -m recipes.flagship.experts small --data DIR [--rows 2000]

The error penalty (`ErrorPenalty`) is the distance of the raw score to a perfect score, times a
power of the number of reference words; `recipes/README.md` shows how its parameters were chosen.
The map is fitted on expert scores of talks, which are not used in training; percentiles come from
outputs of WMT18 systems.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from recipes.flagship.ship import (
    UNCALIBRATED,
    fit_monotone_map,
    fit_uncertainty,
    round_values,
    score_percentiles,
    score_wmt18_outputs,
    write_config,
)
from tertium.core.arrays import FloatArray
from tertium.data.dataset_folder import DatasetFolder
from tertium.metrics.bundled.calibrated_metric import MAX_MQM_POINTS, EnglishCalibratedMetric
from tertium.metrics.bundled.input_rows import Row
from tertium.metrics.bundled.scales import ErrorPenalty
from tertium.metrics.bundled.tertium_base import TertiumBase
from tertium.metrics.bundled.tertium_small import TertiumSmall
from tertium.models.checkpoint import bundled_models_folder

EXPERT_SET, PAIR = "modern/dev/mqm/ted21", "zh-en"
ERRORS = {"best": 3.2, "power": 0.7, "whole": 1100}  # raw score, exponent, words
KNOTS = 8


def mqm_score(record: Mapping[str, Any]) -> float:
    """Return the MQM score of a record, scaled to 0..1.

    >>> mqm_score({"score": -5.0}), mqm_score({"score": -75.0})
    (0.8, 0.0)
    """
    return 1 - min(-float(record["score"]), MAX_MQM_POINTS) / MAX_MQM_POINTS


def fit_expert_scale(sums: FloatArray, expert_scores: FloatArray) -> dict[str, Any]:
    """Fit the map from negative error sums to expert scores, and its uncertainty."""
    places, scores = fit_monotone_map(sums, expert_scores, KNOTS)
    print(len(sums), f"r {np.corrcoef(sums, expert_scores)[0, 1]:.3f}", flush=True)
    return {
        "calibration": {"raw": round_values(places), "score": round_values(scores)},
        "uncertainty": fit_uncertainty(np.interp(sums, places, scores), expert_scores),
    }


def read_rows(data: DatasetFolder, rows: int) -> tuple[list[Row], FloatArray]:
    """Return the texts and expert scores of a random sample without copies."""
    with gzip.open(data.find(EXPERT_SET).file(PAIR), "rt", encoding="utf-8") as lines:
        scored_rows = [row for row in map(json.loads, lines) if row.get("reference")]
    scored_rows = [row for row in scored_rows if row["reference"] != row["hypothesis"]]
    chosen = [scored_rows[n] for n in np.random.default_rng(4).permutation(len(scored_rows))[:rows]]
    expert_scores = np.array([mqm_score(row) for row in chosen])
    return [(row["hypothesis"], None, row["reference"]) for row in chosen], expert_scores


def write_expert_scale(
    metric: EnglishCalibratedMetric, data: DatasetFolder, rows: int, each: int
) -> None:
    """Fit and write the expert scale and its percentiles."""
    folder, config = bundled_models_folder() / metric.name, dict(metric.model.config)
    config["experts"] = {"errors": ERRORS, **UNCALIBRATED}
    write_config(folder, config)
    sample, expert_scores = read_rows(data, rows)
    sums = ErrorPenalty(**ERRORS)(metric.raw_scores(sample), metric.text_lengths(sample))
    print("mean of sums", -sums.mean(), "of what is lost", 1 - expert_scores.mean(), flush=True)
    config["experts"] |= fit_expert_scale(sums, expert_scores)
    write_config(folder, config)
    config["experts"]["percentiles"] = score_percentiles(score_wmt18_outputs(data, metric, each))
    write_config(folder, config)
    print(json.dumps(config["experts"], indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", choices=("small", "base"), help="which model")
    parser.add_argument("--data", help="folder of human judgments (default: TERTIUM_DATA)")
    parser.add_argument("--rows", type=int, default=2000, help="judged rows")
    parser.add_argument("--each", type=int, default=40, help="outputs per WMT18 system")
    args = parser.parse_args()
    metric = TertiumSmall(scale="mqm") if args.model == "small" else TertiumBase(scale="mqm")
    write_expert_scale(metric, DatasetFolder.open(args.data), args.rows, args.each)


if __name__ == "__main__":
    main()
