"""The input of every `fit` method: data, settings and options of one training run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tertium.models.training_data import TrainingSets
from tertium.models.training_options import Epoch

LOG = "log.tsv"  # epochs of a resumable run


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingJob:
    """One training run.

    `settings` define the model and `options` how to train it. `dev` selects the best epoch or
    setting and is never trained on. `folder` is where the result is saved, `note` is stored with
    the model, and `on_epoch` is called after each epoch.
    """

    settings: Any
    options: Any
    data: TrainingSets
    dev: TrainingSets = field(default_factory=TrainingSets)
    folder: Path | None = None
    note: str = ""
    on_epoch: Callable[[Epoch], None] | None = None
