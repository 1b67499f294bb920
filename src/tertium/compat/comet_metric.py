"""COMET: a published estimator (Rei et al. 2020, 2022), loaded from a checkpoint folder.

`unbabel-comet` is not used: it loads checkpoints as pickle files, which can run code, and requires
old versions of numpy and transformers. `comet_network` reimplements its models, and
`comet_checkpoint` reads settings and weights from the folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tertium.compat.comet_checkpoint import (
    AGAINST,
    encoder_folder,
    hash_settings,
    read_hyperparameters,
    weights_file,
)
from tertium.core.arrays import FloatArray, IntArray
from tertium.core.errors import MissingResourceError
from tertium.core.extras import explain_missing
from tertium.core.runtime import Precision, current_runtime
from tertium.core.segment import REQUIRED_INPUTS, Segment
from tertium.core.store import cached_file_hash
from tertium.metrics.base.loading import find_comet_error
from tertium.metrics.base.metric import (
    ReferenceReduction,
    SegmentMetric,
    reduce_references,
    text_columns,
)
from tertium.metrics.base.text_warnings import Flags

if TYPE_CHECKING:
    from tertium.compat.comet_network import Estimator


@dataclass(frozen=True, kw_only=True)
class COMET(SegmentMetric):
    """The prediction of a COMET checkpoint, on the scale it was trained on; higher is better.

    Supports regression estimators (wmt20-comet-da, wmt22-comet-da), those without references
    (wmt20-comet-qe-da) and unified ones (wmt22-cometkiwi-da). With several references a segment
    gets its `best` score or the `mean`. `model` is the folder, `precision` the encoder's.

    Related metrics: `tertium-small` and `esim` are trained on the same kind of judgments and are
    bundled.
    """

    name: ClassVar[str] = "comet"
    title: ClassVar[str] = "COMET"
    citation: ClassVar[str] = """@inproceedings{rei-etal-2022-comet,
  title = {{COMET}-22: {U}nbabel-{IST} 2022 Submission for the Metrics Shared Task},
  author = {Rei, Ricardo and C. de Souza, Jos{\\'e} G. and Alves, Duarte and Zerva, Chrysoula and
            Farinha, Ana C and Glushkova, Taisiya and Lavie, Alon and Coheur, Luisa and
            Martins, Andr{\\'e} F. T.},
  booktitle = {Proceedings of the Seventh Conference on Machine Translation (WMT)},
  year = {2022},
  pages = {578--585},
}"""

    model: str = ""
    references: ReferenceReduction = "best"
    precision: Precision = "fp32"

    @property
    def required_inputs(self) -> frozenset[str]:
        against = AGAINST[read_hyperparameters(self._folder).inputs] if self.model else "both"
        return REQUIRED_INPUTS[against]

    @property
    def model_ids(self) -> tuple[str, ...]:
        weights = cached_file_hash(weights_file(self._folder))
        return (f"comet@{weights[:8]}+{hash_settings(self._folder)}",)

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        name = self._folder.name.replace(":", "-").replace("|", "-")
        fields = {"weights": self.model_ids[0].replace("comet", name), "prec": self.precision}
        if "references" in self.required_inputs and any(len(s.references) > 1 for s in segments):
            fields["refs"] = self.references
        truncated = self._estimator.find_truncated(self._rows(segments)[1])
        return {**fields, "trunc": str(len(truncated))}

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        owners, rows = self._rows(segments)
        return reduce_references(self._estimator.predict(rows), owners, self.references)

    def flags(self, segments: Sequence[Segment]) -> Flags:
        owners, rows = self._rows(segments)
        flags = super().flags(segments)
        for kind, mask in self._estimator.flag_inputs(rows).items():
            flags[kind] = np.bincount(owners, weights=mask, minlength=len(segments)) > 0
        return flags

    def _rows(self, segments: Sequence[Segment]) -> tuple[IntArray, list[tuple[str, ...]]]:
        against = AGAINST[read_hyperparameters(self._folder).inputs]
        owners, (hypotheses, *other_texts) = text_columns(segments, against)
        return owners, list(
            zip(hypotheses, *reversed(other_texts), strict=True)
        )  # the source first

    @property
    def _folder(self) -> Path:
        if not self.model:
            raise MissingResourceError(
                "comet has no bundled model: give the folder of a COMET checkpoint (with its "
                "hparams.yaml) as comet:model=FOLDER"
            )
        folder = Path(self.model).expanduser()
        if (error := find_comet_error(self.model)) and not folder.exists():
            raise error
        return folder

    @property
    def _estimator(self) -> Estimator:
        return _load_estimator(
            self._folder, self.model_ids, self.precision, current_runtime().device
        )


@lru_cache(maxsize=2)
def _load_estimator(
    folder: Path, learned: tuple[str, ...], precision: Precision, device: str
) -> Estimator:
    """Load the network of a folder, once per process as long as `learned` stays the same."""
    with explain_missing(f"comet:model={folder}"):
        from tertium.compat.comet_network import Estimator

        hparams = read_hyperparameters(folder)
        return Estimator(
            hparams,
            weights_file(folder),
            encoder_folder(folder, hparams),
            precision=precision,
            device=device,
        )
