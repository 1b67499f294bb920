"""One vector of a sentence from the states of its positions, as sentence-transformers makes it.

Pooling (class token, mean, max ... over all positions, special tokens included), then dense layers,
then normalisation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from tertium.errors import ModelError

if TYPE_CHECKING:
    from torch import Tensor

DENSE_WEIGHTS = "model.safetensors"  # in the folder of a dense layer


@dataclass(frozen=True, kw_only=True)
class Dense:
    """A linear layer after pooling: its folder, its activation (a torch function) and its width."""

    folder: Path
    activation: str
    width: int


@dataclass(frozen=True, kw_only=True)
class Pooling:
    """What makes one vector of the states of all positions.

    `modes` are concatenated; `denses` follow; `normalise` scales to length 1; `lower` says that the
    model wants lower-cased text.
    """

    modes: tuple[str, ...] = ("mean",)
    denses: tuple[Dense, ...] = ()
    normalise: bool = False
    lower: bool = False

    def width(self, hidden: int) -> int:
        """The size of a sentence vector, given that of a state."""
        return self.denses[-1].width if self.denses else hidden * len(self.modes)

    def __call__(self, states: Tensor, mask: Tensor) -> Tensor:
        """States (texts, positions, d) and their mask (texts, positions) to (texts, width)."""
        import torch

        pooled = torch.cat([pool(states, mask, mode) for mode in self.modes], dim=1)
        for dense in self.denses:
            weights = {key: w.to(pooled) for key, w in _dense_weights(dense.folder).items()}
            pooled = torch.nn.functional.linear(pooled, weights["weight"], weights.get("bias"))
            pooled = getattr(torch, dense.activation)(pooled) if dense.activation else pooled
        return torch.nn.functional.normalize(pooled, dim=1) if self.normalise else pooled


def pool(states: Tensor, mask: Tensor, mode: str) -> Tensor:
    """One vector a text by one mode; masked positions count for nothing."""
    import torch

    weights = mask.unsqueeze(-1).to(states)  # (texts, positions, 1)
    if mode == "cls":
        return states[:, 0]
    if mode == "max":
        return states.masked_fill(weights == 0, -torch.inf).amax(dim=1)
    if mode == "lasttoken":
        last = mask.sum(dim=1).long() - 1
        return states[torch.arange(len(states), device=states.device), last]
    if mode == "weightedmean":
        weights = weights * torch.arange(1, states.shape[1] + 1).to(states)[None, :, None]
    total = (states * weights).sum(dim=1)
    count = weights.sum(dim=1).clamp(min=1e-9)  # as sentence-transformers, for a text of nothing
    return total / (count.sqrt() if mode == "mean_sqrt_len_tokens" else count)


@lru_cache(maxsize=8)
def _dense_weights(folder: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        stored = load_file(folder / DENSE_WEIGHTS)
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{folder}: {DENSE_WEIGHTS} is damaged: {error}") from None
    return {key.rpartition(".")[2]: value for key, value in stored.items()}
