"""Where the models that ship lie: the package `tertium_models`, found without importing it."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from tertium.errors import MissingResourceError

PACKAGE = "tertium_models"
MISSING = Path("/nowhere") / PACKAGE  # where nothing is installed: no folder of it exists


@lru_cache(maxsize=1)
def shipped_models() -> Path:
    """The folder that holds one folder for each model that ships."""
    spec = find_spec(PACKAGE)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else MISSING


def are_installed() -> bool:
    """Whether the models that ship are there at all."""
    return shipped_models().is_dir()


def find_shipped(name: str) -> Path:
    """The folder of a model that ships; what would bring it where it is not there."""
    check_installed(name)
    if not (shipped_models() / name).is_dir():
        raise MissingResourceError(
            f"no weights ship for {name}: train them (`tertium train {name}`) and name "
            "their folder with model=FOLDER"
        )
    return shipped_models() / name


def check_installed(name: str) -> None:
    """Say how to install the models that ship where one of them is asked for and none is there."""
    if not are_installed():
        raise MissingResourceError(
            f"the weights of {name} are not installed: install the package tertium-models "
            "(in a checkout: pip install ./weights)"
        )
