"""Linear layers in 8-bit integers: fast, and exact sums in any order.

Every row x of the input and every row w of the weights is rounded to integers with its own scale:

    x W' + b  ~  a (X Q') s + b,     X = round(x / a),  a = max|x| / 127,     Q = round(W / s)

The integer product X Q' is exact. The result of a row therefore does not depend on the other rows,
on the number of threads, or on the processor. The remaining steps work element by element.

| processor                             | operator for X Q'                                 |
| ------------------------------------- | ------------------------------------------------- |
| x86 with AVX512-VNNI or AMX; CUDA     | `torch._int_mm`: int8 products, int32 sums        |
| older x86, ARM, MPS                   | fp32 products of at most 1,024 columns at a time  |

Both operators give equal results to the last bit: an fp32 sum of 1,024 products is exact, since
128 * 127 * 1,024 < 2^24.
"""

from __future__ import annotations

import logging
import math
import platform
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property

import torch
from torch import Tensor, nn

from tertium.core.errors import UsageError

logger = logging.getLogger(__name__)

LARGEST = 127  # of an 8-bit integer; -128 stands only for the lowest value of GELU
FINE_STEPS = 128  # steps of the low part of an activation with 15 bits
MAX_EXACT_COLUMNS = 1024  # of a product that is exact in fp32: 128 * 127 * 1,024 < 2^24
VECTOR_WIDTH = 32  # elementwise operations treat a remainder below this width differently
MIN_CUDA_ROWS = 17  # that torch._int_mm accepts on a GPU
CUDA_MULTIPLE = 8  # of columns that it accepts
MIN_GELU = -0.17  # lower bound of GELU
TINY = 1e-30  # keeps the scale of a row of zeros positive


class Int8Linear(nn.Module):
    """A linear layer with int8 weights, (out, in) with one scale per row, and int8 activations.

    With `fine`, activations have 15 bits: a high and a low integer, and two products.
    """

    def __init__(
        self, weight: Tensor, scale: Tensor, bias: Tensor | None, *, fine: bool = False
    ) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.fine = fine
        self.weight: Tensor
        self.scale: Tensor
        self.bias: Tensor
        self.register_buffer("weight", weight)
        self.register_buffer("scale", scale)
        self.register_buffer("bias", scale.new_zeros(scale.shape) if bias is None else bias)

    @classmethod
    def quantize(cls, linear: nn.Linear, *, fine: bool = False) -> Int8Linear:
        """Quantize the weights of an fp32 layer."""
        bias = None if linear.bias is None else linear.bias.detach()
        return cls(*quantize_weights(linear.weight.detach()), bias, fine=fine)

    @classmethod
    def allocate(cls, linear: nn.Linear, *, fine: bool = False) -> Int8Linear:
        """Return a layer of the same shape and device whose weights are still to be loaded."""
        device = linear.weight.device
        weight = torch.empty(linear.weight.shape, dtype=torch.int8, device=device)
        scale, bias = (torch.empty(len(weight), device=device) for _ in range(2))
        return cls(weight, scale, bias, fine=fine)

    def forward(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """(n, in_features) -> (n, out_features), written to `out` if given."""
        if x.ndim != 2:
            rows: Tensor = self(x.reshape(-1, x.shape[-1]))
            return rows.view(*x.shape[:-1], -1)
        if self.fine:
            return self._multiply_fine(x)
        integers, row_scale = quantize_rows(x)
        y = self._integer_product(integers, out).mul_(self.scale)
        return torch.addcmul(self.bias, y, row_scale, out=y)

    def forward_gelu(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """Return the exact (erf) GELU of the output."""
        result: Tensor = torch.ops.aten.gelu_(self(x, out=out))
        return result

    def contract_inner(self, inner: Tensor) -> Tensor:
        """Apply the layer to the result of `forward_gelu`, which is overwritten.

        GELU is at least -0.17, so its range from there to the largest value of a row is rounded to
        256 steps: x = a (X + 128) - 0.17, which halves the rounding error.
        """
        step = (inner.amax(1, keepdim=True) - MIN_GELU) / (2 * LARGEST + 1)
        offset = -MIN_GELU / step - (LARGEST + 1)
        rounded = inner.mul_(1 / step).add_(offset).round_()
        y = self._integer_product(_to_int8(rounded)).mul_(self.scale)
        shift = (LARGEST + 1) * step + MIN_GELU  # what the steps below zero stand for, (n, 1)
        return torch.addcmul(torch.addcmul(self.bias, shift, self._weight_sums), y, step, out=y)

    def _multiply_fine(self, x: Tensor) -> Tensor:
        limit = LARGEST * FINE_STEPS
        largest = _largest_of_rows(x)
        rounded = torch.mul(x, limit / largest).round_()  # integers of 15 bits
        high = (rounded / FINE_STEPS).round_()
        low = rounded.sub_(high, alpha=FINE_STEPS)
        y = self._integer_product(_to_int8(high)).mul_(FINE_STEPS)
        y.add_(self._integer_product(_to_int8(low))).mul_(self.scale)
        return torch.addcmul(self.bias, y, largest / limit, out=y)

    def _integer_product(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """Return the product of int8 rows (n, in) and the weights as fp32, (n, out)."""
        if out is None:
            out = torch.empty(len(x), self.out_features, device=x.device)
        return choose_operator(x.device.type)(self, x, out)

    @cached_property
    def _weight_sums(self) -> Tensor:
        return self.weight.sum(1, dtype=torch.int32) * self.scale

    @cached_property
    def fp32_slices(self) -> list[Tensor]:
        """The weights as fp32, in slices of columns whose products are exact."""
        parts = torch.split(self.weight, MAX_EXACT_COLUMNS, dim=1)
        return [part.float().T.contiguous() for part in parts]


Operator = Callable[[Int8Linear, Tensor, Tensor], Tensor]


def multiply_int8(layer: Int8Linear, x: Tensor, out: Tensor) -> Tensor:
    """Multiply with int8 instructions of a CPU."""
    sums = scratch.get("sums", out.shape, x, torch.int32)
    return out.copy_(torch._int_mm(x, layer.weight.T, out=sums))


def multiply_int8_cuda(layer: Int8Linear, x: Tensor, out: Tensor) -> Tensor:
    """Multiply with int8 instructions of a GPU, padded to the shapes it supports."""
    rows = max(0, MIN_CUDA_ROWS - len(x))
    columns = -layer.in_features % CUDA_MULTIPLE
    outputs = -layer.out_features % CUDA_MULTIPLE
    x = nn.functional.pad(x, (0, columns, 0, rows))
    weight = nn.functional.pad(layer.weight, (0, columns, 0, outputs))
    return out.copy_(torch._int_mm(x, weight.T)[: len(out), : layer.out_features])


def multiply_fp32_slices(layer: Int8Linear, x: Tensor, out: Tensor) -> Tensor:
    """Multiply the same integers in fp32; several slices are added in double precision."""
    floats = x.float()
    slices = layer.fp32_slices
    if len(slices) == 1:
        return torch.mm(floats, slices[0], out=out)
    parts = zip(torch.split(floats, MAX_EXACT_COLUMNS, dim=1), slices, strict=True)
    products = torch.stack([(left @ right).double() for left, right in parts])
    return out.copy_(products.sum(0))


@cache
def choose_operator(device_type: str) -> Operator:
    """Return the fastest exact operator for integer products on this device."""
    if device_type == "cuda":
        return multiply_int8_cuda
    if device_type == "cpu" and cpu_has_int8():
        return multiply_int8
    logger.info("no 8-bit instructions on this %s: integers are multiplied in fp32", device_type)
    return multiply_fp32_slices


def cpu_has_int8() -> bool:
    """Return whether torch multiplies int8 matrices with 8-bit instructions on this CPU.

    Without VNNI, x86 instructions saturate at 16 bits, so sums would not be exact.
    """
    if platform.machine().lower() not in ("x86_64", "amd64") or not torch.backends.mkldnn.enabled:
        return False
    return has_cpu_feature("vnni", "avx512_vnni", "amx_tile")


def has_cpu_feature(*names: str) -> bool:
    """Return whether this CPU has one of some instruction sets, by torch's names."""
    return any(getattr(torch.cpu, f"_is_{name}_supported", bool)() for name in names)


def quantize_weights(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Round each row of weights (out, in) to int8; returns integers and scales (out,)."""
    scale = weight.abs().amax(1).clamp(min=TINY) / LARGEST
    return (weight / scale[:, None]).round().to(torch.int8), scale


def quantize_rows(x: Tensor) -> tuple[Tensor, Tensor]:
    """Round each row of activations (n, d) to int8; returns integers and scales (n, 1).

    >>> integers, scales = quantize_rows(torch.tensor([[0.5, -1.27]]))
    >>> integers.tolist(), round(float(scales), 4)
    ([[50, -127]], 0.01)
    """
    largest = _largest_of_rows(x)
    rounded = torch.mul(x, LARGEST / largest, out=scratch.get("rounded", x.shape, x)).round_()
    return _to_int8(rounded), largest / LARGEST


def _largest_of_rows(x: Tensor) -> Tensor:
    """Return the largest absolute value of each row, (n, 1)."""
    lowest = x.amin(1, keepdim=True).neg_()
    return torch.maximum(x.amax(1, keepdim=True), lowest).clamp_(min=TINY)


def _to_int8(rounded: Tensor) -> Tensor:
    return scratch.get("integers", rounded.shape, rounded, torch.int8).copy_(rounded)


class _Scratch(threading.local):
    """Buffers of one thread that are used again, since fresh memory costs page faults."""

    def __init__(self) -> None:
        self._buffers: dict[str, Tensor] = {}
        self._views: dict[str, Tensor] = {}  # the last view of each buffer

    def get(
        self, name: str, shape: Sequence[int], like: Tensor, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        """Return a buffer of this shape; its content is undefined."""
        if like.device.type != "cpu":
            return torch.empty(*shape, dtype=dtype, device=like.device)
        view = self._views.get(name)
        if view is not None and view.shape == shape:
            return view
        size = math.prod(shape)
        buffer = self._buffers.get(name)
        if buffer is None or buffer.numel() < size:
            with torch.inference_mode(mode=False):  # usable inside and outside of that mode
                buffer = self._buffers[name] = torch.empty(size, dtype=dtype)
        self._views[name] = buffer[:size].view(*shape)
        return self._views[name]


scratch = _Scratch()


class Int8Embedding(nn.Module):
    """Vectors by id, stored as int8 rows (rows, width) with a scale each."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.weight: Tensor
        self.scale: Tensor
        self.register_buffer("weight", torch.empty(rows, width, dtype=torch.int8))
        self.register_buffer("scale", torch.empty(rows))

    def forward(self, ids: Tensor) -> Tensor:
        """(...) -> (..., width)."""
        return self.weight[ids].float() * self.scale[ids][..., None]


def allocate_int8_layers(
    model: nn.Module,
    is_stored: Callable[[str], bool],
    *,
    fine: Callable[[str], bool] = lambda _: False,
) -> None:
    """Replace layers of a model, by name, with empty int8 layers for stored weights."""
    for parent_name, parent in list(model.named_modules()):
        for name, child in list(parent.named_children()):
            full_name = f"{parent_name}.{name}".lstrip(".")
            if type(child) is nn.Linear and is_stored(full_name):
                setattr(parent, name, Int8Linear.allocate(child, fine=fine(full_name)))
            elif type(child) is nn.Embedding and is_stored(full_name):
                setattr(parent, name, Int8Embedding(*child.weight.shape))


def check_int8_widths(widths: Iterable[int]) -> None:
    """Reject layer widths for which elementwise operations would depend on the batch."""
    for width in widths:
        if width % VECTOR_WIDTH:
            raise UsageError(
                f"precision int8 needs layers whose widths are multiples of {VECTOR_WIDTH}, not "
                f"{width}: use precision=fp32"
            )
