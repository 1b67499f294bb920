"""Products of linear layers: their precision, and how weights lie in memory.

Products may be in half precision, everything between them in single: linear layers hold most of a
transformer's arithmetic and stand rounding best; the residual stream, layer norms and softmax stay
in fp32, where rounding would add up. On a CPU with bf16 instructions (AMX, AVX512-BF16) the weights
are packed once into the layout its matrix units want, which halves the time of a plain bf16
product. On a CPU without them the same roundings are applied to fp32 products, so that a bf16 score
means the same everywhere; it is then no faster than fp32.
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
PACKED_ROWS = 1024  # what the layout is tuned for; any number of rows can be multiplied


class HalfLinear(nn.Module):
    """x W' + b with x and W rounded to half precision, summed in fp32, rounded once at the end."""

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
        return F.linear(x.to(self.dtype), self.weight, self.bias)

    def gelu(self, x: Tensor) -> Tensor:
        """GELU, by the error function, of the product."""
        return F.gelu(self(x))


class PackedLinear(HalfLinear):
    """The same through oneDNN, with weights laid out for its matrix units, and held only so."""

    def __init__(self, linear: nn.Linear, dtype: torch.dtype) -> None:
        super().__init__(linear, dtype)
        self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight.detach(), PACKED_ROWS)
        del self.weight

    def forward(self, x: Tensor) -> Tensor:
        return self._multiply(x, "none", "")

    def gelu(self, x: Tensor) -> Tensor:
        return self._multiply(x, "gelu", "none")  # while sums are in registers, not rounded yet

    def _multiply(self, x: Tensor, then: str, how: str) -> Tensor:
        product: Tensor = torch.ops.mkldnn._linear_pointwise(
            x.to(self.dtype), self.packed, self.bias, then, [], how
        )
        return product


class RoundedLinear(HalfLinear):
    """The same values in fp32 arithmetic, for CPUs without bf16 instructions."""

    def __init__(self, linear: nn.Linear, dtype: torch.dtype) -> None:
        super().__init__(linear, dtype)
        self.weight.data = self.weight.data.float()
        if self.bias is not None:
            self.bias.data = self.bias.data.float()

    def forward(self, x: Tensor) -> Tensor:
        return self._round(F.linear(self._round(x), self.weight, self.bias))

    def gelu(self, x: Tensor) -> Tensor:
        product = F.linear(self._round(x), self.weight, self.bias)
        return self._round(F.gelu(product))

    def _round(self, x: Tensor) -> Tensor:
        return x.to(self.dtype).float()


def gelu_of(layer: nn.Module, x: Tensor) -> Tensor:
    """GELU, by the error function, of a linear layer's product."""
    return layer.gelu(x) if isinstance(layer, HalfLinear) else F.gelu(layer(x))


def check_precision(precision: str, device: str) -> None:
    """Refuse fp16 on a CPU, where it is slow and overflows."""
    if precision == "fp16" and device == "cpu":
        raise UsageError(
            "precision fp16 is for GPUs only: on a CPU use bf16 (fast where the CPU has AMX or "
            "AVX512-BF16) or fp32"
        )


def lower_precision(model: nn.Module, precision: str, device: str) -> None:
    """Replace the model's linear layers in place by ones of this precision."""
    if precision == "fp32":
        return
    kind = _linear_class(device)
    if kind is RoundedLinear:
        logger.warning("this CPU has no bf16 instructions: precision=bf16 is no faster than fp32")
    _replace_linear(model, kind, DTYPES[precision])


def _replace_linear(model: nn.Module, kind: type[HalfLinear], dtype: torch.dtype) -> None:
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear:
                setattr(module, name, kind(child, dtype))


def pack_products(model: nn.Module, device: str) -> None:
    """Lay out the weights of linear layers in fp32 once, where oneDNN is there; in place."""
    if device == "cpu" and _packs(torch.float32):
        _replace_linear(model, PackedLinear, torch.float32)


def arithmetic(precision: str, device: str) -> Any:
    """The context a forward pass runs in, so that attention follows the linear layers' type."""
    family = device.partition(":")[0]
    if precision == "fp32" or (family == "cpu" and not cpu_has_bf16()):
        return contextlib.nullcontext()
    return torch.autocast(family, dtype=DTYPES[precision])


def cpu_has_bf16() -> bool:
    """Whether this CPU multiplies bf16 matrices in hardware."""
    probes = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
    if any(getattr(torch.cpu, probe, bool)() for probe in probes):
        return True
    try:
        arm = platform.machine().lower() in ("arm64", "aarch64")
        return arm and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    except (AttributeError, RuntimeError):
        return False


def _linear_class(device: str) -> type[HalfLinear]:
    if device != "cpu":
        return HalfLinear
    if not cpu_has_bf16():
        return RoundedLinear
    return PackedLinear if _packs(torch.bfloat16) else HalfLinear


def _packs(dtype: torch.dtype) -> bool:
    """Whether this build of torch lays out weights for products of this type."""
    try:
        PackedLinear(nn.Linear(8, 8), dtype)(torch.zeros(2, 8))
    except (AttributeError, RuntimeError):
        return False
    return True
