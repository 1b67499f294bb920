"""Weights that fit in a package: matrices as int8 rows, or as low-rank differences.

A row w becomes round(w / s) with s = max|w| / 127, so that an element is off by at most s / 2. A
difference D to public weights becomes two thin matrices, the best of their rank in the least-
squares sense (truncated singular value decomposition), their rows int8 as well: twice the rank for
the bytes of half precision. Everything else is kept in half precision.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from tertium.errors import ModelError

SCALE = ".row_scale"
LEFT, RIGHT = ".left", ".right"


def quantise(weights: Mapping[str, Tensor], *, smallest: int = 4096) -> dict[str, Tensor]:
    """Matrices of at least `smallest` elements as int8 rows and scales; the rest as float16."""
    compact: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.ndim == 2 and weight.numel() >= smallest:
            scale = weight.float().abs().amax(dim=1, keepdim=True).clamp(min=1e-8) / 127
            compact[name] = (weight.float() / scale).round().to(torch.int8).contiguous()
            compact[name + SCALE] = scale.squeeze(1).to(torch.float32)
        else:
            compact[name] = weight.to(torch.float16).contiguous()
    return compact


def restore(compact: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Float32 weights from what `quantise` made.

    >>> w = {"a": torch.randn(100, 64), "b": torch.randn(3)}
    >>> bool((restore(quantise(w))["a"] - w["a"]).abs().max() < 0.03)
    True
    """
    weights: dict[str, Tensor] = {}
    for name, value in compact.items():
        if name.endswith(SCALE):
            continue
        scale = compact.get(name + SCALE)
        if scale is not None and (value.ndim != 2 or scale.shape != value.shape[:1]):
            raise ModelError(f"{name} has {tuple(scale.shape)} scales for {tuple(value.shape)}")
        weights[name] = value.float() if scale is None else value.float() * scale[:, None]
    return weights


def apply_difference(
    public: Mapping[str, Tensor], compact: Mapping[str, Tensor], where: object = "the difference"
) -> dict[str, Tensor]:
    """Tuned weights from public ones and what `difference` made; `where` it lies, for an error."""
    weights = {name: value.float() for name, value in public.items()}
    changes = restore(compact)
    for name, value in changes.items():
        try:
            if name.endswith(LEFT):
                stem = name.removesuffix(LEFT)
                weights[stem] = torch.addmm(weights[stem], value.T, changes[stem + RIGHT])
            elif not name.endswith(RIGHT):
                weights[name] = weights[name] + value if name in weights else value
        except (KeyError, RuntimeError):
            raise ModelError(f"{where}: {name} does not fit the encoder it changes") from None
    return weights
