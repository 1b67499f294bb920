"""How to learn, in plain values for which no torch is needed: options, recipes, what epochs report.

The options of a family are a dataclass whose fields say all that is known of them:

    rate: Annotated[float, Range(0, above=True), "step of Adam"] = 4e-4

From there come the checks, the options of `tertium train`, its help and its tables of defaults
(`describe_options`); a `Recipe` is a named instance with the settings that go with it.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple

from tertium.errors import UsageError
from tertium.specs import Range, check_types, print_value, ranges

Schedule = Literal["constant", "linear"]
Against = Literal["reference", "source", "both"]
PairLoss = Literal["logistic", "hinge"]
# what a segment must have to be compared so
NEEDS: Mapping[str, frozenset[str]] = {
    "reference": frozenset({"references"}),
    "source": frozenset({"source"}),
    "both": frozenset({"references", "source"}),
}

Count = Annotated[int, Range(1)]
Rate = Annotated[float, Range(0, above=True)]
Rates = Annotated[tuple[float, ...], Range(0, above=True)]


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to train: types and ranges of fields are checked, wherever their values come from.

    Of several values, each must be in the range, and there must be one.
    """

    def __post_init__(self) -> None:
        check_types(type(self), vars(self))
        for name, allowed in ranges(type(self)).items():
            value = getattr(self, name)
            several = value if isinstance(value, tuple | list) else (value,)
            if value is not None and not (several and all(one in allowed for one in several)):
                raise UsageError(f"{name}={print_value(value)}: expected {allowed}")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A preset of a learner: `settings` of what is learned, `options` of how; `says` whence."""

    says: str
    options: Any
    settings: Mapping[str, Any] = field(default_factory=dict)


def check_against(against: str) -> None:
    """Refuse what a hypothesis cannot be compared with."""
    if against not in NEEDS:
        raise UsageError(f"against={against}: expected reference, source or both")


class Option(NamedTuple):
    """One field of an options dataclass: `kind` is its type, `says` what it means."""

    name: str
    kind: Any
    says: str
    default: str

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")


def describe_options(options: Any) -> list[Option]:
    """The fields of options, or of their class, that say what they mean.

    >>> [option.flag for option in describe_options(TrainingOptions)]
    []
    """
    kinds, hints = _hints(options if isinstance(options, type) else type(options))
    return [
        Option(f.name, kinds[f.name], said[0], print_value(getattr(options, f.name)))
        for f in dataclasses.fields(options)
        if (said := [m for m in getattr(hints[f.name], "__metadata__", ()) if isinstance(m, str)])
    ]


@cache
def _hints(cls: type) -> tuple[dict[str, Any], dict[str, Any]]:
    """The types of fields, without and with what is said of them, which are slow to evaluate."""
    return typing.get_type_hints(cls), typing.get_type_hints(cls, include_extras=True)


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(Options):
    """How one stage is trained; the defaults are those of Mathur et al. (2019).

    `epochs` at most, stopping after `patience` of them without a better `dev` statistic (0: never);
    `batch_size` examples a step (items, for comparisons); `rate` of Adam, `constant` or falling
    `linear`ly to 0; gradients clipped to a norm of `clip`; `weight_decay` apart from the gradient
    (AdamW); `seed` of everything random; `mixed`: bf16 on a GPU.
    """

    epochs: Count = 30
    patience: Annotated[int, Range(0)] = 5
    batch_size: Count = 32
    rate: Rate = 4e-4
    schedule: Schedule = "constant"
    clip: Rate = 10.0
    weight_decay: Annotated[float, Range(0)] = 0.0
    seed: Annotated[int, Range(0)] = 1
    mixed: bool = True


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """One row of the learning log: `dev` is NaN where nothing is held out."""

    stage: str
    number: int
    loss: float
    dev: float
    seconds: float
    best: bool
