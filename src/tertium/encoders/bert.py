"""BERT, RoBERTa, XLM-R and MPNet by a forward pass of our own, made of settings and safetensors.

transformers gives the same states, and takes seconds of every process to be imported; so it is left
(`hooked`) to models with settings that this pass does not know (`read_shape` gives none).

Texts lie one behind the other without padding. Products and norms read their pieces in blocks of a
few fixed sizes (`apart.in_blocks`), whatever text they are of; attention reads groups of texts of
one length. So on a CPU a text's numbers depend on itself alone, to the last bit; `keeps_apart`
tries it. On a GPU there is one group, padded, with a mask, and one block.
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

from tertium.encoders.apart import BLOCK_ROWS, SIZES, Sizes, fill_blocks, shared_sizes
from tertium.encoders.blank import Uninitialised
from tertium.encoders.layers import PassLayout, TransformerLayer
from tertium.encoders.products import lower_precision, pack_products
from tertium.encoders.settings import CONFIG, read_optional
from tertium.encoders.weights import MAPPED, Tensors, weight_files
from tertium.errors import ModelError
from tertium.schema import NOT_NEGATIVE, POSITIVE, read

# Pieces of texts that tell whether texts stay apart; many short ones, since a library for matrices
# may choose its way by how much there is to multiply in all.
TRIED_LENGTHS = (1,) * 9 + (2,) * 9 + (6,) * 5 + (19, 19, 40, 130)
BUCKETS, FARTHEST = 32, 128  # of MPNet's distances; beyond the farthest all are alike
# What would change the arithmetic: where one of these is set to another value, it is not ours.
USUAL: Mapping[str, tuple[object, ...]] = {
    "hidden_act": ("gelu",),
    "position_embedding_type": ("absolute", None),
    "is_decoder": (False, None),
    "add_cross_attention": (False, None),
    "chunk_size_feed_forward": (0, None),
    "relative_attention_num_buckets": (BUCKETS,),
    "embedding_size": (None,),
    "quantization_config": (None,),
    "text_config": (None,),
}
# Under which names a layer's query, key, value, output and first norm are stored.
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
WHOLE = ("bert.", "roberta.", "mpnet.")  # what names begin with in a model that had a head
Positive = Annotated[int, POSITIVE]
Stored = Callable[..., Tensor]  # a tensor by its name and shape


@dataclass(frozen=True, kw_only=True)
class BertShape:
    """What a `config.json` says of the arithmetic, by the keys it has there.

    RoBERTa and its relatives number positions from one past the padding's number; MPNet's padding
    is always 1, and it has no types of tokens.
    """

    model_type: Literal["bert", "roberta", "xlm-roberta", "mpnet"]
    vocab_size: Positive
    hidden_size: Positive
    num_hidden_layers: Positive
    num_attention_heads: Positive
    intermediate_size: Positive
    max_position_embeddings: Positive
    layer_norm_eps: Annotated[float, NOT_NEGATIVE]
    pad_token_id: Annotated[int, NOT_NEGATIVE]
    type_vocab_size: Positive = 1

    @property
    def relative(self) -> bool:
        return self.model_type == "mpnet"

    @property
    def shift(self) -> int | None:
        """The padding's number where positions are numbered from behind it."""
        if self.model_type == "bert":
            return None
        return 1 if self.relative else self.pad_token_id

    @property
    def names(self) -> tuple[str, ...]:
        return MPNET_NAMES if self.relative else BERT_NAMES


def read_shape(folder: Path) -> BertShape | None:
    """The shape of a model folder; none where its settings are not all known here."""
    config = read_optional(folder / CONFIG)
    if config.get("model_type") not in ("bert", "roberta", "xlm-roberta", "mpnet"):
        return None
    if any(key in config and config[key] not in usual for key, usual in USUAL.items()):
        return None
    declared = {field.name for field in fields(BertShape)}
    if declared - config.keys() - {"type_vocab_size"}:  # transformers has defaults for them
        return None
    known = {key: value for key, value in config.items() if key in declared}
    shape = read(BertShape, known, folder / CONFIG)
    if shape.hidden_size % shape.num_attention_heads:
        raise ModelError(
            f"{folder / CONFIG}: hidden_size {shape.hidden_size} is not a multiple of the "
            f"{shape.num_attention_heads} attention heads"
        )
    return shape


class Bert(nn.Module):
    """The encoder of a model folder on a device: groups of texts in, states out."""

    def __init__(
        self,
        folder: Path,
        shape: BertShape,
        tensors: Tensors | None = None,
        *,
        precision: str = "fp32",
        device: str = "cpu",
    ) -> None:
        super().__init__()
        self.shape, self.depth, self.padding = shape, shape.num_hidden_layers, shape.pad_token_id
        stored = _tensors_by_shape(tensors() if tensors else read_tensors(folder), folder)

        def table(name: str, rows: int, width: int = shape.hidden_size) -> nn.Parameter:
            return _frozen(stored(f"{name}.weight", rows, width))

        self.words = table("embeddings.word_embeddings", shape.vocab_size)
        self.places = table("embeddings.position_embeddings", shape.max_position_embeddings)
        if shape.relative:
            name = "encoder.relative_attention_bias"
            self.distances = table(name, BUCKETS, shape.num_attention_heads)
        else:
            self.types = table("embeddings.token_type_embeddings", shape.type_vocab_size)
        self.norm = nn.LayerNorm(shape.hidden_size, shape.layer_norm_eps, device="meta")
        norm = _read_part(stored, ["embeddings.LayerNorm"], shape.hidden_size)
        self.norm.load_state_dict(norm, assign=True)
        self.norm.requires_grad_(False)
        layers = [_read_layer(shape, stored, f"encoder.layer.{n}.") for n in range(self.depth)]
        self.layers = nn.ModuleList(layers)
        lower_precision(self.layers, precision, device)
        pack_products(self.layers, device)
        self.to(device)
        self.sizes: Sizes = SIZES
        if device == "cpu":  # of one size only the place of a row can matter
            self.sizes = shared_sizes(layers[0].products) or (BLOCK_ROWS,)
        self._try_numbers()

    def forward(
        self, groups: Sequence[Tensor], mask: Tensor | None, wanted: frozenset[int]
    ) -> dict[int, list[Tensor]]:
        """States by layer, (texts, pieces, hidden) of each group, given as (texts, pieces) numbers.

        A mask, (texts, pieces), says which pieces of the only group are no padding.
        """
        layout = self._layout([(len(ids), ids.shape[1]) for ids in groups], mask)
        states = fill_blocks(torch.cat([self._embed(ids) for ids in groups]), layout.sizes)
        kept = {0: states}
        for number, layer in enumerate(self.layers[: max(wanted)], start=1):
            states = layer(states, layout)
            if number in wanted:
                kept[number] = states
        return {layer: layout.part(kept[layer]) for layer in wanted}

    def _embed(self, ids: Tensor) -> Tensor:
        """Vectors of pieces by what and where they are, (texts, pieces) -> (texts * pieces, d)."""
        if self.shape.shift is None:
            places = torch.arange(ids.shape[1], device=ids.device).expand(ids.shape)
        else:
            counted = (ids != self.shape.shift).long()
            places = counted.cumsum(1) * counted + self.shape.shift
        states = F.embedding(ids, self.words)
        if not self.shape.relative:
            states = states + self.types[0]
        result: Tensor = self.norm(states + F.embedding(places, self.places))
        return result.flatten(0, 1)

    def _layout(self, shapes: Sequence[tuple[int, int]], mask: Tensor | None) -> PassLayout:
        biases: list[Tensor | None] = [None if mask is None else mask[:, None, None]] * len(shapes)
        if self.shape.relative:
            biases = [self._distance_bias(length) for _, length in shapes]
        if self.shape.relative and mask is not None:
            biases = [
                b.masked_fill(~mask[:, None, None], -torch.inf) for b in biases if b is not None
            ]
        return PassLayout(shapes, biases, self.sizes)

    def _distance_bias(self, length: int) -> Tensor:
        """What MPNet adds to attention for the distance of two pieces, (1, heads, pieces, pieces).

        Either direction has half of the buckets; half of those are of one distance each, the others
        grow logarithmically.
        """
        place = torch.arange(length, device=self.distances.device)
        distance = place[:, None] - place[None]  # from query to key
        half, exact = BUCKETS // 2, BUCKETS // 4
        near = distance.abs()
        growth = torch.log(near.clamp(min=exact).float() / exact) / math.log(FARTHEST / exact)
        far = (exact + (growth * (half - exact)).long()).clamp(max=half - 1)
        bucket = torch.where(near < exact, near, far) + half * (distance < 0)
        return F.embedding(bucket, self.distances).permute(2, 0, 1)[None].contiguous()

    def _try_numbers(self) -> None:
        """Refuse settings that make no numbers of a short text."""
        ids = torch.arange(4, device=self.words.device)[None] % self.shape.vocab_size
        with torch.inference_mode():
            [states] = self([ids], None, frozenset({self.depth}))[self.depth]
        if not states.isfinite().all():
            raise ModelError("a model's config.json makes NaN or infinite numbers of its weights")

    def keeps_apart(self) -> bool:
        """Whether a layer says the same of texts beside others as alone, to the last bit."""
        lengths = [n for n in TRIED_LENGTHS if n <= self.shape.max_position_embeddings]

        def lay(lengths: Sequence[int]) -> PassLayout:
            return self._layout([(len(list(same)), size) for size, same in groupby(lengths)], None)

        layer: TransformerLayer = self.layers[0]  # type: ignore[assignment]
        return layer.keeps_texts_apart(lengths, lay)


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """The tensors of a folder, mapped from their files, by the names they have without a head."""
    from safetensors import SafetensorError, safe_open

    found: dict[str, Tensor] = {}
    for file in weight_files(folder):
        try:
            with safe_open(file, framework="pt") as opened:
                for name in opened.keys():  # noqa: SIM118
                    found[_bare(name)] = opened.get_tensor(name)
        except (SafetensorError, OSError, ValueError, RuntimeError, TypeError) as error:
            raise ModelError(f"{file} is damaged or was cut short: {error}") from None
    return found


def _bare(name: str) -> str:
    """A tensor's name without that of its model; older files call a norm's weights by letters.

    >>> _bare("bert.embeddings.LayerNorm.gamma")
    'embeddings.LayerNorm.weight'
    """
    prefix = next((prefix for prefix in WHOLE if name.startswith(prefix)), "")
    name = name.removeprefix(prefix)
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
        "LayerNorm.beta", "LayerNorm.bias"
    )


def _tensors_by_shape(tensors: Mapping[str, Any], folder: Path) -> Stored:
    """A function from a name and a shape to a tensor in single precision, or an error."""

    def stored(name: str, *shape: int) -> Tensor:
        fault, found = f"the weights in {folder} do not fit its config.json:", tensors.get(name)
        if found is None:
            raise ModelError(f"{fault} {name} is missing")
        if found.shape != shape:
            raise ModelError(f"{fault} {name} has shape {tuple(found.shape)}, expected {shape}")
        if not found.is_floating_point():
            raise ModelError(f"{fault} {name} is of type {found.dtype}, not floating point")
        if found.numel() < MAPPED and not torch.stack(found.float().aminmax()).isfinite().all():
            raise ModelError(f"the weights in {folder} hold NaN or infinite numbers: {name}")
        single: Tensor = found.float()
        return single

    return stored


def _read_layer(shape: BertShape, stored: Stored, prefix: str) -> TransformerLayer:
    """A layer of stored weights, whose shapes refuse impossible sizes before anything is made."""
    hidden, inner = shape.hidden_size, shape.intermediate_size
    *projections, out, norm = shape.names
    weights = {
        f"{part}.{kind}": tensor
        for part, names, size in (
            ("qkv", projections, (hidden, hidden)),
            ("out", [out], (hidden, hidden)),
            ("norm1", [norm], (hidden,)),
            ("up", ["intermediate.dense"], (inner, hidden)),
            ("down", ["output.dense"], (hidden, inner)),
            ("norm2", ["output.LayerNorm"], (hidden,)),
        )
        for kind, tensor in _read_part(stored, [prefix + name for name in names], *size).items()
    }
    sizes = hidden, shape.num_attention_heads, inner
    with Uninitialised():
        layer = TransformerLayer(*sizes, shape.layer_norm_eps, device="meta")
    layer.load_state_dict(weights, assign=True)
    return layer.requires_grad_(False)


def _read_part(stored: Stored, names: Sequence[str], *size: int) -> dict[str, Tensor]:
    """Weights of this size and biases stored under some names, one above the other."""
    weights = torch.cat([stored(f"{name}.weight", *size) for name in names])
    return {"weight": weights, "bias": torch.cat([stored(f"{n}.bias", size[0]) for n in names])}


def _frozen(tensor: Tensor) -> nn.Parameter:
    return nn.Parameter(tensor, requires_grad=False)
