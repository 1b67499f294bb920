"""A bidirectional LSTM over padded sequences; padding never affects results."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import handle_torch_function, has_torch_function


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
