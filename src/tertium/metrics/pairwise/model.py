"""The learned state of a pairwise ranker and its storage in a checkpoint.

The weights include the network, input scales, projections of sentence vectors, and n-gram counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from tertium.core.errors import ModelError
from tertium.core.fields import NON_NEGATIVE, POSITIVE, construct
from tertium.metrics.base.lexical_features import NgramInformation
from tertium.metrics.pairwise.ranking_network import PairwiseNetwork, Scaler, Weights
from tertium.metrics.pairwise.sentence_vectors import Projection, VectorName
from tertium.models.array_checks import ArraySpec, check_arrays
from tertium.models.checkpoint import CONFIG, WEIGHTS, Checkpoint, parse_config
from tertium.models.checkpoint_cache import cache_by_checkpoint
from tertium.models.trained_model import SETTINGS, EqualByWeights

KINDS = ("vectors", "features")


@dataclass(frozen=True, kw_only=True)
class PairwiseConfig:
    """Stored settings of a pairwise ranker.

    `settings` are its fields, `columns` the features it was trained on, `metrics` the trained
    metrics among them with their model identifiers, `farthest` the clipping of inputs (null: none).
    """

    settings: Mapping[str, Any]
    columns: tuple[str, ...]
    information_total: Annotated[int, NON_NEGATIVE]
    farthest: Annotated[float, POSITIVE] | None
    metrics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class InputNumbers:
    """Learned parts of the inputs, fitted to references before the network is trained."""

    projections: Mapping[VectorName, Projection] = field(default_factory=dict)
    information: NgramInformation = field(default_factory=NgramInformation.empty)


@dataclass(frozen=True, kw_only=True, eq=False)
class PairwiseModel(InputNumbers):
    """The learned state of a ranker: its network and the parts of its inputs."""

    network: PairwiseNetwork
    scaler: Scaler
    columns: tuple[str, ...]

    @cached_property
    def digest(self) -> str:
        """Twelve hexadecimal digits that identify the model."""
        summary = hashlib.sha256()
        for name, array in sorted(self.arrays(()).items()):
            summary.update(name.encode() + np.ascontiguousarray(array).tobytes())
        return summary.hexdigest()[:12]

    def arrays(self, vectors: Sequence[str]) -> dict[str, Any]:
        """Return all arrays by name; projections are numbered by their position in `vectors`."""
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
    settings = ranker.scoring_fields
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


@cache_by_checkpoint
def restore_model(checkpoint: Checkpoint, vectors: Sequence[str], where: str) -> PairwiseModel:
    """Restore a model from a checkpoint; raise `ModelError` if parts do not fit."""
    folder, arrays = Path(where), checkpoint.arrays
    stored = parse_config(PairwiseConfig, checkpoint, where)
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
        information=NgramInformation(
            arrays["information.keys"], arrays["information.counts"], stored.information_total
        ),
    )


def _check(
    stored: PairwiseConfig, arrays: Mapping[str, Any], names: Sequence[VectorName], file: Path
) -> None:
    columns = len(stored.columns)
    wanted = {
        "vectors.centre": ArraySpec("f", ("width",)),
        "vectors.spread": ArraySpec("f", ("width",)),
        "features.centre": ArraySpec("f", (columns,)),
        "features.spread": ArraySpec("f", (columns,)),
        "inner": ArraySpec("f", ("rows", "nodes")),
        "outer": ArraySpec("f", ("weights",)),
        "information.keys": ArraySpec("u", ("n-grams",)),
        "information.counts": ArraySpec("u", ("n-grams",)),
    }
    for n, name in enumerate(names):
        if name.width:
            wanted[f"projection.{n}.mean"] = ArraySpec("f", (f"dimensions {n}",))
            wanted[f"projection.{n}.axes"] = ArraySpec("f", (f"dimensions {n}", name.width))
    sizes = check_arrays(arrays, wanted, file)
    width, nodes = sizes["width"], sizes["nodes"]
    weights = (nodes or 3 * width) + 2 * columns + 1
    shapes = {
        "inner": ArraySpec("f", (3 * width + 1, nodes - nodes % 3)),
        "outer": ArraySpec("f", (weights,)),
    }
    check_arrays({name: arrays[name] for name in shapes}, shapes, file)
    for kind in KINDS:
        if not (arrays[f"{kind}.spread"] > 0).all():
            raise ModelError(f"{file}: {kind}.spread holds a number that is not above 0")
