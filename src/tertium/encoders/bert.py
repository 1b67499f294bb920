"""BERT, RoBERTa, XLM-R and MPNet: our own forward pass from config.json and safetensors.

transformers computes the same states but takes seconds to import. It runs only the models whose
settings this module does not support (`TransformersModel`; `read_bert_config` returns None).

The tokens of all texts are concatenated without padding on a CPU, and padded on a GPU (see
`transformer_layer`). Weights that are stored as int8 rows with scales are used as they are by an
int8 network.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from tertium.core.errors import ModelError
from tertium.core.fields import NON_NEGATIVE, POSITIVE, read_dataclass
from tertium.encoders.encoder_network import EncoderNetwork, build_network
from tertium.encoders.int8_linear import allocate_int8_layers, check_int8_widths
from tertium.encoders.model_settings import CONFIG_FILE, ROW_SCALE, read_optional_json
from tertium.encoders.transformer_layer import BatchLayout, TransformerLayer, convert_linear_layers
from tertium.encoders.weight_files import TensorLoader, read_tensors

DISTANCE_BUCKETS = 32  # of MPNet's relative positions
MAX_DISTANCE = 128
# Supported values of settings that would change the computation.
SUPPORTED_VALUES: Mapping[str, tuple[object, ...]] = {
    "model_type": ("bert", "roberta", "xlm-roberta", "mpnet"),
    "hidden_act": ("gelu",),
    "position_embedding_type": ("absolute", None),
    "is_decoder": (False, None),
    "add_cross_attention": (False, None),
    "chunk_size_feed_forward": (0, None),
    "relative_attention_num_buckets": (DISTANCE_BUCKETS,),
    "embedding_size": (None,),
    "quantization_config": (None,),
}
# Names of our modules, and of the stored ones that are joined in them.
TABLES = """\
words       embeddings.word_embeddings
positions   embeddings.position_embeddings
token_types embeddings.token_type_embeddings
distances   encoder.relative_attention_bias
norm        embeddings.LayerNorm
"""
FEED_FORWARD = """\
up    intermediate.dense
down  output.dense
norm2 output.LayerNorm
"""
BERT_LAYER = f"""\
qkv   attention.self.query attention.self.key attention.self.value
out   attention.output.dense
norm1 attention.output.LayerNorm
{FEED_FORWARD}"""
MPNET_LAYER = f"""\
qkv   attention.attn.q attention.attn.k attention.attn.v
out   attention.attn.o
norm1 attention.LayerNorm
{FEED_FORWARD}"""
LINEAR_LAYERS = ("qkv", "out", "up", "down")
Positive = Annotated[int, POSITIVE]


@dataclass(frozen=True, kw_only=True)
class BertConfig:
    """The settings of a `config.json` that decide the computation, by their keys in the file."""

    model_type: str
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


def read_bert_config(folder: Path) -> BertConfig | None:
    """Read the config of a model folder; None if some setting is not supported here."""
    config = read_optional_json(folder / CONFIG_FILE)
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

    def __init__(self, config: BertConfig, precision: str, device: str) -> None:
        super().__init__(
            depth=config.num_hidden_layers,
            pad_token_id=config.pad_token_id,
            device=device,
            precision=precision,
        )
        self.config = config
        hidden = config.hidden_size
        heads = config.num_attention_heads
        self.words = nn.Embedding(config.vocab_size, hidden)
        self.positions = nn.Embedding(config.max_position_embeddings, hidden)
        if config.is_mpnet:
            self.distances = nn.Embedding(DISTANCE_BUCKETS, heads)
        else:
            self.token_types = nn.Embedding(config.type_vocab_size, hidden)
        self.norm = nn.LayerNorm(hidden, config.layer_norm_eps)
        self.layers = nn.ModuleList(
            TransformerLayer(hidden, heads, config.intermediate_size, config.layer_norm_eps)
            for _ in range(self.depth)
        )

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
        if not self.config.is_mpnet:
            x = x + self.token_types(ids.new_zeros(1))
        result: Tensor = self.norm(x + self.positions(positions))
        return result.flatten(0, 1)

    def _make_layout(self, shapes: Sequence[tuple[int, int]], mask: Tensor | None) -> BatchLayout:
        visible = None if mask is None else mask[:, None, None]
        if not self.config.is_mpnet:
            return BatchLayout(shapes, [visible] * len(shapes))
        biases = [self._relative_position_bias(length) for _, length in shapes]
        if visible is not None:
            biases = [bias.masked_fill(~visible, -torch.inf) for bias in biases]
        return BatchLayout(shapes, biases)

    def _relative_position_bias(self, length: int) -> Tensor:
        """Return what MPNet adds to attention scores, (1, heads, length, length).

        Each direction has half of the buckets. Half of those stand for one distance each; the
        others grow logarithmically.
        """
        position = torch.arange(length, device=self.distances.weight.device)
        distance = position[:, None] - position[None]  # (length, length), from query to key
        half = DISTANCE_BUCKETS // 2
        exact = DISTANCE_BUCKETS // 4
        near = distance.abs()
        growth = torch.log(near.clamp(min=exact).float() / exact) / math.log(MAX_DISTANCE / exact)
        far = (exact + (growth * (half - exact)).long()).clamp(max=half - 1)
        bucket = torch.where(near < exact, near, far) + half * (distance < 0)
        bias: Tensor = self.distances(bucket).permute(2, 0, 1)[None].contiguous()
        return bias


def load_bert(
    folder: Path,
    config: BertConfig,
    load_tensors: TensorLoader | None,
    *,
    precision: str,
    device: str,
) -> BertModel:
    """Load the network of a model folder; `load_tensors` replaces the weights in the folder."""
    if precision == "int8":
        check_int8_widths((config.hidden_size, config.intermediate_size))

    def make() -> BertModel:
        network = BertModel(config, precision, device)
        allocate_int8_layers(network, lambda name: f"{name}.scale" in tensors)
        return network

    stored = load_tensors() if load_tensors else read_tensors(folder)
    try:
        tensors = _collect_tensors(stored, config, precision)
    except (RuntimeError, KeyError) as error:
        reason = str(error).partition("\n")[0]
        raise ModelError(f"the weights in {folder} do not fit its config.json: {reason}") from None
    network = build_network(make, tensors, folder, copy=False)
    tensors.clear()  # each layer frees its memory when it is converted
    for layer in network.layers:
        convert_linear_layers(layer, precision, device)
    network.to(device)
    network.check_finite(config.vocab_size)
    return network


def _parse_names(table: str) -> dict[str, list[str]]:
    return {module: names for module, *names in map(str.split, table.splitlines())}


def _collect_tensors(
    stored: Mapping[str, Any], config: BertConfig, precision: str
) -> dict[str, Tensor]:
    """Return the tensors of a `BertModel`; matrices that are stored as int8 have scales.

    Of these, linear layers stay int8 only if the precision is.
    """
    modules = _parse_names(TABLES)
    del modules["token_types" if config.is_mpnet else "distances"]
    layer_modules = _parse_names(MPNET_LAYER if config.is_mpnet else BERT_LAYER)
    for number in range(config.num_hidden_layers):
        for module, names in layer_modules.items():
            stored_names = [f"encoder.layer.{number}.{name}" for name in names]
            modules[f"layers.{number}.{module}"] = stored_names
    tensors: dict[str, Tensor] = {}
    for module, names in modules.items():
        kinds = {"weight": ".weight", "bias": ".bias", "scale": f".weight{ROW_SCALE}"}
        present = {
            kind: torch.cat([stored[name + end] for name in names])
            if len(names) > 1
            else stored[names[0] + end]
            for kind, end in kinds.items()
            if names[0] + end in stored
        }
        if module.endswith(LINEAR_LAYERS) and precision != "int8" and "scale" in present:
            present["weight"] = present["weight"].float() * present.pop("scale")[:, None]
        tensors |= {f"{module}.{kind}": tensor for kind, tensor in present.items()}
    return tensors
