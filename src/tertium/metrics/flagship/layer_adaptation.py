"""Train the top layers of tertium-multi on own human scores.

The layers below are frozen: their states of all rows are computed once and kept in a temporary
file, in half precision. Training starts from the shipped layers and from an adapted last layer
(`head_adaptation`). It minimizes, for scores s and human scores z in standard deviations,

    mean of (s - z)^2 + mean over pairs of H(sigmoid(1.5 (z - z')), sigmoid(1.5 (s - s')))

with the cross-entropy H, over pairs of translations of one source that differ in human scores.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from tertium.arrays import Float32Array, FloatArray, IntArray
from tertium.atomic import open_temporary
from tertium.encoders.int8_linear import quantize_weights
from tertium.encoders.model_settings import ROW_SCALE
from tertium.encoders.transformer_layer import (
    ConcatenatedLayout,
    TransformerLayer,
    consecutive_slices,
)
from tertium.execution import progress_task
from tertium.metrics.flagship.calibrated_metric import InputMode
from tertium.metrics.flagship.head_adaptation import (
    Adaptation,
    CrossValidation,
    HeadRidge,
    JudgedValues,
    standard_error,
)
from tertium.metrics.flagship.joint_network import FrozenStates, match_layers
from tertium.metrics.flagship.row_features import Row
from tertium.metrics.flagship.row_scorer import NETWORK, RowScorer, trained_parts
from tertium.metrics.flagship.tertium_multi import INPUT_MODES, TertiumMulti
from tertium.models.training_examples import pearson

logger = logging.getLogger(__name__)
EPOCHS, RATE = 3, 5e-5
SHIPPED_SHARE = 0.5  # of the shipped weights in the mean with trained ones
HELD_OUT_FOLDS = 3  # of those of the head, each with a training of its own
BATCH_PIECES = 2_048
SLOPE = 1.5  # as in the training of tertium-multi
MAX_NORM = 1.0


class StoredWindow(NamedTuple):
    """A window of a row: its place among the stored states, and what is not stored in the file."""

    at: slice
    matches: Mapping[int, Tensor]
    lengths: Mapping[int, int]
    features: Float32Array


class FrozenRows:
    """States of rows below the layers to train, in a temporary file."""

    def __init__(self, reader: RowScorer, rows: Sequence[Row], last: int) -> None:
        self._size, self._width = 0, 0
        with open_temporary() as self._file:
            self.windows, self.sizes = reader.freeze_layers(rows, last, self._store)
        shape = self._size, 2, self._width
        self._states = np.memmap(self._file, dtype=np.float16, mode="r", shape=shape)
        self.pieces = np.array([sum(w.at.stop - w.at.start for w in own) for own in self.windows])

    def _store(self, frozen: FrozenStates) -> StoredWindow:
        states = torch.stack([frozen.states, frozen.mixed], dim=1).cpu().half().numpy()
        self._file.write(states.tobytes())
        at = slice(self._size, self._size + len(states))
        self._size, self._width = at.stop, states.shape[2]
        matches = {role: own.cpu() for role, own in frozen.matches.items()}
        return StoredWindow(at, matches, frozen.lengths, frozen.features)

    def read(self, windows: Sequence[StoredWindow]) -> Tensor:
        """Return last and mixed states of windows, (pieces, 2, hidden)."""
        states = np.concatenate([self._states[window.at] for window in windows])
        return torch.from_numpy(states).float()


class AdaptedLayers(NamedTuple):
    """Trained layers, compressed, with their last layer and the results of cross-validation."""

    head: Adaptation
    weights: dict[str, NDArray[Any]]
    residuals: FloatArray  # human scores minus predictions, of held-out rows
    agreement: dict[str, float]


class LayerTrainer:
    """The top layers, comparisons and head of tertium-multi, and judged rows to train them on."""

    def __init__(
        self,
        base: TertiumMulti,
        rows: Sequence[Row],
        mode: InputMode,
        data: JudgedValues,
        layers: int,
    ) -> None:
        self.network, self.mode = base.reader.build_network("fp32"), INPUT_MODES.index(mode)
        self.data, self.last = data, len(self.network.layers) - layers
        self.stored_names = frozenset(base.model.stored_tensors(NETWORK))
        self.rows = FrozenRows(base.reader, rows, self.last)
        self.parameters = {
            name: weight.requires_grad_()
            for name, weight in self.network.named_parameters()
            if name.startswith(trained_parts(layers))
        }
        self.shipped = {name: w.detach().clone() for name, w in self.parameters.items()}

    def adapt(self, study: CrossValidation, seed: int) -> AdaptedLayers | None:
        """Train on all rows, or return None if that does not clearly help on held-out sources.

        The gain in r must exceed its standard error over the folds, both over tertium-multi and
        over the head that is adapted without training layers.
        """
        targets, residuals, r = self.data.targets, [], []
        for fold in range(HELD_OUT_FOLDS):
            start = HeadRidge(self.data, study.folds != fold).adaptation(study.strength_for(fold))
            part = f"fold {fold + 1} of {HELD_OUT_FOLDS}"
            head = self.fit(np.flatnonzero(study.folds != fold), start, seed, part)
            held_out = np.flatnonzero(study.folds == fold)
            scores = self.predict(held_out, head)
            residuals.append(targets[held_out] - scores)
            r.append(pearson(scores, targets[held_out]))
        shipped, only_head = (own[:HELD_OUT_FOLDS] for own in (study.shipped, study.unbiased))
        gains, error = r - only_head, standard_error(r - only_head)
        if gains.mean() <= error or (r - shipped).mean() <= standard_error(r - shipped):
            logger.warning(
                "trained layers do not clearly agree better with these human scores than a head "
                "adapted alone (r %.3f against %.3f on held-out sources, standard error of the "
                "gain %.3f): only the head is adapted",
                *(np.mean(r), only_head.mean(), error),
            )
            return None
        start = HeadRidge(self.data).adaptation(study.best)
        head = self.fit(np.arange(len(targets)), start, seed, "all judgments")
        agreement = {
            "tertium-multi": shipped.mean(),
            "head": only_head.mean(),
            "adapted": np.mean(r),
        }
        return AdaptedLayers(
            head,
            compress_weights(self.parameters, self.stored_names),
            np.concatenate(residuals),
            {name: round(float(value), 4) for name, value in agreement.items()},
        )

    def fit(self, numbers: IntArray, start: Adaptation, seed: int, part: str) -> Adaptation:
        """Train on some rows, from the shipped layers; returns the last layer to go with them."""
        targets = self.data.targets
        mean, deviation = float(targets[numbers].mean()), float(targets[numbers].std())
        z = torch.from_numpy((targets - mean) / deviation).float()
        self.network.load_state_dict(self.shipped, strict=False)
        weights = nn.Parameter(torch.from_numpy(start.weights / deviation).float())
        bias = nn.Parameter(torch.tensor((start.bias - mean) / deviation))
        trained = [*self.parameters.values(), weights, bias]
        optimizer = torch.optim.AdamW(trained, lr=RATE, betas=(0.9, 0.98), weight_decay=0.0)
        rng, steps = np.random.default_rng(seed), EPOCHS * len(numbers)
        done = 0
        with progress_task(f"training layers, {part}", total=steps) as advance:
            for batch in (b for _ in range(EPOCHS) for b in self._draw_batches(numbers, rng)):
                optimizer.param_groups[0]["lr"] = RATE * (1 - done / steps)
                scores = self.head_values(batch) @ weights + bias
                loss = score_loss(scores, z[batch], self.data.sources[batch])
                optimizer.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[no-untyped-call]
                nn.utils.clip_grad_norm_(trained, MAX_NORM)
                optimizer.step()
                done += len(batch)
                advance(len(batch))
        with torch.no_grad():  # the mean of trained and shipped weights is more robust
            for name, weight in self.parameters.items():
                weight.lerp_(self.shipped[name], SHIPPED_SHARE)
        weights_now = weights.detach().double().numpy() * deviation
        bias_now = float(bias.detach()) * deviation + mean
        return Adaptation(
            weights=weights_now + SHIPPED_SHARE * (start.weights - weights_now),
            bias=bias_now + SHIPPED_SHARE * (start.bias - bias_now),
        )

    def predict(self, numbers: IntArray, head: Adaptation) -> FloatArray:
        """Return the scores of some rows."""
        scores = []
        with torch.inference_mode():
            for batch in split_batches(numbers, self.rows.pieces):
                scores.append(head.predict(self.head_values(batch).double().numpy()))
        return np.concatenate(scores)

    def head_values(self, numbers: IntArray) -> Tensor:
        """Return the values of the head of some rows, (rows, values), with gradients."""
        windows = [window for n in numbers for window in self.rows.windows[n]]
        states, mixed = self.rows.read(windows).unbind(1)
        layout = ConcatenatedLayout([sum(window.lengths.values()) for window in windows])
        places = [
            dict(zip(w.lengths, consecutive_slices([*w.lengths.values()], at.start), strict=True))
            for w, at in zip(windows, layout.slices, strict=True)
        ]
        layers = {}
        for number, layer in enumerate(self.network.layers[self.last :], start=self.last + 1):
            layers[number] = states = run_layer(layer, states, layout)
        alignment = self.network.align_rows(places)
        matches = {
            role: torch.cat([torch.stack([w.matches[role] for w in windows]), own], dim=1)
            for role, own in match_layers(layers, alignment, [*windows[0].matches]).items()
        }
        mixed = mixed + self.network.mix_layers(layers)
        row_states, _ = self.network.pool_states(mixed, matches, alignment, places)
        features = torch.from_numpy(np.stack([window.features for window in windows]))
        values: Tensor = self.network.head(row_states, features, self.mode)
        if len(windows) == len(numbers):
            return values
        parts = torch.split(values, [len(self.rows.windows[n]) for n in numbers])
        sizes = [torch.tensor(self.rows.sizes[n], dtype=values.dtype) for n in numbers]
        return torch.stack([s @ own / s.sum() for own, s in zip(parts, sizes, strict=True)])

    def _draw_batches(self, numbers: IntArray, rng: np.random.Generator) -> Iterator[IntArray]:
        """Return batches with the translations of a source together, sources in random order."""
        names, inverse = np.unique(self.data.sources[numbers], return_inverse=True)
        rank = rng.permutation(len(names))[inverse]
        return split_batches(numbers[np.argsort(rank, kind="stable")], self.rows.pieces)


def run_layer(layer: nn.Module, x: Tensor, layout: ConcatenatedLayout) -> Tensor:
    """Apply a layer with gradients; `TransformerLayer` itself writes to shared buffers."""
    assert isinstance(layer, TransformerLayer)
    attended = []
    for text in layout.split_groups(layer.qkv(x)):  # (1, length, 3 * hidden)
        query, key, value = text.view(*text.shape[:2], 3, layer.heads, -1).permute(2, 0, 3, 1, 4)
        own = F.scaled_dot_product_attention(query, key, value)  # (1, heads, length, head_dim)
        attended.append(own.transpose(1, 2).flatten(2)[0])
    x = layer.norm1(layer.out(torch.cat(attended)) + x)
    result: Tensor = layer.norm2(layer.down(F.gelu(layer.up(x))) + x)
    return result


def score_loss(scores: Tensor, z: Tensor, sources: IntArray) -> Tensor:
    """Return the squared error, plus the loss of the order of translations of one source."""
    left, right = np.nonzero(np.triu(sources[:, None] == sources, 1))
    difference = z[left] - z[right]
    order = F.binary_cross_entropy_with_logits(
        SLOPE * (scores[left] - scores[right]), (SLOPE * difference).sigmoid(), reduction="none"
    )
    is_ordered = difference != 0
    return F.mse_loss(scores, z) + (order * is_ordered).sum() / is_ordered.sum().clamp(min=1)


def split_batches(numbers: IntArray, pieces: IntArray) -> Iterator[IntArray]:
    """Split rows, in this order, into batches of about `BATCH_PIECES`."""
    ends = np.cumsum(pieces[numbers])
    places = (ends - pieces[numbers]) // BATCH_PIECES
    return iter(np.split(numbers, np.flatnonzero(np.diff(places)) + 1))


def compress_weights(
    weights: Mapping[str, Tensor], stored_names: Collection[str]
) -> dict[str, NDArray[Any]]:
    """Store weights as the shipped ones are: matrices as int8 rows, others in single precision."""
    arrays = {}
    for name, weight in weights.items():
        if name + ROW_SCALE in stored_names:
            integers, scale = quantize_weights(weight.detach())
            arrays[name], arrays[name + ROW_SCALE] = integers.numpy(), scale.numpy()
        else:
            arrays[name] = weight.detach().numpy().copy()
    return arrays
