"""Settings that define a head: encoder, compared texts, sizes and dropout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tertium.core.errors import UsageError
from tertium.encoders.encoder import EncoderName
from tertium.models.input_columns import REQUIRED_INPUTS, Against, check_against

Difference = Literal["signed", "absolute"]
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
