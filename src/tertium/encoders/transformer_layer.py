"""The transformer layer of BERT-like encoders and of tertium-multi, and the layout of its batches.

On a CPU the tokens of all texts are concatenated without padding, (tokens, hidden). Linear layers
and norms read chunks of tokens that fit into the processor cache; attention reads groups of texts
of equal length. On a GPU there is one group, padded to one length.

With int8 layers, the states of a text do not depend on the other texts of a batch: products are
exact (`int8_linear`), norms and GELU work on one token, and attention on one text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tertium.encoders.int8_linear import Int8Linear, scratch
from tertium.encoders.linear_layers import linear_gelu

# Tokens of a matrix product on a CPU: activations fit into the cache, and products are fast.
CHUNK_ROWS = 512 if getattr(torch.cpu, "_is_amx_tile_supported", bool)() else 384


class BatchLayout:
    """Positions of texts in a batch: groups of `shapes` (texts, length), concatenated.

    `biases` are attention biases or masks.
    """

    def __init__(self, shapes: Sequence[tuple[int, int]], biases: Sequence[Tensor | None]) -> None:
        self.shapes, self.biases = shapes, biases

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
        self.shapes, self.biases = [(len(lengths), longest)], [mask[:, None, None].to(device)]
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
