"""Joint reading: hypothesis, source and reference in one encoder, any subset of the last two.

Every text is `<s> pieces </s>` with positions of its own and a vector that says its role. The lower
layers read each text apart, so that a source or reference costs them once however many systems
translated it; the upper ones read all texts together. On top: a mix of layers, means, a soft
alignment of the hypothesis with each other text both ways (as in `late`), greedy matches at three
layers, and a head. What was not given is zeros with a flag.

One row at a time, without padding: a row's numbers depend on its own texts alone, to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

HYPOTHESIS, SOURCE, REFERENCE = range(3)
OTHERS = (SOURCE, REFERENCE)
MIXED = (4, 6, 8, 10, 11, 12)  # layers whose mix is pooled and aligned
MATCHED = (3, 6, 12)  # layers whose pieces are matched greedily
BLOCK = 32  # weights that share a scale in a row of the embedding table
EPSILON = 1e-12  # of the encoder's norms, as published
LEAST = -10.0  # of a maximum over pieces, as in training


class Lower(NamedTuple):
    """A text behind the lower layers: its last states, and earlier ones that are looked at again.

    Each is (pieces, hidden), <s> and </s> among the pieces.
    """

    states: Tensor
    seen: Mapping[int, Tensor]


class PackedWords(nn.Module):
    """The embedding table at 4 bits a weight: rows are unpacked where they are looked up.

    A block of 32 weights has one scale; byte k of a block holds weight k in its low half and weight
    k + 16 in its high half, each as value + 8.
    """

    def __init__(self, words: int, hidden: int) -> None:
        super().__init__()
        self.nibbles: Tensor
        self.scales: Tensor
        shape = words, hidden // BLOCK, BLOCK // 2
        self.register_buffer("nibbles", torch.zeros(shape, dtype=torch.uint8))
        self.register_buffer("scales", torch.zeros(shape[:2], dtype=torch.float16))

    def forward(self, ids: Tensor) -> Tensor:
        packed = self.nibbles[ids]  # (pieces, blocks, 16)
        values = torch.cat([packed & 15, packed >> 4], dim=-1).float() - 8
        return (values * self.scales[ids].float()[..., None]).flatten(1)  # (pieces, hidden)


class JointLayer(nn.Module):
    """A transformer layer over the pieces of one sequence, (pieces, hidden)."""

    def __init__(self, hidden: int, heads: int, inner: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, inner), nn.Linear(inner, hidden)
        self.norm1, self.norm2 = nn.LayerNorm(hidden, EPSILON), nn.LayerNorm(hidden, EPSILON)

    def forward(self, states: Tensor) -> Tensor:
        pieces, hidden = states.shape
        parts = self.qkv(states).view(1, pieces, 3, self.heads, -1)
        query, key, value = parts.transpose(1, 3).unbind(2)  # (1, heads, pieces, hidden / heads)
        mixed = F.scaled_dot_product_attention(query, key, value)
        mixed = mixed.transpose(1, 2).reshape(pieces, hidden)
        states = self.norm1(states + self.out(mixed))
        result: Tensor = self.norm2(states + self.down(F.gelu(self.up(states))))
        return result


class SoftComparison(nn.Module):
    """The hypothesis against one other text: soft alignment both ways, each piece compared."""

    def __init__(self, hidden: int, compared: int) -> None:
        super().__init__()
        self.project = nn.Linear(hidden, compared)
        self.sharpness = nn.Parameter(torch.tensor(10.0))
        self.forth, self.back = (nn.Linear(4 * compared, compared) for _ in range(2))

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """What was found at pieces (m, hidden) and (n, hidden), pooled, (4 compared,)."""
        left, right = self.project(left), self.project(right)
        likeness = cosines(left, right) * self.sharpness  # (m, n)
        forth = _compare(self.forth, left, likeness.softmax(1) @ right)
        back = _compare(self.back, right, likeness.softmax(0).T @ left)
        pooled = [(found.mean(0), found.amax(0).clamp(min=LEAST)) for found in (forth, back)]
        return torch.cat([*pooled[0], *pooled[1]])


class JointHead(nn.Module):
    """From all that was found to a raw score and the logit of no error, (2,)."""

    def __init__(self, features: int, inner: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.inner, self.last = nn.Linear(features, inner), nn.Linear(inner, 2)

    def forward(self, features: Tensor) -> Tensor:
        result: Tensor = self.last(F.gelu(self.inner(self.norm(features))))
        return result


class JointNetwork(nn.Module):
    """The whole: `read` a text's lower layers once, then `judge` rows of texts that were read."""

    def __init__(
        self,
        *,
        words: int,
        positions: int,
        hidden: int,
        layers: int,
        heads: int,
        inner: int,
        apart: int,
        compared: int,
        judging: int,
    ) -> None:
        super().__init__()
        self.apart = apart
        self.words = PackedWords(words, hidden)
        self.positions, self.roles = nn.Embedding(positions, hidden), nn.Embedding(3, hidden)
        self.norm = nn.LayerNorm(hidden, EPSILON)
        self.layers = nn.ModuleList(JointLayer(hidden, heads, inner) for _ in range(layers))
        self.mix = nn.Parameter(torch.zeros(len(MIXED)))
        self.comparisons = nn.ModuleList(SoftComparison(hidden, compared) for _ in OTHERS)
        self.told = 3 * hidden + 4 * compared + 2 * len(MATCHED) + 1
        self.head = JointHead(2 * hidden + len(OTHERS) * self.told, judging)

    def read(self, ids: Sequence[int], role: int) -> Lower:
        """A text's numbers, special ones among them, through the layers that see it alone."""
        numbers = torch.tensor(ids, device=self.mix.device)
        places = torch.arange(len(ids), device=self.mix.device)
        states = self.norm(self.words(numbers) + self.positions(places) + self.roles.weight[role])
        seen = {}
        for number, layer in enumerate(self.layers[: self.apart], start=1):
            states = layer(states)
            if number in MIXED or number in MATCHED:
                seen[number] = states
        return Lower(states, seen)

    def judge(self, texts: Mapping[int, Lower]) -> Tensor:
        """The raw score and the logit of no error, (2,), of texts by role."""
        seen, places = self.read_together(texts)
        shares = self.mix.softmax(0)
        mixed = sum(
            (seen[layer] * share for layer, share in zip(MIXED, shares, strict=True)),
            torch.zeros_like(seen[MIXED[0]]),
        )
        own = mixed[inside(places[HYPOTHESIS])]
        mean = own.mean(0)
        features = [mixed[places[HYPOTHESIS].start], mean]
        for role, comparison in zip(OTHERS, self.comparisons, strict=True):
            if role not in texts:
                features.append(mean.new_zeros(self.told))
                continue
            other = mixed[inside(places[role])]
            theirs = other.mean(0)
            matches = [
                greedy_shares(*(seen[layer][inside(places[r])] for r in (HYPOTHESIS, role)))
                for layer in MATCHED
            ]
            features += [
                theirs,
                (mean - theirs).abs(),
                mean * theirs,
                comparison(own, other),
                *matches,
                mean.new_ones(1),
            ]
        scores: Tensor = self.head(torch.cat(features))
        return scores

    def read_together(
        self, texts: Mapping[int, Lower]
    ) -> tuple[dict[int, Tensor], dict[int, slice]]:
        """States of a row at the layers that are looked at, and where each text's pieces lie."""
        roles, places, end = sorted(texts), dict[int, slice](), 0
        for role in roles:
            places[role] = slice(end, end + len(texts[role].states))
            end = places[role].stop
        seen = {
            layer: torch.cat([texts[role].seen[layer] for role in roles])
            for layer in texts[HYPOTHESIS].seen
        }
        states = torch.cat([texts[role].states for role in roles])
        for number, layer in enumerate(self.layers[self.apart :], start=self.apart + 1):
            states = layer(states)
            if number in MIXED or number in MATCHED:
                seen[number] = states
        return {layer: state.float() for layer, state in seen.items()}, places


def inside(place: slice) -> slice:
    """The true pieces of a text; of an empty one its </s>, so that means exist.

    >>> inside(slice(5, 9)), inside(slice(0, 2))
    (slice(6, 8, None), slice(1, 2, None))
    """
    return slice(place.start + 1, max(place.stop - 1, place.start + 2))


def cosines(left: Tensor, right: Tensor) -> Tensor:
    """Of all pairs of rows, (m, d) and (n, d) -> (m, n)."""
    return F.normalize(left, dim=-1) @ F.normalize(right, dim=-1).T


def greedy_shares(left: Tensor, right: Tensor) -> Tensor:
    """Precision and recall of best cosines, (2,)."""
    likeness = cosines(left, right)
    return torch.stack([likeness.amax(1).mean(), likeness.amax(0).mean()])


def _compare(layer: nn.Module, own: Tensor, aligned: Tensor) -> Tensor:
    return F.gelu(layer(torch.cat([own, aligned, own * aligned, (own - aligned).abs()], dim=-1)))
