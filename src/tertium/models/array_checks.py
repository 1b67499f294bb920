"""Checks of names, types, shapes and values of stored weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tertium.core.errors import ModelError

Array = NDArray[Any]
DTYPE_LABELS = {"f": "floating point", "i": "integers", "u": "integers"}


class ArraySpec(NamedTuple):
    """Expected dtype kind and shape; a name in a shape always stands for the same size."""

    kind: str
    shape: tuple[int | str, ...]


def check_finite(arrays: Mapping[str, Array], where: object) -> None:
    """Raise if an array contains NaN or infinite numbers."""
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelError(f"{where}: {name} has NaN or infinite numbers: train the model again")


def check_arrays(
    arrays: Mapping[str, Array], wanted: Mapping[str, ArraySpec], where: object, **sizes: int
) -> dict[str, int]:
    """Raise unless names, types and shapes are as expected; return the named sizes.

    >>> check_arrays({"w": np.zeros((2, 3))}, {"w": ArraySpec("f", ("rows", 3))}, "weights")
    {'rows': 2}
    """
    check_names(arrays, wanted, where)
    for name, (kind, shape) in wanted.items():
        array = arrays[name]
        if array.dtype.kind != kind:
            raise ModelError(
                f"{where}: {name} is of type {array.dtype}, expected {DTYPE_LABELS[kind]}"
            )
        fits = len(array.shape) == len(shape) and all(
            length == (sizes.setdefault(size, length) if isinstance(size, str) else size)
            for length, size in zip(array.shape, shape, strict=True)
        )
        if not fits:
            expected = ", ".join(str(sizes.get(str(size), size)) for size in shape)
            raise ModelError(f"{where}: {name} has shape {array.shape}, expected ({expected})")
    return sizes


def check_names(names: Iterable[str], wanted: Iterable[str], where: object) -> None:
    """Raise if weights are missing or unexpected."""
    present, expected = set(names), set(wanted)
    if missing := sorted(expected - present):
        raise ModelError(f"{where} is incomplete: no {missing[0]} ({len(missing)} missing)")
    if unknown := sorted(present - expected):
        raise ModelError(f"{where}: unexpected {unknown[0][:60]!r} for its config.json")
