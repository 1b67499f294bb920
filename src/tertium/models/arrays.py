"""Arrays on disk: safetensors files, replaced in one step, never half written."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tertium.atomic import replace_content
from tertium.errors import ModelError

Array = NDArray[Any]


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
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{file} is damaged or was cut short: {error}") from None
