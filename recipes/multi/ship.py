"""Write a trained tertium-multi into the package: compress it, then calibrate it.

    python -m recipes.multi.ship weights run/network.*.safetensors
    python -m recipes.multi.ship calibrate --data DIR
    python -m recipes.multi.ship experts --data DIR

Matrices become int8 rows. Calibration maps to 0..1 come from da/wmt15, qe/wmt20 dev and the direct
assessments of modern/dev, one for each input mode; the maps of the expert scale come from MQM of
modern/dev; percentiles from outputs of WMT18 systems. Test sets are not used.
`recipes.multi.spans` chooses the thresholds of error spans afterwards.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor

from recipes.flagship.experts import fit_expert_scale, mqm_score
from recipes.flagship.package import quantize
from recipes.flagship.ship import (
    UNCALIBRATED,
    UNCALIBRATED_EXPERT_SCALE,
    fit_calibration,
    score_percentiles,
    write_config,
)
from recipes.multi.judgments import read_rows
from tertium.core.segment import Against, Segment
from tertium.core.store import hash_file
from tertium.data.dataset_folder import DatasetFolder
from tertium.encoders.weight_files import MODEL_CARDS
from tertium.metrics.bundled.bundled_model import dequantize
from tertium.metrics.bundled.input_rows import INPUT_MODES, Row
from tertium.metrics.bundled.row_scorer import NETWORK, ROW_FEATURES, WORDS
from tertium.metrics.bundled.scales import ErrorPenalty
from tertium.metrics.bundled.tertium_multi import TertiumMulti
from tertium.models.checkpoint import WEIGHTS, bundled_models_folder

FloatArray = NDArray[np.float64]
EXACT = ("head.last", "head.mean", "head.scale")  # kept in single precision
CALIBRATION_KNOTS = 8  # more knots overfit
ANNOTATED_ROWS = 160  # per dataset with marked errors
ERRORS = {"best": 1.2, "power": 0.7, "whole": 548}  # raw score, exponent, pieces


def load_networks(files: Sequence[Path]) -> dict[str, Tensor]:
    """Load trained weights, NAME.0.safetensors and so on; of several networks, their mean."""
    networks: dict[str, dict[str, Tensor]] = {}
    for file in files:
        networks.setdefault(file.name.split(".")[0], {}).update(load_file(file))
    states = [dequantize(network) for network in networks.values()]
    return {name: torch.stack([state[name] for state in states]).mean(0) for name in states[0]}


def write_weights(files: Sequence[Path]) -> None:
    """Write trained weights as int8 rows; vocabulary and word embeddings stay as they are."""
    folder = bundled_models_folder() / TertiumMulti.name
    trained = load_networks(files)
    words = {n: v for n, v in load_file(folder / WEIGHTS).items() if n.startswith(WORDS)}
    exact = {n: v.contiguous() for n, v in trained.items() if n.startswith(EXACT)}
    compact = {**quantize({n: v for n, v in trained.items() if n not in exact}), **exact}
    network = {f"{NETWORK}{name}": value for name, value in compact.items()}
    save_file({**network, **words}, folder / WEIGHTS)
    config = _read_config()
    shape = {n: v for n, v in config["shape"].items() if n not in ("directions", "reading")}
    for name in ("corrections", "parts"):
        config.pop(name, None)
    for name in ("readout.safetensors", "tags.safetensors"):
        (folder / name).unlink(missing_ok=True)
    write_config(
        folder,
        {
            **config,
            "weights_sha256": hash_file(folder / WEIGHTS),
            "shape": {**shape, "features": len(ROW_FEATURES)},
            "scales": dict.fromkeys(INPUT_MODES, UNCALIBRATED),
            "experts": dict.fromkeys(INPUT_MODES, UNCALIBRATED_EXPERT_SCALE),
        },
    )


ScoredRows = list[tuple[dict[str, Any], float]]


def read_direct_assessments(data: Path, each: int) -> ScoredRows:
    """Return rows and standardized scores of the calibration sets.

    Datasets since 2021 are standardized by their own mean and spread; older ones already are. Pairs
    with a language unknown to the encoder (Livonian) are excluded.
    """
    languages = MODEL_CARDS["e5"].languages
    files = [
        *sorted((data / "da/wmt15").glob("*.gz")),
        *sorted((data / "qe/wmt20").glob("*.dev.jsonl.gz")),
        *sorted((data / "modern/dev/da").glob("*/*.gz")),
    ]
    judgments: ScoredRows = []
    for file in files:
        if not languages.issuperset(file.name.split(".")[0].split("-")):
            continue
        rows = list(read_rows(file))
        human = np.array([row["score"] for row in rows], float)
        if "modern" in file.parts:
            human = (human - human.mean()) / human.std()
        chosen = np.random.default_rng(2).permutation(len(rows))[:each]
        judgments += [(rows[n], float(human[n])) for n in chosen]
    return judgments


def select_mode(row: dict[str, Any], mode: Against) -> Row | None:
    """Return the texts of a record in an input mode, None where one is missing."""
    if mode != "source" and not row.get("reference"):
        return None
    return _keep_texts((row["hypothesis"], row["source"], row.get("reference")), mode)


def fit_mode(metric: TertiumMulti, judgments: ScoredRows, mode: Against) -> dict[str, Any]:
    """Fit the calibration map and uncertainty of an input mode."""
    visible = [(row, score) for record, score in judgments if (row := select_mode(record, mode))]
    raw = metric.raw_scores([row for row, _ in visible])
    return fit_calibration(raw, np.array([score for _, score in visible]), CALIBRATION_KNOTS)


def read_expert_scores(data: Path, each: int) -> ScoredRows:
    """Return MQM rows of modern/dev with scores 1 - points / 25."""
    judgments: ScoredRows = []
    for file in sorted((data / "modern/dev/mqm").glob("*/*.gz")):
        rows = list(read_rows(file))
        chosen = np.random.default_rng(4).permutation(len(rows))[:each]
        judgments += [(rows[n], mqm_score(rows[n])) for n in chosen]
    return judgments


def fit_expert_mode(metric: TertiumMulti, judgments: ScoredRows, mode: Against) -> dict[str, Any]:
    """Fit the expert scale of an input mode."""
    visible = [(row, score) for record, score in judgments if (row := select_mode(record, mode))]
    rows, expert_scores = [row for row, _ in visible], np.array([score for _, score in visible])
    return fit_expert_scale(sum_errors(metric, rows), expert_scores)


def sum_errors(metric: TertiumMulti, rows: list[Row]) -> FloatArray:
    """Return the negative error penalty of each row."""
    return ErrorPenalty(**ERRORS)(metric.raw_scores(rows), metric.text_lengths(rows))


def sample_wmt18_rows(data: DatasetFolder, each: int) -> list[Row]:
    """Sample outputs of each WMT18 system with source and reference."""
    task, rng, sample = data.metrics_task("wmt18-metrics-task"), np.random.default_rng(1), []
    for pair in task.with_outputs:
        testset = task.testset(pair)
        for system in testset.systems:
            segments = testset.segments(system)
            for n in rng.choice(len(segments), each, replace=False):
                segment = segments[n]
                sample.append((segment.hypothesis, segment.source, segment.references[0]))
    return sample


def fit_no_error_probabilities(
    metric: TertiumMulti, data: Path, each: int
) -> dict[str, dict[str, float]]:
    """Fit the probability of no error in each input mode on modern/dev."""
    sums: dict[str, list[FloatArray]] = {mode: [] for mode in INPUT_MODES}
    is_clean: dict[str, list[bool]] = {mode: [] for mode in INPUT_MODES}
    for file in sorted((data / "modern/dev").glob("*/*/*.gz")):
        kind = file.parts[-3]
        rows = [r for r in read_rows(file) if kind in ("mqm", "esa") and r.get("spans") is not None]
        for mode in INPUT_MODES:
            chosen = np.random.default_rng(3).permutation(len(rows))[:each]
            visible = [(rows[n], texts) for n in chosen if (texts := select_mode(rows[n], mode))]
            if visible:
                sums[mode].append(sum_errors(metric, [texts for _, texts in visible]))
                is_clean[mode] += [_is_clean(row) for row, _ in visible]
    return {
        mode: fit_no_error_probability(np.concatenate(sums[mode]), np.array(is_clean[mode], float))
        for mode in INPUT_MODES
    }


def fit_no_error_probability(sums: FloatArray, is_clean: FloatArray) -> dict[str, float]:
    """Fit a logistic regression on log error sums by damped Newton steps."""
    log_sums = -np.log(-sums)
    spread = log_sums.std()
    design = np.column_stack([log_sums / spread, np.ones_like(log_sums)])
    parameters = np.zeros(2)
    for _ in range(100):
        chance = 1 / (1 + np.exp(-design @ parameters))
        curvature = design.T @ (design * (chance * (1 - chance))[:, None])
        parameters = parameters + 0.5 * np.linalg.solve(curvature, design.T @ (is_clean - chance))
    slope = float(parameters[0] / spread)
    return {"half": round(float(np.exp(parameters[1] / slope)), 5), "slope": round(slope, 5)}


def _is_clean(row: dict[str, Any]) -> bool:
    errors = [s for s in row["spans"] if s["severity"] not in ("neutral", "no-error")]
    return not errors and not row.get("missing")


def calibrate(data: str | None, each: int, outputs: int) -> None:
    """Fit the direct assessment scale."""
    collection = DatasetFolder.open(data)
    judgments = read_direct_assessments(collection.root, each)
    config = _read_config()
    for mode in INPUT_MODES:
        config["scales"][mode] = {**UNCALIBRATED, **fit_mode(TertiumMulti(), judgments, mode)}
    _write_percentiles(
        config, config["scales"], TertiumMulti(), sample_wmt18_rows(collection, outputs)
    )


def calibrate_experts(data: str | None, each: int, outputs: int) -> None:
    """Fit the expert scale and the probability of no error."""
    collection, metric = DatasetFolder.open(data), TertiumMulti(scale="mqm")
    config, judgments = _read_config(), read_expert_scores(collection.root, each)
    config["experts"] = {
        mode: {"errors": ERRORS, **UNCALIBRATED, **fit_expert_mode(metric, judgments, mode)}
        for mode in INPUT_MODES
    }
    config["clean"] = fit_no_error_probabilities(metric, collection.root, ANNOTATED_ROWS)
    _write_percentiles(config, config["experts"], metric, sample_wmt18_rows(collection, outputs))


def _read_config() -> dict[str, Any]:
    """Read the config of the bundled model from its file."""
    text = (bundled_models_folder() / TertiumMulti.name / "config.json").read_text(encoding="utf-8")
    config: dict[str, Any] = json.loads(text)
    return config


def _write_percentiles(
    config: dict[str, Any],
    scales: Mapping[Against, dict[str, Any]],
    metric: TertiumMulti,
    sample: Sequence[Row],
) -> None:
    """Write the config with the percentiles of WMT18 outputs on its scales."""
    folder = bundled_models_folder() / TertiumMulti.name
    write_config(folder, config)
    segments = [Segment(row[0], row[1], (row[2] or "",)) for row in sample]
    for mode in INPUT_MODES:
        scores = replace(metric, against=mode).segment_scores(segments)
        scales[mode]["percentiles"] = score_percentiles(scores)
        print(mode, json.dumps(scales[mode]), flush=True)
    write_config(folder, config)


def _keep_texts(row: Row, mode: Against) -> Row:
    """Return a row with only the texts of an input mode."""
    hypothesis, source, reference = row
    return (
        hypothesis,
        source if mode != "reference" else None,
        reference if mode != "source" else None,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("stage", choices=("weights", "calibrate", "experts"))
    parser.add_argument("files", type=Path, nargs="*", help="files of recipes.multi.fine_tune")
    parser.add_argument("--data", help="folder of human judgments (default: TERTIUM_DATA)")
    parser.add_argument("--each", type=int, default=500, help="judgments per file (default: 500)")
    parser.add_argument(
        "--outputs", type=int, default=3, help="outputs per WMT18 system (default: 3)"
    )
    args = parser.parse_args()
    if args.stage == "weights":
        write_weights(args.files)
    else:
        fit = calibrate_experts if args.stage == "experts" else calibrate
        fit(args.data, args.each, args.outputs)


if __name__ == "__main__":
    main()
