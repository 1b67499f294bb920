"""ESIM: attend, enhance, compose (Mathur et al. 2019, equations 10 to 13; Chen et al. 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from tertium.metrics.heads.metric import PairHead
from tertium.metrics.heads.options import OURS, RECIPES
from tertium.models.options import Recipe

# Over minilm the published 300 units make ESIM cost more than half of what the encoder does.
SMALLER = replace(
    OURS,
    options=replace(OURS.options, comparison_epochs=3),
    settings={**OURS.settings, "hidden": 256},
)


@dataclass(frozen=True, kw_only=True, eq=False)
class ESIM(PairHead):
    """Enhanced sequential inference: attention, then a second BiLSTM over what was attended.

        m = ReLU(F [h; h~; h*h~; h-h~])    p = [mean, max of BiLSTM(m) for r and t]
        y = w' ReLU(W' p + b) + b'

    The strongest of the three where there is much to learn from.
    """

    name: ClassVar[str] = "esim"
    title: ClassVar[str] = "ESIM"
    recipes: ClassVar[Mapping[str, Recipe]] = {**RECIPES, "ours": SMALLER}
