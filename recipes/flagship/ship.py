"""Stage 6: put a packaged student into tertium, calibrated against direct assessment.

    python -m recipes.flagship.ship OUT/student2 --encoder minilm/ --data DIR

The map from raw scores to 0..1 and its uncertainty come from da/wmt15 and da/wmt16, percentiles
from outputs of WMT18's systems; da/wmt17 and rankings/wmt12 are not looked at.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from recipes.flagship.corpus import to_english
from recipes.flagship.train import LAYERS
from tertium.data.collection import Collection
from tertium.features.surface import NAMES
from tertium.metrics.flagship import MODEL, TertiumSmall
from tertium.metrics.packaged import TRAINED, packaged

FloatArray = NDArray[np.float64]
ENCODER_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json")
KNOTS = 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("student", type=Path)
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--data", help="the human judgements (default: TERTIUM_DATA)")
    parser.add_argument("--folder", type=Path, default=TRAINED / MODEL)
    args = parser.parse_args()
    config = join(args.student, args.encoder, args.folder)
    write(args.folder, {**config, "calibration": {"raw": [-1, 1], "score": [0.25, 0.75]}})
    config |= calibrate(Collection.at(args.data))
    write(args.folder, config)
    print(json.dumps({key: config[key] for key in ("calibration", "uncertainty")}, indent=1))


def join(student: Path, encoder: Path, folder: Path) -> dict[str, Any]:
    """One weights file from its parts, and the encoder's settings beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {}
    for part in sorted(student.glob("weights-*.safetensors")):
        weights |= load_file(part)
    save_file(weights, folder / "weights.safetensors")
    files = []
    for name in ENCODER_FILES:
        if (encoder / name).is_file():
            shutil.copy(encoder / name, folder / f"encoder-{name}")
            files.append(f"encoder-{name}")
    digest = hashlib.sha256((folder / "weights.safetensors").read_bytes()).hexdigest()
    layers = LAYERS["minilm"]
    dim = json.loads((encoder / "config.json").read_text())["hidden_size"]
    return {
        "architecture": "late interaction",
        "layers": list(layers),
        "head": {"layers": len(layers), "dim": dim, "surface": len(NAMES), "dropout": 0.0},
        "encoder_files": files,
        "weights_sha256": digest,
    }


def write(folder: Path, config: dict[str, Any]) -> None:
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", "utf-8")
    packaged.cache_clear()


def calibrate(data: Collection) -> dict[str, Any]:
    """The monotone map, the spread of people around it, and the quantiles of WMT18 outputs."""
    metric = TertiumSmall()
    judged = [
        judgement
        for name in ("da/wmt15", "da/wmt16")
        for lp in to_english(data, name)
        for judgement in data.judgements(name, lp).judgements
    ]
    human = np.array([j.score for j in judged])
    raw = metric.raw_scores(
        [j.segment.hypothesis for j in judged], [j.segment.references[0] for j in judged]
    )
    knots, levels = monotone(raw, human)
    low, high = np.quantile(human, [0.005, 0.995])
    scores = np.clip((levels - low) / (high - low), 0.02, 0.98)
    found = {"calibration": {"raw": rounded(knots), "score": rounded(scores)}}
    predicted, scaled = np.interp(raw, knots, scores), (human - low) / (high - low)
    found["uncertainty"] = spread(predicted, scaled)
    write(TRAINED / MODEL, {**packaged(MODEL).config, **found})
    return {**found, "percentiles": wmt18_percentiles(data, TertiumSmall())}


def monotone(raw: FloatArray, human: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Knots of an increasing map: means of equal shares of the data, pooled where they fall."""
    order = np.argsort(raw)
    blocks = [(raw[rows].mean(), human[rows].mean(), len(rows))
              for rows in np.array_split(order, KNOTS)]  # fmt: skip
    pooled: list[tuple[float, float, int]] = []
    for block in blocks:
        pooled.append(block)
        while len(pooled) > 1 and pooled[-2][1] >= pooled[-1][1]:
            (xa, ya, na), (xb, yb, nb) = pooled[-2:]
            n = na + nb
            pooled[-2:] = [((xa * na + xb * nb) / n, (ya * na + yb * nb) / n, n)]
    return np.array([x for x, _, _ in pooled]), np.array([y for _, y, _ in pooled])


def spread(predicted: FloatArray, human: FloatArray) -> dict[str, list[float]]:
    """The standard deviation of people's scores around the prediction, by its level."""
    parts = np.array_split(np.argsort(predicted), 8)
    return {
        "score": rounded([float(predicted[rows].mean()) for rows in parts]),
        "deviation": rounded([float((human - predicted)[rows].std()) for rows in parts]),
    }


def wmt18_percentiles(data: Collection, metric: TertiumSmall, each: int = 40) -> dict[str, Any]:
    """Quantiles of the scores of a sample of WMT18 outputs into English."""
    task, rng, sample = data.metrics_task("wmt18-metrics-task"), np.random.default_rng(1), []
    for lp in task.with_outputs:
        if lp.endswith("-en"):
            testset = task.testset(lp)
            for system in testset.systems:
                segments = testset.segments(system)
                sample += [segments[n] for n in rng.choice(len(segments), each, replace=False)]
    scores = metric.segment_scores(sample)
    percents = np.linspace(0, 100, 21)
    return {"score": rounded(np.maximum.accumulate(np.percentile(scores, percents))),
            "percent": percents.tolist(), "segments": len(sample)}  # fmt: skip


def rounded(values: Any) -> list[float]:
    return [round(float(value), 5) for value in values]


if __name__ == "__main__":
    main()
