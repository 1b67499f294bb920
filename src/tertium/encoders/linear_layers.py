"""Linear layers of an encoder in fp32, bf16, fp16 or int8.

Only matrix products run in lower precision: they dominate the cost of a transformer and tolerate
rounding well. The residual stream, attention, layer norms and softmax stay in fp32 on a CPU.

| precision   | layer        | use                                                          |
| ----------- | ------------ | ------------------------------------------------------------ |
| fp32        | `nn.Linear`  | published metrics                                            |
| bf16, fp16  | `CastLinear` | GPUs; bf16 also on CPUs with AMX or AVX512-BF16              |
| int8        | `Int8Linear` | CPUs with 8-bit instructions: exact sums                     |

On a CPU, weights in fp32 and bf16 are stored once in the layout of oneDNN (`PackedLinear`) if this
build of torch can do that. Otherwise they are reordered in every product, and bf16 with AMX takes
twice as long.
"""

from __future__ import annotations

import contextlib
import logging
import platform
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tertium.core.errors import UsageError
from tertium.core.runtime import Precision
from tertium.encoders.int8_linear import Int8Linear, cpu_has_int8

logger = logging.getLogger(__name__)

PACKED_ROWS = 1024  # number of rows the packed layout is tuned for; any other number works
# Types of states; int8 networks compute everything but products in fp32.
DTYPES = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "int8": torch.float32,
}


class CastLinear(nn.Linear):
    """x W' + b with x and W cast to `dtype`, accumulated in fp32 and rounded once at the end."""

    def __init__(self, linear: nn.Linear, dtype: torch.dtype) -> None:
        has_bias = linear.bias is not None
        super().__init__(linear.in_features, linear.out_features, has_bias, "meta", dtype)
        self.load_state_dict(linear.to(dtype).state_dict(), assign=True)
        self.requires_grad_(False)
        self.dtype = dtype

    def forward(self, x: Tensor) -> Tensor:
        """(..., in_features) -> (..., out_features)."""
        return super().forward(x.to(self.dtype))


class PackedLinear(CastLinear):
    """A `CastLinear` through oneDNN, which stores the weights only in its packed layout."""

    def __init__(self, linear: nn.Linear, dtype: torch.dtype) -> None:
        super().__init__(linear, dtype)
        self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight.detach(), PACKED_ROWS)
        del self.weight

    def forward(self, x: Tensor) -> Tensor:
        product: Tensor = torch.ops.mkldnn._linear_pointwise(
            x.to(self.dtype), self.packed, self.bias, "none", [], ""
        )
        return product


def linear_gelu(layer: nn.Module, x: Tensor) -> Tensor:
    """Return the exact (erf) GELU of a linear layer's output."""
    return layer.forward_gelu(x) if isinstance(layer, Int8Linear) else F.gelu(layer(x))


def check_precision(precision: str, device: str) -> None:
    """Reject fp16 on a CPU, where it is slow and overflows."""
    if precision == "fp16" and device == "cpu":
        raise UsageError(
            "precision fp16 needs a GPU: on a CPU use int8, bf16 (fast with AMX) or fp32"
        )


def fastest_precision(device: str) -> Precision:
    """Return the fastest precision on a device that keeps the agreement with human scores.

    | device                                  | precision |
    | --------------------------------------- | --------- |
    | GPU, CPU with AMX                       | bf16      |
    | other CPU with 8-bit instructions       | int8      |
    | other CPU                               | fp32      |
    """
    if device != "cpu" or getattr(torch.cpu, "_is_amx_tile_supported", bool)():
        return "bf16"
    return "int8" if cpu_has_int8() else "fp32"


def convert_linear_layers(
    model: nn.Module, precision: str, device: str, *, pack: bool = True
) -> None:
    """Replace the fp32 linear layers of a model, in place, by layers of this precision."""
    if precision == "bf16" and device == "cpu" and not cpu_has_bf16():
        logger.warning("this CPU has no bf16 instructions: precision=int8 or fp32 is faster")
    dtype = DTYPES[precision]
    convert: Callable[[nn.Linear], nn.Module]
    if precision == "int8":
        convert = Int8Linear.quantize
    elif pack and device == "cpu" and _can_pack(dtype):
        convert = partial(PackedLinear, dtype=dtype)
    elif precision == "fp32":
        return
    else:
        convert = partial(CastLinear, dtype=dtype)
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear:
                setattr(module, name, convert(child))


@cache
def _can_pack(dtype: torch.dtype) -> bool:
    """Return whether this build of torch supports packed weights of this dtype on this CPU."""
    if dtype == torch.bfloat16 and not cpu_has_bf16():
        return False
    try:
        PackedLinear(nn.Linear(8, 8), dtype)(torch.zeros(2, 8))
    except (AttributeError, RuntimeError):
        return False
    return True


def autocast_context(precision: str, device: str) -> Any:
    """Return the context of a forward pass in which attention uses the linear layers' dtype."""
    device_type = device.partition(":")[0]
    if precision in ("fp32", "int8") or (device_type == "cpu" and not cpu_has_bf16()):
        return contextlib.nullcontext()
    return torch.autocast(device_type, dtype=DTYPES[precision])


def cpu_has_bf16() -> bool:
    """Return whether this CPU multiplies bf16 matrices in hardware."""
    probes = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
    if any(getattr(torch.cpu, probe, bool)() for probe in probes):
        return True
    is_arm = platform.machine().lower() in ("arm64", "aarch64")
    return is_arm and bool(getattr(torch.cpu, "_is_arm_bf16_supported", bool)())
