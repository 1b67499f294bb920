"""tertium-base: cross-encoder for translations into English.

A fine-tuned mpnet reads reference and hypothesis jointly. The package contains a low-rank delta to
the public encoder (`bundled_model`), which is applied in memory. Pairs share no computation, so it
takes about seven times as long as tertium-small. It agrees better with human scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tertium.core.arrays import FloatArray, IntArray
from tertium.core.errors import ModelError
from tertium.core.fields import Sha256
from tertium.core.runtime import Precision
from tertium.encoders.encoder import EncoderName
from tertium.encoders.tokenizer import Tokenizer
from tertium.encoders.transformer_encoder import build_encoder
from tertium.encoders.weight_files import locate_weights, read_tensors
from tertium.metrics.bundled.bundled_model import (
    ENCODER_PREFIX,
    BundledModel,
    apply_weight_delta,
    load_bundled_model,
)
from tertium.metrics.bundled.calibrated_metric import (
    EnglishCalibratedMetric,
    EnglishModelSettings,
    settings_suffix,
)
from tertium.metrics.bundled.input_rows import (
    Row,
    RowNetwork,
    collect_scores,
)

if TYPE_CHECKING:
    from torch import Tensor

    from tertium.metrics.bundled.row_alignment import CrossHead

MODEL = "tertium-base"
HEAD_PREFIX = "head."


@dataclass(frozen=True, kw_only=True)
class BaseSettings(EnglishModelSettings):
    """The `config.json` of tertium-base.

    `encoder` and `encoder_sha256` identify the public encoder, `positions` is the maximum length of
    a pair. Raw scores are the output of the head times `scale` plus `shift`.
    """

    encoder: str
    encoder_sha256: Sha256
    positions: int
    scale: float
    shift: float


class PairScorer(RowNetwork):
    """The fine-tuned encoder and its head: pairs of texts in, raw scores out."""

    def __init__(self, model: BundledModel, precision: Precision, device: str) -> None:
        super().__init__(model, precision, device)
        self._settings = settings = model.settings(BaseSettings)
        self.max_length = settings.positions
        name = EncoderName.parse(settings.encoder)
        self._weights = locate_weights(name)
        if self._weights.hash != settings.encoder_sha256:
            raise ModelError(
                f"{model.folder.name} needs the encoder {settings.encoder} with the hash "
                f"{settings.encoder_sha256[:8]}, but the one in {self._weights.folder} has "
                f"{self._weights.hash[:8]}: run tertium setup install {settings.encoder}"
            )
        tuned = replace(self._weights, load_tensors=self._tuned_tensors)
        self._encoder = build_encoder(name, tuned, precision=precision, device=device)

    @property
    def tokenizer(self) -> Tokenizer:
        return self._encoder.tokenizer

    @property
    def max_pieces(self) -> int:
        return (self.max_length - 4) // 2

    @cached_property
    def _head(self) -> CrossHead:
        from tertium.metrics.bundled.row_alignment import CrossHead

        hidden = self._encoder.settings.hidden
        head = self._model.restore_network(lambda: CrossHead(hidden, dropout=0.0), HEAD_PREFIX)
        return head.to(self._encoder.network.device)

    def _tuned_tensors(self) -> dict[str, Tensor]:
        stored = read_tensors(self._weights.folder)
        public = {name: value for name, value in stored.items() if value.is_floating_point()}
        return apply_weight_delta(public, self._model.stored_tensors(ENCODER_PREFIX))

    def __call__(self, rows: Sequence[Row]) -> FloatArray:
        """Compute the raw score of each row, (rows, 1)."""
        import torch

        inputs = [self._join_ids(row) for row in rows]
        lengths = np.array([len(ids) for ids in inputs], dtype=np.int64)
        network = self._encoder.network
        head = self._head

        def run(batch: IntArray) -> tuple[IntArray, FloatArray]:
            [states], _ = network([inputs[n] for n in batch], [network.depth], None)
            with torch.inference_mode():
                pairs = zip(states, lengths[batch].tolist(), strict=True)
                means = [pair[:length].mean(dim=0, keepdim=True) for pair, length in pairs]
                if network.device != "cpu":  # on a CPU one by one, to be batch-invariant
                    means = [torch.cat(means)]
                raw = torch.cat([head(mean) for mean in means])[:, 0].float().cpu().numpy()
            return batch, raw.astype(np.float64) * self._settings.scale + self._settings.shift

        return collect_scores(network.map_batches(run, lengths), len(rows))

    def _join_ids(self, row: Row) -> tuple[int, ...]:
        """Return the ids of `<s> reference </s></s> hypothesis </s>`."""
        tokenizer = self.tokenizer
        size = self.max_pieces
        start = tokenizer.prefix_ids
        end = tokenizer.suffix_ids
        hypothesis, reference = tokenizer.encode_ids([row[0], row[2] or ""])
        return (*start, *reference[:size], *end, *end, *hypothesis[:size], *end)


@dataclass(frozen=True, kw_only=True, eq=False)
class TertiumBase(EnglishCalibratedMetric):
    """Expected human score of a translation into English, 0 to 1, by a cross-encoder.

        score = calibrate(scale * network(reference, hypothesis) + shift)

    Scores have the same meaning as those of tertium-small, with their own calibration, uncertainty
    and percentiles.

    Inputs: English references. The public encoder must be installed (`tertium setup install
    mpnet`).

    Settings:

    - `references`: `best` or `mean` score over several references.
    - `scale`: `da` for direct assessment, `mqm` for 1 - penalty / 25 under MQM.
    - `folder`: another model of this architecture, as `recipes.flagship.package` writes it.

    See also: `tertium-small` was trained on the same data and is seven times as fast.

    >>> metric = TertiumBase(scale="mqm")
    >>> metric.spec, metric.higher_is_better
    ('tertium-base:scale=mqm', True)
    """

    name: ClassVar[str] = MODEL
    title: ClassVar[str] = "tertium-base"
    network: ClassVar[type[RowNetwork]] = PairScorer

    folder: str = ""

    @property
    def model(self) -> BundledModel:
        return BundledModel(Path(self.folder)) if self.folder else load_bundled_model(MODEL)

    @property
    def settings(self) -> BaseSettings:
        return self.model.settings(BaseSettings)

    @property
    def fingerprint(self) -> str:
        return self.model.hash + settings_suffix(self.model.config)

    @property
    def weights_hash(self) -> str:
        return self.fingerprint

    @property
    def calibration_suffix(self) -> str:
        """Identifies the settings of a model in `folder`; empty for the bundled model."""
        return settings_suffix(self.model.config) if self.folder else ""
