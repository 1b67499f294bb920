"""The size of the package, the imports of commands and the objects they build stay in budget."""

from __future__ import annotations

import warnings

import pytest
from tests.architecture import shape
from tests.architecture.shape import list_imports

from tertium.core.registry import METRICS, RANKERS

CLEARLY_BELOW = 0.97  # of a limit
MAX_COMMAND_TOKENS = 15_000


def check(measured: shape.Measures) -> None:
    """Fail for measures above their limits, and warn about limits that can be lowered."""
    limits, above, lower = shape.read_budgets(), [], []
    for table, values in measured.items():
        for name, value in values.items():
            limit = limits.get(table, {}).get(name)
            text = f"[{table}] {name!r}: {shape.format_number(value)}"
            if limit is None:
                above.append(f"{text}, no limit in budgets.toml")
            elif value > limit:
                above.append(f"{text}, above the limit {shape.format_number(limit)}")
            elif value < CLEARLY_BELOW * limit:
                lower.append(f"{text}, lower the limit {shape.format_number(limit)}")
    assert not above, "\n".join(above)
    if lower:
        command = "python -m tests.architecture.shape --lower"
        warnings.warn("\n".join([f"run `{command}`:", *lower]), stacklevel=2)


def test_tokens_of_each_package() -> None:
    check({"tokens": shape.measure_tokens(), "code": shape.measure_code()})


def test_imports_of_commands() -> None:
    check(shape.measure_imports())


def test_options_of_commands() -> None:
    check({"options": shape.measure_options()})


def test_tokens_of_commands() -> None:
    """The command line and all commands together, in whichever package they are."""
    tokens = shape.measure_commands()
    largest = sorted(tokens.items(), key=lambda item: -item[1])[:20]
    listing = "\n".join(f"{count:6} {name}" for name, count in largest)
    assert sum(tokens.values()) <= MAX_COMMAND_TOKENS, f"{sum(tokens.values())}:\n{listing}"


def test_objects_per_translation() -> None:
    measured = shape.measure_objects()
    for command, values in measured.items():
        assert values["segments per translation"] >= 1, f"{command}: update count_objects"
        assert values["checks per translation"] >= 1, f"{command}: update TEXT_CHECKS"
    check(measured)


def test_opening_of_localization_files() -> None:
    measured = shape.measure_localization()
    for command, values in measured.items():
        assert min(values.values()) >= 1, f"{command}: update count_objects"
    check(measured)


def test_limits_are_for_existing_measures() -> None:
    """A limit of a package that no longer exists would hide that others have grown."""
    limits = shape.read_budgets()
    assert not {*limits["tokens"]} - {*shape.measure_tokens()}
    assert not {*limits["code"]} - {*shape.measure_code()}


def test_a_measure_above_its_limit_fails() -> None:
    with pytest.raises(AssertionError, match="above the limit"):
        check({"code": {"tokens per line": 100.0}})
    with pytest.raises(AssertionError, match="no limit"):
        check({"tokens": {"no such package": 1}})
    with pytest.warns(UserWarning, match="lower the limit"):
        check({"tokens": {"all": 1}})


def test_tokens_are_counted_alike_by_all_versions_of_python() -> None:
    """An f-string is one token, also where the tokenizer splits it."""
    text = '"""Two."""\nx = f"{a + 1} of {f\'{b}\'}"  # a comment\n'
    assert shape.count_tokens(text, {1}) == 3


METRIC_CLASSES = [*METRICS.builtin.values(), *RANKERS.builtin.values()]


@pytest.mark.parametrize("name", ["svr", "bilstm", "pairwise", "tertium-multi"])
def test_training_imports_one_metric(name: str) -> None:
    """Its class, and for tertium-multi that of the trained metric."""
    imported = list_imports(["train", name, "--help"])
    module = {**METRICS.builtin, **RANKERS.builtin}[name].partition(":")[0]
    others = {path.partition(":")[0] for path in METRIC_CLASSES}
    family = module.rpartition(".")[0]
    assert module in imported
    assert {path for path in others & imported if not path.startswith(family)} == set()
