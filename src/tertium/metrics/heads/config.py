"""Settings that define a head, and its training options and recipes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

from tertium.core.fields import Range, check_ranges, check_types
from tertium.core.segment import REQUIRED_INPUTS, Against
from tertium.encoders.encoder import EncoderName
from tertium.models.training_options import Options, PairLoss, Recipe, Schedule, TrainingOptions

Difference = Literal["signed", "absolute"]
DropoutRate = Annotated[float, Range(0, 0.99)]
MULTI_LAYER_ENCODERS = ("minilm", "mpnet", "hf", "dir")  # families whose layers can be mixed


@dataclass(frozen=True, kw_only=True)
class HeadConfig:
    """Settings of a head.

    `encoder` is frozen. All its layers are mixed unless its name selects some (`mpnet@8`); `e5` and
    `use` have one layer. `against` is what a hypothesis is compared with. `hidden` is the number of
    units per direction, `dropout` the dropout rate, and `input_dropout` that of the encoder's
    vectors (None: the same). `difference` of two vectors is signed, as published, or absolute,
    which learns distances from far fewer examples.

    >>> HeadConfig(encoder="mpnet").encoder_name, HeadConfig(encoder="mpnet@8").encoder_name
    ('mpnet@all', 'mpnet@8')
    """

    encoder: str = "minilm"
    against: Against = "reference"
    hidden: Annotated[int, Range(1)] = 300
    dropout: DropoutRate = 0.5
    input_dropout: DropoutRate | None = None
    difference: Difference = "signed"

    def __post_init__(self) -> None:
        check_types(HeadConfig, vars(self))
        check_ranges(HeadConfig, vars(self))

    @property
    def encoder_name(self) -> str:
        """Encoder name, with `@all` if its layers are mixed."""
        name = EncoderName.parse(self.encoder)
        mixes_layers = name.family in MULTI_LAYER_ENCODERS and not name.layer
        return f"{self.encoder}@all" if mixes_layers else self.encoder

    @property
    def encoder_names(self) -> tuple[str, ...]:
        """Names of all encoders."""
        return (self.encoder_name,)

    @property
    def sides(self) -> int:
        """Number of texts a hypothesis is compared with at once."""
        return 2 if self.against == "both" else 1

    @property
    def required_inputs(self) -> frozenset[str]:
        """Inputs every segment must have."""
        return REQUIRED_INPUTS[self.against]


@dataclass(frozen=True, kw_only=True)
class HeadOptions(Options):
    """Training options of a head: first on comparisons, if there are any, then on scores.

    The defaults are those of Mathur et al. (2019); training on comparisons is our addition. Items
    of comparisons are larger than judgments and numerous, hence few epochs with a decaying rate.
    """

    epochs: Annotated[int, Range(1), "maximum number of epochs on scores"] = 30
    patience: Annotated[
        int, Range(0), "stop after this many epochs without improvement (0: never)"
    ] = 5
    batch_size: Annotated[int, Range(1), "judgments per step"] = 32
    rate: Annotated[float, Range(0, exclusive=True), "learning rate on scores"] = 4e-4
    schedule: Annotated[Schedule, "constant rate, or linear decay to 0"] = "constant"
    weight_decay: Annotated[float, Range(0), "decoupled weight decay (AdamW)"] = 0.0
    comparison_epochs: Annotated[int, Range(1), "epochs on comparisons"] = 4
    comparison_rate: Annotated[float, Range(0, exclusive=True), "learning rate on comparisons"] = (
        6e-4
    )
    items: Annotated[int, Range(1), "ranked segments per step"] = 64
    after: Annotated[
        float, Range(0, 1, exclusive=True), "factor for epochs and rate on scores after comparisons"
    ] = 1.0
    loss: Annotated[PairLoss, "loss of comparison margins"] = "logistic"
    seed: Annotated[int, Range(0), "random seed"] = 1

    def on_scores(self, after: bool) -> TrainingOptions:
        """Return the options of the stage on scores, which may follow one on comparisons."""
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
        """Options of the stage on comparisons, which never stops early."""
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
    description="Mathur et al. (2019): signed differences, dropout of the encoder's vectors too, a "
    "constant rate, early stopping",
    options=HeadOptions(),
)
# Signed differences and input dropout, as published, are much worse over these encoders. After
# comparisons, fewer epochs at half the rate forget less.
OURS = Recipe(
    description="as the bundled models: absolute differences, no input dropout, a decaying rate",
    options=HeadOptions(
        epochs=12, patience=12, schedule="linear", comparison_epochs=2, items=32, after=0.5
    ),
    settings={"difference": "absolute", "input_dropout": 0.0},
)
RECIPES = {"published": PUBLISHED, "ours": OURS}

# Over minilm, ESIM with the published 300 units costs more than half as much as the encoder.
ESIM_RECIPES = {
    "published": PUBLISHED,
    "ours": replace(
        OURS,
        options=replace(OURS.options, comparison_epochs=3),
        settings={**OURS.settings, "hidden": 256},
    ),
}
