"""tertium-small: fast calibrated metric for translations into English.

Trained on human scores, on scores of a larger teacher and on synthetic errors. A fine-tuned
six-layer encoder encodes hypothesis and reference separately; `late_interaction` compares them.
Pairs of one reference are in one batch, in which it is encoded once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np

from tertium.core.arrays import FloatArray, IntArray
from tertium.core.fields import POSITIVE, Sha256
from tertium.core.runtime import Precision, current_runtime
from tertium.encoders.encoder import EncoderName
from tertium.encoders.tokenizer import Tokenizer
from tertium.encoders.transformer_encoder import build_encoder
from tertium.metrics.bundled.bundled_model import BundledModel
from tertium.metrics.bundled.calibrated_metric import (
    EnglishCalibratedMetric,
    EnglishModelSettings,
    PreparedRows,
)
from tertium.metrics.bundled.input_rows import HYPOTHESIS, REFERENCE, Row, distinct_texts
from tertium.metrics.bundled.row_network import Pieces, RowNetwork, collect_scores
from tertium.metrics.bundled.scales import HumanScale, LengthPenalty
from tertium.metrics.bundled.surface_features import surface_features
from tertium.models.input_columns import Against

if TYPE_CHECKING:
    from torch import Tensor

    from tertium.metrics.bundled.late_interaction import LateInteraction

MODEL = "tertium-small"
INT8_LAYERS = ("compare.0", "head.1")  # of the head, with fine activations
PAIRS_PER_REFERENCE = 8  # pairs of one reference in a batch, so that it is encoded once for them
Length = Literal["costs", "free"]


@dataclass(frozen=True, kw_only=True)
class HeadShape:
    """Sizes of the head: encoder layers, their width and the number of surface features."""

    layers: Annotated[int, POSITIVE]
    dim: Annotated[int, POSITIVE]
    surface: Annotated[int, POSITIVE]
    dropout: float = 0.0


@dataclass(frozen=True, kw_only=True)
class SmallSettings(EnglishModelSettings):
    """The `config.json` of tertium-small; `free` is the scale of raw scores without `length`."""

    layers: tuple[int, ...]
    head: HeadShape
    encoder_files: Mapping[str, Sha256]
    length: LengthPenalty
    free: HumanScale


@dataclass(frozen=True, kw_only=True, eq=False)
class TertiumSmall(EnglishCalibratedMetric):
    """Expected human score of a translation into English, 0 to 1.

        score = calibrate(network(hypothesis, reference) + length_penalty(reference))

    `calibrate` is a monotone map to standardized human scores. Only a hypothesis equal to its
    reference scores exactly 1. `uncertainty` is the standard deviation of held-out human scores
    around a score, `percentile` the percentage of WMT system outputs that score lower.

    Inputs: English references. References in other languages raise an error with alternatives.

    Settings:

    - `references`: `best` or `mean` score over several references.
    - `scale`: `da` for direct assessment, `mqm` for 1 - penalty / 25 under MQM.
    - `length`: `costs` penalizes longer references slightly, as MQM annotators find more errors in
      longer segments; `free` does not. The ranking of translations of one segment is the same.

    See also: `tertium-base` is larger, slower and agrees better with humans; BERTScore needs no
    training data; SentSim needs no references.

    >>> TertiumSmall().sentence_score("The train is late.", ["The train is late."])
    1.0
    """

    name: ClassVar[str] = MODEL
    title: ClassVar[str] = "tertium-small"

    length: Length = "costs"

    @property
    def reader(self) -> LateScorer:
        return load_late_scorer(self.model, self.precision, current_runtime().device)

    @property
    def settings(self) -> SmallSettings:
        return self.model.settings(SmallSettings)

    @property
    def calibration_suffix(self) -> str:
        # error sums depend on the length themselves
        is_shifted = self.scale == "da" and self.length == "costs"
        return f"+{self.settings.length}" if is_shifted else ""

    def da_scale(self, mode: Against) -> HumanScale:
        return self.settings.free if self.length == "free" else self.settings

    def da_raw_scores(self, prepared: PreparedRows) -> FloatArray:
        if self.length == "free":
            return prepared.raw
        return prepared.raw + self.settings.length.shift([row[2] or "" for row in prepared.rows])


class LateScorer(RowNetwork):
    """The encoder and the head that compares two encoded texts."""

    def __init__(self, model: BundledModel, precision: Precision, device: str) -> None:
        self._model, self._precision = model, precision
        self._settings = settings = model.settings(SmallSettings)
        self._encoder = build_encoder(
            EncoderName(MODEL, layer="+".join(map(str, settings.layers))),
            model.encoder_weights(settings.encoder_files),
            precision=precision,
            device=device,
        )
        self.max_length = self._encoder.max_length

    @property
    def tokenizer(self) -> Tokenizer:
        return self._encoder.tokenizer

    @property
    def max_pieces(self) -> int:
        return self._encoder.max_tokens

    @cached_property
    def _head(self) -> LateInteraction:
        from tertium.metrics.bundled.late_interaction import LateInteraction

        head = self._model.restore_network(
            lambda: LateInteraction(**asdict(self._settings.head)),
            "head.",
            int8_parts=INT8_LAYERS if self._precision == "int8" else (),
            fine_parts=INT8_LAYERS,
        )
        return head.to(self._encoder.network.device)

    def piece_vectors(self, row: Row) -> dict[int, Pieces]:
        """Return pieces and their vectors at the middle layer."""
        encoder, texts = self._encoder, [row[0], row[2] or ""]
        names = encoder.tokenize(texts)
        states, mask = encoder.hidden_states(encoder.encode_ids(texts), encoder.layer)
        middle = states[len(states) // 2]
        vectors = [middle[n][mask[n]].cpu().numpy() for n in range(2)]
        return {HYPOTHESIS: (names[0], vectors[0]), REFERENCE: (names[1], vectors[1])}

    def __call__(self, rows: Sequence[Row]) -> FloatArray:
        """Compute the raw score of each row, (rows, 1)."""
        encoder, texts = self._encoder, distinct_texts(rows)
        ids = dict(zip(texts, encoder.encode_ids(texts), strict=True))
        groups = _group_by_reference(rows)
        sizes = []
        for group in groups:
            lengths = [len(ids[text]) for text in distinct_texts([rows[n] for n in group])]
            sizes.append(sum(lengths) + len(lengths) * encoder.tokenizer.special_count)

        def run(numbers: IntArray) -> tuple[IntArray, FloatArray]:
            batch = np.concatenate([groups[number] for number in numbers])
            scores = self._score_batch([rows[n] for n in batch], ids)
            return batch, scores.numpy()

        return collect_scores(encoder.network.map_batches(run, sizes), len(rows))

    def _score_batch(self, rows: Sequence[Row], ids: Mapping[str, list[int]]) -> Tensor:
        """Compute the raw scores of rows whose texts have these ids, (rows,)."""
        import torch

        from tertium.metrics.bundled.row_alignment import RowAlignment

        encoder, texts = self._encoder, distinct_texts(rows)
        texts.sort(key=lambda text: len(ids[text]))  # texts of one length share a pass
        states, _ = encoder.hidden_states([ids[text] for text in texts], encoder.layer)
        places = {}
        for number, text in enumerate(texts):
            start = number * states.shape[2] + len(encoder.tokenizer.prefix_ids)
            places[text] = slice(start, start + len(ids[text]))
        slices = [{HYPOTHESIS: places[row[0]], REFERENCE: places[row[2] or ""]} for row in rows]
        features = surface_features([row[0] for row in rows], [row[2] or "" for row in rows])
        alignment = RowAlignment(slices, states.device, padded=encoder.network.device != "cpu")
        with torch.inference_mode():
            surface = torch.tensor(features).float().to(states.device)
            scores: Tensor = self._head(states.flatten(1, 2), alignment, surface)
        return scores.cpu()


@lru_cache(maxsize=4)
def load_late_scorer(model: BundledModel, precision: Precision, device: str) -> LateScorer:
    """Return the scorer of a model, cached."""
    return LateScorer(model, precision, device)


def _group_by_reference(rows: Sequence[Row]) -> list[list[int]]:
    """Group the indices of rows with the same reference, a few at a time.

    >>> _group_by_reference([("x", None, "a"), ("x", None, "b"), ("y", None, "a")])
    [[0, 2], [1]]
    """
    groups: dict[str | None, list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(row[2], []).append(number)
    return [
        numbers[start : start + PAIRS_PER_REFERENCE]
        for numbers in groups.values()
        for start in range(0, len(numbers), PAIRS_PER_REFERENCE)
    ]
