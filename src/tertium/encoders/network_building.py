"""Build networks whose weights are loaded from a file, without random initialization."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from tertium.core.errors import ModelError

MAX_CHECKED_VALUES = 1 << 26  # the check of a larger, memory-mapped table would read all of it
Module = TypeVar("Module", bound=nn.Module)


class SkipInit(TorchFunctionMode):
    """Context in which `torch.nn.init` functions, slow and not needed, leave tensors unchanged."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if getattr(func, "__module__", "") == nn.init.__name__:
            return args[0] if args else (kwargs or {})["tensor"]
        return func(*args, **(kwargs or {}))


def build_network(
    make: Callable[[], Module], tensors: Mapping[str, Tensor], where: object, *, copy: bool = True
) -> Module:
    """Build the network of `make`, load these tensors, and prepare it for inference.

    The network is created without memory, so that a configuration of absurd size is refused by the
    shapes of the weights before anything is allocated. Integer weights are shared, not copied; with
    `copy=False` no weights are copied.
    """
    try:
        with torch.device("meta"), SkipInit():
            network = make()
    except (TypeError, ValueError, OverflowError, RuntimeError):  # sizes beyond 64 bits
        raise ModelError(f"the config.json of {where} describes an impossible network") from None
    shapes = network.state_dict()
    check_tensors(tensors, shapes, where)
    weights = {
        name: tensor.to(shapes[name].dtype, copy=copy and tensor.is_floating_point())
        for name, tensor in tensors.items()
    }
    network.load_state_dict(weights, assign=True)
    return network.eval().requires_grad_(False)


def check_tensors(
    tensors: Mapping[str, Tensor], wanted: Mapping[str, Tensor], where: object
) -> None:
    """Raise unless names, shapes and types of tensors match and all numbers are finite."""
    for name in {**wanted, **tensors}:
        if problem := _find_problem(tensors.get(name), wanted.get(name)):
            raise ModelError(
                f"the weights in {where} do not fit its config.json: {name[:60]} {problem}"
            )


def _find_problem(tensor: Tensor | None, expected: Tensor | None) -> str:
    if tensor is None:
        return "is missing"
    if expected is None:
        return "is unexpected"
    if tensor.shape != expected.shape:
        return f"has shape {tuple(tensor.shape)}, expected {tuple(expected.shape)}"
    if tensor.is_floating_point() != expected.is_floating_point():
        return f"has type {tensor.dtype}, expected {expected.dtype}"
    is_checked = tensor.is_floating_point() and 0 < tensor.numel() < MAX_CHECKED_VALUES
    if is_checked and not torch.stack(tensor.aminmax()).isfinite().all():
        return "has NaN or infinite numbers"
    return ""
