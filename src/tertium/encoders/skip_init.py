"""Build networks whose weights are loaded from a file, without random initialization."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn
from torch.overrides import TorchFunctionMode


class SkipInit(TorchFunctionMode):
    """Context in which `torch.nn.init` functions, slow and not needed, leave tensors unchanged."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if getattr(func, "__module__", "") == nn.init.__name__:
            return args[0] if args else (kwargs or {})["tensor"]
        return func(*args, **(kwargs or {}))
