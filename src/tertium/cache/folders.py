"""Where tertium keeps things on a user's disk: models to keep, and a cache that may be deleted."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """`TERTIUM_CACHE`, else `tertium` in the user's cache folder; it need not exist."""
    return _folder("TERTIUM_CACHE", "XDG_CACHE_HOME", ".cache", "cache")


def models_folder() -> Path:
    """`TERTIUM_MODELS`, else `tertium/models` in the user's data folder; it need not exist."""
    if own := os.environ.get("TERTIUM_MODELS"):
        return Path(own).expanduser()
    return _folder("", "XDG_DATA_HOME", ".local/share", "data") / "models"


def hub_folder() -> Path:
    """Where the Hugging Face libraries keep what they downloaded."""
    if cache := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(cache).expanduser()
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "huggingface"
    return Path(os.environ.get("HF_HOME") or default).expanduser() / "hub"


def _folder(own: str, xdg: str, unix: str, windows: str) -> Path:
    if own and (value := os.environ.get(own)):
        return Path(value).expanduser()
    if value := os.environ.get(xdg):
        return Path(value).expanduser() / "tertium"
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local) / "tertium" / windows
    return Path.home() / unix / "tertium"
