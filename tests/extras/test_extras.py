"""tertium works without extras, and the table of extras is complete.

`make extras` runs the same for every combination of extras.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.extras.environments import EXTRAS, PROJECT, ROOT, make_environment, run_smoke

from tertium.core.errors import MissingResourceError
from tertium.core.extras import (
    EXTRA_BY_MODULE,
    explain_missing,
    install_command,
    is_installed,
    require_modules,
)


@pytest.mark.skipif(sys.platform == "win32", reason="environments consist of links")
@pytest.mark.parametrize("models", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_without_extras_every_command_works_or_names_the_extra(
    tmp_path: Path, models: bool
) -> None:
    result = run_smoke(make_environment(tmp_path / "venv", (), models=models), (), tmp_path)
    assert result.returncode == 0, result.stderr


@cache
def find_providers() -> Mapping[str, list[str]]:
    """The packages that provide each module; reads the metadata of all packages."""
    return packages_distributions()


def test_every_extra_installs_its_modules() -> None:
    providers = find_providers()
    for module, extra in EXTRA_BY_MODULE.items():
        listed = PROJECT["optional-dependencies"][extra]
        names = {canonicalize_name(Requirement(text).name) for text in listed}
        if module in providers and module not in ("tokenizers", "huggingface_hub"):  # transformers'
            assert {canonicalize_name(name) for name in providers[module]} & names, module


def test_every_package_of_an_extra_is_listed() -> None:
    providers = find_providers()
    listed_packages = {
        canonicalize_name(dist) for module in EXTRA_BY_MODULE for dist in providers.get(module, ())
    }
    for extra in EXTRAS:
        for text in PROJECT["optional-dependencies"][extra]:
            assert canonicalize_name(Requirement(text).name) in listed_packages, text


def test_a_module_of_no_extra_keeps_its_error() -> None:
    with pytest.raises(ModuleNotFoundError), explain_missing():
        raise ModuleNotFoundError(name="tertium.none")


def test_missing_modules_are_reported_in_advance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ot", None)
    assert not is_installed("numpy", "ot")
    with pytest.raises(MissingResourceError) as caught:
        require_modules("ot", purpose="wmd", also=["models"], hint="or use bertr")
    expected = 'wmd needs POT: pip install "tertium[neural,models]" (or use bertr)'
    assert str(caught.value) == expected


def test_without_metadata_the_command_installs_the_checkout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def find_nothing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", find_nothing)
    assert install_command("judge") == f'pip install -e "{ROOT}[judge]"'
