"""Sentence vectors from token states, as sentence-transformers computes them.

Pooling over all positions, special tokens included (mean or first token), then dense layers, then
normalization.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from tertium.encoders.weight_files import read_tensor_file

if TYPE_CHECKING:
    from torch import Tensor

DENSE_WEIGHTS = "model.safetensors"  # in the folder of a dense layer


@dataclass(frozen=True, kw_only=True)
class Dense:
    """A linear layer after pooling: folder, activation (a torch function) and output size."""

    folder: Path
    activation: str
    width: int


@dataclass(frozen=True, kw_only=True)
class Pooling:
    """Computes one vector from the states of all positions of a text.

    The result of `mode` (`mean` or `cls`) is passed through `dense_layers` and, with
    `normalize`, scaled to length 1. `lowercase` means that the model expects lower-cased text.
    """

    mode: str = "mean"
    dense_layers: tuple[Dense, ...] = ()
    normalize: bool = False
    lowercase: bool = False

    def width(self, hidden: int) -> int:
        """Return the size of a sentence vector, given the size of a state."""
        return self.dense_layers[-1].width if self.dense_layers else hidden

    def __call__(self, states: Tensor, mask: Tensor) -> Tensor:
        """Pool states (texts, positions, d) under a mask (texts, positions) to (texts, width)."""
        import torch

        pooled = pool(states, mask, self.mode)
        for dense in self.dense_layers:
            weights = {key: w.to(pooled) for key, w in _load_dense_weights(dense.folder).items()}
            pooled = torch.nn.functional.linear(pooled, weights["weight"], weights.get("bias"))
            pooled = getattr(torch, dense.activation)(pooled) if dense.activation else pooled
        return torch.nn.functional.normalize(pooled, dim=1) if self.normalize else pooled


def pool(states: Tensor, mask: Tensor, mode: str) -> Tensor:
    """Pool states (texts, positions, d) to (texts, d), ignoring masked positions."""
    if mode == "cls":
        return states[:, 0]
    weights = mask.unsqueeze(-1).to(states)  # (texts, positions, 1)
    total = (states * weights).sum(dim=1)  # (texts, d)
    count = weights.sum(dim=1).clamp(min=1e-9)  # as in sentence-transformers, for empty texts
    return total / count


@lru_cache(maxsize=8)
def _load_dense_weights(folder: Path) -> dict[str, Tensor]:
    stored = read_tensor_file(folder / DENSE_WEIGHTS)
    return {key.rpartition(".")[2]: value for key, value in stored.items()}
