"""The three networks of Mathur, Baldwin and Cohn (2019) over frozen token vectors.

    BiLSTM              each text through a BiLSTM, pooled; the pooled vectors are matched
    BiLSTM + attention  each text re-expressed by the states of the other, pooled, matched
    ESIM                the same attention, then a second BiLSTM over own and attended states

All start with a learned mix of the encoder's layers, end in a feed-forward regressor, and match two
vectors by [l; r; l*r; l-r]. The published difference is signed, which needs many examples to learn
a distance; with `absolute` it is |l-r|. `encode` reads a text, `represent` compares two texts, and
`score` regresses on one comparison (reference or source) or two (both). d is the encoder's width, h
the hidden size, 2h the output of a BiLSTM.

Texts of different length share one padded tensor (`PaddedSequences`); pooling and attention
ignore padding. Pairs run in batches of similar length, on a CPU with one thread per batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.overrides import handle_torch_function, has_torch_function

from tertium.core.arrays import FloatArray, IntArray
from tertium.encoders import Encoder
from tertium.encoders.batching import map_on_threads, plan_batches
from tertium.encoders.encoder_network import build_network
from tertium.metrics.heads.config import HeadConfig
from tertium.models.checkpoint import Checkpoint, parse_config


def mean_pool(texts: PaddedSequences) -> Tensor:
    """Average over tokens, (texts, tokens, d) -> (texts, d); 0 for an empty text.

    >>> mean_pool(PaddedSequences(torch.tensor([[[1.0], [3.0], [99.0]]]), torch.tensor([2])))
    tensor([[2.]])
    """
    weights = texts.mask.to(texts.values.dtype)[..., None]
    return (texts.values * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


def max_pool(texts: PaddedSequences) -> Tensor:
    """Take the maximum over tokens, (texts, tokens, d) -> (texts, d); 0 for an empty text.

    >>> max_pool(PaddedSequences(torch.tensor([[[1.0], [3.0], [99.0]]]), torch.tensor([2])))
    tensor([[3.]])
    """
    mask = texts.mask
    lowest = torch.finfo(texts.values.dtype).min
    highest = texts.values.masked_fill(~mask[..., None], lowest).amax(dim=1)
    return torch.where(mask.any(dim=1, keepdim=True), highest, torch.zeros_like(highest))


def cross_attention(
    left: PaddedSequences, right: PaddedSequences
) -> tuple[PaddedSequences, PaddedSequences]:
    """Re-express each text as softmax-weighted sums of the tokens of the other.

        a_ij = left_i . right_j      left~_i = sum_j softmax_j(a_ij) right_j,  right~_j likewise

    (Mathur et al. 2019, equations 7 to 9.) The sum is 0 if the other text is empty.
    """
    dots = left.values @ right.values.transpose(1, 2)  # (pairs, left tokens, right tokens)
    to_right = masked_softmax(dots, right.mask)
    to_left = masked_softmax(dots.transpose(1, 2), left.mask)
    from_right = PaddedSequences(to_right @ right.values, left.lengths)
    return from_right, PaddedSequences(to_left @ left.values, right.lengths)


def masked_softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last axis where `mask` (pairs, tokens) is true; 0 if it never is."""
    hidden = ~mask[:, None, :]
    shares = logits.float().masked_fill(hidden, -torch.inf).softmax(dim=-1)
    return shares.masked_fill(hidden, 0.0).to(logits.dtype)


class SequenceDropout(nn.Module):
    """Dropout of the same dimensions for every token of a text (Gal and Ghahramani 2016)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, values: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return values
        ones = values.new_ones(values.shape[0], 1, values.shape[2])
        return values * nn.functional.dropout(ones, self.rate)


def split_layers(values: Tensor, layers: int) -> Tensor:
    """Split concatenated layers, (..., layers x d) -> (..., layers, d)."""
    return values.view(*values.shape[:-1], layers, values.shape[-1] // layers)


class LayerMix(nn.Module):
    """A learned weighted average of layers: gamma sum_k softmax(s)_k x_k."""

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
    """y = w' ReLU(W' p + b) + b', (pairs, width) -> (pairs,), scaled by `centre` and `spread`."""

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
    """Base of the networks: scores pairs of texts, given `layers` layers of width `dim`."""

    poolings: ClassVar[int]  # pooled vectors, of width 2h, that represent a comparison

    def __init__(self, config: HeadConfig, layers: int, dim: int) -> None:
        super().__init__()
        self.absolute = config.difference == "absolute"
        self.mix = LayerMix(layers)
        dropout = config.dropout
        input_dropout = config.input_dropout
        self.input_dropout = SequenceDropout(dropout if input_dropout is None else input_dropout)
        self.encoder = BidirectionalLSTM(dim, config.hidden)
        width = 2 * config.hidden * self.poolings * config.sides
        self.regressor = Regressor(width, config.hidden, dropout)

    @abstractmethod
    def represent(self, hypothesis: PaddedSequences, other: PaddedSequences) -> Tensor:
        """Represent a comparison of encoded texts for the regressor, (pairs, width)."""

    def encode(self, texts: PaddedSequences) -> PaddedSequences:
        """Encode frozen states (texts, tokens, layers, d) to (texts, tokens, 2h)."""
        mixed = self.input_dropout(self.mix(texts.values))
        states: PaddedSequences = self.encoder(PaddedSequences(mixed, texts.lengths))
        return states

    def score(self, hypothesis: PaddedSequences, compared: Sequence[PaddedSequences]) -> Tensor:
        """Score encoded hypotheses against each of their sides, (pairs,)."""
        parts = [self.represent(hypothesis, other) for other in compared]
        scores: Tensor = self.regressor(torch.cat(parts, dim=-1))
        return scores


class BiLSTMNetwork(PairNetwork):
    """m = [t; r; t*r; t-r] of the pooled states of both texts (equations 3 to 6)."""

    poolings = 8

    def represent(self, hypothesis: PaddedSequences, other: PaddedSequences) -> Tensor:
        return match(pool(hypothesis), pool(other), self.absolute)


class AttentionNetwork(BiLSTMNetwork):
    """The same of the states that each text attends to in the other (equations 7 to 9)."""

    def represent(self, hypothesis: PaddedSequences, other: PaddedSequences) -> Tensor:
        return super().represent(*cross_attention(hypothesis, other))


class ESIMNetwork(PairNetwork):
    """Enhanced sequential inference (equations 10 to 13; Chen et al. 2017).

    p = [r_avg; r_max; t_avg; t_max] of a second BiLSTM over ReLU(F [h; h~; h*h~; h-h~] + b).
    """

    poolings = 4

    def __init__(self, config: HeadConfig, layers: int, dim: int) -> None:
        super().__init__(config, layers, dim)
        self.dropout = SequenceDropout(config.dropout)
        self.project = linear(8 * config.hidden, config.hidden)
        self.compose = BidirectionalLSTM(config.hidden, config.hidden)

    def represent(self, hypothesis: PaddedSequences, other: PaddedSequences) -> Tensor:
        from_other, from_hypothesis = cross_attention(hypothesis, other)
        pooled = []
        for own, attended in ((other, from_hypothesis), (hypothesis, from_other)):
            enhanced = self.project(match(own.values, attended.values, self.absolute)).relu()
            pooled.append(pool(self.compose(PaddedSequences(self.dropout(enhanced), own.lengths))))
        return torch.cat(pooled, dim=-1)


NETWORKS: Mapping[str, type[PairNetwork]] = {
    "bilstm": BiLSTMNetwork,
    "bilstm-attention": AttentionNetwork,
    "esim": ESIMNetwork,
}


def pool(texts: PaddedSequences) -> Tensor:
    """Concatenate mean and maximum over tokens, (texts, tokens, d) -> (texts, 2d)."""
    return torch.cat([mean_pool(texts), max_pool(texts)], dim=-1)


def match(left: Tensor, right: Tensor, absolute: bool = False) -> Tensor:
    """Return [l; r; l*r; l-r] (Mou et al. 2016), or with |l-r|, (..., d) -> (..., 4d)."""
    difference = left - right
    if absolute:
        difference = difference.abs()
    return torch.cat([left, right, left * right, difference], dim=-1)


def linear(width: int, out: int) -> nn.Linear:
    """Create a linear layer with Glorot-uniform weights and zero bias."""
    layer = nn.Linear(width, out)
    initialize_weights(layer.weight, nn.init.xavier_uniform_)
    nn.init.zeros_(layer.bias)
    return layer


def make_network(name: str, config: HeadConfig, encoder: Encoder) -> PairNetwork:
    """Create a new network for an encoder."""
    return NETWORKS[name](config, encoder.layers, encoder.dim // encoder.layers)


def restore_network(checkpoint: Checkpoint, encoder: Encoder, where: str) -> PairNetwork:
    """Restore the network of a checkpoint for inference."""
    config = parse_config(HeadConfig, checkpoint, where)
    tensors = {name: torch.from_numpy(array) for name, array in checkpoint.arrays.items()}
    return build_network(lambda: make_network(checkpoint.name, config, encoder), tensors, where)


class PaddedSequences(NamedTuple):
    """Texts as rows of tokens, padded to the longest.

    `values` (texts, tokens, ...) has arbitrary values in the padding; `lengths` (texts,) is on the
    CPU, as recurrent networks require. A text may be empty.
    """

    values: Tensor
    lengths: Tensor

    @property
    def mask(self) -> Tensor:
        """Mask of tokens that are not padding, (texts, tokens)."""
        places = torch.arange(self.values.shape[1], device=self.values.device)
        return places < self.lengths.to(self.values.device)[:, None]

    def take(self, rows: Tensor) -> PaddedSequences:
        """Select texts by indices on the CPU, which may repeat; trims the padding."""
        lengths = self.lengths[rows]
        width = max(1, int(lengths.max())) if len(lengths) else 1
        return PaddedSequences(self.values[rows.to(self.values.device), :width], lengths)


def initialize_weights(weights: Tensor, draw: Callable[[Tensor], Tensor]) -> None:
    """Initialize weights, unless a torch function mode skips initialization."""
    if has_torch_function((weights,)):
        handle_torch_function(draw, (weights,), weights)
    else:
        draw(weights)


class BidirectionalLSTM(nn.Module):
    """A bidirectional LSTM over padded sequences: (texts, tokens, d) -> (texts, tokens, 2 hidden).

    Input weights are initialized uniformly (Glorot), recurrent weights orthogonally, and biases
    with 0, except 1 for the forget gate.
    """

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, hidden, batch_first=True, bidirectional=True)
        for name, weights in self.lstm.named_parameters():
            if name.startswith("weight_ih"):
                initialize_weights(weights, nn.init.xavier_uniform_)
            elif name.startswith("weight_hh"):
                initialize_weights(weights, nn.init.orthogonal_)
            else:
                nn.init.zeros_(weights)
            if name.startswith("bias_hh"):
                weights.data[hidden : 2 * hidden] = 1.0

    def forward(self, texts: PaddedSequences) -> PaddedSequences:
        width = texts.values.shape[1]
        packed = nn.utils.rnn.pack_padded_sequence(
            texts.values.float(), texts.lengths.clamp(min=1), batch_first=True, enforce_sorted=False
        )
        device = texts.values.device.type
        with (
            torch.autocast(device, enabled=False),
            torch.backends.cudnn.flags(enabled=True, allow_tf32=False),  # TF32 is not exact enough
        ):
            states, _ = self.lstm(packed)
        padded, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True, total_length=width)
        return PaddedSequences(padded, texts.lengths)


# Tokens per batch, and the overhead of a batch in tokens.
TOKEN_BUDGET = 4096
BATCH_OVERHEAD = 256


class TextStates:
    """States of numbered texts on a device, from an array (total tokens, layers x d)."""

    def __init__(self, flat: NDArray[Any], offsets: IntArray, layers: int, device: str) -> None:
        self.device = device
        self._flat = flat
        self._offsets = offsets
        self._layers = layers
        self.lengths: IntArray = np.diff(offsets)

    def __call__(self, texts: IntArray) -> PaddedSequences:
        lengths = self.lengths[texts]
        width = max(1, int(lengths.max(initial=0)))
        padded = np.zeros((len(texts), width, self._flat.shape[1]), dtype=self._flat.dtype)
        for row, text in enumerate(texts):
            padded[row, : lengths[row]] = self._flat[self._offsets[text] : self._offsets[text + 1]]
        values = torch.from_numpy(padded).to(self.device).float()
        return PaddedSequences(split_layers(values, self._layers), torch.from_numpy(lengths))


def score_pairs(network: PairNetwork, states: TextStates, pairs: IntArray) -> Tensor:
    """Score numbered pairs, (pairs,); each text is encoded once."""
    used, inverse = np.unique(pairs, return_inverse=True)
    rows = torch.from_numpy(inverse.reshape(len(pairs), -1))  # (pairs, 1 + sides)
    texts = network.encode(states(used))
    compared = [texts.take(rows[:, side]) for side in range(1, rows.shape[1])]
    return network.score(texts.take(rows[:, 0]), compared)


def score_in_batches(network: PairNetwork, states: TextStates, pairs: IntArray) -> FloatArray:
    """Score any number of pairs without gradients, (pairs,), on a CPU several batches at once."""
    scores = np.zeros(len(pairs))
    network.eval()

    def run(rows: IntArray) -> None:
        with torch.inference_mode():
            scores[rows] = score_pairs(network, states, pairs[rows]).cpu().numpy()

    longest = states.lengths[pairs].max(axis=1)
    batches = plan_batches(longest, budget=TOKEN_BUDGET, overhead=BATCH_OVERHEAD)
    for _ in (map_on_threads if states.device == "cpu" else map)(run, batches):
        pass
    return scores
