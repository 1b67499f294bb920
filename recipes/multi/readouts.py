"""Second readings of the frozen tertium-multi, learned from what its head sees in rows that train.

By each view three: ridge regressions on what crowds said and on what everyone said, and a small
hidden layer, which in the end sees by few directions what it saw. All take features less their mean
and over their spread, and none further away than `MAX_DEVIATIONS`. The regressions look at differences
within a set alone: people's scores have the same mean in each, so that what tells sets apart, as
languages, can only mislead them.
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
PARAGRAPH_PREFIX = "joined:"  # what names of sets of paragraphs begin with
RIDGE = 1.0  # of the variance of a feature within sets
MIN_STD, MIN_WITHIN_SET_VARIANCE = (
    1e-4,
    1e-3,
)  # a spread below which a feature says nothing; a variance within sets
MIN_HUMAN_SCORE, MAX_HUMAN_SCORE = -4.0, 3.0  # of people's scores, in deviations
CHUNK_ROWS = 20_000  # rows that are computed at once
HIDDEN_UNITS, ENSEMBLE_SIZE, EPOCHS, BATCH_SIZE = (
    64,
    2,
    16,
    4096,
)  # of the hidden layer: units of a seed, passes, rows
REDUCED_DIM = 24  # that it sees in the end
LEARNING_RATE, WARMUP_SHARE, WEIGHT_DECAY, DROPOUT = 1e-3, 0.15, 0.02, 0.5


def judgment_kind(name: str) -> str:
    start = name.removeprefix(PARAGRAPH_PREFIX).split("/")[0]
    if start == "wmt16":
        return "old"
    if start.startswith(("mlqe", "qe2")):
        return "qe"
    return "esa" if start == "wmt24" else "da" if start.startswith("wmt") else "mqm"


@dataclass(frozen=True)
class Readouts:
    """The readings of a view; `straight` and `bias` are those of all, the rest is the layer's."""

    mean: Tensor  # (features,)
    scale: Tensor  # (features,)
    straight: Tensor  # (READINGS, features)
    bias: Tensor  # (READINGS,)
    squeeze: Tensor  # (DIRECTIONS, features)
    inner: Tensor  # (units, DIRECTIONS)
    inner_bias: Tensor  # (units,)
    last: Tensor  # (units,)

    def __call__(self, features: Tensor) -> Tensor:
        """What is read of features, (rows, features) -> (rows, READINGS)."""
        standardized = standardize_features(features, self.mean, self.scale)
        read = standardized @ self.straight.T + self.bias
        layer = F.gelu(standardized @ self.squeeze.T @ self.inner.T + self.inner_bias) @ self.last
        return torch.cat([read[:, :-1], (read[:, -1] + layer)[:, None]], 1)

    def mix(self, shares: Sequence[float]) -> dict[str, Tensor]:
        """The weights of the one readout that says the sum of shares of the readings."""
        each = torch.tensor(shares, dtype=self.straight.dtype)
        return {
            "mean": self.mean,
            "scale": self.scale,
            "straight.weight": (each @ self.straight)[None],
            "straight.bias": (each @ self.bias)[None],
            "squeeze.weight": self.squeeze,
            "inner.weight": self.inner,
            "inner.bias": self.inner_bias,
            "last.weight": (each[-1] * self.last)[None],
        }


def save_readouts(path: Path, modes: Mapping[str, Readouts]) -> None:
    stored = {
        f"{mode}.{field.name}": getattr(one, field.name).float().cpu().numpy()
        for mode, one in modes.items()
        for field in fields(Readouts)
    }
    np.savez_compressed(path, allow_pickle=False, **stored)


def load_readouts(path: Path, mode: str) -> Readouts:
    with np.load(path) as stored:
        return Readouts(*(torch.from_numpy(stored[f"{mode}.{f.name}"]) for f in fields(Readouts)))


def standardize_features(features: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    return ((features.float() - mean) * scale).clamp(-MAX_DEVIATIONS, MAX_DEVIATIONS)


def fit_readouts(features: Tensor, human: Floats, names: Sequence[str]) -> Readouts:
    """The readings of a view from features of rows, (rows, features), half precision."""
    rows = ReadoutData(features, human, names)
    mean, scale = rows.standardize()
    regressions = [rows.fit_ridge(name) for name in JUDGMENT_KINDS]
    members = [rows.fit_hidden_layer(seed) for seed in range(ENSEMBLE_SIZE)]
    weights, at = (torch.cat([getattr(m.inner, n) for m in members]) for n in ("weight", "bias"))
    squeeze, inner, inner_bias = rows.squeeze(weights.detach(), at.detach())
    straight = [weights for weights, _ in regressions]
    straight.append(torch.stack([m.straight.weight[0] for m in members]).mean(0))
    bias = [at for _, at in regressions]
    bias.append(torch.stack([m.straight.bias[0] + m.last.bias[0] for m in members]).mean())
    return Readouts(
        mean,
        scale,
        torch.stack(straight).detach(),
        torch.stack(bias).detach(),
        squeeze,
        inner,
        inner_bias,
        torch.cat([m.last.weight[0] for m in members]).detach() / len(members),
    )


class ReadoutData:
    """Rows that train, of sets that all weigh alike; people's scores of paragraphs standardised."""

    def __init__(self, features: Tensor, human: Floats, names: Sequence[str]) -> None:
        self.features, device = features, features.device
        titles, sets = np.unique(names, return_inverse=True)
        scores = np.array(human, np.float64)
        for number in np.flatnonzero([title.startswith(PARAGRAPH_PREFIX) for title in titles]):
            own = sets == number
            scores[own] = (scores[own] - scores[own].mean()) / max(scores[own].std(), 1e-6)
        kinds = np.array([judgment_kind(title) for title in titles])[sets]
        self.alone = torch.tensor(
            [not t.startswith(PARAGRAPH_PREFIX) for t in titles], device=device
        )
        self.sets = torch.from_numpy(sets).to(device)
        self.sampling_weights = torch.from_numpy(1 / np.bincount(sets)[sets]).to(device)
        self.human = (
            torch.from_numpy(scores.clip(MIN_HUMAN_SCORE, MAX_HUMAN_SCORE)).float().to(device)
        )
        self.of = {
            name: torch.from_numpy(np.isin(kinds, some)).to(device)
            for name, some in JUDGMENT_KINDS.items()
        }

    def parts(self) -> Iterator[slice]:
        for start in range(0, len(self.features), CHUNK_ROWS):
            yield slice(start, start + CHUNK_ROWS)

    def standardize(self) -> tuple[Tensor, Tensor]:
        """Brings features near, in place; what they were less and times to get there."""
        total = self.sampling_weights.sum()
        mean = sum(
            (self.sampling_weights[p] @ self.features[p].double() for p in self.parts()), 0 * total
        )
        mean = mean / total
        squares = (
            self.sampling_weights[p] @ (self.features[p].double() - mean) ** 2 for p in self.parts()
        )
        fit_uncertainty = (sum(squares, 0 * total) / total).sqrt()
        scale = torch.where(fit_uncertainty > MIN_STD, 1 / fit_uncertainty.clamp(min=MIN_STD), 0.0)
        for part in self.parts():
            standardized = standardize_features(self.features[part], mean.float(), scale.float())
            self.features[part] = standardized.to(self.features.dtype)
        return mean.float(), scale.float()

    def fit_ridge(self, name: str) -> tuple[Tensor, Tensor]:
        """A ridge regression on differences within sets of single segments; weights and bias."""
        weight = self.sampling_weights * self.of[name] * self.alone[self.sets]
        count, features = len(self.alone), self.features.shape[1]
        products, along = weight.new_zeros(features, features), weight.new_zeros(features)
        places, people, sizes = (weight.new_zeros(count, *n) for n in ((features,), (), ()))
        for part in self.parts():
            standardized, own, w = self.features[part].double(), self.sets[part], weight[part]
            y = w * self.human[part]
            products.addmm_((standardized * w[:, None]).T, standardized)
            along += y @ standardized
            places.index_add_(0, own, standardized * w[:, None])
            people.index_add_(0, own, y)
            sizes.index_add_(0, own, w)
        total, there = sizes.sum(), sizes > 0
        means = places[there] / sizes[there][:, None]  # of sets
        inside = (products - places[there].T @ means) / total
        along = (along - people[there] @ means) / total
        says = inside.diagonal() > MIN_WITHIN_SET_VARIANCE
        fit_uncertainty = torch.where(says, inside.diagonal(), 1.0).sqrt()
        left = torch.where(
            says[:, None] & says, inside / (fit_uncertainty[:, None] * fit_uncertainty), 0.0
        )
        left.diagonal().add_(RIDGE + (~says).double())
        solved = torch.cholesky_solve(
            (along / fit_uncertainty * says)[:, None], torch.linalg.cholesky(left)
        )
        weights = solved[:, 0] / fit_uncertainty * says
        return weights.float(), ((people.sum() - places.sum(0) @ weights) / total).float()

    def fit_hidden_layer(self, seed: int) -> HiddenLayerReadout:
        """A small network beside a linear form, on all rows, for what crowds and everyone said.

        What everyone said helps the layer to see, and is not read.
        """
        torch.manual_seed(seed)
        device = self.features.device
        net = HiddenLayerReadout(self.features.shape[1], HIDDEN_UNITS, len(JUDGMENT_KINDS)).to(
            device
        )
        is_target = torch.stack([self.of[name] for name in JUDGMENT_KINDS], 1)
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
            there = torch.isfinite(targets[chosen])
            loss = F.smooth_l1_loss(prediction[there], targets[chosen][there])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        return net

    def squeeze(self, weights: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """A layer's weights, (units, features), as those of few directions and of units on these.

        They are the directions in which what units see differs most.
        """
        share = (self.sampling_weights / self.sampling_weights.sum()).float()
        seen = torch.cat([self.features[part].float() @ weights.T for part in self.parts()])
        mean = share @ seen
        covariance = (seen - mean).T @ ((seen - mean) * share[:, None])
        most = torch.linalg.eigh(covariance).eigenvectors[:, -REDUCED_DIM:]  # (units, DIRECTIONS)
        return most.T @ weights, most, bias + mean - most @ (most.T @ mean)


class HiddenLayerReadout(nn.Module):
    """A linear form and a hidden layer, both of which start at zero, with dropout."""

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
