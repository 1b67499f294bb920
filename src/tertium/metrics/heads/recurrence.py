"""A bidirectional LSTM over texts of different length that lie in one tensor.

What is padding is never looked at. On a CPU it is computed by products of our own, which learn in
half of the time of torch's; `scoring` runs a trained one in steps of several texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import handle_torch_function, has_torch_function


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


def draw_first(weights: Tensor, draw: Callable[[Tensor], Tensor]) -> None:
    """First numbers, unless `Uninitialised` wants none: not all of torch's own draws ask it."""
    if has_torch_function((weights,)):
        handle_torch_function(draw, (weights,), weights)
    else:
        draw(weights)


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
                draw_first(weights, nn.init.xavier_uniform_)
            elif name.startswith("weight_hh"):
                draw_first(weights, nn.init.orthogonal_)
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
            if texts.values.device.type == "cpu":
                states = packed._replace(data=self._on_cpu(packed))
            else:  # cuDNN would round factors to 10 bits, and neighbors then move a score
                with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
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
            arguments = packed.data, w_in, w_hidden, b_in + b_hidden, sizes, bool(suffix)
            sides.append(DirectionalLSTM.apply(*arguments))  # type: ignore[no-untyped-call]
        return torch.cat(sides, dim=1)


class DirectionalLSTM(torch.autograd.Function):
    """Packed tokens (total, d) to states (total, h) on a CPU, in products as large as can be.

    Weights of the input are (4h, d), of the recurrence (4h, h). Tokens lie step after step, at each
    step the texts that are long enough, longest first: `sizes` says how many. `reverse` begins at
    each text's end.

        i, f, o = sigmoid(...), g = tanh(...)     c_t = f c_{t-1} + i g     h_t = o tanh(c_t)

    Inputs are multiplied for all tokens at once, and so are the gradients of both weight matrices,
    which torch's own CPU code adds up step by step. tanh(x) is 2 sigmoid(2x) - 1, at a third of its
    cost; with the weights of g doubled beforehand one call serves all gates. On a GPU its own LSTM
    is better.
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
    """Where each step begins and how many texts it has, in the order they are run."""
    starts = [0, *accumulate(sizes)][:-1]
    steps = list(zip(starts, sizes, strict=True))
    return steps[::-1] if reverse else steps


def _earlier(values: Tensor, steps: Sequence[tuple[int, int]], texts: int) -> Tensor:
    """The states or cells each step started from, 0 where a text begins."""
    earlier, last = torch.zeros_like(values), values.new_zeros(texts, values.shape[1])
    for start, count in steps:
        earlier[start : start + count] = last[:count]
        last[:count] = values[start : start + count]
    return earlier


def fast_tanh(x: Tensor) -> Tensor:
    """tanh by way of sigmoid, at a third of its cost."""
    return (2 * x).sigmoid_().mul_(2).sub_(1)
