"""What is to be learned and how, as plain values: no torch is needed to say it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tertium.encoders.encoder import EncoderName
from tertium.errors import UsageError

Schedule = Literal["constant", "linear"]
Against = Literal["reference", "source", "both"]
Order = Literal["comparisons first", "mixed"]
PairLoss = Literal["logistic", "hinge"]
Difference = Literal["signed", "absolute"]

LAYERED = ("minilm", "mpnet", "hf", "dir")  # families whose layers can be mixed


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How to train; the defaults are those of Mathur et al. (2019).

    `epochs` at most, stopping after `patience` of them without a better `dev` statistic (0: never);
    `batch_size` examples a step (items, for comparisons); `rate` of Adam, `constant` or falling
    `linear`ly to 0; gradients clipped to a norm of `clip`; `weight_decay` apart from the gradient
    (AdamW); `seed` of everything random; `device` as in `runtime`; `mixed`: bf16 on a GPU.
    """

    epochs: int = 30
    patience: int = 5
    batch_size: int = 32
    rate: float = 4e-4
    schedule: Schedule = "constant"
    clip: float = 10.0
    weight_decay: float = 0.0
    seed: int = 1
    device: str = "auto"
    mixed: bool = True

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "rate", "clip"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name}={getattr(self, name)}: expected more than 0")
        if self.patience < 0:
            raise UsageError(f"patience={self.patience}: expected epochs, or 0 to never stop early")


SCORES = TrainingOptions()
# Items are larger than judgements, and there are many: few epochs at a falling rate.
COMPARISONS = TrainingOptions(epochs=4, patience=4, batch_size=64, rate=6e-4, schedule="linear")


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """One row of the learning log: `dev` is NaN where nothing is held out."""

    stage: str
    number: int
    loss: float
    dev: float
    seconds: float
    best: bool


@dataclass(frozen=True, kw_only=True)
class HeadConfig:
    """What decides a head apart from its weights.

    `encoder` is frozen, all its layers mixed unless its name says which (`mpnet@8`); `against` is
    what a hypothesis is compared with; `hidden` units in each direction; `dropout` its rate;
    `input_dropout` that of the encoder's vectors (None: the same); `difference` of two vectors
    with its sign, as published, or absolute, from which a distance is learned far sooner.

    >>> HeadConfig(encoder="mpnet").encoder_name, HeadConfig(encoder="mpnet@8").encoder_name
    ('mpnet@all', 'mpnet@8')
    """

    encoder: str = "minilm"
    against: Against = "reference"
    hidden: int = 300
    dropout: float = 0.5
    input_dropout: float | None = None
    difference: Difference = "signed"

    def __post_init__(self) -> None:
        if self.difference not in ("signed", "absolute"):
            raise UsageError(f"difference={self.difference}: expected signed or absolute")
        if self.input_dropout is not None and not 0 <= self.input_dropout < 1:
            raise UsageError(f"input_dropout={self.input_dropout}: expected 0 to below 1")
        if self.against not in ("reference", "source", "both"):
            raise UsageError(f"against={self.against}: expected reference, source or both")
        if self.hidden < 1 or not 0 <= self.dropout < 1:
            raise UsageError(
                f"hidden={self.hidden}, dropout={self.dropout}: expected at least one hidden unit "
                "and a dropout rate from 0 to below 1"
            )

    @property
    def encoder_name(self) -> str:
        """The encoder with all its layers, unless its name says which."""
        name = EncoderName.parse(self.encoder)
        return f"{self.encoder}@all" if name.family in LAYERED and not name.layer else self.encoder

    @property
    def sides(self) -> int:
        """How many texts a hypothesis is compared with at once."""
        return 2 if self.against == "both" else 1

    @property
    def needs(self) -> frozenset[str]:
        """What a segment must have."""
        references = {"references"} if self.against in ("reference", "both") else set()
        return frozenset(references | ({"source"} if self.against in ("source", "both") else set()))


@dataclass(frozen=True, kw_only=True)
class HeadPlan:
    """How a head is trained.

    `options` on scores, `comparison_options` on comparisons before them or, by `order`, on both at
    once, with a `loss` on the margins of comparisons. `folder` keeps the best epoch and what it
    takes to go on after an interruption; `on_epoch` hears of each epoch.
    """

    options: TrainingOptions = SCORES
    comparison_options: TrainingOptions = COMPARISONS
    order: Order = "comparisons first"
    loss: PairLoss = "logistic"
    folder: Path | None = None
    on_epoch: Callable[[Epoch], None] | None = field(default=None)
