"""BERT, RoBERTa, XLM-R and MPNet: our own forward pass from config.json and safetensors.

transformers computes the same states but takes seconds to import. It runs only the models whose
settings this module does not support (`transformers_model`; `read_bert_config` returns None).

The tokens of all texts are concatenated without padding on a CPU, and padded on a GPU (see
`transformer_layer`). On a CPU results are batch-invariant (see `batch_invariance`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tertium.encoders import batch_invariance
from tertium.encoders.linear_layers import convert_linear_layers, pack_linear_weights
from tertium.encoders.model_settings import CONFIG_FILE, read_optional_json
from tertium.encoders.skip_init import SkipInit
from tertium.encoders.transformer_layer import BatchLayout, TransformerLayer
from tertium.encoders.weight_files import MAX_CHECKED_VALUES, TensorLoader, list_weight_files
from tertium.errors import ModelError
from tertium.schema import NON_NEGATIVE, POSITIVE, read_dataclass

# Lengths of the texts that test batch invariance. Many are short, since a matrix library may choose
# its algorithm by the total size of a batched product.
TEST_LENGTHS = (1,) * 9 + (2,) * 9 + (6,) * 5 + (19, 19, 40, 130)
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
    "text_config": (None,),
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
GetTensor = Callable[..., Tensor]  # (name, *shape) -> tensor


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


class BertModel(nn.Module):
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
        super().__init__()
        self.config, self.depth = config, config.num_hidden_layers
        self.pad_token_id = config.pad_token_id
        tensors = load_tensors() if load_tensors else read_tensors(folder)
        get_tensor = _check_tensors(tensors, folder)

        def table(name: str, rows: int, width: int = config.hidden_size) -> nn.Parameter:
            return nn.Parameter(get_tensor(f"{name}.weight", rows, width), requires_grad=False)

        self.words = table("embeddings.word_embeddings", config.vocab_size)
        self.positions = table("embeddings.position_embeddings", config.max_position_embeddings)
        if config.is_mpnet:
            name = "encoder.relative_attention_bias"
            self.distances = table(name, DISTANCE_BUCKETS, config.num_attention_heads)
        else:
            self.token_types = table("embeddings.token_type_embeddings", config.type_vocab_size)
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps, device="meta")
        norm = _read_module(get_tensor, ["embeddings.LayerNorm"], config.hidden_size)
        self.norm.load_state_dict(norm, assign=True)
        self.norm.requires_grad_(False)
        layers = [_read_layer(config, get_tensor, f"encoder.layer.{n}.") for n in range(self.depth)]
        self.layers = nn.ModuleList(layers)
        convert_linear_layers(self.layers, precision, device)
        pack_linear_weights(self.layers, device)
        self.to(device)
        self.block_sizes: batch_invariance.BlockSizes = batch_invariance.BLOCK_SIZES
        if device == "cpu":
            common = batch_invariance.find_common_block_sizes(layers[0].linear_layers)
            self.block_sizes = common or (batch_invariance.FALLBACK_BLOCK_ROWS,)
        self._check_finite()

    def forward(
        self, groups: Sequence[Tensor], mask: Tensor | None, layers: frozenset[int]
    ) -> dict[int, list[Tensor]]:
        """Return the states of the requested layers for each group of texts of equal length.

        Each group is (texts, length) token ids; its states are (texts, length, hidden). Layer 0 is
        the embedding layer. A padded batch is one group with a mask (texts, length), True for
        tokens.
        """
        layout = self._make_layout([(len(ids), ids.shape[1]) for ids in groups], mask)
        x = torch.cat([self._embed(ids) for ids in groups])  # (tokens, hidden)
        x = batch_invariance.pad_to_blocks(x, layout.block_sizes)
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
        x = F.embedding(ids, self.words)  # (texts, length, hidden)
        if not self.config.is_mpnet:
            x = x + self.token_types[0]
        result: Tensor = self.norm(x + F.embedding(positions, self.positions))
        return result.flatten(0, 1)

    def _make_layout(self, shapes: Sequence[tuple[int, int]], mask: Tensor | None) -> BatchLayout:
        biases: list[Tensor | None] = [None if mask is None else mask[:, None, None]] * len(shapes)
        if self.config.is_mpnet:
            biases = [self._relative_position_bias(length) for _, length in shapes]
        if self.config.is_mpnet and mask is not None:
            padding = ~mask[:, None, None]
            biases = [b.masked_fill(padding, -torch.inf) for b in biases if b is not None]
        return BatchLayout(shapes, biases, self.block_sizes)

    def _relative_position_bias(self, length: int) -> Tensor:
        """Return what MPNet adds to attention scores, (1, heads, length, length).

        Each direction has half of the buckets. Half of those stand for one distance each; the
        others grow logarithmically.
        """
        position = torch.arange(length, device=self.distances.device)
        distance = position[:, None] - position[None]  # (length, length), from query to key
        half, exact = DISTANCE_BUCKETS // 2, DISTANCE_BUCKETS // 4
        near = distance.abs()
        growth = torch.log(near.clamp(min=exact).float() / exact) / math.log(MAX_DISTANCE / exact)
        far = (exact + (growth * (half - exact)).long()).clamp(max=half - 1)
        bucket = torch.where(near < exact, near, far) + half * (distance < 0)
        return F.embedding(bucket, self.distances).permute(2, 0, 1)[None].contiguous()

    def _check_finite(self) -> None:
        """Reject settings with which a short text has states that are not finite."""
        ids = torch.arange(4, device=self.words.device)[None] % self.config.vocab_size
        with torch.inference_mode():
            [states] = self([ids], None, frozenset({self.depth}))[self.depth]
        if not states.isfinite().all():
            raise ModelError("the model's config.json and weights give NaN or infinite states")

    def is_batch_invariant(self) -> bool:
        """Test whether a layer gives texts the same states together as alone, bit by bit."""
        lengths = [n for n in TEST_LENGTHS if n <= self.config.max_position_embeddings]

        def make_layout(lengths: Sequence[int]) -> BatchLayout:
            shapes = [(len(list(same)), length) for length, same in groupby(lengths)]
            return self._make_layout(shapes, None)

        layer: TransformerLayer = self.layers[0]  # type: ignore[assignment]
        return layer.is_batch_invariant(lengths, make_layout)


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


def _check_tensors(tensors: Mapping[str, Any], folder: Path) -> GetTensor:
    """Return a function that looks up a tensor, checks its shape and values, and casts to fp32."""

    def get_tensor(name: str, *shape: int) -> Tensor:
        problem = f"the weights in {folder} do not match its config.json:"
        tensor = tensors.get(name)
        if tensor is None:
            raise ModelError(f"{problem} {name} is missing")
        if tensor.shape != shape:
            raise ModelError(f"{problem} {name} has shape {tuple(tensor.shape)}, expected {shape}")
        if not tensor.is_floating_point():
            raise ModelError(f"{problem} {name} has type {tensor.dtype}, not floating point")
        is_checked = tensor.numel() < MAX_CHECKED_VALUES
        if is_checked and not torch.stack(tensor.float().aminmax()).isfinite().all():
            raise ModelError(f"the weights in {folder} contain NaN or infinite values: {name}")
        single: Tensor = tensor.float()
        return single

    return get_tensor


def _read_layer(config: BertConfig, get_tensor: GetTensor, prefix: str) -> TransformerLayer:
    """Build a layer from stored weights; their shapes are checked before memory is allocated."""
    hidden, inner = config.hidden_size, config.intermediate_size
    *projections, out, norm = config.tensor_names
    weights = {
        f"{module}.{kind}": tensor
        for module, names, shape in (
            ("qkv", projections, (hidden, hidden)),
            ("out", [out], (hidden, hidden)),
            ("norm1", [norm], (hidden,)),
            ("up", ["intermediate.dense"], (inner, hidden)),
            ("down", ["output.dense"], (hidden, inner)),
            ("norm2", ["output.LayerNorm"], (hidden,)),
        )
        for kind, tensor in _read_module(get_tensor, [prefix + n for n in names], *shape).items()
    }
    sizes = hidden, config.num_attention_heads, inner
    with SkipInit():
        layer = TransformerLayer(*sizes, config.layer_norm_eps, device="meta")
    layer.load_state_dict(weights, assign=True)
    return layer.requires_grad_(False)


def _read_module(get_tensor: GetTensor, names: Sequence[str], *shape: int) -> dict[str, Tensor]:
    """Read weights of this shape and their biases, and concatenate those of several names."""
    weights = torch.cat([get_tensor(f"{name}.weight", *shape) for name in names])
    biases = torch.cat([get_tensor(f"{name}.bias", shape[0]) for name in names])
    return {"weight": weights, "bias": biases}
