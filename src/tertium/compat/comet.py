"""COMET's way to load a model and predict, for tertium's metrics.

Replace `from comet import ...` by `from tertium.compat.comet import ...` and name one of tertium's
metrics, or the folder of a checkpoint of COMET (`comet_metric`). What is not here is not stood in
for: a score under its name would not be its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tertium.arrays import is_whole
from tertium.compat.comet_metric import COMET
from tertium.errors import UnknownNameError, UsageError
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.peers import Prediction
from tertium.runtime import runtime

ACCELERATORS = ("auto", "cpu", "gpu", "cuda", "mps")


class Model:
    """A metric that answers `predict` as COMET's models do."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric

    def eval(self) -> Model:
        """The model itself: nothing is dropped here by chance."""
        return self

    def requires_references(self) -> bool:
        """Whether records need a `ref`."""
        return "references" in self.metric.needs

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

        `gpus=0` stays on the CPU, `gpus=1` takes a GPU, `devices=[N]` the one of that number;
        unset, what there is. `progress_bar`, `num_workers` and `length_batching` change nothing
        here: texts are always batched by length.
        """
        if mc_dropout:
            raise UsageError("mc_dropout is not here; tertium-small reports an uncertainty")
        device = _device(gpus, devices, accelerator)
        with runtime(batch_size=batch_size, **({"device": device} if device else {})):
            return self.metric.predict(samples)


def download_model(
    model: str, saving_directory: str | Path | None = None, local_files_only: bool = False
) -> str:
    """The path of a model: a metric's spec, or the folder of a trained one. Nothing is fetched."""
    if saving_directory is not None:
        raise UsageError(
            f"saving_directory={str(saving_directory)!r}: nothing is fetched or saved here"
        )
    _load(model)  # an unknown name fails here, with what was meant
    return str(model)


def load_from_checkpoint(
    checkpoint_path: str,
    reload_hparams: bool = False,
    strict: bool = False,
    local_files_only: bool = False,
) -> Model:
    """The model of a spec or folder, whose settings are always read and weights always checked.

    >>> model = load_from_checkpoint(download_model("chrf"))
    >>> model.predict([{"src": "Hallo", "mt": "hello", "ref": "hello"}], gpus=0).system_score
    100.0
    """
    return Model(_load(checkpoint_path))


def _load(model: str) -> Metric:
    if not isinstance(model, str | Path):
        raise UsageError(f"a model is named by a spec or folder, such as 'chrf', not by {model!r}")
    name = str(model)
    folder = _checkpoint_folder(name)
    if folder:
        return COMET(model=str(folder))
    stem = name.partition(":")[0].lower()
    theirs = stem != COMET.name and ("comet" in stem or stem.startswith("unbabel/"))
    if theirs and not Path(name).exists():
        raise UsageError(
            f"{name!r} is a checkpoint of COMET, and tertium does not carry those: choose one of "
            "its metrics, such as tertium-small, esim or sentsim (`tertium list`), or give the "
            "folder of a checkpoint that is on this machine"
        )
    return load_metric(name)


def _checkpoint_folder(path: str) -> Path | None:
    """The folder of a COMET checkpoint that is named, or one whose `checkpoints/model.ckpt` is."""
    candidates = (Path(path), *list(Path(path).parents)[1:2])
    return next((place for place in candidates if (place / "hparams.yaml").is_file()), None)


def _device(
    gpus: int | None, devices: Sequence[int] | str | int | None, accelerator: str
) -> str | None:
    if gpus is not None and gpus not in (0, 1):
        raise UsageError(f"gpus={gpus!r}: 0 or 1, one GPU at most; choose it with devices=[N]")
    if accelerator not in ACCELERATORS:
        raise UnknownNameError("accelerator", str(accelerator), ACCELERATORS)
    chosen = devices if isinstance(devices, list | tuple) else ()
    if devices is not None and (len(chosen) != 1 or not is_whole(chosen[0], 0)):
        raise UsageError(
            f"devices={devices!r}: expected the number of one GPU in a list, such as [0]; "
            "gpus=0 stays on the CPU"
        )
    if gpus == 0 or accelerator == "cpu":
        return "cpu"
    if accelerator == "mps":
        return "mps"
    if devices is not None:
        return f"cuda:{chosen[0]}"
    return "cuda" if gpus == 1 or accelerator in ("gpu", "cuda") else None
