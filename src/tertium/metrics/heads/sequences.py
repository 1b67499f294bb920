"""Sequences of different length in one tensor: what is padding is never looked at.

Everything that reduces or mixes tokens (pooling, attention, recurrence) goes through here, so that
a text's result does not depend on the texts it shares a batch with.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from tertium.metrics.heads.recurrence import lstm_direction


class Sequences(NamedTuple):
    """Texts as rows of tokens, padded to the longest.

    `values` (texts, tokens, ...) holds anything after a text's end; `lengths` (texts,) lies on the
    CPU, where recurrent networks want it. A text may be empty.
    """

    values: Tensor
    lengths: Tensor

    @property
    def mask(self) -> Tensor:
        """Where there is a token, (texts, tokens)."""
        places = torch.arange(self.values.shape[1], device=self.values.device)
        return places < self.lengths.to(self.values.device)[:, None]

    def take(self, rows: Tensor) -> Sequences:
        """Some of the texts (indices on the CPU, which may repeat), no wider than they need."""
        lengths = self.lengths[rows]
        width = max(1, int(lengths.max())) if len(lengths) else 1
        return Sequences(self.values[rows.to(self.values.device), :width], lengths)


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


class Recurrent(nn.Module):
    """A bidirectional LSTM over padded sequences: (texts, tokens, d) -> (texts, tokens, 2 hidden).

    Started as its users in the field start it: input weights uniform (Glorot), recurrent weights
    orthogonal, biases 0 but for the forget gate's, which is 1.
    """

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, hidden, batch_first=True, bidirectional=True)
        for name, weights in self.lstm.named_parameters():
            if name.startswith("weight_ih"):
                nn.init.xavier_uniform_(weights)
            elif name.startswith("weight_hh"):
                nn.init.orthogonal_(weights)
            else:
                nn.init.zeros_(weights)
            if name.startswith("bias_hh"):
                weights.data[hidden : 2 * hidden] = 1.0

    def forward(self, texts: Sequences) -> Sequences:
        width = texts.values.shape[1]
        packed = nn.utils.rnn.pack_padded_sequence(
            texts.values.float(), texts.lengths.clamp(min=1), batch_first=True, enforce_sorted=False
        )
        with torch.autocast(texts.values.device.type, enabled=False):
            # One text alone is only scored, never learned from: torch's own code is faster there.
            if texts.values.device.type == "cpu" and len(texts.values) > 1:
                states = packed._replace(data=self._on_cpu(packed))
            else:
                states, _ = self.lstm(packed)
        padded, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True, total_length=width)
        return Sequences(padded, texts.lengths)

    def _on_cpu(self, packed: nn.utils.rnn.PackedSequence) -> Tensor:
        """Both directions of all packed tokens, (total, 2 hidden)."""
        sizes = tuple(packed.batch_sizes.tolist())
        sides = []
        for suffix in ("", "_reverse"):
            w_in, w_hidden, b_in, b_hidden = (
                getattr(self.lstm, f"{name}_l0{suffix}")
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            parameters = (w_in, w_hidden, b_in + b_hidden)
            sides.append(lstm_direction(packed.data, parameters, sizes, bool(suffix)))
        return torch.cat(sides, dim=1)


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
