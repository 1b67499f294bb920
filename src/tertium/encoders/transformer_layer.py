"""The transformer layer of BERT-like encoders and of tertium-multi, and the layout of its batches.

On a CPU the tokens of all texts are concatenated without padding, (tokens, hidden). Linear layers
and norms read blocks of tokens, attention reads groups of texts of equal length; both keep results
batch-invariant (see `batch_invariance`). On a GPU there is one group, padded to one length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tertium.encoders.batch_invariance import BlockSizes, apply_in_blocks, pad_to_blocks
from tertium.encoders.linear_layers import CastLinear, linear_gelu


class AttentionGroup(NamedTuple):
    """Views of one group of texts, each (texts, heads, length, head_dim); `bias` may be a mask."""

    query: Tensor
    key: Tensor
    value: Tensor
    bias: Tensor | None
    output: Tensor


class AttentionBuffers(NamedTuple):
    """Memory of a layer's attention, and views of it by group of texts."""

    qkv: Tensor  # (tokens, 3 * hidden)
    output: Tensor  # (tokens, hidden)
    groups: Sequence[AttentionGroup]


class BatchLayout:
    """Positions of texts in a batch: groups of `shapes` (texts, length), concatenated.

    `biases` are attention biases or masks; linear layers read `block_sizes` rows at a time.
    """

    def __init__(
        self,
        shapes: Sequence[tuple[int, int]],
        biases: Sequence[Tensor | None],
        block_sizes: BlockSizes,
    ) -> None:
        self.shapes, self.biases, self.block_sizes = shapes, biases, block_sizes
        self._buffers: AttentionBuffers | None = None

    def split_groups(self, states: Tensor) -> list[Tensor]:
        """Split states (tokens, d) into one view (texts, length, d) per group."""
        counts = [texts * length for texts, length in self.shapes]
        groups = torch.split(states[: sum(counts)], counts)
        return [group.view(*shape, -1) for group, shape in zip(groups, self.shapes, strict=True)]

    def reuse_buffers(self, states: Tensor, heads: int) -> AttentionBuffers:
        """Return attention buffers for states (tokens, hidden), shared by all layers of a pass."""
        if self._buffers is None:
            qkv = states.new_zeros(len(states), 3 * states.shape[1])
            self._buffers = self.make_buffers(qkv, heads)
        return self._buffers

    def make_buffers(self, qkv: Tensor, heads: int) -> AttentionBuffers:
        """Return attention buffers around a projection qkv (tokens, 3 * hidden)."""
        output = qkv.new_zeros(len(qkv), qkv.shape[1] // 3)  # (tokens, hidden)
        groups = []
        for x, bias, y in zip(
            self.split_groups(qkv), self.biases, self.split_groups(output), strict=True
        ):
            # (texts, length, 3 * hidden) -> 3 x (texts, heads, length, head_dim)
            query, key, value = x.view(*x.shape[:2], 3, heads, -1).permute(2, 0, 3, 1, 4)
            if bias is not None and bias.is_floating_point():
                bias = bias.to(qkv.dtype)
            y = y.view(*y.shape[:2], heads, -1).transpose(1, 2)  # (texts, heads, length, head_dim)
            groups.append(AttentionGroup(query, key, value, bias, y))
        return AttentionBuffers(qkv, output, groups)


class ConcatenatedLayout(BatchLayout):
    """Sequences of these lengths, concatenated; `slices` holds the rows of each sequence."""

    def __init__(self, lengths: Sequence[int], block_sizes: BlockSizes) -> None:
        super().__init__([(1, length) for length in lengths], [None] * len(lengths), block_sizes)
        self.slices = consecutive_slices(lengths)

    def arrange(self, tokens: Tensor) -> Tensor:
        """Pad the tokens of all sequences (tokens, d) to the rows of the batch (rows, d)."""
        return pad_to_blocks(tokens, self.block_sizes)


class PaddedLayout(ConcatenatedLayout):
    """Sequences padded to the longest one, with a mask that hides the padding."""

    def __init__(
        self, lengths: Sequence[int], block_sizes: BlockSizes, device: torch.device
    ) -> None:
        super().__init__(lengths, block_sizes)
        longest = max(lengths)
        mask = torch.arange(longest) < torch.tensor(lengths)[:, None]  # (sequences, longest)
        self.shapes, self.biases = [(len(lengths), longest)], [mask[:, None, None].to(device)]
        self.slices = [slice(i * longest, i * longest + n) for i, n in enumerate(lengths)]
        self._token_rows = mask.flatten().nonzero()[:, 0].to(device)  # (tokens,)

    def arrange(self, tokens: Tensor) -> Tensor:
        padded = tokens.new_zeros(math.prod(self.shapes[0]), tokens.shape[1])
        padded[self._token_rows] = tokens
        return pad_to_blocks(padded, self.block_sizes)


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

    def __init__(
        self, hidden: int, heads: int, inner: int, epsilon: float, device: str | None = None
    ) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(hidden, 3 * hidden, device=device)
        self.out = nn.Linear(hidden, hidden, device=device)
        self.up = nn.Linear(hidden, inner, device=device)
        self.down = nn.Linear(inner, hidden, device=device)
        self.norm1, self.norm2 = (nn.LayerNorm(hidden, epsilon, device=device) for _ in range(2))

    def forward(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """(tokens, hidden) -> (tokens, hidden)."""
        if x.device.type == "cpu":  # attention in fp32: bf16 takes twice as long
            buffers = layout.reuse_buffers(x, self.heads)
            apply_in_blocks(self.qkv, x, block_sizes=layout.block_sizes, out=buffers.qkv)
        else:
            buffers = layout.make_buffers(self.qkv(x), self.heads)
        for query, key, value, bias, output in buffers.groups:
            output.copy_(F.scaled_dot_product_attention(query, key, value, attn_mask=bias))
        return apply_in_blocks(
            self._feed_forward, x, buffers.output, block_sizes=layout.block_sizes
        )

    def _feed_forward(self, x: Tensor, attended: Tensor) -> Tensor:
        """Apply all token-wise steps after attention; both inputs are (rows, hidden)."""
        x = self.norm1(self.out(attended).float().add_(x))  # (rows, hidden)
        inner = linear_gelu(self.up, x)  # (rows, inner)
        result: Tensor = self.norm2(self.down(inner).float().add_(x))  # (rows, hidden)
        return result

    @property
    def linear_layers(self) -> Sequence[nn.Linear | CastLinear]:
        """The layers that are applied block by block."""
        return self.qkv, self.out, self.up, self.down

    def is_batch_invariant(
        self, lengths: Sequence[int], make_layout: Callable[[Sequence[int]], BatchLayout]
    ) -> bool:
        """Test whether texts of these lengths have the same states together as alone."""
        generator = torch.Generator().manual_seed(1)
        width = self.norm1.normalized_shape[0]
        texts = {n: torch.randn(n, width, generator=generator) for n in dict.fromkeys(lengths)}

        def run(batch_lengths: Sequence[int]) -> Tensor:
            layout = make_layout(batch_lengths)
            tokens = torch.cat([texts[length] for length in batch_lengths])
            states: Tensor = self(pad_to_blocks(tokens, layout.block_sizes), layout)
            return states[: len(tokens)]

        alone = {length: run([length]) for length in texts}
        return torch.equal(run(lengths), torch.cat([alone[length] for length in lengths]))
