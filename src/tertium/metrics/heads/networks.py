"""The three networks of Mathur, Baldwin and Cohn (2019) over frozen token vectors.

    BiLSTM              each text through a BiLSTM, pooled; the pooled vectors are matched
    BiLSTM + attention  each text re-expressed by the states of the other, pooled, matched
    ESIM                the same attention, then a second BiLSTM over own and attended states

All start with a learned mix of the encoder's layers, end in a feed-forward regressor, and match
two vectors by [l; r; l*r; l-r]. The published difference is signed, which needs many examples to
learn a distance; with `absolute` it is |l-r|. `encode` reads a text once, however many comparisons
it is part of; `represent` compares two texts; `score` regresses on one comparison (reference or
source) or two (both). d is the encoder's width, h the hidden size, 2h the output of a BiLSTM.

Texts of different length share one padded tensor (`PaddedSequences`); pooling and attention
ignore padding. `HeadScorer` runs a trained network.

Score with a trained head: encode each text once, then compare pairs.

Layers are mixed on flat vectors. Texts and pairs run in batches of similar length, on a CPU with
one thread per batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import handle_torch_function, has_torch_function

from tertium.core.arrays import IntArray
from tertium.encoders import Encoder
from tertium.encoders.batching import map_on_threads, plan_batches
from tertium.encoders.cached_encoding import Chunk
from tertium.encoders.encoder import expand_ranges
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
    to_right, to_left = attention_weights(left, right)
    from_right = PaddedSequences(to_right @ right.values, left.lengths)
    return from_right, PaddedSequences(to_left @ left.values, right.lengths)


def attention_weights(left: PaddedSequences, right: PaddedSequences) -> tuple[Tensor, Tensor]:
    """Return attention from left to right, (pairs, left tokens, right tokens), and vice versa."""
    dots = left.values @ right.values.transpose(1, 2)  # (pairs, left tokens, right tokens)
    to_right = masked_softmax(dots, right.mask)
    return to_right, masked_softmax(dots.transpose(1, 2), left.mask)


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

    def __init__(self, config: HeadConfig, layers: int, dim: int) -> None:
        super().__init__()
        self.layers, self.hidden = layers, config.hidden
        self.absolute = config.difference == "absolute"
        self.mix = LayerMix(layers)
        dropout, input_dropout = config.dropout, config.input_dropout
        self.input_dropout = SequenceDropout(dropout if input_dropout is None else input_dropout)
        self.encoder = BidirectionalLSTM(dim, config.hidden)
        self.regressor = Regressor(self.width * config.sides, config.hidden, dropout)
        self.compose: BidirectionalLSTM | None = None  # second LSTM over interacting texts

    @property
    def width(self) -> int:
        """Width of the representation of a comparison: four matchings of two poolings."""
        return 16 * self.hidden

    @property
    def encoded_width(self) -> int:
        return 2 * self.hidden

    @abstractmethod
    def interact(
        self, hypothesis: PaddedSequences, other: PaddedSequences
    ) -> tuple[PaddedSequences, PaddedSequences]:
        """Let two encoded texts interact."""

    def summarize(self, *sides: PaddedSequences) -> Tensor:
        """Represent two interacting texts for the regressor, (pairs, width)."""
        left, right = (pool(side) for side in sides)
        return match(left, right, self.absolute)

    def represent(self, hypothesis: PaddedSequences, other: PaddedSequences) -> Tensor:
        """Represent a comparison of encoded texts for the regressor, (pairs, width)."""
        sides = self.interact(hypothesis, other)
        return self.summarize(*(map(self.compose, sides) if self.compose is not None else sides))

    def encode(self, texts: PaddedSequences) -> PaddedSequences:
        """Encode frozen states (texts, tokens, layers, d) to (texts, tokens, 2h)."""
        return self.encode_mixed(PaddedSequences(self.mix(texts.values), texts.lengths))

    def encode_mixed(self, texts: PaddedSequences) -> PaddedSequences:
        """Encode states whose layers are already mixed, (texts, tokens, d)."""
        states: PaddedSequences = self.encoder(
            texts._replace(values=self.input_dropout(texts.values))
        )
        return states

    def score(self, hypothesis: PaddedSequences, compared: Sequence[PaddedSequences]) -> Tensor:
        """Score encoded hypotheses against each of their sides, (pairs,)."""
        parts = [self.represent(hypothesis, other) for other in compared]
        scores: Tensor = self.regressor(torch.cat(parts, dim=-1))
        return scores


class BiLSTMNetwork(PairNetwork):
    """m = [t; r; t*r; t-r] of the pooled states of both texts (equations 3 to 6)."""

    def interact(
        self, hypothesis: PaddedSequences, other: PaddedSequences
    ) -> tuple[PaddedSequences, PaddedSequences]:
        return hypothesis, other


class AttentionNetwork(PairNetwork):
    """The same of the states that each text attends to in the other (equations 7 to 9)."""

    def interact(
        self, hypothesis: PaddedSequences, other: PaddedSequences
    ) -> tuple[PaddedSequences, PaddedSequences]:
        return cross_attention(hypothesis, other)


class ESIMNetwork(PairNetwork):
    """Enhanced sequential inference (equations 10 to 13; Chen et al. 2017).

    p = [r_avg; r_max; t_avg; t_max] of a second BiLSTM over ReLU(F [h; h~; h*h~; h-h~] + b).

    With F in four blocks, F [h; h~; h*h~; h-h~] is (F1 + F4) h + (F2 - F4) h~ + F3 (h*h~). `encode`
    computes the first two products once per text, the second before attention, with which it
    commutes. Only the third is computed per pair, and F4 |h-h~| if differences are absolute.
    """

    def __init__(self, config: HeadConfig, layers: int, dim: int) -> None:
        super().__init__(config, layers, dim)
        self.dropout = SequenceDropout(config.dropout)
        self.project = linear(8 * config.hidden, config.hidden)
        self.compose = BidirectionalLSTM(config.hidden, config.hidden)

    @property
    def width(self) -> int:
        return 8 * self.hidden

    @property
    def encoded_width(self) -> int:
        return 4 * self.hidden

    def encode_mixed(self, texts: PaddedSequences) -> PaddedSequences:
        """Encode tokens to [h; (F2 - F4) h; (F1 + F4) h], (texts, tokens, 4h); absolute: no F4."""
        states = super().encode_mixed(texts)
        projected = states.values @ self.projection_weights().T
        return states._replace(values=torch.cat([states.values, projected], dim=-1))

    def projection_weights(self) -> Tensor:
        """(F2 - F4) stacked on (F1 + F4), (2h, 2h); absolute: no F4."""
        own, attended, _, difference = self.project.weight.chunk(4, dim=1)
        signed = 0 if self.absolute else difference
        return torch.cat([attended - signed, own + signed])

    def summarize(self, *sides: PaddedSequences) -> Tensor:
        return torch.cat([pool(side) for side in sides], dim=-1)

    def interact(
        self, hypothesis: PaddedSequences, other: PaddedSequences
    ) -> tuple[PaddedSequences, PaddedSequences]:
        size = 2 * self.hidden
        plain = [side._replace(values=side.values[..., :size]) for side in (hypothesis, other)]
        to_other, to_hypothesis = attention_weights(*plain)
        shared = 3 * self.hidden  # what each text passes to the other: h and (F2 - F4) h
        return (
            self._join(other, to_hypothesis @ hypothesis.values[..., :shared]),
            self._join(hypothesis, to_other @ other.values[..., :shared]),
        )

    def _join(self, own: PaddedSequences, attended: Tensor) -> PaddedSequences:
        """Combine a text with what it attends to: the input of the second BiLSTM."""
        half = self.hidden
        h, from_own = own.values[..., : 2 * half], own.values[..., 3 * half :]
        h_attended, from_attended = attended[..., : 2 * half], attended[..., 2 * half :]
        _, _, of_product, of_difference = self.project.weight.chunk(4, dim=1)
        enhanced = nn.functional.linear(h * h_attended, of_product, self.project.bias)
        if self.absolute:
            enhanced = enhanced + nn.functional.linear((h - h_attended).abs(), of_difference)
        projected = self.dropout((enhanced + from_own + from_attended).relu())
        return PaddedSequences(projected, own.lengths)


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
TOKEN_BUDGET, BATCH_OVERHEAD = 4096, 256


class HeadScorer:
    """A network on its device, ready to score; its weights must not change afterwards."""

    def __init__(self, network: PairNetwork) -> None:
        self.network, self.device = network, network.mix.gamma.device

    def scores(self, representations: Tensor) -> Tensor:
        """Apply the regressor to comparisons, (m, width) -> (m,)."""
        result: Tensor = self.network.regressor(representations)
        return result

    def representations(self, chunk: Chunk) -> Tensor:
        """Represent each comparison of a chunk for the regressor, (m, width)."""
        states, texts = self.encode_texts(chunk), chunk.embeddings
        longest = np.maximum(texts.lengths[chunk.left], texts.lengths[chunk.right])
        result = torch.zeros(len(chunk), self.network.width, device=self.device)

        def run(rows: IntArray) -> None:
            indices = torch.from_numpy(rows).to(self.device)
            left, right = (
                gather(states, texts.offsets, side[rows]) for side in (chunk.left, chunk.right)
            )
            result[indices] = self.network.represent(left, right)

        self._process(run, longest)
        return result

    def encode_texts(self, chunk: Chunk) -> Tensor:
        """Encode all texts of a chunk, flat, (total tokens, width)."""
        texts, network = chunk.embeddings, self.network
        vectors = torch.from_numpy(texts.vectors).to(self.device)
        mixed = network.mix(split_layers(vectors, network.layers))  # (total tokens, d)
        states = torch.zeros(len(mixed), network.encoded_width, device=self.device)

        def run(rows: IntArray) -> None:
            read = network.encode_mixed(gather(mixed, texts.offsets, rows))
            places = expand_ranges(texts.offsets[rows], texts.offsets[rows + 1])
            states[torch.from_numpy(places).to(self.device)] = read.values[read.mask]

        self._process(run, texts.lengths)
        return states

    def _process(self, run: Callable[[IntArray], None], lengths: IntArray) -> None:
        """Run batches of items of these lengths, on a CPU several at once."""
        batches = plan_batches(lengths, budget=TOKEN_BUDGET, overhead=BATCH_OVERHEAD)

        def work(rows: IntArray) -> None:
            with torch.inference_mode():
                run(rows)

        for _ in (map_on_threads if self.device.type == "cpu" else map)(work, batches):
            pass


def gather(flat: Tensor, offsets: IntArray, rows: IntArray) -> PaddedSequences:
    """Select texts of a flat tensor (total tokens, d) as padded sequences."""
    lengths = offsets[rows + 1] - offsets[rows]
    width = max(1, int(lengths.max(initial=0)))
    places = np.minimum(offsets[rows][:, None] + np.arange(width), max(0, len(flat) - 1))
    if not len(flat):
        values = flat.new_zeros(len(rows), width, flat.shape[1])
    else:
        values = flat[torch.from_numpy(places).to(flat.device)]
    return PaddedSequences(values, torch.from_numpy(lengths))
