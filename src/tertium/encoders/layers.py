"""The transformer layer of encoders and of tertium-multi, and how texts lie in a pass through it.

On a CPU texts lie one behind the other without padding. Products take them by blocks of few shapes
(`apart.in_blocks`), attention text by text or several of one length at once, in memory that all
layers of a pass share. On a GPU they are padded to one length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tertium.encoders.apart import Sizes, fill_blocks, in_blocks
from tertium.encoders.products import HalfLinear, gelu_of


class Group(NamedTuple):
    """What attention reads of some texts, each (texts, heads, pieces, d), and where it writes."""

    query: Tensor
    key: Tensor
    value: Tensor
    bias: Tensor | None
    seen: Tensor


class Attention(NamedTuple):
    """Memory of a layer's attention: what is projected, (pieces, 3 hidden), what is seen of it,
    (pieces, hidden), and both by groups of texts."""

    projected: Tensor
    mixed: Tensor
    groups: Sequence[Group]


class PassLayout:
    """How texts lie in a pass: groups of so many texts of one length, one behind the other.

    `biases` are added to the attention of each group, or say which of its pieces are seen; `sizes`
    are those of the blocks that products read.
    """

    def __init__(
        self, shapes: Sequence[tuple[int, int]], biases: Sequence[Tensor | None], sizes: Sizes
    ) -> None:
        self.shapes, self.biases, self.sizes = shapes, biases, sizes
        self._kept: Attention | None = None

    def part(self, states: Tensor) -> list[Tensor]:
        """States of pieces, (pieces, d), by group, (texts, pieces, d)."""
        counts = [texts * length for texts, length in self.shapes]
        groups = torch.split(states[: sum(counts)], counts)
        return [group.view(*at, -1) for group, at in zip(groups, self.shapes, strict=True)]

    def attention(self, states: Tensor, heads: int) -> Attention:
        """Memory of the attention to states, (pieces, hidden); each layer writes over the last.

        To have a large piece of memory anew costs more than to fill it, and to part it for every
        layer costs more than attention to a short text.
        """
        if self._kept is None:
            projected = states.new_zeros(len(states), 3 * states.shape[1])
            self._kept = self.lay_out(projected, heads)
        return self._kept

    def lay_out(self, projected: Tensor, heads: int) -> Attention:
        """Memory of the attention to what is projected, (pieces, 3 hidden)."""
        mixed = projected.new_zeros(len(projected), projected.shape[1] // 3)
        groups = []
        for own, bias, seen in zip(
            self.part(projected), self.biases, self.part(mixed), strict=True
        ):
            query, key, value = own.view(*own.shape[:2], 3, heads, -1).permute(2, 0, 3, 1, 4)
            if bias is not None and bias.is_floating_point():
                bias = bias.to(projected.dtype)
            seen = seen.view(*seen.shape[:2], heads, -1).transpose(1, 2)
            groups.append(Group(query, key, value, bias, seen))
        return Attention(projected, mixed, groups)


class SequenceLayout(PassLayout):
    """Sequences of these lengths one behind the other, each of which sees itself alone.

    `places` says where each lies.
    """

    def __init__(self, lengths: Sequence[int], sizes: Sizes) -> None:
        super().__init__([(1, length) for length in lengths], [None] * len(lengths), sizes)
        self.places = slices_of(lengths)

    def lay(self, pieces: Tensor) -> Tensor:
        """Pieces of all sequences, (pieces, d), as they lie in the pass, (pass, d)."""
        return fill_blocks(pieces, self.sizes)


class PaddedSequences(SequenceLayout):
    """The same with padding behind each up to the length of the longest, which is not seen."""

    def __init__(self, lengths: Sequence[int], sizes: Sizes, device: torch.device) -> None:
        super().__init__(lengths, sizes)
        longest = max(lengths)
        true = torch.arange(longest) < torch.tensor(lengths)[:, None]
        self.shapes, self.biases = [(len(lengths), longest)], [true[:, None, None].to(device)]
        self.places = [
            slice(at.start, at.start + length)
            for at, length in zip(slices_of([longest] * len(lengths)), lengths, strict=True)
        ]
        self._true = true.flatten().nonzero()[:, 0].to(device)

    def lay(self, pieces: Tensor) -> Tensor:
        padded = pieces.new_zeros(math.prod(self.shapes[0]), pieces.shape[1])
        padded[self._true] = pieces
        return fill_blocks(padded, self.sizes)


def slices_of(sizes: Sequence[int], start: int = 0) -> list[slice]:
    """Where things of these sizes lie, one behind the other.

    >>> slices_of([2, 3], start=10)
    [slice(10, 12, None), slice(12, 15, None)]
    """
    return [slice(*ends) for ends in pairwise(accumulate(sizes, initial=start))]


class TransformerLayer(nn.Module):
    """A transformer layer over groups of texts that lie one behind the other, (pieces, hidden)."""

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

    def forward(self, states: Tensor, layout: PassLayout) -> Tensor:
        if states.device.type == "cpu":  # in single precision: in bf16 it takes twice as long
            attention = layout.attention(states, self.heads)
            in_blocks(self.qkv, states, sizes=layout.sizes, into=attention.projected)
        else:
            attention = layout.lay_out(self.qkv(states), self.heads)
        for query, key, value, bias, seen in attention.groups:
            seen.copy_(F.scaled_dot_product_attention(query, key, value, attn_mask=bias))
        return in_blocks(self._transform, states, attention.mixed, sizes=layout.sizes)

    def _transform(self, states: Tensor, mixed: Tensor) -> Tensor:
        """All that is done to a piece by itself."""
        states = self.norm1(self.out(mixed).float().add_(states))
        result: Tensor = self.norm2(self.down(gelu_of(self.up, states)).float().add_(states))
        return result

    @property
    def products(self) -> Sequence[nn.Linear | HalfLinear]:
        """The layers whose products are made in blocks."""
        return self.qkv, self.out, self.up, self.down

    def keeps_texts_apart(
        self, lengths: Sequence[int], lay: Callable[[Sequence[int]], PassLayout]
    ) -> bool:
        """Whether the same is said of texts beside others as alone, to the last bit.

        The order in which a pass adds up depends on shapes and places, not on values; so one layer
        and a few lengths of random vectors tell.
        """
        generator = torch.Generator().manual_seed(1)
        width = self.norm1.normalized_shape[0]
        drawn = {n: torch.randn(n, width, generator=generator) for n in dict.fromkeys(lengths)}

        def run(some: Sequence[int]) -> Tensor:
            layout = lay(some)
            pieces = torch.cat([drawn[length] for length in some])
            states: Tensor = self(fill_blocks(pieces, layout.sizes), layout)
            return states[: len(pieces)]

        alone = {length: run([length]) for length in drawn}
        return torch.equal(run(lengths), torch.cat([alone[length] for length in lengths]))
