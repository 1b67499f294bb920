"""Stage 6: write compressed models into the package and calibrate them.

    python -m recipes.flagship.ship small OUT/student2 --encoder minilm/ --data DIR
    python -m recipes.flagship.ship base OUT/base --encoder mpnet --data DIR

The map from raw scores to 0..1 and its uncertainty are fitted on da/wmt15 and da/wmt16,
percentiles on outputs of WMT18 systems. da/wmt17 and rankings/wmt12 are not used.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from recipes.flagship.corpus import pairs_into_english
from recipes.flagship.train import LAYERS
from tertium.core.segment import Segment
from tertium.core.store import hash_file
from tertium.data.dataset_folder import DatasetFolder
from tertium.encoders.encoder import EncoderName
from tertium.encoders.model_settings import read_settings
from tertium.encoders.weight_files import locate_weights
from tertium.metrics.bundled.bundled_model import ENCODER, load_bundled_model
from tertium.metrics.bundled.calibrated_metric import EnglishCalibratedMetric
from tertium.metrics.bundled.tertium_base import TertiumBase
from tertium.metrics.bundled.tertium_small import FEATURE_NAMES, TertiumSmall
from tertium.models.checkpoint import bundled_models_folder

FloatArray = NDArray[np.float64]
ENCODER_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json")
KNOTS = 16
MIN_SCORE_STEP = 1e-4  # between two knots; larger than rounding
NO_LENGTH_PENALTY = {"cost": 0.0, "least": 1, "most": 1}
UNCALIBRATED = {  # placeholder
    "calibration": {"raw": [-1, 1], "score": [0.25, 0.75]},
    "uncertainty": {"score": [0, 1], "deviation": [1, 1]},
    "percentiles": {"score": [0, 1], "percent": [0, 100], "segments": 0},
}
UNCALIBRATED_EXPERT_SCALE = {"errors": {"best": 1.0, "power": 1.0, "whole": 1.0}, **UNCALIBRATED}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", choices=("small", "base"), help="which model")
    parser.add_argument("weights", type=Path, help="output folder of stage 5")
    parser.add_argument("--encoder", required=True, help="encoder folder (small) or name (base)")
    parser.add_argument("--data", help="folder of human judgments (default: TERTIUM_DATA)")
    parser.add_argument("--each", type=int, default=40, help="outputs per WMT18 system")
    args = parser.parse_args()
    metric = TertiumSmall() if args.model == "small" else TertiumBase()
    folder = bundled_models_folder() / metric.name
    folder.mkdir(parents=True, exist_ok=True)
    metadata = join_parts(args.weights, folder / "weights.safetensors")
    config: dict[str, Any] = (
        small_config(Path(args.encoder), folder)
        if args.model == "small"
        else base_config(args.encoder, float(metadata["scale"]), float(metadata["shift"]))
    )
    config["weights_sha256"] = hash_file(folder / "weights.safetensors")
    write_config(folder, {**UNCALIBRATED, **config})
    data = DatasetFolder.open(args.data)
    config |= fit_calibration(*score_calibration_sets(data, metric))
    write_config(folder, {**UNCALIBRATED, **config})
    config["percentiles"] = score_percentiles(score_wmt18_outputs(data, metric, args.each))
    if args.model == "small":  # stage 8 adds the length penalty
        config["free"] = {key: config[key] for key in UNCALIBRATED}
    write_config(folder, config)
    print(json.dumps({key: config[key] for key in ("calibration", "uncertainty")}, indent=1))


def base_config(encoder: str, scale: float, shift: float) -> dict[str, Any]:
    """Return the config of a cross-encoder without its calibration."""
    weights = locate_weights(EncoderName.parse(encoder))
    return {
        "architecture": "cross-encoder",
        "encoder": encoder,
        "encoder_sha256": weights.hash,
        "positions": read_settings(weights.folder).max_length,
        "scale": scale,
        "shift": shift,
        "experts": UNCALIBRATED_EXPERT_SCALE,
    }


def join_parts(parts: Path, file: Path) -> dict[str, str]:
    """Join weight files into one and return their metadata."""
    weights: dict[str, Any] = {}
    metadata: dict[str, str] = {}
    for part in sorted(parts.glob("weights-*.safetensors")):
        weights |= load_file(part)
        with safe_open(part, "pt") as opened:
            metadata |= opened.metadata() or {}
    save_file(weights, file)
    return metadata


def small_config(encoder: Path, folder: Path) -> dict[str, Any]:
    """Return the config of the student and copy its encoder files."""
    files = {}
    (folder / ENCODER).mkdir(exist_ok=True)
    for name in ENCODER_FILES:
        if (encoder / name).is_file():
            shutil.copy(encoder / name, folder / ENCODER / name)
            files[f"{ENCODER}/{name}"] = hash_file(folder / ENCODER / name)
    layers = LAYERS["minilm"]
    dim = json.loads((encoder / "config.json").read_text())["hidden_size"]
    return {
        "architecture": "late interaction",
        "layers": list(layers),
        "head": {"layers": len(layers), "dim": dim, "surface": len(FEATURE_NAMES), "dropout": 0.0},
        "encoder_files": files,
        "length": NO_LENGTH_PENALTY,
        "free": UNCALIBRATED,
        "experts": UNCALIBRATED_EXPERT_SCALE,
    }


def write_config(folder: Path, config: dict[str, Any]) -> None:
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", "utf-8")
    load_bundled_model.cache_clear()


def score_calibration_sets(
    data: DatasetFolder, metric: EnglishCalibratedMetric
) -> tuple[FloatArray, FloatArray]:
    """Return raw scores and human scores of the calibration sets."""
    judgments = [
        judgment
        for name in ("da/wmt15", "da/wmt16")
        for lp in pairs_into_english(data, name)
        for judgment in data.judgments(name, lp).judgments
    ]
    segments = [Segment(j.segment.hypothesis, None, j.segment.references[:1]) for j in judgments]
    raw = metric.da_raw_scores(metric.prepare(segments))
    return raw, np.array([j.score for j in judgments])


def fit_calibration(raw: FloatArray, human: FloatArray, knots: int = KNOTS) -> dict[str, Any]:
    """Fit the monotone map to human scores, and the uncertainty around it."""
    knot_positions, levels = fit_monotone_map(raw, human, knots)
    low, high = np.quantile(human, [0.005, 0.995])
    scores = np.clip((levels - low) / (high - low), 0.02, 0.98)
    predicted, scaled = np.interp(raw, knot_positions, scores), (human - low) / (high - low)
    return {
        "calibration": {"raw": round_values(knot_positions), "score": round_values(scores)},
        "uncertainty": fit_uncertainty(predicted, scaled),
    }


def fit_monotone_map(
    raw: FloatArray, human: FloatArray, knots: int
) -> tuple[FloatArray, FloatArray]:
    """Return the knots of an increasing map: bin means, merged until they increase."""
    order = np.argsort(raw)
    blocks = [
        (raw[rows].mean(), human[rows].mean(), len(rows)) for rows in np.array_split(order, knots)
    ]
    merged: list[tuple[float, float, int]] = []
    for block in blocks:
        merged.append(block)
        while len(merged) > 1 and merged[-1][1] - merged[-2][1] < MIN_SCORE_STEP:
            (xa, ya, na), (xb, yb, nb) = merged[-2:]
            n = na + nb
            merged[-2:] = [((xa * na + xb * nb) / n, (ya * na + yb * nb) / n, n)]
    return np.array([x for x, _, _ in merged]), np.array([y for _, y, _ in merged])


def fit_uncertainty(predicted: FloatArray, human: FloatArray) -> dict[str, list[float]]:
    """Return the standard deviation of human scores around the prediction, by level."""
    parts = np.array_split(np.argsort(predicted), 8)
    return {
        "score": round_values([float(predicted[rows].mean()) for rows in parts]),
        "deviation": round_values([float((human - predicted)[rows].std()) for rows in parts]),
    }


def score_wmt18_outputs(
    data: DatasetFolder, metric: EnglishCalibratedMetric, each: int
) -> FloatArray:
    """Score a sample of WMT18 outputs into English."""
    task, rng, sample = data.metrics_task("wmt18-metrics-task"), np.random.default_rng(1), []
    for lp in task.with_outputs:
        if lp.endswith("-en"):
            testset = task.testset(lp)
            for system in testset.systems:
                segments = testset.segments(system)
                sample += [segments[n] for n in rng.choice(len(segments), each, replace=False)]
    return metric.segment_scores(sample)


def score_percentiles(scores: FloatArray) -> dict[str, Any]:
    """Return quantiles of scores and their number."""
    percents = np.linspace(0, 100, 21)
    return {
        "score": round_values(np.maximum.accumulate(np.percentile(scores, percents))),
        "percent": percents.tolist(),
        "segments": len(scores),
    }


def round_values(values: Any) -> list[float]:
    return [round(float(value), 5) for value in values]


if __name__ == "__main__":
    main()
