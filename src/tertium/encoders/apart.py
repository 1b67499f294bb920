"""Texts that share a forward pass on a CPU without changing each other's last bits.

A matrix product over several texts adds up in an order that depends on how many rows it has, where
a row stands among them and how many threads share the work. So on a CPU

- texts of a pass have the same number of pieces: nothing is padded;
- linear layers multiply text after text (`take_apart`): a product's shape is that of one text, and
  the weights stay in the processor's cache from text to text;
- each pass runs on one thread; several threads run several passes (`each_on_one_thread`).

A network of our own may go further (`in_blocks`): all its products have one shape, a fixed number
of rows filled with pieces of texts as they come. The shape being the same for one text and for a
thousand, only a row's place could matter, which is tried when the network is loaded.

What is left (attention, which multiplies head after head of one text, norms, sums over pieces and
functions of single numbers) has no reason to mix texts. That is not taken on trust: a network tries
it when it is loaded, and one whose texts do change each other reads them one by one
(`network.Network.alone`). On a GPU, where passes need thousands of rows to pay, batches are padded
and shared as ever: equal texts have equal vectors there, and neighbours may change the last bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch
from torch import Tensor, nn

from tertium.encoders.precision import HalfLinear
from tertium.runtime import current_runtime

BLOCK_ROWS = 128  # pieces of a product: enough for a processor's matrix units, few enough for cache
T = TypeVar("T")
R = TypeVar("R")


def take_apart(model: nn.Module) -> None:
    """Let every linear layer of a model multiply text after text, in place."""
    for module in model.modules():
        if isinstance(module, nn.Linear | HalfLinear):
            module.forward = text_by_text(module.forward)  # type: ignore[method-assign, assignment]


def text_by_text(layer: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A layer that is given the texts of a batch, (texts, ..., d), one after the other.

    A copy of a text begins where memory is aligned, wherever it lay in the batch.
    """

    def forward(x: Tensor) -> Tensor:
        return torch.cat([layer(x[i : i + 1].clone()) for i in range(len(x))])

    return forward


def fill_blocks(pieces: Tensor) -> Tensor:
    """Vectors of pieces, (pieces, d), with zeros behind them up to a whole number of blocks."""
    return nn.functional.pad(pieces, (0, 0, 0, -len(pieces) % BLOCK_ROWS))


def in_blocks(work: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    """What `work` makes of each row, (whole blocks, d); on a CPU block after block."""
    if inputs[0].device.type != "cpu":
        return work(*inputs)
    parts = zip(*(torch.split(one, BLOCK_ROWS) for one in inputs), strict=True)
    return torch.cat([work(*part) for part in parts])


def each_on_one_thread(work: Callable[[T], R], jobs: Sequence[T]) -> Iterator[R]:
    """The results of jobs, in their order; as many at a time as the runtime has threads.

    Each job computes on one thread, whatever the number of threads.
    """
    workers = max(1, min(current_runtime().threads or torch.get_num_threads(), len(jobs)))
    with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        yield from pool.map(work, jobs)
