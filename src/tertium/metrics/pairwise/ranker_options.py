"""Training options and recipes of the pairwise ranker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from tertium.core.fields import Range
from tertium.metrics.pairwise.ranking_network import Cost
from tertium.models.training_options import Options, Recipe


@dataclass(frozen=True, kw_only=True)
class PairwiseOptions(Options):
    """Training options of the pairwise ranker; defaults as published, except `patience`."""

    rate: Annotated[float, Range(0, exclusive=True), "learning rate of Adagrad"] = 0.01
    kendall_rate: Annotated[
        float, Range(0), "learning rate under Kendall's cost (0: same as --rate)"
    ] = 0.0
    batch_size: Annotated[int, Range(1), "comparisons per step"] = 30
    decay: Annotated[float, Range(0), "weight decay"] = 1e-4
    epochs: Annotated[int, Range(1), "maximum number of epochs per cost"] = 10_000
    patience: Annotated[
        int, Range(0), "stop after this many epochs without improvement (0: never)"
    ] = 100
    order: Annotated[
        Literal["given", "random"], "order of the two translations of a pair, per epoch"
    ] = "given"
    choose_on: Annotated[
        int, Range(0), "dev comparisons sampled for selecting the epoch (0: all)"
    ] = field(default=0, repr=False)
    seed: Annotated[int, Range(0), "random seed"] = 0

    def rate_of(self, cost: Cost) -> float:
        """Return the learning rate under a cost."""
        return (self.kendall_rate if cost == "kendall" else 0.0) or self.rate


COST_STAGES: Mapping[str, tuple[Cost, ...]] = {
    "logistic": ("logistic",),
    "kendall": ("kendall",),
    "logistic+kendall": ("logistic", "kendall"),
}
RECIPES: Mapping[str, Recipe] = {
    "published": Recipe(
        description="Guzmán et al. (2015): syntax and word vectors, four metrics, two costs",
        options=PairwiseOptions(patience=0, choose_on=5000),
        settings={
            "vectors": ("syntax25", "glove"),
            "features": ("4metrics",),
            "hidden": 4,
            "cost": "logistic+kendall",
            "scaling": "minmax",
        },
    ),
    "ours": Recipe(
        description="as the bundled model: logistic regression on scores of other metrics",
        options=PairwiseOptions(
            rate=0.1, batch_size=100, epochs=6, patience=0, order="random", seed=1
        ),
    ),
}
