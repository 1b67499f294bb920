"""Texts that share a forward pass on a CPU without changing each other's last bits.

A matrix product over several texts adds up in an order that depends on how many rows it has, where
a row stands among them and how many threads share the work. So on a CPU

- texts of a pass have the same number of pieces: nothing is padded;
- linear layers multiply in products of a few fixed numbers of rows (`in_sizes`), in which a row's
  values do not depend on its place: tried at every place for every kind of layer when a model is
  loaded. One that has no such sizes multiplies text after text (`text_by_text`), a product's shape
  that of one text;
- each pass runs on one thread; several threads run several passes (`each_on_one_thread`).

A network of our own may go further (`in_blocks`): its products are filled with pieces of texts as
they come, in blocks of these numbers of rows, or, where places matter in all of them, of one
number alone. Such a product has the same shape for one text and for a thousand, so that only a
row's place could matter, which is tried when the network is loaded.

What is left (attention, which multiplies head after head of one text, norms, sums over pieces and
functions of single numbers) has no reason to mix texts. That is not taken on trust: a network tries
it before its first pass, and one whose texts do change each other reads them one by one
(`network.Network.alone`). On a GPU, where passes need thousands of rows to pay, batches are padded
and shared as ever: equal texts have equal vectors there, and neighbors may change the last bits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tertium.encoders.products import HalfLinear
from tertium.runtime import current_runtime

BLOCK_ROWS = 128  # pieces of a product: enough for a processor's matrix units, few enough for cache
Sizes = tuple[int, ...]
SIZES: Sizes = (32, 64, 128, 256)  # rows of a product: what is left of 256 goes into smaller ones
TRIED_NUMBERS = 2048  # sums that are added up at several places before places are trusted
_TRIED: dict[Hashable, Sizes] = {}  # the sizes that agree, by kinds of layers
T = TypeVar("T")
R = TypeVar("R")
Layer = Callable[[Tensor], Tensor]


def take_apart(model: nn.Module) -> None:
    """Let every linear layer of a model multiply without mixing texts, in place."""
    for module in model.modules():
        if isinstance(module, nn.Linear | HalfLinear):
            sizes = agreeing_sizes(module.forward, module.in_features, kind_of(module))
            changed = in_sizes(module.forward, sizes) if sizes else text_by_text(module.forward)
            module.forward = changed  # type: ignore[method-assign, assignment]


def agreeing_sizes(layer: Layer, width: int, kind: Hashable = None) -> Sizes:
    """The sizes at whose every place a row has the same product, to the last bit; none may be.

    The order of a sum depends on shape and place, not on values; so a row at all places tells, or
    some where a layer is small: two orders often round alike. In half precision they nearly always
    do (AMX adds up 32 rows of 1,536 numbers otherwise than 64, which shows in one of 6,000); so
    many rows are multiplied in every size, too. The first layer of a `kind` tells for all of them.
    """
    if kind is None:
        return _try_places(layer, width)
    if kind not in _TRIED:
        _TRIED[kind] = _try_places(layer, width)
    return _TRIED[kind]


def shared_sizes(layers: Iterable[nn.Linear | HalfLinear]) -> Sizes:
    """The sizes that are such for each of some layers."""
    tried = [agreeing_sizes(one, one.in_features, kind_of(one)) for one in layers]
    return tuple(size for size in SIZES if all(size in sizes for sizes in tried))


def kind_of(layer: nn.Linear | HalfLinear) -> Hashable:
    """What layers have in common whose sums are added up in one order."""
    dtype = layer.dtype if isinstance(layer, HalfLinear) else layer.weight.dtype
    return type(layer), layer.in_features, layer.out_features, dtype, layer.bias is None


def _try_places(layer: Layer, width: int) -> Sizes:
    """Which sizes agree with the largest, if that agrees with itself."""
    sizes = SIZES
    generator = torch.Generator().manual_seed(1)
    with torch.inference_mode(), on_one_thread():
        outputs = layer(torch.zeros(1, width)).shape[-1]
        for row in torch.randn(rows_to_try(outputs), 1, width, generator=generator):
            found = {size: layer(row.expand(size, width).contiguous()) for size in sizes}
            sizes = tuple(s for s in sizes if bool((found[s] == found[sizes[-1]][:1]).all()))
            if SIZES[-1] not in sizes:
                return ()
        rows = torch.randn(SIZES[-1], width, generator=generator)
        cut = {size: torch.cat([*map(layer, torch.split(rows, size))]) for size in sizes}
        return tuple(size for size in sizes if torch.equal(cut[size], cut[SIZES[-1]]))


def rows_to_try(outputs: int) -> int:
    """How many rows tell whether places matter, by the numbers that are made of each.

    >>> rows_to_try(1536), rows_to_try(4)
    (2, 512)
    """
    return -(-TRIED_NUMBERS // outputs)


@contextlib.contextmanager
def on_one_thread() -> Iterator[None]:
    """What is computed inside is computed by this thread alone."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def in_sizes(layer: Layer, sizes: Sizes) -> Layer:
    """A layer that is given the rows of a batch, (texts, ..., d), in products of these sizes."""

    def forward(x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        return in_filled_blocks(layer, rows, sizes=sizes).view(*x.shape[:-1], -1)

    return forward


def text_by_text(layer: Layer) -> Layer:
    """A layer that is given the texts of a batch, (texts, ..., d), one after the other.

    A copy of a text begins where memory is aligned, wherever it lay in the batch.
    """

    def forward(x: Tensor) -> Tensor:
        return torch.cat([layer(x[i : i + 1].clone()) for i in range(len(x))])

    return forward


def fill_blocks(pieces: Tensor, sizes: Sizes) -> Tensor:
    """Vectors of pieces, (pieces, d), with zeros behind them up to a whole number of blocks."""
    return F.pad(pieces, (0, 0, 0, -len(pieces) % sizes[0]))


def in_blocks(
    work: Callable[..., Tensor],
    *inputs: Tensor,
    sizes: Sizes,
    into: Tensor | None = None,
) -> Tensor:
    """What `work` makes of each row, (whole blocks, d); on a CPU block after block.

    It is laid `into` memory that is there already, where it is given.
    """
    cuts = cut_rows(len(inputs[0]), sizes) if inputs[0].device.type == "cpu" else [len(inputs[0])]
    parts = zip(*(torch.split(one, cuts) for one in inputs), strict=True)
    if into is None:
        return work(*inputs) if len(cuts) == 1 else torch.cat([work(*part) for part in parts])
    for place, part in zip(torch.split(into, cuts), parts, strict=True):
        place.copy_(work(*part))
    return into


def in_filled_blocks(work: Callable[..., Tensor], *inputs: Tensor, sizes: Sizes) -> Tensor:
    """The same of any number of rows; zeros that fill the last block are dropped again."""
    filled = (fill_blocks(one, sizes) for one in inputs)
    return in_blocks(work, *filled, sizes=sizes)[: len(inputs[0])]


def cut_rows(rows: int, sizes: Sizes) -> list[int]:
    """Rows, a multiple of the smallest size, in the largest blocks that they fill.

    >>> cut_rows(608, (32, 64, 128, 256))
    [256, 256, 64, 32]
    """
    cuts = []
    for size in reversed(sizes):
        cuts += [size] * (rows // size)
        rows %= size
    return cuts


def each_on_one_thread(work: Callable[[T], R], jobs: Sequence[T]) -> Iterator[R]:
    """The results of jobs, in their order; as many at a time as the runtime has threads.

    Each job computes on one thread, whatever the number of threads.
    """
    workers = max(1, min(current_runtime().threads or torch.get_num_threads(), len(jobs)))
    with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        yield from pool.map(work, jobs)
