"""Linear layers in fp32, bf16 or fp16, with weights in the memory layout of the CPU's matrix units.

Only matrix products run in half precision: they dominate the cost of a transformer and tolerate
rounding well. The residual stream, layer norms and softmax stay in fp32.

| device                            | layer for bf16, fp16               |
| --------------------------------- | ---------------------------------- |
| GPU                               | `CastLinear`                       |
| CPU with AMX or AVX512-BF16       | `PackedLinear`: about twice as fast |
| CPU without bf16 instructions     | `EmulatedBf16Linear`: same rounding in fp32, so equal scores |

In fp32, a CPU uses `PackedLinear` for our own networks if oneDNN is available.
"""

from __future__ import annotations

import contextlib
import logging
import platform
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tertium.errors import UsageError

logger = logging.getLogger(__name__)

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
PACKED_ROWS = 1024  # number of rows the packed layout is tuned for; any other number works


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

    def forward_gelu(self, x: Tensor) -> Tensor:
        """Return the exact (erf) GELU of `forward(x)`."""
        return F.gelu(self(x))


class PackedLinear(CastLinear):
    """A `CastLinear` through oneDNN, which stores the weights only in its packed layout."""

    def __init__(self, linear: nn.Linear, dtype: torch.dtype) -> None:
        super().__init__(linear, dtype)
        self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight.detach(), PACKED_ROWS)
        del self.weight

    def forward(self, x: Tensor) -> Tensor:
        return self._multiply(x, "none", "")

    def forward_gelu(self, x: Tensor) -> Tensor:
        return self._multiply(x, "gelu", "none")  # fused: applied before the sums are rounded

    def _multiply(self, x: Tensor, activation: str, algorithm: str) -> Tensor:
        product: Tensor = torch.ops.mkldnn._linear_pointwise(
            x.to(self.dtype), self.packed, self.bias, activation, [], algorithm
        )
        return product


class EmulatedBf16Linear(CastLinear):
    """The values of a `CastLinear`, computed in fp32 for CPUs without bf16 instructions."""

    def __init__(self, linear: nn.Linear, dtype: torch.dtype) -> None:
        super().__init__(linear, dtype)
        self.weight.data = self.weight.data.float()
        if self.bias is not None:
            self.bias.data = self.bias.data.float()

    def forward(self, x: Tensor) -> Tensor:
        return self._round(F.linear(self._round(x), self.weight, self.bias))

    def forward_gelu(self, x: Tensor) -> Tensor:
        product = F.linear(self._round(x), self.weight, self.bias)
        return self._round(F.gelu(product))

    def _round(self, x: Tensor) -> Tensor:
        return x.to(self.dtype).float()


def linear_gelu(layer: nn.Module, x: Tensor) -> Tensor:
    """Return the exact (erf) GELU of a linear layer's output."""
    return layer.forward_gelu(x) if isinstance(layer, CastLinear) else F.gelu(layer(x))


def check_precision(precision: str, device: str) -> None:
    """Reject fp16 on a CPU, where it is slow and overflows."""
    if precision == "fp16" and device == "cpu":
        raise UsageError(
            "precision fp16 needs a GPU: on a CPU use bf16 (fast with AMX or AVX512-BF16) or fp32"
        )


def convert_linear_layers(model: nn.Module, precision: str, device: str) -> None:
    """Replace the linear layers of a model, in place, by layers of this precision."""
    if precision == "fp32":
        return
    linear_class = _choose_linear_class(device)
    if linear_class is EmulatedBf16Linear:
        logger.warning("this CPU has no bf16 instructions: precision=bf16 is no faster than fp32")
    _replace_linear_layers(model, linear_class, DTYPES[precision])


def pack_linear_weights(model: nn.Module, device: str) -> None:
    """Replace the fp32 linear layers of a model, in place, by packed ones if oneDNN has them."""
    if device == "cpu" and _can_pack(torch.float32):
        _replace_linear_layers(model, PackedLinear, torch.float32)


def _replace_linear_layers(
    model: nn.Module, linear_class: type[CastLinear], dtype: torch.dtype
) -> None:
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear:
                setattr(module, name, linear_class(child, dtype))


def autocast_context(precision: str, device: str) -> Any:
    """Return the context of a forward pass in which attention uses the linear layers' dtype."""
    device_type = device.partition(":")[0]
    if precision == "fp32" or (device_type == "cpu" and not cpu_has_bf16()):
        return contextlib.nullcontext()
    return torch.autocast(device_type, dtype=DTYPES[precision])


def cpu_has_bf16() -> bool:
    """Return whether this CPU multiplies bf16 matrices in hardware."""
    probes = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
    if any(getattr(torch.cpu, probe, bool)() for probe in probes):
        return True
    try:
        is_arm = platform.machine().lower() in ("arm64", "aarch64")
        return is_arm and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    except (AttributeError, RuntimeError):
        return False


def _choose_linear_class(device: str) -> type[CastLinear]:
    if device != "cpu":
        return CastLinear
    if not cpu_has_bf16():
        return EmulatedBf16Linear
    return PackedLinear if _can_pack(torch.bfloat16) else CastLinear


def _can_pack(dtype: torch.dtype) -> bool:
    """Return whether this build of torch supports packed weights of this dtype."""
    try:
        PackedLinear(nn.Linear(8, 8), dtype)(torch.zeros(2, 8))
    except (AttributeError, RuntimeError):
        return False
    return True
