"""Settings of commands: a table of `tertium.toml`, or of `[tool.tertium]` in `pyproject.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from tertium.core.errors import UsageError

CONFIGURATION_FILE = "tertium.toml"
PROJECT_FILE = "pyproject.toml"


def read_toml(path: str | Path) -> dict[str, Any]:
    """Read a TOML file; of `pyproject.toml`, only the table `[tool.tertium]`."""
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not a TOML file: {error}") from None
    if Path(path).name != PROJECT_FILE:
        return content
    table: dict[str, Any] = content.get("tool", {}).get("tertium", {})
    return table


def find_configuration(command: str, folder: str | Path = ".") -> str | None:
    """Return the file in a folder that configures a command, if there is one.

    `tertium.toml` takes precedence over `pyproject.toml`.
    """
    for name in (CONFIGURATION_FILE, PROJECT_FILE):
        path = Path(folder) / name
        if path.is_file() and (name == CONFIGURATION_FILE or command in read_toml(path)):
            return str(path)
    return None
