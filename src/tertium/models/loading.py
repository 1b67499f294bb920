"""The one way weights get into a network that is to score: checked, then put in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from tertium.errors import ModelError
from tertium.models.checkpoint import check_names

Module = TypeVar("Module", bound=nn.Module)


class Uninitialised(TorchFunctionMode):
    """Networks made inside have no first numbers, which loaded ones would replace.

    Drawing them takes time, and on a network without memory torch loads its compiler for it.
    """

    def __torch_function__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", "") == nn.init.__name__:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def load_into(make: Callable[[], Module], tensors: Mapping[str, Tensor], where: object) -> Module:
    """The network that `make` constructs, holding these tensors, ready to score.

    It is made without memory first, so that settings which ask for a network of any size are
    refused by the shapes of the weights before anything is reserved for it.
    """
    try:
        with torch.device("meta"), Uninitialised():
            shapes = make().state_dict()
    except (TypeError, ValueError, OverflowError, RuntimeError):  # sizes beyond 64 bits
        raise ModelError(f"the config.json of {where} asks for an impossible network") from None
    check_tensors(tensors, shapes, where)
    with Uninitialised():
        network = make()
    network.load_state_dict(dict(tensors))
    return network.eval().requires_grad_(False)


def check_tensors(
    tensors: Mapping[str, Tensor], wanted: Mapping[str, Tensor], where: object
) -> None:
    """Refuse tensors of other names, shapes or types, and numbers that are not finite."""
    check_names(tensors, wanted, where)
    for name, place in wanted.items():
        found = tensors[name]
        if found.shape != place.shape:
            raise ModelError(
                f"the weights in {where} do not fit its config.json: {name} has shape "
                f"{tuple(found.shape)}, expected {tuple(place.shape)}"
            )
        if found.is_floating_point() != place.is_floating_point():
            raise ModelError(f"{where}: {name} is of type {found.dtype}, expected {place.dtype}")
        if not bool(torch.isfinite(found).all()):
            raise ModelError(f"{where}: {name} holds NaN or infinite numbers")
