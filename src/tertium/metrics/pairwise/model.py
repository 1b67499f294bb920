"""All that a trained pairwise ranker is, in one value and one folder.

`config.json` says what it reads and how it was trained, `weights.safetensors` holds its numbers:
the network, the scales of its inputs, the projections of its vectors, and how much n-grams tell.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from tertium.errors import ModelError
from tertium.metrics.base.components import Information
from tertium.metrics.pairwise.network import PairwiseNetwork, Weights
from tertium.metrics.pairwise.training import Scaler
from tertium.metrics.pairwise.vectors import Projection, VectorName
from tertium.models.checkpoint import CONFIG, WEIGHTS, Checkpoint, Like, check_arrays, read_declared
from tertium.models.trained import SETTINGS, EqualByWeights
from tertium.schema import NOT_NEGATIVE, POSITIVE, construct

KINDS = ("vectors", "features")


@dataclass(frozen=True, kw_only=True)
class PairwiseConfig:
    """What a folder says of a pairwise ranker.

    `settings` are its fields, `columns` the features it was trained on, `metrics` the learned
    metrics among them, each with the model it was; `farthest` is where its scales cut (null:
    nowhere).
    """

    settings: Mapping[str, Any]
    columns: tuple[str, ...]
    information_total: Annotated[int, NOT_NEGATIVE]
    farthest: Annotated[float, POSITIVE] | None
    metrics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class InputNumbers:
    """What makes inputs of texts, learned from references before there is a network."""

    projections: Mapping[VectorName, Projection] = field(default_factory=dict)
    information: Information = field(default_factory=Information.nothing)


@dataclass(frozen=True, kw_only=True, eq=False)
class PairwiseModel(InputNumbers):
    """The numbers of a ranker: the network, and what makes its inputs."""

    network: PairwiseNetwork
    scaler: Scaler
    columns: tuple[str, ...]

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


def as_checkpoint(
    ranker: EqualByWeights,
    model: PairwiseModel,
    *,
    encoders: Mapping[str, str],
    metrics: Mapping[str, str],
    training: Mapping[str, Any],
) -> Checkpoint:
    """What is stored of a ranker."""
    settings = ranker.own_settings
    return Checkpoint(
        name=ranker.name,
        kind="ranker",
        config={
            SETTINGS: settings,
            "columns": list(model.columns),
            "information_total": model.information.total,
            "farthest": model.scaler.farthest if np.isfinite(model.scaler.farthest) else None,
            "metrics": dict(metrics),
        },
        encoders=encoders,
        arrays=model.arrays(settings["vectors"]),
        training=training,
    )


@lru_cache(maxsize=8)
def restore_model(checkpoint: Checkpoint, vectors: Sequence[str], where: str) -> PairwiseModel:
    """The model of a checkpoint that reads these vectors; an error says what does not fit."""
    folder, arrays = Path(where), checkpoint.arrays
    stored = read_declared(PairwiseConfig, checkpoint, where)
    names = [construct(VectorName.parse, {"text": v}, folder / CONFIG) for v in vectors]
    _check(stored, arrays, names, folder / WEIGHTS)
    return PairwiseModel(
        network=PairwiseNetwork(
            hidden=arrays["inner"].shape[1] // 3,
            width=len(arrays["vectors.centre"]),
            features=len(stored.columns),
            weights=Weights(arrays["inner"], arrays["outer"]),
        ),
        scaler=Scaler(
            centre={kind: arrays[f"{kind}.centre"] for kind in KINDS},
            spread={kind: arrays[f"{kind}.spread"] for kind in KINDS},
            farthest=np.inf if stored.farthest is None else stored.farthest,
        ),
        columns=stored.columns,
        projections={
            name: Projection(arrays[f"projection.{n}.mean"], arrays[f"projection.{n}.axes"])
            for n, name in enumerate(names)
            if name.width
        },
        information=Information(
            arrays["information.keys"], arrays["information.counts"], stored.information_total
        ),
    )


def _check(
    stored: PairwiseConfig, arrays: Mapping[str, Any], names: Sequence[VectorName], file: Path
) -> None:
    """Refuse arrays that are not those of such a network."""
    columns = len(stored.columns)
    wanted = {
        "vectors.centre": Like("f", ("width",)),
        "vectors.spread": Like("f", ("width",)),
        "features.centre": Like("f", (columns,)),
        "features.spread": Like("f", (columns,)),
        "inner": Like("f", ("rows", "nodes")),
        "outer": Like("f", ("weights",)),
        "information.keys": Like("u", ("n-grams",)),
        "information.counts": Like("u", ("n-grams",)),
    }
    for n, name in enumerate(names):
        if name.width:
            wanted[f"projection.{n}.mean"] = Like("f", (f"dimensions {n}",))
            wanted[f"projection.{n}.axes"] = Like("f", (f"dimensions {n}", name.width))
    sizes = check_arrays(arrays, wanted, file)
    width, nodes = sizes["width"], sizes["nodes"]
    weights = (nodes or 3 * width) + 2 * columns + 1
    shapes = {
        "inner": Like("f", (3 * width + 1, nodes - nodes % 3)),
        "outer": Like("f", (weights,)),
    }
    check_arrays({name: arrays[name] for name in shapes}, shapes, file)
    for kind in KINDS:
        if not (arrays[f"{kind}.spread"] > 0).all():
            raise ModelError(f"{file}: {kind}.spread holds a number that is not above 0")
