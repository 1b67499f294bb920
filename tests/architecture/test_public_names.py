"""The public names are pinned, documented and typed; importing tertium is fast."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

import tertium

HEAVY = ("torch", "transformers", "spacy", "sacrebleu", "sklearn", "ot", "scipy", "pyarrow", "ray")
PINNED = """
AgreementStudy ChallengeStudy CheckReport Comparison CorpusSummary Evaluation
Explanation GateResult Judgment Metric Preference Project Ranker Ranking RaterStudy
Report Route RoutedTranslations ScoreMatrix Scores Segment SegmentMetric Span
TertiumError TestSet WorstSegments __version__ agree apply_route challenge check compare
explain fit_route gate load_metric load_ranker meta_evaluate plan_campaign plan_power
rank read_project report runtime score score_corpus train worst write_back
"""


def test_public_names_are_pinned() -> None:
    assert sorted(tertium.__all__) == PINNED.split()
    assert dir(tertium) == sorted(tertium.__all__)


def test_no_submodule_replaces_a_public_name() -> None:
    """Importing a submodule sets it as an attribute of the package."""
    for module in pkgutil.iter_modules(tertium.__path__):
        if module.name != "__main__":
            importlib.import_module(f"tertium.{module.name}")
    for name in tertium.__all__:
        assert not isinstance(getattr(tertium, name), ModuleType), name
    assert dir(tertium) == sorted(tertium.__all__)


PUBLIC_NAMES = sorted({*tertium.__all__} - {"__version__"})


@pytest.mark.parametrize("name", PUBLIC_NAMES)
def test_a_public_name_has_a_docstring(name: str) -> None:
    value = getattr(tertium, name)
    own = value.__dict__.get("__doc__") if inspect.isclass(value) else value.__doc__
    assert own
    assert not own.startswith(f"{name}(")  # the signature that `dataclass` writes


@pytest.mark.parametrize("name", PUBLIC_NAMES)
def test_a_public_name_is_fully_annotated(name: str) -> None:
    """Functions, and the public methods that a class defines itself."""
    value = getattr(tertium, name)
    for function in own_functions(value) if inspect.isclass(value) else [value]:
        signature = inspect.signature(function)
        missing = [
            p.name
            for p in signature.parameters.values()
            if p.annotation is p.empty and p.name not in ("self", "cls")
        ]
        assert missing == [], function
        assert signature.return_annotation is not signature.empty, function


def own_functions(cls: type) -> Iterator[Callable[..., Any]]:
    for name, member in vars(cls).items():
        if isinstance(member, classmethod | staticmethod):
            member = member.__func__
        if inspect.isfunction(member) and not name.startswith("_"):
            yield member


def modules_loaded_by(statement: str) -> set[str]:
    code = f"{statement}; import sys; print(' '.join(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(result.stdout.split())


def test_importing_tertium_loads_no_heavy_library() -> None:
    assert not modules_loaded_by("import tertium") & set(HEAVY)


def test_the_command_line_parser_loads_no_heavy_library() -> None:
    statement = (
        "from tertium.cli import COMMANDS, load_command; "
        "from tertium.cli.arguments import make_parser, parameter_types; "
        "functions = {name: load_command(name) for name in COMMANDS}; "
        "[make_parser(name, own, parameter_types(own)) for name, own in functions.items()]"
    )
    assert not modules_loaded_by(statement) & set(HEAVY)


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(tertium, "no_such_thing")
