"""Read the settings of a model folder without loading the model; compute sentence vectors by them.

`modules.json` lists the sentence-transformers modules after the transformer: pooling over all
positions, special tokens included (mean or first token), then dense layers, then normalization.
Models without it use mean pooling, as in sentence-transformers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tertium.core.errors import ModelError, UsageError
from tertium.core.fields import POSITIVE, Rule, check_value, load_json, read_json_object
from tertium.core.store import cached_file_hash
from tertium.encoders.weight_files import PROVENANCE_FILE, read_tensor_file

if TYPE_CHECKING:
    from torch import Tensor


HIDDEN_KEYS = "hidden_size d_model dim n_embd emb_dim".split()
DEPTH_KEYS = "num_hidden_layers num_layers encoder_layers n_layers n_layer".split()
POSITION_KEYS = "max_position_embeddings n_positions max_seq_len".split()
# Model types that number positions from one past the id of the padding token.
OFFSET_POSITION_TYPES = "roberta mpnet camembert longformer esm data2vec-text".split()
# Files that decide tokens or pooling.
HASHED_FILES = "*.json *.txt *.model */config.json */model.safetensors".split()
DEFAULT_MAX_LENGTH = 512  # as BERT, if neither model nor tokenizer has a limit
MAX_SIZE = 1 << 20  # layers or values of a state: a larger number is a damaged file
POOLING_MODES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
}
ACTIVATIONS = {"Tanh": "tanh", "Identity": ""}
MODULES_FILE = "modules.json"
CONFIG_FILE = "config.json"
TRANSFORMER_FILE = "sentence_bert_config.json"  # of the sentence-transformers module
ROW_SCALE = ".row_scale"  # suffix of the scales of a matrix that is stored as int8 rows


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """Sizes and pooling of a model.

    `hidden` is the size of a state, `depth` the number of layers, `max_length` the number of
    positions, special tokens included. `hash` covers every file that decides tokens or pooling.
    `prefix` is a prompt before every text.
    """

    hidden: int
    depth: int
    max_length: int
    pooling: Pooling
    hash: str
    prefix: str = ""


def read_settings(folder: Path, prefix: str = "") -> ModelSettings:
    """Read the settings of a model folder; `prefix` is used if it has no prompt of its own."""
    config = read_optional_json(folder / CONFIG_FILE)
    if not config:
        raise ModelError(f"{folder} has no readable config.json: not a model folder")
    return ModelSettings(
        hidden=_read_size(config, HIDDEN_KEYS, folder),
        depth=_read_size(config, DEPTH_KEYS, folder),
        max_length=_read_max_length(config, folder),
        pooling=read_pooling(folder),
        hash=_hash_settings(folder, prefix),
        prefix=_read_prompt(folder) or prefix,
    )


def parse_layers(layer: str, depth: int, name: str) -> tuple[int, ...]:
    """Return the layers of a layer choice, checked against the depth of the model.

    >>> parse_layers("4", 6, "minilm"), parse_layers("2+4", 6, "minilm"), parse_layers("all", 2, "")
    ((4,), (2, 4), (0, 1, 2))
    """
    if layer == "all":
        return tuple(range(depth + 1))
    numbers = tuple(map(int, layer.split("+")))
    if max(numbers) > depth:
        raise UsageError(f"encoder {name} has layers 0 to {depth}: there is no layer {layer}")
    return numbers


def _read_max_length(config: Mapping[str, Any], folder: Path) -> int:
    file = folder / CONFIG_FILE
    tokenizer_file = folder / "tokenizer_config.json"
    key = next((key for key in POSITION_KEYS if config.get(key)), POSITION_KEYS[0])
    positions = check_value(int | None, config.get(key), file, key)
    model_type = check_value(str, config.get("model_type", ""), file, "model_type")
    if positions is not None and any(name in model_type for name in OFFSET_POSITION_TYPES):
        pad_token_id = check_value(int | None, config.get("pad_token_id"), file, "pad_token_id")
        positions -= (1 if pad_token_id is None else pad_token_id) + 1
    limit = read_optional_json(tokenizer_file).get("model_max_length")
    limit = check_value(float | None, limit, tokenizer_file, "model_max_length")
    # transformers writes 10^30 for a tokenizer without a limit
    limits = [int(n) for n in (positions, limit) if n is not None and 0 < n < 10**9]
    return min(limits, default=DEFAULT_MAX_LENGTH)


def _read_prompt(folder: Path) -> str:
    settings = read_optional_json(folder / "config_sentence_transformers.json")
    prompts = settings.get("prompts")
    name = settings.get("default_prompt_name")
    return str(prompts.get(name) or "") if isinstance(prompts, dict) and name else ""


def _read_size(config: Mapping[str, Any], keys: Sequence[str], folder: Path) -> int:
    for key in keys:
        if config.get(key) is not None:
            kind = Annotated[int, Rule(lambda n: 0 < n <= MAX_SIZE, f"1 to {MAX_SIZE:,}")]
            return int(check_value(kind, config[key], folder / CONFIG_FILE, key))
    raise ModelError(f"{folder / CONFIG_FILE} has none of {', '.join(keys)}: not an encoder")


def _hash_settings(folder: Path, prefix: str) -> str:
    files = sorted({file for pattern in HASHED_FILES for file in folder.glob(pattern)})
    lines = [
        f"{file.relative_to(folder).as_posix()} {cached_file_hash(file)}"
        for file in files
        if file.is_file() and file.name != PROVENANCE_FILE
    ]
    lines += [prefix] if prefix else []
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class _Module:
    type: str
    path: str
    idx: int = 0
    name: str = ""
    kwargs: Any = None


def read_pooling(folder: Path) -> Pooling:
    """Read the pooling of a model folder from its sentence-transformers settings."""
    try:
        content = load_json(folder / MODULES_FILE)
    except FileNotFoundError:
        return Pooling()
    modules = check_value(tuple[_Module, ...], content, folder / MODULES_FILE, "modules")
    mode = "mean"
    dense_layers: list[Dense] = []
    normalize = False
    for module in modules:
        kind = module.type.rpartition(".")[2]
        module_folder = folder / module.path
        if kind == "Pooling":
            mode = _read_pooling_mode(module_folder / CONFIG_FILE)
        elif kind == "Dense":
            dense_layers.append(_read_dense(module_folder))
        elif kind == "Normalize":
            normalize = True
        elif kind == "Transformer":
            _check_letter_case(module_folder / TRANSFORMER_FILE)
        else:
            raise ModelError(
                f"{folder} needs the sentence-transformers module {kind}, which tertium does not "
                "support: remove modules.json to use its token vectors and mean pooling"
            )
    return Pooling(mode=mode, dense_layers=tuple(dense_layers), normalize=normalize)


def _check_letter_case(file: Path) -> None:
    if read_optional_json(file).get("do_lower_case"):
        raise ModelError(
            f"{file}: do_lower_case is not supported, texts are read as they are: use a model "
            "whose tokenizer lower-cases, or remove the setting if you lower-case texts yourself"
        )


def _read_pooling_mode(file: Path) -> str:
    settings = read_optional_json(file)
    modes = settings.get("pooling_mode")
    if modes is None:  # files of older versions have a flag for each mode
        modes = [name for name in settings if name.startswith("pooling_mode_") and settings[name]]
        modes = [POOLING_MODES.get(name, name) for name in modes]
    elif not isinstance(modes, list):
        modes = [modes]
    if len(modes) != 1 or modes[0] not in POOLING_MODES.values():
        raise ModelError(
            f"{file}: pooling mode {' + '.join(map(str, modes))[:80] or 'none'!r} is not "
            f"supported: expected one of {', '.join(POOLING_MODES.values())}; remove modules.json "
            "to use token vectors and mean pooling"
        )
    return str(modes[0])


def _read_dense(folder: Path) -> Dense:
    settings = read_optional_json(folder / CONFIG_FILE)
    activation = str(settings.get("activation_function", "Identity")).rpartition(".")[2]
    if activation not in ACTIVATIONS or settings.get("use_residual"):
        raise ModelError(
            f"{folder}: a dense layer with activation {activation} or a residual is not supported"
        )
    if not (folder / DENSE_WEIGHTS).is_file():
        raise ModelError(
            f"{folder} has no {DENSE_WEIGHTS}: convert its weights "
            "(pickles such as pytorch_model.bin are not loaded)"
        )
    kind = Annotated[int, POSITIVE]
    value = settings.get("out_features")
    width = check_value(kind, value, folder / CONFIG_FILE, "out_features")
    return Dense(folder=folder, activation=ACTIVATIONS[activation], width=width)


def read_optional_json(file: Path) -> dict[str, Any]:
    """Return the JSON object in a file, or an empty one if the file does not exist."""
    try:
        return read_json_object(file)
    except FileNotFoundError:
        return {}


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
    `normalize`, scaled to length 1.
    """

    mode: str = "mean"
    dense_layers: tuple[Dense, ...] = ()
    normalize: bool = False

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
