"""Training options, recipes and epoch logs as plain dataclasses (no torch import).

Each field of an options dataclass carries its range and its help text:

    rate: Annotated[float, Range(0, above=True), "learning rate of Adam"] = 4e-4

Checks, the options of `tertium train` and its help are derived from these (`describe_options`). A
`Recipe` is a named instance together with the settings that belong to it.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple

from tertium.core.errors import UsageError
from tertium.core.fields import Range, check_types, field_ranges, format_value, type_hints

logger = logging.getLogger(__name__)

Schedule = Literal["constant", "linear"]
PairLoss = Literal["logistic", "hinge"]

Count = Annotated[int, Range(1)]
Rate = Annotated[float, Range(0, exclusive=True)]
Rates = Annotated[tuple[float, ...], Range(0, exclusive=True)]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Base class of training options: types and ranges of all fields are checked."""

    def __post_init__(self) -> None:
        check_types(type(self), vars(self))
        for name, allowed in field_ranges(type(self)).items():
            value = getattr(self, name)
            values = value if isinstance(value, tuple | list) else (value,)
            if value is not None and not (values and all(v in allowed for v in values)):
                raise UsageError(f"{name}={format_value(value)}: expected {allowed}")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A named preset of model `settings` and training `options`; `description` names its source."""

    description: str
    options: Any
    settings: Mapping[str, Any] = field(default_factory=dict)


class TrainingOption(NamedTuple):
    """One field of an options dataclass: `kind` is its type, `description` its help text."""

    name: str
    kind: Any
    description: str
    default: str

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")


def describe_options(options: Any) -> list[TrainingOption]:
    """List the fields of an options object or class that have a help text.

    >>> [option.flag for option in describe_options(TrainingOptions)]
    []
    """
    cls = options if isinstance(options, type) else type(options)
    kinds = type_hints(cls, with_ranges=False)
    hints = type_hints(cls)
    return [
        TrainingOption(f.name, kinds[f.name], texts[0], format_value(getattr(options, f.name)))
        for f in dataclasses.fields(options)
        if (texts := [m for m in getattr(hints[f.name], "__metadata__", ()) if isinstance(m, str)])
    ]


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(Options):
    """Options of one training stage; the defaults are those of Mathur et al. (2019).

    At most `epochs` epochs; stops after `patience` epochs without a better dev statistic (0:
    never). `batch_size` examples per step (items, for comparisons). `rate` is the learning rate of
    AdamW, `constant` or decaying linearly to 0. Gradients are clipped to the norm `clip`. `mixed`
    uses bf16 on a GPU.
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
    """One row of the training log; `dev` is NaN without dev data."""

    stage: str
    number: int
    loss: float
    dev: float
    seconds: float
    best: bool


def warn_at_grid_edge(metric: str, option: str, best: float, values: Sequence[float]) -> None:
    """Log a warning if the best value of a search is the smallest or the largest one tried.

    0 is not an edge: the options that allow it have no smaller values.
    """
    if best == 0 or best not in (min(values), max(values)) or len(set(values)) == 1:
        return
    edge = "smallest" if best == min(values) else "largest"
    flag = option.replace("_", "-")
    message = "%s: the best --%s of the search, %g, is the %s value tried: try others beyond it"
    logger.warning(message, metric, flag, best, edge)
