"""Linear layers of an encoder in fp32, bf16, fp16 or int8.

Only matrix products run in lower precision: they dominate the cost of a transformer and tolerate
rounding well. The residual stream, attention, layer norms and softmax stay in fp32 on a CPU.

| precision   | layer        | use                                                          |
| ----------- | ------------ | ------------------------------------------------------------ |
| fp32        | `nn.Linear`  | published metrics                                            |
| bf16, fp16  | `CastLinear` | GPUs; bf16 also on CPUs with AMX or AVX512-BF16              |
| int8        | `Int8Linear` | CPUs with 8-bit instructions: fastest, and exact sums        |
"""

from __future__ import annotations

import contextlib
import logging
import platform
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tertium.encoders.int8_linear import Int8Linear, cpu_has_int8
from tertium.errors import UsageError
from tertium.execution import Precision

logger = logging.getLogger(__name__)

# Types of states; int8 networks compute everything but products in fp32.
DTYPES = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "int8": torch.float32,
}


class CastLinear(nn.Module):
    """x W' + b with x and W cast to `dtype`, accumulated in fp32 and rounded once at the end."""

    def __init__(self, linear: nn.Linear, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight = nn.Parameter(linear.weight.detach().to(dtype), requires_grad=False)
        self.bias = (
            None
            if linear.bias is None
            else nn.Parameter(linear.bias.detach().to(dtype), requires_grad=False)
        )

    def forward(self, x: Tensor) -> Tensor:
        """(..., in_features) -> (..., out_features)."""
        return F.linear(x.to(self.dtype), self.weight, self.bias)


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
    | GPU                                     | bf16      |
    | CPU with 8-bit instructions             | int8      |
    | other CPU                               | fp32      |
    """
    if device != "cpu":
        return "bf16"
    return "int8" if cpu_has_int8() else "fp32"


def convert_linear_layers(model: nn.Module, precision: str, device: str) -> None:
    """Replace the fp32 linear layers of a model, in place, by layers of this precision."""
    if precision == "fp32":
        return
    if precision == "bf16" and device == "cpu" and not cpu_has_bf16():
        logger.warning("this CPU has no bf16 instructions: precision=int8 or fp32 is faster")
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear:
                setattr(module, name, _convert(child, precision))


def _convert(layer: nn.Linear, precision: str) -> nn.Module:
    if precision == "int8":
        return Int8Linear.quantize(layer)
    return CastLinear(layer, DTYPES[precision])


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
