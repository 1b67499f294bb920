"""One vector for a sentence, as the model's own sentence-transformers settings say.

`modules.json` lists what follows the transformer: pooling (class token, mean, max ... over all
positions, special tokens included), dense layers, normalisation. A model without settings is
pooled by the mean, as sentence-transformers does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tertium.errors import ModelError
from tertium.schema import POSITIVE, load_json, read_json, read_value

if TYPE_CHECKING:
    from torch import Tensor

MODES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
ACTIVATIONS = {"Tanh": "tanh", "Identity": "", "ReLU": "relu", "Sigmoid": "sigmoid"}


MODULES, CONFIG = "modules.json", "config.json"


@dataclass(frozen=True, kw_only=True)
class Module:
    """What a folder says of one step after the transformer."""

    type: str
    path: str
    idx: int = 0
    name: str = ""
    kwargs: Any = None


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


def read_pooling(folder: Path) -> Pooling:
    """The pooling a model folder asks for in its sentence-transformers settings."""
    try:
        found = load_json(folder / MODULES)
    except FileNotFoundError:
        return Pooling()
    modules = read_value(tuple[Module, ...], found, folder / MODULES, "modules")
    modes: tuple[str, ...] = ("mean",)
    denses: list[Dense] = []
    normalise = False
    for module in modules:
        kind, place = module.type.rpartition(".")[2], folder / module.path
        if kind == "Pooling":
            modes = _modes(read_optional(place / "config.json"))
        elif kind == "Dense":
            denses.append(_dense(place))
        elif kind == "Normalize":
            normalise = True
        elif kind != "Transformer":
            raise ModelError(
                f"{folder} asks for a sentence-transformers module of type {kind}, which tertium "
                "does not know: remove modules.json to use its token vectors and mean pooling"
            )
    lower = bool(read_optional(folder / "sentence_bert_config.json").get("do_lower_case", False))
    return Pooling(modes=modes, denses=tuple(denses), normalise=normalise, lower=lower)


def _modes(settings: dict[str, Any]) -> tuple[str, ...]:
    chosen = settings.get("pooling_mode")
    if chosen is not None:
        names = tuple(map(str, chosen)) if isinstance(chosen, list) else (str(chosen),)
    else:
        names = tuple(mode for key, mode in MODES.items() if settings.get(key))
    unknown = set(names) - set(MODES.values())
    if unknown or not names:
        raise ModelError(f"unknown pooling {', '.join(sorted(unknown))[:80] or 'of no mode'!r}")
    return names


def _dense(folder: Path) -> Dense:
    settings = read_optional(folder / "config.json")
    activation = str(settings.get("activation_function", "Identity")).rpartition(".")[2]
    if activation not in ACTIVATIONS or settings.get("use_residual"):
        raise ModelError(
            f"{folder}: a dense layer with activation {activation} or a residual is not known"
        )
    if not (folder / "model.safetensors").is_file():
        raise ModelError(
            f"{folder} has no model.safetensors (a pickle such as pytorch_model.bin is refused): "
            "convert it"
        )
    kind, found = Annotated[int, POSITIVE], settings.get("out_features")
    width = read_value(kind, found, folder / CONFIG, "out_features")
    return Dense(folder=folder, activation=ACTIVATIONS[activation], width=width)


def read_optional(file: Path) -> dict[str, Any]:
    """The settings in a file; none where there is no file."""
    try:
        return read_json(file)
    except FileNotFoundError:
        return {}


@lru_cache(maxsize=8)
def _dense_weights(folder: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        stored = load_file(folder / "model.safetensors")
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{folder}: model.safetensors is damaged: {error}") from None
    return {key.rpartition(".")[2]: value for key, value in stored.items()}
