"""The three networks of Mathur, Baldwin and Cohn (2019) over frozen token vectors.

    BiLSTM              each side through a BiLSTM, pooled; the pooled vectors matched
    BiLSTM + attention  each side re-expressed by the other side's states, pooled, matched
    ESIM                the same attention, then a second BiLSTM over own and attended states

All share a learned mix of the encoder's layers in front and a feed-forward regressor behind, and
all compare two vectors by [l; r; l*r; l-r]. The published difference has a sign, from which few
examples do not teach a distance; with `absolute` it is |l-r|. A text goes through `read` once,
however many comparisons it is part of; `represent` compares two sides; `score` regresses on one
comparison (against the reference or the source) or on several side by side (against both). d is
the encoder's width, h the hidden size, 2h a BiLSTM's output.

Sequences of different length lie in one tensor (`recurrence.Sequences`), and whatever reduces or
mixes tokens (pooling, attention) never looks at what is padding. `scoring` runs a trained network.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from tertium.encoders import Encoder
from tertium.metrics.heads.recurrence import Recurrent, Sequences, draw_first
from tertium.metrics.heads.settings import HeadConfig
from tertium.models.checkpoint import Checkpoint, load_into, read_declared


def mean_pool(texts: Sequences) -> Tensor:
    """The mean over tokens, (texts, tokens, d) -> (texts, d); 0 for an empty text.

    >>> mean_pool(Sequences(torch.tensor([[[1.0], [3.0], [99.0]]]), torch.tensor([2])))
    tensor([[2.]])
    """
    weights = texts.mask.to(texts.values.dtype)[..., None]
    return (texts.values * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


def max_pool(texts: Sequences) -> Tensor:
    """The largest value over tokens, (texts, tokens, d) -> (texts, d); 0 for an empty text.

    >>> max_pool(Sequences(torch.tensor([[[1.0], [3.0], [99.0]]]), torch.tensor([2])))
    tensor([[3.]])
    """
    mask = texts.mask
    lowest = torch.finfo(texts.values.dtype).min
    highest = texts.values.masked_fill(~mask[..., None], lowest).amax(dim=1)
    return torch.where(mask.any(dim=1, keepdim=True), highest, torch.zeros_like(highest))


def cross_attention(left: Sequences, right: Sequences) -> tuple[Sequences, Sequences]:
    """Each side re-expressed as softmax-weighted sums of the other side's tokens.

        a_ij = left_i . right_j      left~_i = sum_j softmax_j(a_ij) right_j,  right~_j alike

    (Mathur et al. 2019, equations 7 to 9.) Where the other side is empty the sum is 0.
    """
    to_right, to_left = attention_weights(left, right)
    from_right = Sequences(to_right @ right.values, left.lengths)
    return from_right, Sequences(to_left @ left.values, right.lengths)


def attention_weights(left: Sequences, right: Sequences) -> tuple[Tensor, Tensor]:
    """How much each left token looks at each right one, (pairs, left tokens, right tokens), and
    the other way round."""
    products = left.values @ right.values.transpose(1, 2)  # (pairs, left tokens, right tokens)
    to_right = masked_softmax(products, right.mask)
    return to_right, masked_softmax(products.transpose(1, 2), left.mask)


def masked_softmax(products: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last axis where `mask` (pairs, tokens) holds; all 0 where it never does."""
    hidden = ~mask[:, None, :]
    shares = products.float().masked_fill(hidden, -torch.inf).softmax(dim=-1)
    return shares.masked_fill(hidden, 0.0).to(products.dtype)


class SequenceDropout(nn.Module):
    """Dropout that hides the same dimensions of every token of a text (Gal and Ghahramani 2016)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, values: Tensor) -> Tensor:
        """(texts, tokens, d) -> the same."""
        if not self.training or self.rate == 0:
            return values
        ones = values.new_ones(values.shape[0], 1, values.shape[2])
        return values * nn.functional.dropout(ones, self.rate)


def split_layers(values: Tensor, layers: int) -> Tensor:
    """Layers side by side, (..., layers x d), to (..., layers, d)."""
    return values.view(*values.shape[:-1], layers, values.shape[-1] // layers)


class LayerMix(nn.Module):
    """A learned weighted average of layers: gamma sum_k softmax(s)_k x_k.

    (texts, tokens, layers, d) -> (texts, tokens, d)
    """

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(layers))
        self.gamma = nn.Parameter(torch.ones(()))

    def forward(self, states: Tensor) -> Tensor:
        shares = self.gamma * self.weights.softmax(dim=0)  # (layers,)
        mixed = shares[0] * states[..., 0, :]
        for layer in range(1, len(shares)):
            mixed = mixed + shares[layer] * states[..., layer, :]
        return mixed


class Regressor(nn.Module):
    """y = w' ReLU(W' p + b) + b', then to the scale of the human scores: (pairs, width) -> (pairs,)

    `centre` and `spread` are those of the human scores it was trained on.
    """

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.centre: Tensor
        self.spread: Tensor
        self.register_buffer("centre", torch.zeros(()))
        self.register_buffer("spread", torch.ones(()))
        self.layers = nn.Sequential(
            nn.Dropout(dropout),
            linear(width, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            linear(hidden, 1),
        )

    def forward(self, representation: Tensor) -> Tensor:
        raw: Tensor = self.layers(representation)
        return raw.squeeze(-1).float() * self.spread + self.centre


class PairNetwork(nn.Module, ABC):
    """A score for each pair of texts, over so many layers of width `dim`; see the module for its
    three steps."""

    def __init__(self, config: HeadConfig, layers: int, dim: int) -> None:
        super().__init__()
        self.layers, self.hidden = layers, config.hidden
        self.absolute = config.difference == "absolute"
        self.mix = LayerMix(layers)
        dropout, of_input = config.dropout, config.input_dropout
        self.input_dropout = SequenceDropout(dropout if of_input is None else of_input)
        self.encoder = Recurrent(dim, config.hidden)
        self.regressor = Regressor(self.width * config.sides, config.hidden, dropout)
        self.compose: Recurrent | None = None  # what reads sides again that have met

    @property
    def width(self) -> int:
        """The width of one comparison's representation: four matchings of two poolings."""
        return 16 * self.hidden

    @property
    def reading_width(self) -> int:
        """The width of what `read` makes of a token."""
        return 2 * self.hidden

    @abstractmethod
    def meet(self, hypothesis: Sequences, other: Sequences) -> tuple[Sequences, Sequences]:
        """Two sides as they are once they have seen each other."""

    def describe(self, *sides: Sequences) -> Tensor:
        """What a comparison looks like to the regressor, (pairs, width), of sides that met and,
        where that is done, were read again."""
        left, right = (pool(side) for side in sides)
        return match(left, right, self.absolute)

    def represent(self, hypothesis: Sequences, other: Sequences) -> Tensor:
        """What a comparison looks like to the regressor, (pairs, width)."""
        sides = self.meet(hypothesis, other)
        return self.describe(*(map(self.compose, sides) if self.compose is not None else sides))

    def shown_weights(self) -> Tensor | None:
        """What tokens are multiplied by that `read` adds to their states, (more, 2h)."""
        return None

    def read(self, texts: Sequences) -> Sequences:
        """Frozen states (texts, tokens, layers, d) to what `represent` takes: BiLSTM states
        (texts, tokens, 2h), in ESIM with their projections."""
        return self.read_mixed(Sequences(self.mix(texts.values), texts.lengths))

    def read_mixed(self, texts: Sequences) -> Sequences:
        """The same from states whose layers are mixed already, (texts, tokens, d)."""
        states: Sequences = self.encoder(texts._replace(values=self.input_dropout(texts.values)))
        return states

    def score(self, hypothesis: Sequences, others: Sequence[Sequences]) -> Tensor:
        """Scores (pairs,) of hypotheses against each of their sides, all as `read` made them."""
        parts = [self.represent(hypothesis, other) for other in others]
        scores: Tensor = self.regressor(torch.cat(parts, dim=-1))
        return scores


class BiLSTMNetwork(PairNetwork):
    """m = [t; r; t*r; t-r] of each side's pooled states (equations 3 to 6)."""

    def meet(self, hypothesis: Sequences, other: Sequences) -> tuple[Sequences, Sequences]:
        return hypothesis, other


class AttentionNetwork(PairNetwork):
    """The same of the states each side attends to on the other (equations 7 to 9)."""

    def meet(self, hypothesis: Sequences, other: Sequences) -> tuple[Sequences, Sequences]:
        return cross_attention(hypothesis, other)


class ESIMNetwork(PairNetwork):
    """Enhanced sequential inference (equations 10 to 13; Chen et al. 2017).

    p = [r_avg; r_max; t_avg; t_max] of a second BiLSTM over
    ReLU(F [h; h~; h*h~; h-h~] + b).

    With F in four blocks, F [h; h~; h*h~; h-h~] is (F1 + F4) h + (F2 - F4) h~ + F3 (h*h~). The
    first two products are made once for each text by `read`, the second before attention, with
    which it commutes; only the third is left for each pair, and F4 |h-h~| where differences are
    absolute.
    """

    def __init__(self, config: HeadConfig, layers: int, dim: int) -> None:
        super().__init__(config, layers, dim)
        self.dropout = SequenceDropout(config.dropout)
        self.project = linear(8 * config.hidden, config.hidden)
        self.compose = Recurrent(config.hidden, config.hidden)

    @property
    def width(self) -> int:
        return 8 * self.hidden

    @property
    def reading_width(self) -> int:
        return 4 * self.hidden

    def read_mixed(self, texts: Sequences) -> Sequences:
        """[h; (F2 - F4) h; (F1 + F4) h] of each token, (texts, tokens, 4h); absolute: no F4."""
        states = super().read_mixed(texts)
        projected = states.values @ self.shown_weights().T
        return states._replace(values=torch.cat([states.values, projected], dim=-1))

    def shown_weights(self) -> Tensor:
        """(F2 - F4) and (F1 + F4), one below the other, (2h, 2h); absolute: no F4."""
        own, seen, _, difference = self.project.weight.chunk(4, dim=1)
        signed = 0 if self.absolute else difference
        return torch.cat([seen - signed, own + signed])

    def describe(self, *sides: Sequences) -> Tensor:
        return torch.cat([pool(side) for side in sides], dim=-1)

    def meet(self, hypothesis: Sequences, other: Sequences) -> tuple[Sequences, Sequences]:
        size = 2 * self.hidden
        plain = [side._replace(values=side.values[..., :size]) for side in (hypothesis, other)]
        to_other, to_hypothesis = attention_weights(*plain)
        seen = 3 * self.hidden  # what each side shows the other: h and (F2 - F4) h
        return (
            self._join(other, to_hypothesis @ hypothesis.values[..., :seen]),
            self._join(hypothesis, to_other @ other.values[..., :seen]),
        )

    def _join(self, own: Sequences, seen: Tensor) -> Sequences:
        """What the second BiLSTM reads of a side, (pairs, tokens, 4h), and of what it sees of the
        other, (pairs, tokens, 3h)."""
        half = self.hidden
        h, from_own = own.values[..., : 2 * half], own.values[..., 3 * half :]
        h_seen, from_seen = seen[..., : 2 * half], seen[..., 2 * half :]
        _, _, of_product, of_difference = self.project.weight.chunk(4, dim=1)
        enhanced = nn.functional.linear(h * h_seen, of_product, self.project.bias)
        if self.absolute:
            enhanced = enhanced + nn.functional.linear((h - h_seen).abs(), of_difference)
        projected = self.dropout((enhanced + from_own + from_seen).relu())
        return Sequences(projected, own.lengths)


NETWORKS: Mapping[str, type[PairNetwork]] = {
    "bilstm": BiLSTMNetwork,
    "bilstm-attention": AttentionNetwork,
    "esim": ESIMNetwork,
}


def pool(texts: Sequences) -> Tensor:
    """[mean; max] over tokens, (texts, tokens, d) -> (texts, 2d)."""
    return torch.cat([mean_pool(texts), max_pool(texts)], dim=-1)


def match(left: Tensor, right: Tensor, absolute: bool = False) -> Tensor:
    """[l; r; l*r; l-r] along the last axis (Mou et al. 2016), or |l-r|, (..., d) -> (..., 4d)."""
    difference = left - right
    if absolute:
        difference = difference.abs()
    return torch.cat([left, right, left * right, difference], dim=-1)


def linear(width: int, out: int) -> nn.Linear:
    """A linear layer that starts uniform (Glorot) with a bias of 0."""
    layer = nn.Linear(width, out)
    draw_first(layer.weight, nn.init.xavier_uniform_)
    nn.init.zeros_(layer.bias)
    return layer


def make_network(name: str, config: HeadConfig, encoder: Encoder) -> PairNetwork:
    """A fresh network for an encoder."""
    return NETWORKS[name](config, encoder.layers, encoder.dim // encoder.layers)


def restore_network(checkpoint: Checkpoint, encoder: Encoder, where: str) -> PairNetwork:
    """The network of a checkpoint, ready to score."""
    config = read_declared(HeadConfig, checkpoint, where)
    tensors = {name: torch.from_numpy(array) for name, array in checkpoint.arrays.items()}
    return load_into(lambda: make_network(checkpoint.name, config, encoder), tensors, where)
