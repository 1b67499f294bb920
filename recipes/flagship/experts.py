"""Stage 9: what raw scores mean to experts, who add up errors, and the map that goes with it.

    python -m recipes.flagship.experts small --data DIR [--rows 2000]

What a translation lacks, times a power of the reference's words, is about what experts take from
it (`ErrorPenalty`); how its numbers were chosen is told in `recipes/README.md`. The map comes from
experts' scores of talks, which choose and never train; percentiles from outputs of WMT18's systems.
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
from tertium.arrays import FloatArray
from tertium.data.dataset_folder import DatasetFolder
from tertium.metrics.flagship.calibrated_metric import MAX_MQM_POINTS, EnglishCalibratedMetric
from tertium.metrics.flagship.scales import ErrorPenalty
from tertium.metrics.flagship.tertium_base import TertiumBase
from tertium.metrics.flagship.tertium_small import TertiumSmall
from tertium.models.checkpoint import bundled_models_folder

EXPERT_SET, PAIR = "modern/dev/mqm/ted21", "zh-en"
ERRORS = {"best": 3.2, "power": 0.7, "whole": 1100}  # of a raw score, and words
KNOTS = 8


def mqm_score(record: Mapping[str, Any]) -> float:
    """What experts leave of a judged translation, 0 to 1.

    >>> left_of({"score": -5.0}), left_of({"score": -75.0})
    (0.8, 0.0)
    """
    return 1 - min(-float(record["score"]), MAX_MQM_POINTS) / MAX_MQM_POINTS


def fit_expert_scale(sums: FloatArray, expert_scores: FloatArray) -> dict[str, Any]:
    """The map from (less the) sums of errors to what experts leave, and experts' spread around."""
    places, scores = fit_monotone_map(sums, expert_scores, KNOTS)
    print(len(sums), f"r {np.corrcoef(sums, expert_scores)[0, 1]:.3f}", flush=True)
    return {
        "calibration": {"raw": round_values(places), "score": round_values(scores)},
        "uncertainty": fit_uncertainty(np.interp(sums, places, scores), expert_scores),
    }


def read(data: DatasetFolder, rows: int) -> tuple[list[str], list[str], FloatArray]:
    """Hypotheses, references and what experts leave, so many rows under one seed; no copies."""
    with gzip.open(data.find(EXPERT_SET).file(PAIR), "rt", encoding="utf-8") as lines:
        judged = [row for row in map(json.loads, lines) if row.get("reference")]
    judged = [row for row in judged if row["reference"] != row["hypothesis"]]
    chosen = [judged[n] for n in np.random.default_rng(4).permutation(len(judged))[:rows]]
    expert_scores = np.array([mqm_score(row) for row in chosen])
    return [r["hypothesis"] for r in chosen], [r["reference"] for r in chosen], expert_scores


def ship(metric: EnglishCalibratedMetric, data: DatasetFolder, rows: int, each: int) -> None:
    """Writes the map for experts, and where outputs stand on it."""
    folder, config = bundled_models_folder() / metric.name, dict(metric.model.config)
    config["experts"] = {"errors": ERRORS, **UNCALIBRATED}
    write_config(folder, config)
    hypotheses, references, expert_scores = read(data, rows)
    words = np.array([len(text.split()) for text in references], dtype=np.float64)
    whole = np.zeros(len(words), dtype=bool)
    sums = ErrorPenalty(**ERRORS)(metric.raw_scores(hypotheses, references), words, whole)
    print("mean of sums", -sums.mean(), "of what is lost", 1 - expert_scores.mean(), flush=True)
    config["experts"] |= fit_expert_scale(sums, expert_scores)
    write_config(folder, config)
    config["experts"]["percentiles"] = score_percentiles(score_wmt18_outputs(data, metric, each))
    write_config(folder, config)
    print(json.dumps(config["experts"], indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("small", "base"))
    parser.add_argument("--data", help="the human judgments (default: TERTIUM_DATA)")
    parser.add_argument("--rows", type=int, default=2000, help="judged rows")
    parser.add_argument("--each", type=int, default=40, help="outputs of each WMT18 system")
    args = parser.parse_args()
    metric = TertiumSmall(scale="mqm") if args.what == "small" else TertiumBase(scale="mqm")
    ship(metric, DatasetFolder.open(args.data), args.rows, args.each)


if __name__ == "__main__":
    main()
