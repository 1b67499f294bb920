"""Batch invariance: on a CPU, a text has the same vectors, to the last bit, in every batch.

Floating-point sums depend on the order of addition. A matrix product picks that order by its number
of rows, by the position of a row and by the number of threads. To remove all three influences:

- A batch holds texts of equal length, so there is no padding.
- Linear layers multiply a few fixed numbers of rows at a time (`BLOCK_SIZES`). When a model is
  loaded, each kind of layer is tested for the sizes at which the result of a row does not depend
  on its position (`find_invariant_block_sizes`). A layer without such sizes runs text by text.
- Each forward pass uses one thread; several passes run in parallel (`map_single_threaded`).

Our own networks (`bert`, tertium-multi) go further: they concatenate the tokens of all texts and
fill every block (`apply_in_blocks`), so a product has the same shape for one text or a thousand.

The other operations (attention, layer norm, pooling) work on one text or one token at a time. That
is tested as well, before the first forward pass. A network that fails runs one text per batch
(`encoder_network.EncoderNetwork.requires_batch_size_one`).

On a GPU, batches are padded and large, and the other texts of a batch may change the last bits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tertium.encoders.linear_layers import CastLinear
from tertium.execution import current_runtime

BlockSizes = tuple[int, ...]
BLOCK_SIZES: BlockSizes = (32, 64, 128, 256)  # rows of a matrix product
FALLBACK_BLOCK_ROWS = 128  # the only block size of a network whose layers share no invariant sizes
TESTED_OUTPUTS = 2048  # sums to compare at every row position before a block size is trusted
_INVARIANT_SIZES: dict[Hashable, BlockSizes] = {}  # by kind of layer
T = TypeVar("T")
R = TypeVar("R")
Layer = Callable[[Tensor], Tensor]


def make_batch_invariant(model: nn.Module) -> None:
    """Wrap every linear layer of a model, in place, so that its results are batch-invariant."""
    for module in model.modules():
        if isinstance(module, nn.Linear | CastLinear):
            layer = module.forward
            sizes = find_invariant_block_sizes(layer, module.in_features, layer_kind(module))
            wrapped = multiply_in_blocks(layer, sizes) if sizes else multiply_text_by_text(layer)
            module.forward = wrapped  # type: ignore[method-assign, assignment]


def find_invariant_block_sizes(layer: Layer, width: int, kind: Hashable = None) -> BlockSizes:
    """Return the block sizes at which a row has the same result at every position; maybe none.

    The order of addition depends on shape and position, not on values, so random rows are a valid
    test. Different orders often round to the same value, above all in bf16 (with AMX, blocks of 32
    and 64 rows of 1,536 values differ in one of 6,000 results), so many results are compared.
    Layers of the same `kind` are tested once.
    """
    if kind is None:
        return _test_block_sizes(layer, width)
    if kind not in _INVARIANT_SIZES:
        _INVARIANT_SIZES[kind] = _test_block_sizes(layer, width)
    return _INVARIANT_SIZES[kind]


def find_common_block_sizes(layers: Iterable[nn.Linear | CastLinear]) -> BlockSizes:
    """Return the block sizes that are invariant for all of these layers."""
    per_layer = [
        find_invariant_block_sizes(layer, layer.in_features, layer_kind(layer)) for layer in layers
    ]
    return tuple(size for size in BLOCK_SIZES if all(size in sizes for sizes in per_layer))


def layer_kind(layer: nn.Linear | CastLinear) -> Hashable:
    """Return a key that is equal for layers with the same order of addition."""
    dtype = layer.dtype if isinstance(layer, CastLinear) else layer.weight.dtype
    return type(layer), layer.in_features, layer.out_features, dtype, layer.bias is None


def _test_block_sizes(layer: Layer, width: int) -> BlockSizes:
    """Return the sizes that agree with the largest one, or none if that one is not invariant."""
    sizes = BLOCK_SIZES
    generator = torch.Generator().manual_seed(1)
    with torch.inference_mode(), single_threaded():
        outputs = layer(torch.zeros(1, width)).shape[-1]
        for row in torch.randn(count_test_rows(outputs), 1, width, generator=generator):
            results = {size: layer(row.expand(size, width).contiguous()) for size in sizes}
            sizes = tuple(s for s in sizes if bool((results[s] == results[sizes[-1]][:1]).all()))
            if BLOCK_SIZES[-1] not in sizes:
                return ()
        rows = torch.randn(BLOCK_SIZES[-1], width, generator=generator)
        joined = {size: torch.cat([*map(layer, torch.split(rows, size))]) for size in sizes}
        return tuple(size for size in sizes if torch.equal(joined[size], joined[BLOCK_SIZES[-1]]))


def count_test_rows(outputs: int) -> int:
    """Return how many rows to test for a layer with this many outputs.

    >>> count_test_rows(1536), count_test_rows(4)
    (2, 512)
    """
    return -(-TESTED_OUTPUTS // outputs)


@contextlib.contextmanager
def single_threaded() -> Iterator[None]:
    """Run torch on one thread inside this context."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def multiply_in_blocks(layer: Layer, block_sizes: BlockSizes) -> Layer:
    """Wrap a layer so that it multiplies the rows of a batch (texts, ..., d) in blocks."""

    def forward(x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        result = apply_in_padded_blocks(layer, rows, block_sizes=block_sizes)
        return result.view(*x.shape[:-1], -1)

    return forward


def multiply_text_by_text(layer: Layer) -> Layer:
    """Wrap a layer so that it reads texts (texts, ..., d) one by one, at aligned addresses."""

    def forward(x: Tensor) -> Tensor:
        return torch.cat([layer(x[i : i + 1].clone()) for i in range(len(x))])

    return forward


def pad_to_blocks(rows: Tensor, block_sizes: BlockSizes) -> Tensor:
    """Append zero rows to (n, d) until n is a multiple of the smallest block size."""
    return F.pad(rows, (0, 0, 0, -len(rows) % block_sizes[0]))


def apply_in_blocks(
    function: Callable[..., Tensor],
    *inputs: Tensor,
    block_sizes: BlockSizes,
    out: Tensor | None = None,
) -> Tensor:
    """Apply a row-wise function to (n, d), on a CPU by blocks; n is a multiple of the smallest."""
    rows, device = len(inputs[0]), inputs[0].device.type
    cuts = split_into_blocks(rows, block_sizes) if device == "cpu" else [rows]
    blocks = zip(*(torch.split(x, cuts) for x in inputs), strict=True)
    if out is None:
        if len(cuts) == 1:
            return function(*inputs)
        return torch.cat([function(*block) for block in blocks])
    for target, block in zip(torch.split(out, cuts), blocks, strict=True):
        target.copy_(function(*block))
    return out


def apply_in_padded_blocks(
    function: Callable[..., Tensor], *inputs: Tensor, block_sizes: BlockSizes
) -> Tensor:
    """Apply a row-wise function to any number of rows, padding the last block with zeros."""
    padded = (pad_to_blocks(x, block_sizes) for x in inputs)
    return apply_in_blocks(function, *padded, block_sizes=block_sizes)[: len(inputs[0])]


def split_into_blocks(rows: int, block_sizes: BlockSizes) -> list[int]:
    """Split a number of rows, a multiple of the smallest size, into the largest possible blocks.

    >>> split_into_blocks(608, (32, 64, 128, 256))
    [256, 256, 64, 32]
    """
    cuts = []
    for size in reversed(block_sizes):
        cuts += [size] * (rows // size)
        rows %= size
    return cuts


def map_single_threaded(function: Callable[[T], R], jobs: Sequence[T]) -> Iterator[R]:
    """Yield the results of jobs in order; each job runs on one thread, several in parallel."""
    workers = max(1, min(current_runtime().threads or torch.get_num_threads(), len(jobs)))
    with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        yield from pool.map(function, jobs)
