"""All that a trained pairwise ranker is, in one value and one folder.

`config.json` says what it reads and how it was trained, `weights.safetensors` holds its numbers:
the network, the scales of its inputs, the projections of its vectors, and how much n-grams tell.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tertium.errors import ModelError
from tertium.metrics.base.information import Information
from tertium.metrics.pairwise.network import PairwiseNetwork, Weights
from tertium.metrics.pairwise.training import Scaler
from tertium.metrics.pairwise.vectors import Projection, VectorName
from tertium.models import checkpoint
from tertium.models.checkpoint import CONFIG, WEIGHTS

KINDS = ("vectors", "features")


@dataclass(frozen=True, kw_only=True, eq=False)
class PairwiseModel:
    """What training leaves.

    `columns` names the features the network was trained on, `encoders` maps each encoder behind its
    vectors and columns to the hash of its weights, `metrics` each learned metric among the columns
    to the model it was.
    """

    network: PairwiseNetwork
    scaler: Scaler
    columns: tuple[str, ...]
    projections: Mapping[VectorName, Projection] = field(default_factory=dict)
    information: Information = field(default_factory=Information.nothing)
    encoders: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """Twelve characters that stand for all numbers."""
        summary = hashlib.sha256()
        for name, array in sorted(self.arrays(()).items()):
            summary.update(name.encode() + np.ascontiguousarray(array).tobytes())
        return summary.hexdigest()[:12]

    def arrays(self, vectors: Sequence[str]) -> dict[str, Any]:
        """All numbers by name; projections are numbered by their place among `vectors`."""
        arrays: dict[str, Any] = dict(self.network.arrays)
        for kind in KINDS:
            arrays[f"{kind}.centre"] = self.scaler.centre[kind]
            arrays[f"{kind}.spread"] = self.scaler.spread[kind]
        places = {VectorName.parse(text): str(n) for n, text in enumerate(vectors)}
        for n, (name, projection) in enumerate(self.projections.items()):
            place = places.get(name, f"unnamed-{n}")
            arrays[f"projection.{place}.mean"] = projection.mean
            arrays[f"projection.{place}.axes"] = projection.axes
        arrays["information.keys"] = self.information.keys
        arrays["information.counts"] = self.information.counts
        return arrays


def write_model(folder: Path, model: PairwiseModel, settings: Mapping[str, Any]) -> None:
    """Write the two files of a model."""
    config = {
        "ranker": "pairwise",
        "config": dict(settings),
        "columns": list(model.columns),
        "information_total": model.information.total,
        "farthest": model.scaler.farthest if np.isfinite(model.scaler.farthest) else None,
        "encoders": dict(model.encoders),
        "metrics": dict(model.metrics),
        "training": dict(model.training),
    }
    checkpoint.write_folder(folder, config, model.arrays(settings["vectors"]))


def read_config(folder: Path) -> dict[str, Any]:
    """What `config.json` says."""
    config = checkpoint.read_config(folder, "ranker")
    if config.get("ranker") != "pairwise" or not isinstance(config.get("config"), dict):
        raise ModelError(f"{folder / CONFIG} is not that of a pairwise ranker")
    return config


def read_model(folder: Path) -> PairwiseModel:
    """The model of a folder; an error says what is missing or damaged."""
    config = read_config(folder)
    arrays = checkpoint.read_weights(folder, config)
    try:
        return _assemble(config, arrays)
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise ModelError(f"{folder / WEIGHTS} does not fit its {CONFIG}: {error}") from None


def _assemble(config: Mapping[str, Any], arrays: Mapping[str, Any]) -> PairwiseModel:
    settings, columns = config["config"], tuple(config["columns"])
    weights = Weights(arrays["inner"], arrays["outer"])
    hidden = weights.inner.shape[1] // 3
    width = len(arrays["vectors.centre"])
    expected = (3 * hidden if hidden else 3 * width) + 2 * len(columns) + 1
    if len(weights.outer) != expected or len(weights.inner) != 3 * width + 1:
        raise ValueError(f"{len(weights.outer)} weights where {expected} were expected")
    limit = config["farthest"]
    return PairwiseModel(
        network=PairwiseNetwork(
            hidden=hidden, width=width, features=len(columns), weights=weights
        ),
        scaler=Scaler(
            centre={kind: arrays[f"{kind}.centre"] for kind in KINDS},
            spread={kind: arrays[f"{kind}.spread"] for kind in KINDS},
            farthest=float("inf") if limit is None else float(limit),
        ),
        columns=columns,
        projections={
            VectorName.parse(text): Projection(
                arrays[f"projection.{n}.mean"], arrays[f"projection.{n}.axes"]
            )
            for n, text in enumerate(settings["vectors"])
            if VectorName.parse(text).width
        },
        information=Information(
            arrays["information.keys"], arrays["information.counts"], config["information_total"]
        ),
        encoders=config["encoders"],
        metrics=config.get("metrics", {}),
        training=config.get("training", {}),
    )
