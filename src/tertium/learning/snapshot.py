"""Where a training run stands, in one file that is replaced in one step.

A safetensors file: tensors under `network.`, `best.`, `optimiser.` and `random.`, everything else
as JSON in its header.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tertium.errors import DataError, ModelError


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A run after an epoch: all that is needed to go on from there."""

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
    header = {"stage": snapshot.stage, "progress": json.dumps(snapshot.progress)}
    write_tensors(file, tensors, header)


def read_snapshot(file: Path, stage: str) -> Snapshot | None:
    """The snapshot of this stage; None where there is none, or one of another stage."""
    if not file.is_file():
        return None
    tensors, header = read_tensors(file)
    if header.get("stage") != stage:
        return None
    parts: dict[str, dict[str, Tensor]] = {"network": {}, "best": {}, "random": {}, "optimiser": {}}
    for name, tensor in tensors.items():
        kind, _, rest = name.partition(".")
        parts[kind][rest] = tensor
    optimiser: dict[int, dict[str, Tensor]] = {}
    for name, tensor in parts["optimiser"].items():
        number, _, rest = name.partition(".")
        optimiser.setdefault(int(number), {})[rest] = tensor
    return Snapshot(
        stage=stage,
        progress=json.loads(header["progress"]),
        network=parts["network"],
        best=parts["best"],
        optimiser=optimiser,
        randomness=parts["random"],
    )


def write_tensors(
    file: Path, tensors: Mapping[str, Tensor], header: Mapping[str, str] | None = None
) -> None:
    """Write a safetensors file beside its place, then move it there in one step."""
    from safetensors.torch import save_file

    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
        os.close(handle)
    except OSError as error:
        raise DataError(f"{file} cannot be written: {error.strerror}") from None
    temporary = Path(name)
    try:
        save_file(plain, temporary, metadata=dict(header or {}))
        temporary.chmod(0o644)
        temporary.replace(file)
    except Exception as error:  # safetensors has an error type of its own for a full disk
        temporary.unlink(missing_ok=True)
        raise DataError(f"{file} cannot be written: {error}") from None


def read_tensors(file: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the header of a safetensors file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="pt") as opened:
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
            return tensors, dict(opened.metadata() or {})
    except FileNotFoundError:
        raise ModelError(f"{file}: no such file") from None
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{file} is damaged or was cut short: {error}") from None
