"""Networks that are made for weights from a file: no random ones are drawn before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn
from torch.overrides import TorchFunctionMode


class Uninitialised(TorchFunctionMode):
    """Networks made inside have no first numbers, which loaded ones would replace.

    Drawing them takes time, and on a network without memory torch before 2.13 loads its compiler.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if getattr(func, "__module__", "") == nn.init.__name__:
            return args[0] if args else (kwargs or {})["tensor"]
        return func(*args, **(kwargs or {}))
