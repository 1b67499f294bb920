"""An install without extras is sound, and every package of an extra is known to bring its module.

`make extras` runs the same for every combination of extras.
"""

from __future__ import annotations

import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.extras.environments import EXTRAS, PROJECT, make_environment, run_smoke

from tertium.errors import MissingResourceError
from tertium.extras import EXTRA_OF, explain_missing, is_installed, require


@pytest.mark.skipif(sys.platform == "win32", reason="environments are made of links")
@pytest.mark.parametrize("models", [True, False])
def test_without_extras_every_command_works_or_names_the_extra(
    tmp_path: Path, models: bool
) -> None:
    done = run_smoke(make_environment(tmp_path / "venv", (), models=models), (), tmp_path)
    assert done.returncode == 0, done.stderr


def test_every_extra_brings_the_modules_it_is_named_for() -> None:
    brought = packages_distributions()
    for module, extra in EXTRA_OF.items():
        listed = PROJECT["optional-dependencies"][extra]
        names = {canonicalize_name(Requirement(text).name) for text in listed}
        if module in brought and module not in ("tokenizers", "huggingface_hub"):  # transformers'
            assert {canonicalize_name(name) for name in brought[module]} & names, module


def test_every_package_of_an_extra_is_known() -> None:
    brought = packages_distributions()
    known = {canonicalize_name(dist) for module in EXTRA_OF for dist in brought.get(module, ())}
    for extra in EXTRAS:
        for text in PROJECT["optional-dependencies"][extra]:
            assert canonicalize_name(Requirement(text).name) in known, text


def test_a_module_that_no_extra_brings_keeps_its_error() -> None:
    with pytest.raises(ModuleNotFoundError), explain_missing():
        raise ModuleNotFoundError(name="tertium.none")


def test_what_is_missing_is_said_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ot", None)
    assert not is_installed("numpy", "ot")
    with pytest.raises(MissingResourceError) as caught:
        require("ot", purpose="wmd", also=["models"], hint="or use bertr")
    expected = 'wmd needs POT: pip install "tertium[neural,models]" (or use bertr)'
    assert str(caught.value) == expected
