"""Where a training run stands, in one file that is replaced in one step.

A safetensors file: tensors under `network.`, `best.`, `optimiser.` and `random.`, everything else
as JSON in its header.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tertium.errors import UsageError
from tertium.models.arrays import read_arrays, write_arrays


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A run after an epoch: all that is needed to go on from there.

    `identity` stands for data and settings: a run with others does not go on from here.
    """

    identity: str
    stage: str
    progress: dict[str, Any]
    network: Mapping[str, Tensor]
    best: Mapping[str, Tensor]
    optimiser: Mapping[int, Mapping[str, Tensor]]
    randomness: Mapping[str, Tensor]


def write_snapshot(file: Path, snapshot: Snapshot) -> None:
    """Replace the file."""
    tensors = {
        **{f"network.{name}": tensor for name, tensor in snapshot.network.items()},
        **{f"best.{name}": tensor for name, tensor in snapshot.best.items()},
        **{f"random.{name}": tensor for name, tensor in snapshot.randomness.items()},
        **{
            f"optimiser.{number}.{name}": torch.as_tensor(value)
            for number, values in snapshot.optimiser.items()
            for name, value in values.items()
        },
    }
    header = {
        "identity": snapshot.identity,
        "stage": snapshot.stage,
        "progress": json.dumps(snapshot.progress),
    }
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
    write_arrays(file, arrays, header)


def read_snapshot(file: Path, identity: str) -> Snapshot | None:
    """The snapshot in a file; None where there is none. One of another run is refused."""
    if not file.is_file():
        return None
    arrays, header = read_arrays(file)
    if header.get("identity") != identity:
        raise UsageError(
            f"{file} is of a training run with other data or settings: give another folder, or "
            "remove the file to begin anew"
        )
    parts: dict[str, dict[str, Tensor]] = {"network": {}, "best": {}, "random": {}, "optimiser": {}}
    for name, array in arrays.items():
        kind, _, rest = name.partition(".")
        parts[kind][rest] = torch.from_numpy(array)
    optimiser: dict[int, dict[str, Tensor]] = {}
    for name, tensor in parts["optimiser"].items():
        number, _, rest = name.partition(".")
        optimiser.setdefault(int(number), {})[rest] = tensor
    return Snapshot(
        identity=identity,
        stage=header["stage"],
        progress=json.loads(header["progress"]),
        network=parts["network"],
        best=parts["best"],
        optimiser=optimiser,
        randomness=parts["random"],
    )
