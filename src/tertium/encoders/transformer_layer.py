"""The transformer layer of BERT-like encoders and of tertium-multi, and the layout of its batches.

On a CPU the tokens of all texts are concatenated without padding, (tokens, hidden). Linear layers
and norms read chunks of tokens that fit into the processor cache; attention reads groups of texts
of equal length. On a GPU there is one group, padded to one length.

With int8 layers, the states of a text do not depend on the other texts of a batch: products are
exact (`int8_linear`), norms and GELU work on one token, and attention on one text.

Only matrix products run in lower precision: they dominate the cost of a transformer and tolerate
rounding well. The residual stream, attention, layer norms and softmax stay in fp32 on a CPU.

| precision   | layer        | use                                                          |
| ----------- | ------------ | ------------------------------------------------------------ |
| fp32        | `nn.Linear`  | published metrics                                            |
| bf16, fp16  | `CastLinear` | GPUs; bf16 also on CPUs with AMX or AVX512-BF16              |
| int8        | `Int8Linear` | CPUs with 8-bit instructions: exact sums                     |

On a CPU, weights in fp32 and bf16 are stored once in the layout of oneDNN (`PackedLinear`) if this
build of torch can do that. Otherwise they are reordered in every product, and bf16 with AMX takes
twice as long.
"""

from __future__ import annotations

import contextlib
import logging
import math
import platform
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tertium.core.errors import UsageError
from tertium.core.runtime import Precision
from tertium.encoders.int8_linear import Int8Linear, cpu_has_int8, has_cpu_feature, scratch

# Tokens of a matrix product on a CPU: activations fit into the cache, and products are fast.
CHUNK_ROWS = 512 if has_cpu_feature("amx_tile") else 384


class BatchLayout:
    """Positions of texts in a batch: groups of `shapes` (texts, length), concatenated.

    `biases` are attention biases or masks.
    """

    def __init__(self, shapes: Sequence[tuple[int, int]], biases: Sequence[Tensor | None]) -> None:
        self.shapes = shapes
        self.biases = biases

    def split_groups(self, states: Tensor) -> list[Tensor]:
        """Split states (tokens, d) into one view (texts, length, d) per group."""
        groups = torch.split(states, [texts * length for texts, length in self.shapes])
        return [group.view(*shape, -1) for group, shape in zip(groups, self.shapes, strict=True)]

    def attend(self, qkv: Tensor, heads: int) -> Tensor:
        """Apply attention to a projection (tokens, 3 * hidden), group by group."""
        output = scratch.get("attended", (len(qkv), qkv.shape[1] // 3), qkv, qkv.dtype)
        for x, bias, y in zip(
            self.split_groups(qkv), self.biases, self.split_groups(output), strict=True
        ):
            # (texts, length, 3 * hidden) -> 3 x (texts, heads, length, head_dim)
            query, key, value = x.view(*x.shape[:2], 3, heads, -1).permute(2, 0, 3, 1, 4)
            if bias is not None and bias.is_floating_point():
                bias = bias.to(qkv.dtype)
            attended = F.scaled_dot_product_attention(query, key, value, attn_mask=bias)
            y.view(*y.shape[:2], heads, -1).copy_(attended.transpose(1, 2))
        return output


class ConcatenatedLayout(BatchLayout):
    """Sequences of these lengths, concatenated; `slices` holds the rows of each sequence."""

    def __init__(self, lengths: Sequence[int]) -> None:
        super().__init__([(1, length) for length in lengths], [None] * len(lengths))
        self.slices = consecutive_slices(lengths)

    def arrange(self, tokens: Tensor) -> Tensor:
        """Put the tokens of all sequences (tokens, d) into the rows of the batch (rows, d)."""
        return tokens


class PaddedLayout(ConcatenatedLayout):
    """Sequences padded to the longest one, with a mask that hides the padding."""

    def __init__(self, lengths: Sequence[int], device: torch.device) -> None:
        super().__init__(lengths)
        longest = max(lengths)
        mask = torch.arange(longest) < torch.tensor(lengths)[:, None]  # (sequences, longest)
        self.shapes = [(len(lengths), longest)]
        self.biases = [mask[:, None, None].to(device)]
        self.slices = [slice(i * longest, i * longest + n) for i, n in enumerate(lengths)]
        self._token_rows = mask.flatten().nonzero()[:, 0].to(device)  # (tokens,)

    def arrange(self, tokens: Tensor) -> Tensor:
        padded = tokens.new_zeros(math.prod(self.shapes[0]), tokens.shape[1])
        padded[self._token_rows] = tokens
        return padded


def consecutive_slices(sizes: Sequence[int], start: int = 0) -> list[slice]:
    """Return adjacent slices of these sizes.

    >>> consecutive_slices([2, 3], start=10)
    [slice(10, 12, None), slice(12, 15, None)]
    """
    return [slice(*ends) for ends in pairwise(accumulate(sizes, initial=start))]


class TransformerLayer(nn.Module):
    """A post-norm transformer layer over the tokens of a batch, (tokens, hidden).

    a = LN(x + out(attention(qkv(x))))
    y = LN(a + down(GELU(up(a))))
    """

    def __init__(self, hidden: int, heads: int, inner: int, epsilon: float) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.out = nn.Linear(hidden, hidden)
        self.up = nn.Linear(hidden, inner)
        self.down = nn.Linear(inner, hidden)
        self.norm1, self.norm2 = (nn.LayerNorm(hidden, epsilon) for _ in range(2))

    def forward(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """(tokens, hidden) -> (tokens, hidden)."""
        if x.device.type != "cpu":
            return self._feed_forward(x, layout.attend(self.qkv(x), self.heads))
        qkv = scratch.get("qkv", (len(x), 3 * x.shape[1]), x)  # fp32: bf16 attention is slower
        for rows, target in _chunks(x, qkv):
            if isinstance(self.qkv, Int8Linear):
                self.qkv(rows, out=target)
            else:
                target.copy_(self.qkv(rows))
        result = torch.empty_like(x)
        for rows, attended, target in _chunks(x, layout.attend(qkv, self.heads), result):
            target.copy_(self._feed_forward(rows, attended))
        return result

    def _feed_forward(self, x: Tensor, attended: Tensor) -> Tensor:
        """Apply all token-wise steps after attention; both inputs are (rows, hidden)."""
        x = self.norm1(self.out(attended).float().add_(x))  # (rows, hidden)
        if isinstance(self.up, Int8Linear) and isinstance(self.down, Int8Linear):
            inner = scratch.get("inner", (len(x), self.up.out_features), x)
            contracted = self.down.contract_inner(self.up.forward_gelu(x, out=inner))
        else:
            contracted = self.down(linear_gelu(self.up, x)).float()
        result: Tensor = self.norm2(contracted.add_(x))  # (rows, hidden)
        return result


def _chunks(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Split tensors of the same number of rows into equal chunks that fit into the cache."""
    count = max(1, -(-len(tensors[0]) // CHUNK_ROWS))
    return zip(*(torch.tensor_split(tensor, count) for tensor in tensors), strict=True)


logger = logging.getLogger(__name__)

PACKED_ROWS = 1024  # number of rows the packed layout is tuned for; any other number works
# Types of states; int8 networks compute everything but products in fp32.
DTYPES = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "int8": torch.float32,
}


class CastLinear(nn.Linear):
    """x W' + b with x and W cast to `dtype`, accumulated in fp32 and rounded once at the end."""

    def __init__(self, linear: nn.Linear, dtype: torch.dtype) -> None:
        has_bias = linear.bias is not None
        super().__init__(linear.in_features, linear.out_features, has_bias, "meta", dtype)
        self.load_state_dict(linear.to(dtype).state_dict(), assign=True)
        self.requires_grad_(False)
        self.dtype = dtype

    def forward(self, x: Tensor) -> Tensor:
        """(..., in_features) -> (..., out_features)."""
        return super().forward(x.to(self.dtype))


class PackedLinear(CastLinear):
    """A `CastLinear` through oneDNN, which stores the weights only in its packed layout."""

    def __init__(self, linear: nn.Linear, dtype: torch.dtype) -> None:
        super().__init__(linear, dtype)
        self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight.detach(), PACKED_ROWS)
        del self.weight

    def forward(self, x: Tensor) -> Tensor:
        product: Tensor = torch.ops.mkldnn._linear_pointwise(
            x.to(self.dtype), self.packed, self.bias, "none", [], ""
        )
        return product


def linear_gelu(layer: nn.Module, x: Tensor) -> Tensor:
    """Return the exact (erf) GELU of a linear layer's output."""
    return layer.forward_gelu(x) if isinstance(layer, Int8Linear) else F.gelu(layer(x))


def check_precision(precision: str, device: str) -> None:
    """Reject fp16 on a CPU, where it is slow and overflows."""
    if precision == "fp16" and device == "cpu":
        raise UsageError(
            "precision fp16 needs a GPU: on a CPU use int8, bf16 (fast with AMX) or fp32"
        )


def fastest_precision(device: str) -> Precision:
    """Return the fastest precision on a device that keeps the agreement with human scores.

    | device                                  | precision |
    | --------------------------------------- | --------- |
    | GPU, CPU with AMX                       | bf16      |
    | other CPU with 8-bit instructions       | int8      |
    | other CPU                               | fp32      |
    """
    if device != "cpu" or has_cpu_feature("amx_tile"):
        return "bf16"
    return "int8" if cpu_has_int8() else "fp32"


def convert_linear_layers(
    model: nn.Module, precision: str, device: str, *, pack: bool = True
) -> None:
    """Replace the fp32 linear layers of a model, in place, by layers of this precision."""
    if precision == "bf16" and device == "cpu" and not cpu_has_bf16():
        logger.warning("this CPU has no bf16 instructions: precision=int8 or fp32 is faster")
    dtype = DTYPES[precision]
    convert: Callable[[nn.Linear], nn.Module]
    if precision == "int8":
        convert = Int8Linear.quantize
    elif pack and device == "cpu" and _can_pack(dtype):
        convert = partial(PackedLinear, dtype=dtype)
    elif precision == "fp32":
        return
    else:
        convert = partial(CastLinear, dtype=dtype)
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear:
                setattr(module, name, convert(child))


@cache
def _can_pack(dtype: torch.dtype) -> bool:
    """Return whether this build of torch supports packed weights of this dtype on this CPU."""
    if dtype == torch.bfloat16 and not cpu_has_bf16():
        return False
    try:
        PackedLinear(nn.Linear(8, 8), dtype)(torch.zeros(2, 8))
    except (AttributeError, RuntimeError):
        return False
    return True


def autocast_context(precision: str, device: str) -> Any:
    """Return the context of a forward pass in which attention uses the linear layers' dtype."""
    device_type = device.partition(":")[0]
    if precision in ("fp32", "int8") or (device_type == "cpu" and not cpu_has_bf16()):
        return contextlib.nullcontext()
    return torch.autocast(device_type, dtype=DTYPES[precision])


def cpu_has_bf16() -> bool:
    """Return whether this CPU multiplies bf16 matrices in hardware."""
    is_arm = platform.machine().lower() in ("arm64", "aarch64")
    return has_cpu_feature("amx_tile", "avx512_bf16") or (is_arm and has_cpu_feature("arm_bf16"))
