"""One direction of an LSTM on a CPU, forward and backward, in products as large as can be.

    i, f, o = sigmoid(...), g = tanh(...)     c_t = f c_{t-1} + i g     h_t = o tanh(c_t)

Inputs are multiplied for all tokens at once, and so are the gradients of both weight matrices,
which torch's own CPU code adds up step by step. tanh(x) is 2 sigmoid(2x) - 1, at a third of its
cost; with the weights of g doubled beforehand one call serves all gates. On a GPU its own LSTM is
better.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import torch
from torch import Tensor


class DirectionalLSTM(torch.autograd.Function):
    """Packed tokens (total, d) to states (total, h); see `lstm_direction`."""

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
            torch.mul(o, _tanh(cell), out=states[step])
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
        before = torch.zeros_like(states)  # the state each step started from
        h = x.new_zeros(ctx.sizes[0], size)
        dh, dc = x.new_zeros(ctx.sizes[0], size), x.new_zeros(ctx.sizes[0], size)
        for start, count in steps:
            before[start : start + count] = h[:count]
            h[:count] = states[start : start + count]
        previous = _previous_cells(cells, ctx.sizes, ctx.reverse)
        for start, count in reversed(steps):
            step = slice(start, start + count)
            i, f, g, o = gates[step].chunk(4, dim=1)
            di, df, dg, do = at_gates[step].chunk(4, dim=1)
            t = _tanh(cells[step])
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


def lstm_direction(
    x: Tensor, parameters: tuple[Tensor, Tensor, Tensor], sizes: tuple[int, ...], reverse: bool
) -> Tensor:
    """Run packed tokens (total, d) through input weights (4h, d), recurrent weights (4h, h), bias.

    Tokens lie step after step, at each step the texts that are long enough, longest first: `sizes`
    says how many. `reverse` begins at each text's end.
    """
    states: Tensor = DirectionalLSTM.apply(x, *parameters, sizes, reverse)  # type: ignore[no-untyped-call]
    return states


def _steps(sizes: tuple[int, ...], reverse: bool) -> list[tuple[int, int]]:
    """Where each step begins and how many texts it has, in the order they are run."""
    starts = [0, *accumulate(sizes)][:-1]
    steps = list(zip(starts, sizes, strict=True))
    return steps[::-1] if reverse else steps


def _previous_cells(cells: Tensor, sizes: tuple[int, ...], reverse: bool) -> Tensor:
    """The cell each step started from, 0 where a text begins."""
    previous, c = torch.zeros_like(cells), cells.new_zeros(sizes[0], cells.shape[1])
    for start, count in _steps(sizes, reverse):
        previous[start : start + count] = c[:count]
        c[:count] = cells[start : start + count]
    return previous


def _tanh(x: Tensor) -> Tensor:
    return (2 * x).sigmoid_().mul_(2).sub_(1)
