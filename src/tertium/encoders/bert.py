"""BERT, RoBERTa, XLM-R and MPNet: our own forward pass from config.json and safetensors.

transformers computes the same states but takes seconds to import. It runs only the models whose
settings this module does not support (`transformers_model`; `read_bert_config` returns None).

The tokens of all texts are concatenated without padding on a CPU, and padded on a GPU (see
`transformer_layer`). Weights that are stored as int8 rows with scales are used as they are by an
int8 network.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tertium.core.errors import ModelError
from tertium.core.schema import NON_NEGATIVE, POSITIVE, read_dataclass
from tertium.encoders.encoder_network import EncoderNetwork
from tertium.encoders.int8_linear import Int8Linear, check_int8_widths, quantize_weights
from tertium.encoders.linear_layers import convert_linear_layers
from tertium.encoders.model_settings import CONFIG_FILE, ROW_SCALE, read_optional_json
from tertium.encoders.skip_init import SkipInit
from tertium.encoders.transformer_layer import BatchLayout, TransformerLayer
from tertium.encoders.weight_files import MAX_CHECKED_VALUES, TensorLoader, list_weight_files

DISTANCE_BUCKETS, MAX_DISTANCE = 32, 128  # of MPNet's relative positions
# Supported values of settings that would change the computation.
SUPPORTED_VALUES: Mapping[str, tuple[object, ...]] = {
    "hidden_act": ("gelu",),
    "position_embedding_type": ("absolute", None),
    "is_decoder": (False, None),
    "add_cross_attention": (False, None),
    "chunk_size_feed_forward": (0, None),
    "relative_attention_num_buckets": (DISTANCE_BUCKETS,),
    "embedding_size": (None,),
    "quantization_config": (None,),
}
# Stored names of a layer's query, key, value, output projection and first norm.
BERT_NAMES = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "attention.output.LayerNorm",
)
MPNET_NAMES = (
    "attention.attn.q",
    "attention.attn.k",
    "attention.attn.v",
    "attention.attn.o",
    "attention.LayerNorm",
)
MODEL_PREFIXES = ("bert.", "roberta.", "mpnet.")  # of tensor names in a model saved with a head
Positive = Annotated[int, POSITIVE]


@dataclass(frozen=True, kw_only=True)
class BertConfig:
    """The settings of a `config.json` that decide the computation, by their keys in the file."""

    model_type: Literal["bert", "roberta", "xlm-roberta", "mpnet"]
    vocab_size: Positive
    hidden_size: Positive
    num_hidden_layers: Positive
    num_attention_heads: Positive
    intermediate_size: Positive
    max_position_embeddings: Positive
    layer_norm_eps: Annotated[float, NON_NEGATIVE]
    pad_token_id: Annotated[int, NON_NEGATIVE]
    type_vocab_size: Positive = 1

    @property
    def is_mpnet(self) -> bool:
        """MPNet has relative positions, no token types, and always 1 as its padding id."""
        return self.model_type == "mpnet"

    @property
    def position_offset(self) -> int | None:
        """The padding id if positions are numbered from the one after it (RoBERTa), else None."""
        if self.model_type == "bert":
            return None
        return 1 if self.is_mpnet else self.pad_token_id

    @property
    def tensor_names(self) -> tuple[str, ...]:
        return MPNET_NAMES if self.is_mpnet else BERT_NAMES


def read_bert_config(folder: Path) -> BertConfig | None:
    """Read the config of a model folder; None if some setting is not supported here."""
    config = read_optional_json(folder / CONFIG_FILE)
    if config.get("model_type") not in ("bert", "roberta", "xlm-roberta", "mpnet"):
        return None
    if any(key in config and config[key] not in ok for key, ok in SUPPORTED_VALUES.items()):
        return None
    declared = {field.name for field in fields(BertConfig)}
    if declared - config.keys() - {"type_vocab_size"}:  # transformers has defaults for them
        return None
    values = {key: value for key, value in config.items() if key in declared}
    result = read_dataclass(BertConfig, values, folder / CONFIG_FILE)
    if result.hidden_size % result.num_attention_heads:
        raise ModelError(
            f"{folder / CONFIG_FILE}: hidden_size {result.hidden_size} is not a multiple of the "
            f"{result.num_attention_heads} attention heads"
        )
    return result


class BertModel(EncoderNetwork):
    """The encoder of a model folder on a device: token ids in, hidden states out."""

    def __init__(
        self,
        folder: Path,
        config: BertConfig,
        load_tensors: TensorLoader | None = None,
        *,
        precision: str = "fp32",
        device: str = "cpu",
    ) -> None:
        super().__init__(
            depth=config.num_hidden_layers,
            pad_token_id=config.pad_token_id,
            device=device,
            precision=precision,
        )
        self.config = config
        stored = StoredWeights(load_tensors() if load_tensors else read_tensors(folder), folder)
        hidden = config.hidden_size
        words, positions = config.vocab_size, config.max_position_embeddings
        self.words = stored.read_table("embeddings.word_embeddings.weight", words, hidden)
        self.positions = stored.read_table(
            "embeddings.position_embeddings.weight", positions, hidden
        )
        self.distances: Tensor | None
        self.token_types: Tensor | None
        distances, token_types = None, None
        if config.is_mpnet:
            shape = DISTANCE_BUCKETS, config.num_attention_heads
            distances = stored.read("encoder.relative_attention_bias.weight", *shape)
        else:
            shape = config.type_vocab_size, hidden
            token_types = stored.read("embeddings.token_type_embeddings.weight", *shape)
        self.register_buffer("distances", distances)
        self.register_buffer("token_types", token_types)
        self.norm = nn.LayerNorm(hidden, config.layer_norm_eps, device="meta")
        norm = {
            kind: stored.read(f"embeddings.LayerNorm.{kind}", hidden) for kind in ("weight", "bias")
        }
        self.norm.load_state_dict(norm, assign=True)
        self.norm.requires_grad_(False)
        if precision == "int8":
            check_int8_widths((config.hidden_size, config.intermediate_size))
        self.layers = nn.ModuleList()
        for number in range(self.depth):
            layer = _read_layer(config, stored, f"encoder.layer.{number}.", precision)
            convert_linear_layers(layer, precision, device)
            self.layers.append(layer)
        self.to(device)
        self.check_finite(config.vocab_size)

    def compute_states(
        self, groups: Sequence[Tensor], mask: Tensor | None, layers: frozenset[int]
    ) -> dict[int, list[Tensor]]:
        layout = self._make_layout([(len(ids), ids.shape[1]) for ids in groups], mask)
        x = torch.cat([self._embed(ids) for ids in groups])  # (tokens, hidden)
        states = {0: x}
        for number, layer in enumerate(self.layers[: max(layers)], start=1):
            x = layer(x, layout)  # (tokens, hidden)
            if number in layers:
                states[number] = x
        return {number: layout.split_groups(states[number]) for number in layers}

    def _embed(self, ids: Tensor) -> Tensor:
        """Embed token ids by identity and position, (texts, length) -> (texts * length, hidden)."""
        offset = self.config.position_offset
        if offset is None:
            positions = torch.arange(ids.shape[1], device=ids.device).expand(ids.shape)
        else:
            is_token = (ids != offset).long()
            positions = is_token.cumsum(1) * is_token + offset  # (texts, length)
        x = self.words(ids)  # (texts, length, hidden)
        if self.token_types is not None:
            x = x + self.token_types[0]
        result: Tensor = self.norm(x + self.positions(positions))
        return result.flatten(0, 1)

    def _make_layout(self, shapes: Sequence[tuple[int, int]], mask: Tensor | None) -> BatchLayout:
        biases: list[Tensor | None] = [None if mask is None else mask[:, None, None]] * len(shapes)
        if self.config.is_mpnet:
            biases = [self._relative_position_bias(length) for _, length in shapes]
        if self.config.is_mpnet and mask is not None:
            padding = ~mask[:, None, None]
            biases = [b.masked_fill(padding, -torch.inf) for b in biases if b is not None]
        return BatchLayout(shapes, biases)

    def _relative_position_bias(self, length: int) -> Tensor:
        """Return what MPNet adds to attention scores, (1, heads, length, length).

        Each direction has half of the buckets. Half of those stand for one distance each; the
        others grow logarithmically.
        """
        assert self.distances is not None
        position = torch.arange(length, device=self.distances.device)
        distance = position[:, None] - position[None]  # (length, length), from query to key
        half, exact = DISTANCE_BUCKETS // 2, DISTANCE_BUCKETS // 4
        near = distance.abs()
        growth = torch.log(near.clamp(min=exact).float() / exact) / math.log(MAX_DISTANCE / exact)
        far = (exact + (growth * (half - exact)).long()).clamp(max=half - 1)
        bucket = torch.where(near < exact, near, far) + half * (distance < 0)
        return F.embedding(bucket, self.distances).permute(2, 0, 1)[None].contiguous()


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """Map the tensors of a model folder into memory, by their names without a model prefix."""
    from safetensors import SafetensorError, safe_open

    tensors: dict[str, Tensor] = {}
    for file in list_weight_files(folder):
        try:
            with safe_open(file, framework="pt") as opened:
                for name in opened.keys():  # noqa: SIM118
                    tensors[_normalize_name(name)] = opened.get_tensor(name)
        except (SafetensorError, OSError, ValueError, RuntimeError, TypeError) as error:
            raise ModelError(f"{file} is damaged or incomplete: {error}") from None
    return tensors


def _normalize_name(name: str) -> str:
    """Remove the model prefix from a tensor name, and replace gamma and beta of older files.

    >>> _normalize_name("bert.embeddings.LayerNorm.gamma")
    'embeddings.LayerNorm.weight'
    """
    prefix = next((prefix for prefix in MODEL_PREFIXES if name.startswith(prefix)), "")
    name = name.removeprefix(prefix)
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
        "LayerNorm.beta", "LayerNorm.bias"
    )


class StoredWeights:
    """The tensors of a model folder by name, checked when they are read.

    A matrix is stored in floating point, or as int8 rows with a scale per row under the same name
    and `ROW_SCALE`.
    """

    def __init__(self, tensors: Mapping[str, Any], folder: Path) -> None:
        self._tensors, self._folder = tensors, folder

    def read(self, name: str, *shape: int) -> Tensor:
        """Return a tensor of this shape as fp32."""
        if (rows := self._read_int8(name, *shape)) is not None:
            return rows[0].float() * rows[1][:, None]
        tensor = self._look_up(name, *shape)
        if not tensor.is_floating_point():
            raise self._error(f"{name} has type {tensor.dtype}, not floating point")
        return tensor.float()

    def read_int8(self, name: str, *shape: int) -> tuple[Tensor, Tensor]:
        """Return a matrix as int8 rows and their scales."""
        return self._read_int8(name, *shape) or quantize_weights(self.read(name, *shape))

    def read_table(self, name: str, rows: int, width: int) -> EmbeddingTable:
        """Return an embedding table, as it is stored."""
        stored = self._read_int8(name, rows, width)
        return EmbeddingTable(*stored or (self.read(name, rows, width),))

    def _read_int8(self, name: str, *shape: int) -> tuple[Tensor, Tensor] | None:
        if name + ROW_SCALE not in self._tensors:
            return None
        rows, scale = self._look_up(name, *shape), self._look_up(name + ROW_SCALE, shape[0])
        if rows.dtype != torch.int8:
            raise self._error(f"{name} has type {rows.dtype}, expected int8 rows with scales")
        return rows, scale.float()

    def _look_up(self, name: str, *shape: int) -> Tensor:
        tensor: Tensor | None = self._tensors.get(name)
        if tensor is None:
            raise self._error(f"{name} is missing")
        if tensor.shape != shape:
            raise self._error(f"{name} has shape {tuple(tensor.shape)}, expected {shape}")
        is_checked = tensor.is_floating_point() and tensor.numel() < MAX_CHECKED_VALUES
        if is_checked and not torch.stack(tensor.float().aminmax()).isfinite().all():
            raise ModelError(
                f"the weights in {self._folder} contain NaN or infinite values: {name}"
            )
        return tensor

    def _error(self, problem: str) -> ModelError:
        return ModelError(f"the weights in {self._folder} do not match its config.json: {problem}")


class EmbeddingTable(nn.Module):
    """Vectors by id, (rows, width): fp32, or int8 rows that are scaled on lookup."""

    def __init__(self, table: Tensor, scale: Tensor | None = None) -> None:
        super().__init__()
        self.table: Tensor
        self.scale: Tensor | None
        self.register_buffer("table", table)
        self.register_buffer("scale", scale)

    def forward(self, ids: Tensor) -> Tensor:
        """(...) -> (..., width)."""
        vectors = F.embedding(ids, self.table)
        return vectors if self.scale is None else vectors.float() * self.scale[ids][..., None]


def _read_layer(
    config: BertConfig, stored: StoredWeights, prefix: str, precision: str
) -> TransformerLayer:
    """Build a layer from stored weights; their shapes are checked before memory is allocated."""
    hidden, inner = config.hidden_size, config.intermediate_size
    *projections, out, norm = config.tensor_names
    int8_layers: dict[str, Int8Linear] = {}
    states: dict[str, dict[str, Tensor]] = {}
    for module, names, shape in (
        ("qkv", projections, (hidden, hidden)),
        ("out", [out], (hidden, hidden)),
        ("norm1", [norm], (hidden,)),
        ("up", ["intermediate.dense"], (inner, hidden)),
        ("down", ["output.dense"], (hidden, inner)),
        ("norm2", ["output.LayerNorm"], (hidden,)),
    ):
        full_names = [prefix + name for name in names]
        bias = torch.cat([stored.read(f"{name}.bias", shape[0]) for name in full_names])
        weights = [f"{name}.weight" for name in full_names]
        if precision == "int8" and len(shape) == 2:
            parts = [stored.read_int8(name, *shape) for name in weights]
            rows, scales = (torch.cat(list(side)) for side in zip(*parts, strict=True))
            int8_layers[module] = Int8Linear(rows, scales, bias)
        else:
            weight = torch.cat([stored.read(name, *shape) for name in weights])
            states[module] = {"weight": weight, "bias": bias}
    with SkipInit():
        layer = TransformerLayer(
            hidden, config.num_attention_heads, inner, config.layer_norm_eps, device="meta"
        )
    for module, int8_layer in int8_layers.items():
        setattr(layer, module, int8_layer)
    for module, state in states.items():
        getattr(layer, module).load_state_dict(state, assign=True)
    return layer.requires_grad_(False)
