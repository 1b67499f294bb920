"""What decides a head and how it learns: its settings, its options, and the recipes of both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

from tertium.encoders.encoder import EncoderName
from tertium.errors import UsageError
from tertium.models.options import (
    NEEDS,
    Against,
    Options,
    PairLoss,
    Recipe,
    Schedule,
    TrainingOptions,
    check_against,
)
from tertium.specs import Range

Difference = Literal["signed", "absolute"]
LAYERED = ("minilm", "mpnet", "hf", "dir")  # families whose layers can be mixed


@dataclass(frozen=True, kw_only=True)
class HeadConfig:
    """What decides a head apart from its weights.

    `encoder` is frozen, all its layers mixed unless its name says which (`mpnet@8`), but of `e5`
    and `use` one; `against` is what a hypothesis is compared with; `hidden` units in each
    direction; `dropout` its rate;
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
        check_against(self.against)
        if self.hidden < 1 or not 0 <= self.dropout < 1:
            raise UsageError(
                f"hidden={self.hidden}, dropout={self.dropout}: expected at least one hidden unit "
                "and a dropout rate from 0 to below 1"
            )

    @property
    def encoder_name(self) -> str:
        """The encoder with all its layers where they are mixed and its name does not say which."""
        name = EncoderName.parse(self.encoder)
        return f"{self.encoder}@all" if name.family in LAYERED and not name.layer else self.encoder

    @property
    def sides(self) -> int:
        """How many texts a hypothesis is compared with at once."""
        return 2 if self.against == "both" else 1

    @property
    def needs(self) -> frozenset[str]:
        """What a segment must have."""
        return NEEDS[self.against]


@dataclass(frozen=True, kw_only=True)
class HeadOptions(Options):
    """How a head is trained, on comparisons where there are any and then on scores.

    The defaults are those of Mathur et al. (2019); comparisons are ours. Items are larger than
    judgments, and there are many: few epochs at a rate that falls to 0.
    """

    epochs: Annotated[int, Range(1), "epochs on scores, at most"] = 30
    patience: Annotated[int, Range(0), "epochs without a better one before it stops (0: never)"] = 5
    batch_size: Annotated[int, Range(1), "judgments of a step"] = 32
    rate: Annotated[float, Range(0, above=True), "step of Adam on scores"] = 4e-4
    schedule: Annotated[Schedule, "whether that rate stays or falls to 0"] = "constant"
    weight_decay: Annotated[float, Range(0), "decay of weights apart from the gradient"] = 0.0
    comparison_epochs: Annotated[int, Range(1), "epochs on comparisons"] = 4
    comparison_rate: Annotated[float, Range(0, above=True), "step of Adam on comparisons"] = 6e-4
    items: Annotated[int, Range(1), "ranked segments of a step"] = 64
    after: Annotated[
        float, Range(0, 1, above=True), "share of epochs and rate on scores that follow comparisons"
    ] = 1.0
    loss: Annotated[PairLoss, "of the margins of comparisons"] = "logistic"
    mixed: Annotated[bool, "scores and comparisons at once"] = False
    seed: Annotated[int, Range(0), "of everything random"] = 1

    def on_scores(self, after: bool) -> TrainingOptions:
        """The stage of scores, `after` one of comparisons or alone."""
        share = self.after if after else 1.0
        return TrainingOptions(
            epochs=max(1, round(share * self.epochs)),
            patience=self.patience,
            batch_size=self.batch_size,
            rate=share * self.rate,
            schedule=self.schedule,
            weight_decay=self.weight_decay,
            seed=self.seed,
        )

    @property
    def on_comparisons(self) -> TrainingOptions:
        """The stage of comparisons, which never stops early."""
        return TrainingOptions(
            epochs=self.comparison_epochs,
            patience=0,
            batch_size=self.items,
            rate=self.comparison_rate,
            schedule="linear",
            weight_decay=self.weight_decay,
            seed=self.seed,
        )


PUBLISHED = Recipe(
    says="Mathur et al. (2019): signed differences, dropout of the encoder's vectors too, a "
    "constant rate, early stopping",
    options=HeadOptions(),
)
# With the published sign and dropout every head learns far less over these encoders; after
# comparisons there are fewer epochs at half the rate, so that less is forgotten.
OURS = Recipe(
    says="as those that ship: absolute differences, whole vectors, a falling rate",
    options=HeadOptions(
        epochs=12, patience=12, schedule="linear", comparison_epochs=2, items=32, after=0.5
    ),
    settings={"difference": "absolute", "input_dropout": 0.0},
)
RECIPES = {"published": PUBLISHED, "ours": OURS}

# Over minilm the published 300 units make ESIM cost more than half of what the encoder does.
SMALLER = replace(
    OURS,
    options=replace(OURS.options, comparison_epochs=3),
    settings={**OURS.settings, "hidden": 256},
)
