"""Arrays and texts on disk: safetensors files, replaced in one step, never half written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tertium.encoders.weights import hash_of
from tertium.errors import DataError, ModelError

Array = NDArray[Any]


def write_arrays(
    file: Path, arrays: Mapping[str, Array], header: Mapping[str, str] | None = None
) -> str:
    """Write a safetensors file beside its place, then move it there; its sha256."""
    from safetensors.numpy import save_file

    plain = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    with _replacing(file) as temporary:
        save_file(plain, temporary, metadata=dict(header or {}))
        return hash_of(temporary)


def read_arrays(file: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """The arrays and the header of a safetensors file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="np") as opened:
            arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
            return arrays, dict(opened.metadata() or {})
    except FileNotFoundError:
        raise ModelError(f"{file}: no such file") from None
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{file} is damaged or was cut short: {error}") from None


def write_text(file: Path, text: str) -> None:
    """Replace a text file."""
    with _replacing(file) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def _replacing(file: Path) -> Iterator[Path]:
    """A new file beside `file` that takes its place when the block ends well."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
        os.close(handle)
    except OSError as error:
        raise DataError(f"{file} cannot be written: {error.strerror}") from None
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(file)
    except Exception as error:  # safetensors has an error type of its own for a full disk
        raise DataError(f"{file} cannot be written: {error}") from None
    finally:
        temporary.unlink(missing_ok=True)
