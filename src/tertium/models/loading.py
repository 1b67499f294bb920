"""The one way weights get into a network that is to score: checked, then put in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import torch
from torch import Tensor, nn

from tertium.errors import ModelError
from tertium.models.checkpoint import check_names

Module = TypeVar("Module", bound=nn.Module)


def load_into(make: Callable[[], Module], tensors: Mapping[str, Tensor], where: object) -> Module:
    """The network that `make` constructs, holding these tensors, ready to score.

    It is made without memory first, so that settings which ask for a network of any size are
    refused by the shapes of the weights before anything is reserved for it.
    """
    try:
        with torch.device("meta"):
            shapes = make().state_dict()
    except (TypeError, ValueError, OverflowError, RuntimeError):  # sizes beyond 64 bits
        raise ModelError(f"the config.json of {where} asks for an impossible network") from None
    check_tensors(tensors, shapes, where)
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
