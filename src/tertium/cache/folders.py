"""Where tertium keeps things on a user's disk: models to keep, and a cache that may be deleted."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tertium.errors import UsageError


def cache_folder() -> Path:
    """`TERTIUM_CACHE`, else `tertium` in the user's cache folder; it need not exist."""
    return _folder("TERTIUM_CACHE", "XDG_CACHE_HOME", ".cache", "cache")


def models_folder() -> Path:
    """`TERTIUM_MODELS`, else `tertium/models` in the user's data folder; it need not exist."""
    if own := os.environ.get("TERTIUM_MODELS"):
        return _expand(own, "TERTIUM_MODELS")
    return _folder("", "XDG_DATA_HOME", ".local/share", "data") / "models"


def hub_folder() -> Path:
    """Where the Hugging Face libraries keep what they downloaded."""
    if cache := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return _expand(cache, "HF_HUB_CACHE")
    if home := os.environ.get("HF_HOME"):
        return _expand(home, "HF_HOME") / "hub"
    base = os.environ.get("XDG_CACHE_HOME")
    folder = _expand(base, "XDG_CACHE_HOME") if base else _expand("~", "HOME") / ".cache"
    return folder / "huggingface" / "hub"


def _folder(own: str, xdg: str, unix: str, windows: str) -> Path:
    if own and (value := os.environ.get(own)):
        return _expand(value, own)
    if value := os.environ.get(xdg):
        return _expand(value, xdg) / "tertium"
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local) / "tertium" / windows
    return _expand("~", "HOME") / unix / "tertium"


def _expand(text: str, variable: str) -> Path:
    """A path with `~` filled in; `variable` is where it came from."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise UsageError(
            f"{variable}={text}: the home folder of this user is not known; give a whole path"
        ) from None
