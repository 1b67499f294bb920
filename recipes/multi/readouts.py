"""Fit readouts of the frozen tertium-multi network: regressions on the features of its head.

Each input mode has three readouts: ridge regressions on crowd judgments and on all judgments, and
a small hidden layer, reduced to a few input directions after training. Features are standardized
and clipped to `MAX_DEVIATIONS`. The ridge regressions use differences within datasets only: human
scores have the same mean in each dataset, so features that separate datasets (such as language)
can only mislead them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from tertium.metrics.flagship.joint_network import MAX_DEVIATIONS

Floats = NDArray[np.float32]
JUDGMENT_KINDS = {"crowds": ("da", "qe", "old"), "all": ("da", "mqm", "esa", "qe", "old")}
READOUT_NAMES = (*JUDGMENT_KINDS, "layer")
PARAGRAPH_PREFIX = "joined:"  # of the names of paragraph datasets
RIDGE = 1.0  # relative to the variance of a feature within datasets
MIN_STD, MIN_WITHIN_SET_VARIANCE = 1e-4, 1e-3  # features below are ignored
MIN_HUMAN_SCORE, MAX_HUMAN_SCORE = -4.0, 3.0  # standardized scores are clipped
CHUNK_ROWS = 20_000
HIDDEN_UNITS, ENSEMBLE_SIZE = 64, 2  # units per network, networks with different seeds
EPOCHS, BATCH_SIZE = 16, 4096
REDUCED_DIM = 24  # input directions of the shipped hidden layer
LEARNING_RATE, WARMUP_SHARE, WEIGHT_DECAY, DROPOUT = 1e-3, 0.15, 0.02, 0.5


def judgment_kind(name: str) -> str:
    """Return the kind of judgments of a dataset, from its name."""
    start = name.removeprefix(PARAGRAPH_PREFIX).split("/")[0]
    if start == "wmt16":
        return "old"
    if start.startswith(("mlqe", "qe2")):
        return "qe"
    return "esa" if start == "wmt24" else "da" if start.startswith("wmt") else "mqm"


@dataclass(frozen=True)
class Readouts:
    """All readouts of an input mode.

    `straight` and `bias` are the linear parts of all readouts; the other weights are those of the
    hidden layer, the last readout.
    """

    mean: Tensor  # (features,)
    scale: Tensor  # (features,)
    straight: Tensor  # (readouts, features)
    bias: Tensor  # (readouts,)
    squeeze: Tensor  # (REDUCED_DIM, features)
    inner: Tensor  # (units, REDUCED_DIM)
    inner_bias: Tensor  # (units,)
    last: Tensor  # (units,)

    def __call__(self, features: Tensor) -> Tensor:
        """Map features (rows, features) to readouts (rows, len(READOUT_NAMES))."""
        standardized = standardize_features(features, self.mean, self.scale)
        linear = standardized @ self.straight.T + self.bias
        layer = F.gelu(standardized @ self.squeeze.T @ self.inner.T + self.inner_bias) @ self.last
        return torch.cat([linear[:, :-1], (linear[:, -1] + layer)[:, None]], 1)

    def mix(self, shares: Sequence[float]) -> dict[str, Tensor]:
        """Return the weights of one readout that equals the weighted sum of all."""
        weights = torch.tensor(shares, dtype=self.straight.dtype)
        return {
            "mean": self.mean,
            "scale": self.scale,
            "straight.weight": (weights @ self.straight)[None],
            "straight.bias": (weights @ self.bias)[None],
            "squeeze.weight": self.squeeze,
            "inner.weight": self.inner,
            "inner.bias": self.inner_bias,
            "last.weight": (weights[-1] * self.last)[None],
        }


def save_readouts(path: Path, modes: Mapping[str, Readouts]) -> None:
    stored = {
        f"{mode}.{field.name}": getattr(readouts, field.name).float().cpu().numpy()
        for mode, readouts in modes.items()
        for field in fields(Readouts)
    }
    np.savez_compressed(path, allow_pickle=False, **stored)


def load_readouts(path: Path, mode: str) -> Readouts:
    with np.load(path) as stored:
        return Readouts(*(torch.from_numpy(stored[f"{mode}.{f.name}"]) for f in fields(Readouts)))


def standardize_features(features: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    """Standardize features and clip them."""
    return ((features.float() - mean) * scale).clamp(-MAX_DEVIATIONS, MAX_DEVIATIONS)


def fit_readouts(features: Tensor, human: Floats, names: Sequence[str]) -> Readouts:
    """Fit the readouts of an input mode to features (rows, features) in half precision."""
    rows = ReadoutData(features, human, names)
    mean, scale = rows.standardize()
    regressions = [rows.fit_ridge(name) for name in JUDGMENT_KINDS]
    networks = [rows.fit_hidden_layer(seed) for seed in range(ENSEMBLE_SIZE)]
    weights, biases = (
        torch.cat([getattr(m.inner, n) for m in networks]) for n in ("weight", "bias")
    )
    squeeze, inner, inner_bias = rows.squeeze(weights.detach(), biases.detach())
    straight = [weights for weights, _ in regressions]
    straight.append(torch.stack([m.straight.weight[0] for m in networks]).mean(0))
    bias = [intercept for _, intercept in regressions]
    bias.append(torch.stack([m.straight.bias[0] + m.last.bias[0] for m in networks]).mean())
    return Readouts(
        mean,
        scale,
        torch.stack(straight).detach(),
        torch.stack(bias).detach(),
        squeeze,
        inner,
        inner_bias,
        torch.cat([m.last.weight[0] for m in networks]).detach() / len(networks),
    )


class ReadoutData:
    """Training rows; datasets have equal weight, scores of paragraphs are standardized."""

    def __init__(self, features: Tensor, human: Floats, names: Sequence[str]) -> None:
        self.features, device = features, features.device
        set_names, sets = np.unique(names, return_inverse=True)
        scores = np.array(human, np.float64)
        for number in np.flatnonzero([title.startswith(PARAGRAPH_PREFIX) for title in set_names]):
            rows = sets == number
            own = scores[rows]
            scores[rows] = (own - own.mean()) / max(own.std(), 1e-6)
        kinds = np.array([judgment_kind(title) for title in set_names])[sets]
        self.is_segment_set = torch.tensor(
            [not t.startswith(PARAGRAPH_PREFIX) for t in set_names], device=device
        )
        self.sets = torch.from_numpy(sets).to(device)
        self.sampling_weights = torch.from_numpy(1 / np.bincount(sets)[sets]).to(device)
        self.human = (
            torch.from_numpy(scores.clip(MIN_HUMAN_SCORE, MAX_HUMAN_SCORE)).float().to(device)
        )
        self.kind_masks = {
            name: torch.from_numpy(np.isin(kinds, kinds_)).to(device)
            for name, kinds_ in JUDGMENT_KINDS.items()
        }

    def parts(self) -> Iterator[slice]:
        for start in range(0, len(self.features), CHUNK_ROWS):
            yield slice(start, start + CHUNK_ROWS)

    def standardize(self) -> tuple[Tensor, Tensor]:
        """Standardize the features in place and return their mean and scale."""
        total = self.sampling_weights.sum()
        mean = sum(
            (self.sampling_weights[p] @ self.features[p].double() for p in self.parts()), 0 * total
        )
        mean = mean / total
        squares = (
            self.sampling_weights[p] @ (self.features[p].double() - mean) ** 2 for p in self.parts()
        )
        spread = (sum(squares, 0 * total) / total).sqrt()
        scale = torch.where(spread > MIN_STD, 1 / spread.clamp(min=MIN_STD), 0.0)
        for part in self.parts():
            standardized = standardize_features(self.features[part], mean.float(), scale.float())
            self.features[part] = standardized.to(self.features.dtype)
        return mean.float(), scale.float()

    def fit_ridge(self, name: str) -> tuple[Tensor, Tensor]:
        """Fit a ridge regression within datasets of single segments.

        Return weights and bias.
        """
        weight = self.sampling_weights * self.kind_masks[name] * self.is_segment_set[self.sets]
        count, features = len(self.is_segment_set), self.features.shape[1]
        gram, moments = weight.new_zeros(features, features), weight.new_zeros(features)
        feature_sums, score_sums, sizes = (
            weight.new_zeros(count, *n) for n in ((features,), (), ())
        )
        for part in self.parts():
            standardized, set_ids, w = self.features[part].double(), self.sets[part], weight[part]
            y = w * self.human[part]
            gram.addmm_((standardized * w[:, None]).T, standardized)
            moments += y @ standardized
            feature_sums.index_add_(0, set_ids, standardized * w[:, None])
            score_sums.index_add_(0, set_ids, y)
            sizes.index_add_(0, set_ids, w)
        total, nonempty = sizes.sum(), sizes > 0
        means = feature_sums[nonempty] / sizes[nonempty][:, None]
        within_covariance = (gram - feature_sums[nonempty].T @ means) / total
        moments = (moments - score_sums[nonempty] @ means) / total
        is_informative = within_covariance.diagonal() > MIN_WITHIN_SET_VARIANCE
        spread = torch.where(is_informative, within_covariance.diagonal(), 1.0).sqrt()
        correlation = torch.where(
            is_informative[:, None] & is_informative,
            within_covariance / (spread[:, None] * spread),
            0.0,
        )
        correlation.diagonal().add_(RIDGE + (~is_informative).double())
        solved = torch.cholesky_solve(
            (moments / spread * is_informative)[:, None], torch.linalg.cholesky(correlation)
        )
        weights = solved[:, 0] / spread * is_informative
        return weights.float(), ((score_sums.sum() - feature_sums.sum(0) @ weights) / total).float()

    def fit_hidden_layer(self, seed: int) -> HiddenLayerReadout:
        """Train a linear form plus a hidden layer on crowd and all judgments.

        The output for all judgments only regularizes the hidden layer; it is not used.
        """
        torch.manual_seed(seed)
        device = self.features.device
        net = HiddenLayerReadout(self.features.shape[1], HIDDEN_UNITS, len(JUDGMENT_KINDS)).to(
            device
        )
        is_target = torch.stack([self.kind_masks[name] for name in JUDGMENT_KINDS], 1)
        targets = torch.where(is_target, self.human[:, None], torch.nan)
        matrices = [p for p in net.parameters() if p.ndim == 2]
        groups = [
            {"params": matrices, "weight_decay": WEIGHT_DECAY},
            {"params": [p for p in net.parameters() if p.ndim == 1], "weight_decay": 0.0},
        ]
        optimizer = torch.optim.AdamW(groups, lr=LEARNING_RATE)
        steps = max(1, len(self.features) * EPOCHS // BATCH_SIZE)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, LEARNING_RATE, total_steps=steps + 1, pct_start=WARMUP_SHARE
        )
        ends = (self.sampling_weights * is_target.any(1)).cumsum(0)
        for _ in range(steps):
            drawn = torch.rand(BATCH_SIZE, device=device, dtype=ends.dtype) * ends[-1]
            chosen = torch.searchsorted(ends, drawn).clamp(max=len(ends) - 1)
            with torch.autocast(device.type, torch.bfloat16):
                prediction = net(self.features[chosen].float()).float()
            has_target = torch.isfinite(targets[chosen])
            loss = F.smooth_l1_loss(prediction[has_target], targets[chosen][has_target])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        return net

    def squeeze(self, weights: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Reduce a layer (units, features) to few input directions and units on these.

        The directions are the principal components of the unit inputs.
        """
        share = (self.sampling_weights / self.sampling_weights.sum()).float()
        unit_inputs = torch.cat([self.features[part].float() @ weights.T for part in self.parts()])
        mean = share @ unit_inputs
        covariance = (unit_inputs - mean).T @ ((unit_inputs - mean) * share[:, None])
        directions = torch.linalg.eigh(covariance).eigenvectors[
            :, -REDUCED_DIM:
        ]  # (units, REDUCED_DIM)
        return directions.T @ weights, directions, bias + mean - directions @ (directions.T @ mean)


class HiddenLayerReadout(nn.Module):
    """A linear form plus a hidden layer, both zero at the start, with dropout."""

    def __init__(self, features: int, inner: int, outputs: int) -> None:
        super().__init__()
        self.inner, self.last = nn.Linear(features, inner), nn.Linear(inner, outputs)
        self.straight = nn.Linear(features, outputs)
        for layer in (self.last, self.straight):
            nn.init.zeros_(layer.weight)

    def forward(self, standardized: Tensor) -> Tensor:
        standardized = F.dropout(standardized, DROPOUT, self.training)
        hidden = F.dropout(F.gelu(self.inner(standardized)), DROPOUT, self.training)
        prediction: Tensor = self.last(hidden) + self.straight(standardized)
        return prediction
