"""A bidirectional LSTM over padded sequences.

Padding never affects results. On a CPU it uses our own autograd function, which trains twice as
fast as torch's LSTM. `scoring` runs a trained LSTM in batch-invariant steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

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
        with torch.autocast(texts.values.device.type, enabled=False):
            if texts.values.device.type == "cpu":
                states = packed._replace(data=self._on_cpu(packed))
            else:  # TF32 would make scores depend on the batch
                with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
                    states, _ = self.lstm(packed)
        padded, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True, total_length=width)
        return PaddedSequences(padded, texts.lengths)

    def _on_cpu(self, packed: nn.utils.rnn.PackedSequence) -> Tensor:
        """Run both directions over all packed tokens, (total, 2 hidden)."""
        sizes = tuple(packed.batch_sizes.tolist())
        sides = []
        for suffix in ("", "_reverse"):
            w_in, w_hidden, b_in, b_hidden = (
                getattr(self.lstm, f"{name}_l0{suffix}")
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            arguments = packed.data, w_in, w_hidden, b_in + b_hidden, sizes, bool(suffix)
            sides.append(DirectionalLSTM.apply(*arguments))  # type: ignore[no-untyped-call]
        return torch.cat(sides, dim=1)


class DirectionalLSTM(torch.autograd.Function):
    """One direction of an LSTM on a CPU: packed tokens (total, d) -> states (total, h).

    Input weights are (4h, d), recurrent weights (4h, h). Packed tokens are ordered by step; `sizes`
    is the number of texts at each step, longest texts first. `reverse` starts at the end of each
    text.

        i, f, o = sigmoid(...), g = tanh(...)     c_t = f c_{t-1} + i g     h_t = o tanh(c_t)

    The products of the inputs and the gradients of both weight matrices are computed for all tokens
    at once, unlike in torch's CPU code. tanh(x) is computed as 2 sigmoid(2x) - 1 at a third of the
    cost; with the weights of g doubled, one call computes all gates. On a GPU torch's LSTM is
    faster.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        w_in: Tensor,
        w_hidden: Tensor,
        bias: Tensor,
        sizes: tuple[int, ...],
        reverse: bool,
    ) -> Tensor:
        size = w_hidden.shape[1]
        gates = torch.addmm(bias, x, w_in.T.contiguous())  # (total, 4h): i, f, g, o
        recurrent = w_hidden.T.contiguous()  # (h, 4h)
        for part in (gates, recurrent):
            part[:, 2 * size : 3 * size] *= 2
        states, cells = x.new_empty(len(x), size), x.new_empty(len(x), size)
        h, c = x.new_zeros(sizes[0], size), x.new_zeros(sizes[0], size)
        for start, count in _steps(sizes, reverse):
            step = slice(start, start + count)
            gate = gates[step].addmm_(h[:count], recurrent).sigmoid_()
            i, f, g, o = gate.chunk(4, dim=1)
            g.mul_(2).sub_(1)
            cell = torch.addcmul(f * c[:count], i, g, out=cells[step])
            c[:count] = cell
            torch.mul(o, fast_tanh(cell), out=states[step])
            h[:count] = states[step]
        ctx.save_for_backward(x, w_in, w_hidden, gates, states, cells)
        ctx.sizes, ctx.reverse = sizes, reverse
        return states

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        x, w_in, w_hidden, gates, states, cells = ctx.saved_tensors
        size, steps = w_hidden.shape[1], _steps(ctx.sizes, ctx.reverse)
        upstream = gradients[0]
        at_gates = torch.empty_like(gates)
        before, previous = (_earlier(values, steps, ctx.sizes[0]) for values in (states, cells))
        dh, dc = x.new_zeros(ctx.sizes[0], size), x.new_zeros(ctx.sizes[0], size)
        for start, count in reversed(steps):
            step = slice(start, start + count)
            i, f, g, o = gates[step].chunk(4, dim=1)
            di, df, dg, do = at_gates[step].chunk(4, dim=1)
            t = fast_tanh(cells[step])
            out = dh[:count] + upstream[step]
            cell = dc[:count] + out * o * (1 - t * t)
            torch.mul(out * t, o * (1 - o), out=do)
            torch.mul(cell * g, i * (1 - i), out=di)
            torch.mul(cell * i, 1 - g * g, out=dg)
            torch.mul(cell * previous[step], f * (1 - f), out=df)
            dc[:count] = cell * f
            torch.mm(at_gates[step], w_hidden, out=dh[:count])
        return (
            at_gates @ w_in if ctx.needs_input_grad[0] else None,
            at_gates.T @ x,
            at_gates.T @ before,
            at_gates.sum(dim=0),
            None,
            None,
        )


def _steps(sizes: tuple[int, ...], reverse: bool) -> list[tuple[int, int]]:
    """Return the start and the number of texts of each step, in execution order."""
    starts = [0, *accumulate(sizes)][:-1]
    steps = list(zip(starts, sizes, strict=True))
    return steps[::-1] if reverse else steps


def _earlier(values: Tensor, steps: Sequence[tuple[int, int]], texts: int) -> Tensor:
    """Return the states or cells before each step, 0 at the beginning of a text."""
    earlier, last = torch.zeros_like(values), values.new_zeros(texts, values.shape[1])
    for start, count in steps:
        earlier[start : start + count] = last[:count]
        last[:count] = values[start : start + count]
    return earlier


def fast_tanh(x: Tensor) -> Tensor:
    """Compute tanh through sigmoid, at a third of the cost."""
    return (2 * x).sigmoid_().mul_(2).sub_(1)
