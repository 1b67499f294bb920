"""A trained model is a folder: `config.json` says what it is, `weights.safetensors` what it knows.

Both are written beside their place and moved there in one step, the configuration last, so that a
folder with a `config.json` is complete. Weights may be stored in half precision; they are computed
with in single.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tertium.errors import DataError, ModelError
from tertium.learning.snapshot import read_tensors, write_tensors

CONFIG, WEIGHTS = "config.json", "weights.safetensors"


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """What is stored of a trained metric.

    `metric` is its registered name, `config` what rebuilds it; `encoders` maps the name of each
    encoder it was trained with to the sha256 of its weights; `training` says what it was trained on
    and how, for the model card.
    """

    metric: str
    config: Mapping[str, Any]
    encoders: Mapping[str, str]
    tensors: Mapping[str, Tensor]
    training: Mapping[str, Any] = field(default_factory=dict)

    @property
    def hash(self) -> str:
        """The sha256 of configuration and weights as they are computed with."""
        digest = hashlib.sha256(self._description().encode())
        for name in sorted(self.tensors):
            tensor = self.tensors[name]
            digest.update(f"{name} {tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().float().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def _description(self) -> str:
        parts = {"metric": self.metric, "config": self.config, "encoders": self.encoders}
        return json.dumps(parts, sort_keys=True)


def write_checkpoint(folder: Path, checkpoint: Checkpoint, *, half: bool = True) -> None:
    """Write a checkpoint, its floating-point numbers in half precision unless told otherwise."""
    tensors = {
        name: tensor.half() if half and tensor.is_floating_point() else tensor
        for name, tensor in checkpoint.tensors.items()
    }
    write_tensors(folder / WEIGHTS, tensors)
    config = {
        "metric": checkpoint.metric,
        "config": dict(checkpoint.config),
        "encoders": dict(checkpoint.encoders),
        "training": dict(checkpoint.training),
    }
    write_text(folder / CONFIG, json.dumps(config, indent=2) + "\n")


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read a checkpoint; an error says what is missing or damaged."""
    config = read_config(folder)
    tensors, _ = read_tensors(folder / WEIGHTS)
    try:
        return Checkpoint(
            metric=str(config["metric"]),
            config=config["config"],
            encoders=config["encoders"],
            training=config.get("training", {}),
            tensors={n: t.float() if t.is_floating_point() else t for n, t in tensors.items()},
        )
    except KeyError as error:
        raise ModelError(f"{folder / CONFIG} has no {error}: not a trained metric") from None


def is_checkpoint(folder: Path) -> bool:
    """Whether a folder holds a trained metric."""
    return (folder / CONFIG).is_file()


def read_config(folder: Path) -> dict[str, Any]:
    """What `config.json` says."""
    file = folder / CONFIG
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"{folder} has no {CONFIG}: not a trained metric") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{file} cannot be read: {error}") from None
    if not isinstance(config, dict):
        raise ModelError(f"{file} is not an object of settings")
    return config


def check_encoder(name: str, trained_with: str, found: str) -> None:
    """Refuse an encoder whose weights are not those a model was trained with."""
    if trained_with != found:
        raise ModelError(
            f"this model was trained with {name} of sha256 {trained_with[:12]}..., but the one "
            f"found here is {found[:12]}...: install that version, or train the model anew"
        )


def load_tensors(network: torch.nn.Module, checkpoint: Checkpoint, where: Path) -> None:
    """Put a checkpoint's weights into a network of its shape."""
    try:
        network.load_state_dict(dict(checkpoint.tensors))
    except RuntimeError as error:
        first = str(error).strip().splitlines()[-1].strip()
        raise ModelError(f"the weights in {where} do not fit its {CONFIG}: {first}") from None


def settings_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass as plain values."""
    return dataclasses.asdict(value)


def write_text(file: Path, text: str) -> None:
    """Replace a text file in one step."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(file)
    except OSError as error:
        raise DataError(f"{file} cannot be written: {error.strerror}") from None
