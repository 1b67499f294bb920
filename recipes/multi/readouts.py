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
KINDS = {"crowds": ("da", "qe", "old"), "all": ("da", "mqm", "esa", "qe", "old")}
READINGS = (*KINDS, "layer")
JOINED = "joined:"  # what names of sets of paragraphs begin with
RIDGE = 1.0  # of the variance of a feature within sets
CONSTANT, SAME = 1e-4, 1e-3  # a spread below which a feature says nothing; a variance within sets
LOWEST, HIGHEST = -4.0, 3.0  # of people's scores, in deviations
PART = 20_000  # rows that are computed at once
INNER, SEEDS, EPOCHS, SIZE = 64, 2, 16, 4096  # of the hidden layer: units of a seed, passes, rows
DIRECTIONS = 24  # that it sees in the end
RATE, WARM, DECAY, DROPOUT = 1e-3, 0.15, 0.02, 0.5


def kind_of(name: str) -> str:
    start = name.removeprefix(JOINED).split("/")[0]
    if start == "wmt16":
        return "old"
    if start.startswith(("mlqe", "qe2")):
        return "qe"
    return "esa" if start == "wmt24" else "da" if start.startswith("wmt") else "mqm"


@dataclass(frozen=True)
class Readings:
    """The readings of a view; `straight` and `bias` are those of all, the rest is the layer's."""

    mean: Tensor  # (features,)
    scale: Tensor  # (features,)
    straight: Tensor  # (READINGS, features)
    bias: Tensor  # (READINGS,)
    squeeze: Tensor  # (DIRECTIONS, features)
    inner: Tensor  # (units, DIRECTIONS)
    inner_bias: Tensor  # (units,)
    last: Tensor  # (units,)

    def __call__(self, found: Tensor) -> Tensor:
        """What is read of features, (rows, features) -> (rows, READINGS)."""
        near = bring_near(found, self.mean, self.scale)
        read = near @ self.straight.T + self.bias
        layer = F.gelu(near @ self.squeeze.T @ self.inner.T + self.inner_bias) @ self.last
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


def save_readings(path: Path, views: Mapping[str, Readings]) -> None:
    stored = {
        f"{view}.{field.name}": getattr(one, field.name).float().cpu().numpy()
        for view, one in views.items()
        for field in fields(Readings)
    }
    np.savez_compressed(path, allow_pickle=False, **stored)


def load_readings(path: Path, view: str) -> Readings:
    with np.load(path) as stored:
        return Readings(*(torch.from_numpy(stored[f"{view}.{f.name}"]) for f in fields(Readings)))


def bring_near(found: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    return ((found.float() - mean) * scale).clamp(-MAX_DEVIATIONS, MAX_DEVIATIONS)


def learn_readings(found: Tensor, human: Floats, names: Sequence[str]) -> Readings:
    """The readings of a view from features of rows, (rows, features), half precision."""
    rows = Lessons(found, human, names)
    mean, scale = rows.standardise()
    regressions = [rows.solve(name) for name in KINDS]
    members = [rows.learn_layer(seed) for seed in range(SEEDS)]
    weights, at = (torch.cat([getattr(m.inner, n) for m in members]) for n in ("weight", "bias"))
    squeeze, inner, inner_bias = rows.squeeze(weights.detach(), at.detach())
    straight = [weights for weights, _ in regressions]
    straight.append(torch.stack([m.straight.weight[0] for m in members]).mean(0))
    bias = [at for _, at in regressions]
    bias.append(torch.stack([m.straight.bias[0] + m.last.bias[0] for m in members]).mean())
    return Readings(
        mean,
        scale,
        torch.stack(straight).detach(),
        torch.stack(bias).detach(),
        squeeze,
        inner,
        inner_bias,
        torch.cat([m.last.weight[0] for m in members]).detach() / len(members),
    )


class Lessons:
    """Rows that train, of sets that all weigh alike; people's scores of paragraphs standardised."""

    def __init__(self, found: Tensor, human: Floats, names: Sequence[str]) -> None:
        self.found, device = found, found.device
        titles, sets = np.unique(names, return_inverse=True)
        scores = np.array(human, np.float64)
        for number in np.flatnonzero([title.startswith(JOINED) for title in titles]):
            own = sets == number
            scores[own] = (scores[own] - scores[own].mean()) / max(scores[own].std(), 1e-6)
        kinds = np.array([kind_of(title) for title in titles])[sets]
        self.alone = torch.tensor([not t.startswith(JOINED) for t in titles], device=device)
        self.sets = torch.from_numpy(sets).to(device)
        self.often = torch.from_numpy(1 / np.bincount(sets)[sets]).to(device)
        self.human = torch.from_numpy(scores.clip(LOWEST, HIGHEST)).float().to(device)
        self.of = {
            name: torch.from_numpy(np.isin(kinds, some)).to(device) for name, some in KINDS.items()
        }

    def parts(self) -> Iterator[slice]:
        for start in range(0, len(self.found), PART):
            yield slice(start, start + PART)

    def standardise(self) -> tuple[Tensor, Tensor]:
        """Brings features near, in place; what they were less and times to get there."""
        total = self.often.sum()
        mean = sum((self.often[p] @ self.found[p].double() for p in self.parts()), 0 * total)
        mean = mean / total
        squares = (self.often[p] @ (self.found[p].double() - mean) ** 2 for p in self.parts())
        spread = (sum(squares, 0 * total) / total).sqrt()
        scale = torch.where(spread > CONSTANT, 1 / spread.clamp(min=CONSTANT), 0.0)
        for part in self.parts():
            near = bring_near(self.found[part], mean.float(), scale.float())
            self.found[part] = near.to(self.found.dtype)
        return mean.float(), scale.float()

    def solve(self, name: str) -> tuple[Tensor, Tensor]:
        """A ridge regression on differences within sets of single segments; weights and bias."""
        weight = self.often * self.of[name] * self.alone[self.sets]
        count, features = len(self.alone), self.found.shape[1]
        products, along = weight.new_zeros(features, features), weight.new_zeros(features)
        places, people, sizes = (weight.new_zeros(count, *n) for n in ((features,), (), ()))
        for part in self.parts():
            near, own, w = self.found[part].double(), self.sets[part], weight[part]
            y = w * self.human[part]
            products.addmm_((near * w[:, None]).T, near)
            along += y @ near
            places.index_add_(0, own, near * w[:, None])
            people.index_add_(0, own, y)
            sizes.index_add_(0, own, w)
        total, there = sizes.sum(), sizes > 0
        means = places[there] / sizes[there][:, None]  # of sets
        inside = (products - places[there].T @ means) / total
        along = (along - people[there] @ means) / total
        says = inside.diagonal() > SAME
        spread = torch.where(says, inside.diagonal(), 1.0).sqrt()
        left = torch.where(says[:, None] & says, inside / (spread[:, None] * spread), 0.0)
        left.diagonal().add_(RIDGE + (~says).double())
        solved = torch.cholesky_solve((along / spread * says)[:, None], torch.linalg.cholesky(left))
        weights = solved[:, 0] / spread * says
        return weights.float(), ((people.sum() - places.sum(0) @ weights) / total).float()

    def learn_layer(self, seed: int) -> Layer:
        """A small network beside a linear form, on all rows, for what crowds and everyone said.

        What everyone said helps the layer to see, and is not read.
        """
        torch.manual_seed(seed)
        device = self.found.device
        net = Layer(self.found.shape[1], INNER, len(KINDS)).to(device)
        told = torch.stack([self.of[name] for name in KINDS], 1)
        targets = torch.where(told, self.human[:, None], torch.nan)
        matrices = [p for p in net.parameters() if p.ndim == 2]
        groups = [
            {"params": matrices, "weight_decay": DECAY},
            {"params": [p for p in net.parameters() if p.ndim == 1], "weight_decay": 0.0},
        ]
        best = torch.optim.AdamW(groups, lr=RATE)
        steps = max(1, len(self.found) * EPOCHS // SIZE)
        clock = torch.optim.lr_scheduler.OneCycleLR(
            best, RATE, total_steps=steps + 1, pct_start=WARM
        )
        ends = (self.often * told.any(1)).cumsum(0)
        for _ in range(steps):
            drawn = torch.rand(SIZE, device=device, dtype=ends.dtype) * ends[-1]
            chosen = torch.searchsorted(ends, drawn).clamp(max=len(ends) - 1)
            with torch.autocast(device.type, torch.bfloat16):
                said = net(self.found[chosen].float()).float()
            there = torch.isfinite(targets[chosen])
            loss = F.smooth_l1_loss(said[there], targets[chosen][there])
            best.zero_grad()
            loss.backward()
            best.step()
            clock.step()
        return net

    def squeeze(self, weights: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """A layer's weights, (units, features), as those of few directions and of units on these.

        They are the directions in which what units see differs most.
        """
        share = (self.often / self.often.sum()).float()
        seen = torch.cat([self.found[part].float() @ weights.T for part in self.parts()])
        mean = share @ seen
        covariance = (seen - mean).T @ ((seen - mean) * share[:, None])
        most = torch.linalg.eigh(covariance).eigenvectors[:, -DIRECTIONS:]  # (units, DIRECTIONS)
        return most.T @ weights, most, bias + mean - most @ (most.T @ mean)


class Layer(nn.Module):
    """A linear form and a hidden layer, both of which start at zero, with dropout."""

    def __init__(self, features: int, inner: int, outputs: int) -> None:
        super().__init__()
        self.inner, self.last = nn.Linear(features, inner), nn.Linear(inner, outputs)
        self.straight = nn.Linear(features, outputs)
        for layer in (self.last, self.straight):
            nn.init.zeros_(layer.weight)

    def forward(self, near: Tensor) -> Tensor:
        near = F.dropout(near, DROPOUT, self.training)
        hidden = F.dropout(F.gelu(self.inner(near)), DROPOUT, self.training)
        said: Tensor = self.last(hidden) + self.straight(near)
        return said
