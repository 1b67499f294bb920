"""COMET's `load_from_checkpoint` and `predict` for tertium's metrics.

Replace `from comet import ...` by `from tertium.compat.comet import ...` and name one of tertium's
metrics, or the folder of a COMET checkpoint (`comet_metric`). The names of published checkpoints
that are not on this machine raise an error: another metric's score would be mistaken for COMET's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tertium.compat.comet_metric import COMET
from tertium.core.arrays import is_integer_at_least
from tertium.core.errors import UnknownNameError, UsageError
from tertium.core.runtime import current_runtime, runtime
from tertium.metrics.base.compatibility_calls import Prediction
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric

ACCELERATORS = ("auto", "cpu", "gpu", "cuda", "mps")


class Model:
    """A metric with the `predict` method of COMET's models."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric

    def eval(self) -> Model:
        """Return the model unchanged: tertium's metrics have no training mode."""
        return self

    def requires_references(self) -> bool:
        """Whether records need a `ref`."""
        return "references" in self.metric.required_inputs

    def predict(
        self,
        samples: Iterable[Mapping[str, Any]] | Any,
        batch_size: int = 16,
        gpus: int | None = None,
        devices: Sequence[int] | str | int | None = None,
        mc_dropout: int = 0,
        progress_bar: bool = True,
        accelerator: str = "auto",
        num_workers: int | None = None,
        length_batching: bool = True,
    ) -> Prediction:
        """Score records with `mt` and, as the metric needs them, `src` and `ref`.

        `gpus=0` uses the CPU, `gpus=1` a GPU, `devices=[N]` GPU number N. `progress_bar`,
        `num_workers` and `length_batching` have no effect.
        """
        if mc_dropout:
            raise UsageError("mc_dropout is not supported; tertium-small reports an uncertainty")
        device = _device(gpus, devices, accelerator) or current_runtime().device
        with runtime(batch_size=batch_size, device=device):
            return self.metric.predict(samples)


def download_model(
    model: str, saving_directory: str | Path | None = None, local_files_only: bool = False
) -> str:
    """Return the spec or folder of a model unchanged, after a check. Nothing is downloaded."""
    if saving_directory is not None:
        raise UsageError(
            f"saving_directory={str(saving_directory)!r}: nothing is downloaded or saved"
        )
    _load(model)  # fail early on an unknown name
    return str(model)


def load_from_checkpoint(
    checkpoint_path: str,
    reload_hparams: bool = False,
    strict: bool = False,
    local_files_only: bool = False,
) -> Model:
    """Load the model of a spec or folder; settings are always read and weights always checked.

    >>> model = load_from_checkpoint(download_model("chrf"))
    >>> model.predict([{"src": "Hallo", "mt": "hello", "ref": "hello"}], gpus=0).system_score
    100.0
    """
    return Model(_load(checkpoint_path))


def _load(model: str) -> Metric:
    if not isinstance(model, str | Path):
        raise UsageError(f"expected the spec or folder of a model, such as 'chrf', got {model!r}")
    name = str(model)
    folder = _find_checkpoint(name)
    if folder:
        return COMET(model=str(folder))
    return load_metric(name)


def _find_checkpoint(path: str) -> Path | None:
    candidates = (Path(path), *list(Path(path).parents)[1:2])
    return next((folder for folder in candidates if (folder / "hparams.yaml").is_file()), None)


def _device(
    gpus: int | None, devices: Sequence[int] | str | int | None, accelerator: str
) -> str | None:
    if gpus is not None and gpus not in (0, 1):
        raise UsageError(f"gpus={gpus!r}: expected 0 or 1; choose a GPU with devices=[N]")
    if accelerator not in ACCELERATORS:
        raise UnknownNameError("accelerator", str(accelerator), ACCELERATORS)
    numbers = devices if isinstance(devices, list | tuple) else ()
    if devices is not None and (len(numbers) != 1 or not is_integer_at_least(numbers[0], 0)):
        raise UsageError(
            f"devices={devices!r}: expected the number of one GPU in a list, such as [0]; "
            "gpus=0 uses the CPU"
        )
    if gpus == 0 or accelerator == "cpu":
        return "cpu"
    if accelerator == "mps":
        return "mps"
    if devices is not None:
        return f"cuda:{numbers[0]}"
    return "cuda" if gpus == 1 or accelerator in ("gpu", "cuda") else None
