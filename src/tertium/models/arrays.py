"""Arrays on disk: safetensors files, replaced in one step, never half written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tertium.atomic import replace_content
from tertium.errors import ModelError

Array = NDArray[Any]
KINDS = {"f": "floating point", "i": "whole numbers", "u": "whole numbers"}


class Like(NamedTuple):
    """What an array must be: its `kind` as numpy's dtypes name it, and its shape.

    A size is a number, or a name that stands for the same number wherever it occurs.
    """

    kind: str
    shape: tuple[int | str, ...]


def write_arrays(
    file: Path, arrays: Mapping[str, Array], header: Mapping[str, str] | None = None
) -> str:
    """Replace a safetensors file; the sha256 of the new one."""
    from safetensors.numpy import save

    plain = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    content = save(plain, metadata=dict(header or {}))
    with replace_content(file, make_folder=True) as stream:
        stream.write(content)
    return hashlib.sha256(content).hexdigest()


def read_arrays(file: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """The arrays and the header of a safetensors file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="np") as opened:
            arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
            return arrays, dict(opened.metadata() or {})
    except FileNotFoundError:
        raise ModelError(f"{file}: no such file") from None
    except (SafetensorError, OSError, MemoryError) as error:
        raise ModelError(f"{file} is damaged or was cut short: {error}") from None
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelError(f"{file} holds numbers of a type numpy does not know: {error}") from None


def check_finite(arrays: Mapping[str, Array], where: object) -> None:
    """Refuse numbers that are NaN or infinite."""
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelError(f"{where}: {name} holds NaN or infinite numbers: train the model anew")


def check_arrays(
    arrays: Mapping[str, Array], wanted: Mapping[str, Like], where: object, **sizes: int
) -> dict[str, int]:
    """Refuse other names, types and shapes than those wanted; what the named sizes are.

    >>> check_arrays({"w": np.zeros((2, 3))}, {"w": Like("f", ("rows", 3))}, "weights")
    {'rows': 2}
    """
    check_names(arrays, wanted, where)
    for name, (kind, shape) in wanted.items():
        array = arrays[name]
        if array.dtype.kind != kind:
            raise ModelError(f"{where}: {name} is of type {array.dtype}, expected {KINDS[kind]}")
        known = len(array.shape) == len(shape) and all(
            found == (sizes.setdefault(size, found) if isinstance(size, str) else size)
            for found, size in zip(array.shape, shape, strict=True)
        )
        if not known:
            expected = ", ".join(str(sizes.get(str(size), size)) for size in shape)
            raise ModelError(f"{where}: {name} has shape {array.shape}, expected ({expected})")
    return sizes


def check_names(found: Iterable[str], wanted: Iterable[str], where: object) -> None:
    """Refuse weights that lack a name or have one too many."""
    there, expected = set(found), set(wanted)
    if missing := sorted(expected - there):
        raise ModelError(f"{where} has no {missing[0]} ({len(missing)} missing): it is incomplete")
    if unknown := sorted(there - expected):
        raise ModelError(f"{where} has {unknown[0][:60]!r}, which its config.json has no place for")
