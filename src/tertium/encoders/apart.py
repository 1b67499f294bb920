"""Texts that share a forward pass on a CPU without changing each other's last bits.

A matrix product over several texts adds up in an order that depends on how many rows it has, where
a row stands among them and how many threads share the work. So on a CPU

- texts of a pass have the same number of pieces: nothing is padded;
- linear layers multiply in products of a few fixed numbers of rows (`in_sizes`), in which a row's
  values do not depend on its place: tried at every place for every layer when a model is loaded. A
  layer that fails multiplies text after text (`text_by_text`), a product's shape that of one text;
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
SIZES = (32, 64, 128, 256)  # rows of a product: what is left of 256 goes into a smaller one
T = TypeVar("T")
R = TypeVar("R")
Layer = Callable[[Tensor], Tensor]


def take_apart(model: nn.Module) -> None:
    """Let every linear layer of a model multiply without mixing texts, in place."""
    tried: dict[tuple[int, int], bool] = {}
    for module in model.modules():
        if isinstance(module, nn.Linear | HalfLinear):
            shape = module.in_features, module.out_features
            if shape not in tried:
                tried[shape] = keeps_rows_apart(module.forward, module.in_features)
            change = in_sizes if tried[shape] else text_by_text
            module.forward = change(module.forward)  # type: ignore[method-assign, assignment]


def keeps_rows_apart(layer: Layer, width: int) -> bool:
    """Whether a row has the same product, to the last bit, at every place of every size.

    The order of a sum depends on shape and place, not on values; so one row at all places tells.
    """
    row = torch.randn(1, width, generator=torch.Generator().manual_seed(1))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            found = [layer(row.expand(size, width).contiguous()) for size in SIZES]
    finally:
        torch.set_num_threads(threads)
    return all(bool((products == found[0][:1]).all()) for products in found)


def in_sizes(layer: Layer) -> Layer:
    """A layer that is given the rows of a batch, (texts, ..., d), in products of `SIZES` rows.

    What is left over goes with rows of zeros, which are dropped again.
    """

    def forward(x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        whole = len(rows) - len(rows) % SIZES[-1]
        parts = [layer(block) for block in torch.split(rows[:whole], SIZES[-1]) if len(block)]
        if rest := len(rows) - whole:
            size = next(n for n in SIZES if n >= rest)
            block = nn.functional.pad(rows[whole:], (0, 0, 0, size - rest))
            parts.append(layer(block)[:rest])
        return torch.cat(parts).view(*x.shape[:-1], -1)

    return forward


def text_by_text(layer: Layer) -> Layer:
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
