"""Chooses how the network of tertium-multi is bounded, read a second time, and corrected by chrF.

    python -m recipes.multi.combine columns/ --write

`columns/` is what `recipes.multi.columns` wrote. Two linear readings of the head's hidden layer
learned there from judgements that train, of modern direct assessments and of all kinds. Of these,
of the bounded score and of chrF the shares are chosen on the sets that choose and on paragraphs of
them: the best mean of r over groups of sets, those of older systems counted six times, less what
any set stays behind chrF. Shares that are learned from the rows which the network learned from do
worse: what it says of them is better there than anywhere else.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from recipes.flagship.ship import write
from recipes.multi.columns import READ, RIDGE
from tertium.cache.files import hash_of
from tertium.metrics.flagship.multi import READOUT, VIEWS, TertiumMulti, View
from tertium.metrics.flagship.rows import NETWORK
from tertium.models.checkpoint import shipped_models

Floats = NDArray[np.float64]
SOFTNESS = (1.0, 1.5, 2.0, 3.0)
MODERN, ALL = 0, 3  # the readings of READ that are used
OLD = {"dev/dev:wmt15": 6.0, "dev/dev:qe20": 6.0}
STEPS = (0.5, 0.25, 0.125, 0.0625)
FEWEST = 50
PLAIN = {"share": 1.0, "softness": 1e6, "letters": 0.0}  # the network's score as it is


@dataclass(frozen=True)
class Moments:
    """Of the rows of a set: the covariance of their columns, people's score the last."""

    name: str
    covariance: Floats
    means: Floats
    rows: int

    def r(self, weights: Floats) -> float:
        inner, outer = self.covariance[:-1, :-1], self.covariance[:-1, -1]
        spread = np.sqrt(max(weights @ inner @ weights, 1e-12) * self.covariance[-1, -1])
        return float(weights @ outer / spread)

    def slope(self, weights: Floats) -> float:
        """How much people's score rises with the sum."""
        inner = self.covariance[:-1, :-1]
        return float(weights @ self.covariance[:-1, -1] / (weights @ inner @ weights))


def bound(said: Floats, softness: float) -> Floats:
    return np.asarray(said / np.sqrt(1 + (said / softness) ** 2))


def moments(folder: Path, name: str, view: View, softness: float) -> list[Moments]:
    """Columns: the bounded score, the two readings, chrF (zero by the source), and the network's
    own score, for comparison."""
    with np.load(folder / f"{name}.npz") as stored:
        said = stored[f"said_{view}"].astype(np.float64)
        read = stored[f"read_{view}"].astype(np.float64)
        letters = stored["letters"][:, 1].astype(np.float64)
        letters = np.zeros_like(said) if view == "source" else letters
        columns = [bound(said, softness), read[:, MODERN], read[:, ALL], letters, said]
        table = np.column_stack([*columns, stored["human"].astype(np.float64)])
        sets = stored["set"]
        found = []
        for number, title in enumerate(stored["names"].tolist()):
            rows = table[(sets == number) & np.isfinite(said)]
            if len(rows) >= FEWEST:
                found.append(Moments(f"{name}/{title}", np.cov(rows.T), rows.mean(0), len(rows)))
    return found


def value(sets: Sequence[Moments], weights: Floats) -> float:
    """The mean over groups of sets, less the mean of what sets are behind chrF."""
    groups: dict[str, list[float]] = {}
    for one in sets:
        r = one.r(weights)
        letters = one.r(np.array([0.0, 0, 0, 1, 0])) if one.covariance[3, 3] else -1.0
        groups.setdefault(one.name.rpartition("/")[0], []).append(r - max(0.0, letters - r))
    often = np.array([OLD.get(name, 1.0) for name in groups])
    return float(often @ [np.mean(rs) for rs in groups.values()] / often.sum())


def climb(sets: Sequence[Moments]) -> tuple[float, Floats]:
    """Shares of the bounded score, the readings and chrF, none below zero."""
    weights = np.array([1.0, 0, 0, 0, 0])
    best = value(sets, weights)
    for step in STEPS:
        moved = True
        while moved:
            moved = False
            for place in range(4):
                for move in (step, -step):
                    tried = weights.copy()
                    tried[place] += move
                    if tried[place] >= 0 and (found := value(sets, tried)) > best + 1e-5:
                        best, weights, moved = found, tried, True
    return best, weights


def choose(folder: Path, view: View) -> tuple[float, Floats]:
    """Softness and shares, on the scale of standardised direct assessments."""
    tried = []
    for softness in SOFTNESS:
        sets = [m for n in ("dev", "dev-paragraphs") for m in moments(folder, n, view, softness)]
        tried.append((*climb(sets), softness, sets))
    best, weights, softness, sets = max(tried, key=lambda t: t[0])
    print(f"{view}: {best:.4f}")
    old = [m.slope(weights) for m in sets if m.name.rpartition("/")[0] in OLD]
    weights = weights * np.mean(old)
    own, letters = np.array([0.0, 0, 0, 0, 1]), np.array([0.0, 0, 0, 1, 0])
    for one in sets:
        chrf = f"  chrF {one.r(letters):.3f}" if one.covariance[3, 3] else ""
        print(f"  {one.name:36} {one.rows:5} {one.r(own):.3f} -> {one.r(weights):.3f}{chrf}")
    return softness, weights


def readings(folder: Path, view: View) -> Floats:
    """The two readings as weights of the hidden layer and a bias, (2, hidden + 1)."""
    found = []
    with np.load(folder / "readouts.npz") as stored:
        for kinds in (READ[MODERN], READ[ALL]):
            total = sum(
                stored[f"{view} {k}"].astype(np.float64) for k in kinds if f"{view} {k}" in stored
            )
            left, right = np.array(total)[:-1, :-1], np.array(total)[:-1, -1]
            inner = np.arange(len(left) - 1)
            left[inner, inner] += RIDGE * left[inner, inner].mean()
            found.append(np.linalg.solve(left, right))
    return np.array(found)


def put_corrections(corrections: Mapping[View, dict[str, float]], weights: Floats) -> None:
    """Puts what was chosen into the model that ships."""
    folder = shipped_models() / TertiumMulti.name
    readout = torch.from_numpy(weights.astype(np.float32))
    tensors = {"weight": readout[:, :-1].contiguous(), "bias": readout[:, -1].contiguous()}
    save_file({f"{NETWORK}readout.{n}": t for n, t in tensors.items()}, folder / READOUT)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["parts"] = {**config.get("parts", {}), READOUT: hash_of(folder / READOUT)}
    write(folder, {**config, "corrections": dict(corrections)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("columns", type=Path, help="the folder that recipes.multi.columns wrote")
    parser.add_argument("--write", action="store_true", help="put them into the model that ships")
    given = parser.parse_args()
    corrections: dict[View, dict[str, float]] = {}
    weights = []
    for view in VIEWS:
        softness, (share, modern, every, letters, _) = choose(given.columns, view)
        corrections[view] = {
            "share": round(float(share), 4),
            "softness": softness,
            "letters": round(float(letters), 4),
        }
        weights.append(np.array([modern, every]) @ readings(given.columns, view))
        print(view, json.dumps(corrections[view]), f"readings {modern:.3f} {every:.3f}")
    if given.write:
        put_corrections(corrections, np.array(weights))


if __name__ == "__main__":
    main()
