"""What a model folder says of itself in its settings, read without loading the model.

`modules.json` lists what follows the transformer and makes one vector of a sentence (`pooling`). A
model without settings is pooled by the mean, as sentence-transformers does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tertium.cache.files import file_hash
from tertium.encoders.pooling import DENSE_WEIGHTS, Dense, Pooling
from tertium.errors import ModelError, UsageError
from tertium.schema import POSITIVE, Rule, load_json, read_json, read_value

HIDDEN = ("hidden_size", "d_model", "dim", "n_embd", "emb_dim")
DEPTH = ("num_hidden_layers", "num_layers", "encoder_layers", "n_layers", "n_layer")
POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len")
# These families number positions from one past the padding token's number.
SHIFTED = ("roberta", "mpnet", "camembert", "longformer", "esm", "data2vec-text")
DECIDING = ("*.json", "*.txt", "*.model", "*/config.json", "*/model.safetensors")
DEFAULT_LENGTH = 512  # pieces, where neither model nor tokenizer says: as BERT has it
MOST = 1 << 20  # layers or numbers of a state; what asks for more is damaged
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
class ModelSettings:
    """The shape of a model.

    `hidden` is the width of a state, `depth` the number of layers, `max_length` the positions it
    has, special tokens included; `hash` changes with every file that decides pieces or pooling;
    `prefix` is what every text begins with for this model.
    """

    hidden: int
    depth: int
    max_length: int
    pooling: Pooling
    hash: str
    prefix: str = ""


def read_settings(folder: Path, prefix: str = "") -> ModelSettings:
    """The settings of a model folder; `prefix` is taken where it has no prompt of its own."""
    file = folder / CONFIG
    config = read_optional(file)
    if not config:
        raise ModelError(f"{folder} has no config.json that can be read: not a model folder")
    text = config.get("text_config") or {}
    config = {**config, **read_value(Mapping[str, Any], text, file, "text_config")}
    return ModelSettings(
        hidden=_number(config, HIDDEN, folder),
        depth=_number(config, DEPTH, folder),
        max_length=_max_length(config, folder),
        pooling=read_pooling(folder),
        hash=_hash(folder, prefix),
        prefix=_prompt(folder) or prefix,
    )


def parse_layers(layer: str, depth: int, name: str) -> tuple[int, ...]:
    """The layers a choice stands for, checked against the depth of the model.

    >>> parse_layers("4", 6, "minilm"), parse_layers("2-4", 6, "minilm"), parse_layers("all", 2, "")
    ((4,), (2, 3, 4), (0, 1, 2))
    >>> parse_layers("2+4", 6, "minilm"), side_by_side("2+4"), side_by_side("2-4")
    ((2, 4), True, False)
    """
    if layer == "all":
        return tuple(range(depth + 1))
    if "+" in layer:
        chosen = tuple(int(part) for part in layer.split("+"))
    else:
        first, _, last = layer.partition("-")
        chosen = tuple(range(int(first), int(last or first) + 1))
    if not chosen or max(chosen) > depth:
        raise UsageError(f"encoder {name} has layers 0 to {depth}: there is no layer {layer}")
    return chosen


def side_by_side(layer: str) -> bool:
    """Whether the layers of a choice stay apart in a token vector; else their mean is taken."""
    return layer == "all" or "+" in layer


def _max_length(config: Mapping[str, Any], folder: Path) -> int:
    file, told = folder / CONFIG, folder / "tokenizer_config.json"
    key = next((key for key in POSITIONS if config.get(key)), POSITIONS[0])
    positions = read_value(int | None, config.get(key), file, key)
    family = read_value(str, config.get("model_type", ""), file, "model_type")
    if positions is not None and any(name in family for name in SHIFTED):
        padding = read_value(int | None, config.get("pad_token_id"), file, "pad_token_id")
        positions -= (1 if padding is None else padding) + 1
    limit = read_optional(told).get("model_max_length")
    limit = read_value(float | None, limit, told, "model_max_length")
    # Where a tokenizer has no limit of its own, transformers writes 10^30.
    known = [int(one) for one in (positions, limit) if one is not None and 0 < one < 10**9]
    return min(known, default=DEFAULT_LENGTH)


def _prompt(folder: Path) -> str:
    """The prompt that sentence-transformers would put before every text."""
    settings = read_optional(folder / "config_sentence_transformers.json")
    prompts, chosen = settings.get("prompts"), settings.get("default_prompt_name")
    return str(prompts.get(chosen) or "") if isinstance(prompts, dict) and chosen else ""


def _number(config: Mapping[str, Any], keys: tuple[str, ...], folder: Path) -> int:
    for key in keys:
        if config.get(key) is not None:
            kind = Annotated[int, Rule(lambda n: 0 < n <= MOST, f"1 to {MOST:,}")]
            return int(read_value(kind, config[key], folder / CONFIG, key))
    raise ModelError(f"{folder / CONFIG} has none of {', '.join(keys)}: not an encoder")


def _hash(folder: Path, prefix: str) -> str:
    files = sorted({file for pattern in DECIDING for file in folder.glob(pattern)})
    lines = [
        f"{file.relative_to(folder).as_posix()} {file_hash(file)}"
        for file in files
        if file.is_file()
    ]
    lines += [prefix] if prefix else []
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class Module:
    """What a folder says of one step after the transformer."""

    type: str
    path: str
    idx: int = 0
    name: str = ""
    kwargs: Any = None


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
            modes = _modes(read_optional(place / CONFIG))
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
    settings = read_optional(folder / CONFIG)
    activation = str(settings.get("activation_function", "Identity")).rpartition(".")[2]
    if activation not in ACTIVATIONS or settings.get("use_residual"):
        raise ModelError(
            f"{folder}: a dense layer with activation {activation} or a residual is not known"
        )
    if not (folder / DENSE_WEIGHTS).is_file():
        raise ModelError(
            f"{folder} has no {DENSE_WEIGHTS} (a pickle such as pytorch_model.bin is refused): "
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
