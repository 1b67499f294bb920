"""Choose how the score of tertium-multi is corrected by readouts and chrF.

    python -m recipes.multi.combine columns/ --write

`columns/` is the output of `recipes.multi.columns`. The corrected score is a weighted sum of the
bounded network score, the readouts (`recipes.multi.readouts`) and chrF. The weights of score and
chrF depend on how strongly words are fragmented by the vocabulary. A hill climb on the development
sets and their paragraphs maximizes the mean r over groups of datasets; older systems count six
times. Datasets where r is below chrF, or below r with fewer texts, are penalized. Weights fitted
on the training rows do worse: the network scores its own training rows better than new ones.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor

from recipes.flagship.package import quantize
from recipes.flagship.ship import write_config
from recipes.multi.columns import READOUTS_FILE
from recipes.multi.readouts import READOUT_NAMES, load_readouts
from tertium.cache.cached_files import hash_file
from tertium.metrics.flagship.row_scorer import NETWORK
from tertium.metrics.flagship.score_correction import NEUTRAL_CHRF
from tertium.metrics.flagship.tertium_multi import INPUT_MODES, READOUT, InputMode, TertiumMulti
from tertium.models.checkpoint import bundled_models_folder

Floats = NDArray[np.float64]
SOFTNESS = (1.0, 1.5, 2.0, 3.0)
GROUP_WEIGHTS = {"dev/dev:wmt15": 6.0, "dev/dev:qe20": 6.0}
STEPS = (0.5, 0.25, 0.125, 0.0625)
MIN_ROWS = 50
# penalty per r below chrF, and the required margin: calibration to 0..1 changes r slightly
CHRF_PENALTY, CHRF_MARGIN = 0.5, 0.004
COLUMNS = ("bounded", *READOUT_NAMES, "chrf", "fragmented chrf", "fragmented share", "score")
CHRF_COLUMN, FRAGMENTED_SHARE, RAW_COLUMN = (
    COLUMNS.index(n) for n in ("chrf", "fragmented share", "score")
)
# leaves the network score unchanged
IDENTITY_CORRECTION = {
    "share": 1.0,
    "softness": 1e6,
    "letters": 0.0,
    "strange_share": 0.0,
    "strange_letters": 0.0,
}


@dataclass(frozen=True)
class Moments:
    """Means and covariance of the columns of one dataset; the human score is the last column."""

    name: str
    covariance: Floats
    means: Floats
    rows: int

    def r(self, weights: Floats) -> float:
        """Return the correlation of the weighted sum with the human score."""
        inner, outer = self.covariance[:-1, :-1], self.covariance[:-1, -1]
        spread = np.sqrt(max(weights @ inner @ weights, 1e-12) * self.covariance[-1, -1])
        return float(weights @ outer / spread)

    def slope(self, weights: Floats) -> float:
        """Return the regression slope of the human score on the weighted sum."""
        inner = self.covariance[:-1, :-1]
        return float(weights @ self.covariance[:-1, -1] / (weights @ inner @ weights))


def soft_clip(scores: Floats, softness: float) -> Floats:
    """Bound scores smoothly: s / sqrt(1 + (s / softness)^2)."""
    return np.asarray(scores / np.sqrt(1 + (scores / softness) ** 2))


@dataclass(frozen=True)
class ColumnTable:
    """Columns of rows as written by `recipes.multi.columns`, for one input mode."""

    table: Floats  # (rows, COLUMNS)
    copied: Floats  # penalty for copies of the source
    human: Floats
    sets: NDArray[np.int16]
    names: list[str]

    @classmethod
    def load(cls, folder: Path, name: str, mode: InputMode, softness: float) -> ColumnTable:
        """Load the columns; chrF is zero without a reference, the raw score is for comparison."""
        with np.load(folder / f"{name}.npz") as stored:
            scores = stored[f"said_{mode}"].astype(np.float64)
            readouts = stored[f"read_{mode}"].astype(np.float64)
            source_chrf, chrf = stored["letters"][:, :2].astype(np.float64).T
            zeros, bounded = np.zeros_like(scores), soft_clip(scores, softness)
            fragmentation = zeros if mode == "source" else stored["strange"].astype(np.float64)
            chrf = zeros if mode == "source" else chrf
            copied = np.maximum(2 * source_chrf - 1, 0) * np.minimum(bounded, 0)
            return cls(
                np.column_stack(
                    [
                        bounded,
                        readouts,
                        chrf,
                        fragmentation * (chrf - NEUTRAL_CHRF),
                        -fragmentation * bounded,
                        scores,
                    ]
                ),
                zeros if mode == "reference" else copied,
                stored["human"].astype(np.float64),
                stored["set"],
                stored["names"].tolist(),
            )


def load_moments(folder: Path, name: str, mode: InputMode, softness: float) -> list[Moments]:
    """Return the moments of every dataset with at least `MIN_ROWS` rows."""
    columns, moments = ColumnTable.load(folder, name, mode, softness), []
    values = np.column_stack([columns.table, columns.human])
    for number, title in enumerate(columns.names):
        rows = values[(columns.sets == number) & np.isfinite(columns.table[:, RAW_COLUMN])]
        if len(rows) >= MIN_ROWS:
            moments.append(Moments(f"{name}/{title}", np.cov(rows.T), rows.mean(0), len(rows)))
    return moments


def detection_rates(
    folder: Path, mode: InputMode, softness: float, weights: Floats, name: str = "damage"
) -> dict[str, float]:
    """Return for each kind of damage the share of texts that score below the original.

    With `name="references"`: the share of outputs that score below their human references.
    """
    columns = ColumnTable.load(folder, name, mode, softness)
    scores = columns.table @ weights + columns.copied
    is_lower = scores[1::2] < scores[::2]
    sets = columns.sets[::2]
    return {t: float(is_lower[sets == n].mean()) for n, t in enumerate(columns.names)}


def unit_weights(column: int) -> Floats:
    """Return weights that select a single column."""
    return np.eye(len(COLUMNS))[column]


def objective(
    sets: Sequence[Moments], weights: Floats, minimums: Mapping[str, float] | None = None
) -> float:
    """Return the weighted mean r over groups, less penalties for chrF and `minimums`."""
    shortfall = sum(
        max(0.0, dataset.r(unit_weights(CHRF_COLUMN)) + CHRF_MARGIN - dataset.r(weights))
        for dataset in sets
        if dataset.covariance[CHRF_COLUMN, CHRF_COLUMN]
    )
    group_r = group_means(sets, weights)
    for name, minimum in (minimums or {}).items():
        if name in group_r:
            group_r[name] -= max(0.0, minimum - group_r[name])
    group_weights = [GROUP_WEIGHTS.get(name, 1.0) for name in group_r]
    mean = float(np.average([*group_r.values()], weights=group_weights))
    return mean - CHRF_PENALTY * shortfall


def group_name(dataset: Moments) -> str:
    """Return the group of a dataset: its name without the language pair."""
    return dataset.name.rpartition("/")[0]


def group_means(sets: Sequence[Moments], weights: Floats) -> dict[str, float]:
    """Return the mean r of each group."""
    groups: dict[str, list[float]] = {}
    for dataset in sets:
        groups.setdefault(group_name(dataset), []).append(dataset.r(weights))
    return {name: float(np.mean(rs)) for name, rs in groups.items()}


def hill_climb(
    sets: Sequence[Moments], minimums: Mapping[str, float] | None = None
) -> tuple[float, Floats]:
    """Find weights of all columns but the last; none is negative for any fragmentation."""
    weights = unit_weights(0)
    best = objective(sets, weights, minimums)
    for step in STEPS:
        improved = True
        while improved:
            improved = False
            for place, move in product(range(RAW_COLUMN), (step, -step)):
                candidate = weights.copy()
                candidate[place] += move
                is_valid = candidate[place] >= 0 and candidate[0] >= candidate[FRAGMENTED_SHARE]
                candidate_value = objective(sets, candidate, minimums) if is_valid else best
                if candidate_value > best + 1e-5:
                    best, weights, improved = candidate_value, candidate, True
    return best, weights


def choose_weights(
    folder: Path, mode: InputMode, minimums: Mapping[str, float] | None = None
) -> tuple[float, Floats, dict[str, float]]:
    """Return softness, weights on the scale of standardized scores, and r of each group."""
    candidates = []
    for softness in SOFTNESS:
        sets = [
            m for n in ("dev", "dev-paragraphs") for m in load_moments(folder, n, mode, softness)
        ]
        candidates.append((*hill_climb(sets, minimums), softness, sets))
    # among equal values, the largest softness keeps most of the penalty for copies
    _, weights, softness, sets = max(candidates, key=lambda t: (round(t[0], 4), t[2]))
    print(f"{mode}: {objective(sets, weights):.4f}")
    slopes = [m.slope(weights) for m in sets if group_name(m) in GROUP_WEIGHTS]
    weights = weights * np.mean(slopes)
    for dataset in sets:
        before, after = dataset.r(unit_weights(RAW_COLUMN)), dataset.r(weights)
        line = f"  {dataset.name:36} {dataset.rows:5} {before:.3f} -> {after:.3f}"
        if dataset.covariance[CHRF_COLUMN, CHRF_COLUMN]:
            line += f"  chrF {dataset.r(unit_weights(CHRF_COLUMN)):.3f}"
        print(line)
    means = group_means(sets, weights)
    for name, minimum in (minimums or {}).items():
        if name in means:
            print(f"  {name:36} {means[name]:.4f}, with fewer texts {minimum:.4f}")
    return softness, weights, means


def write_corrections(
    corrections: Mapping[InputMode, dict[str, float]],
    readouts: Mapping[InputMode, Mapping[str, Tensor]],
) -> None:
    """Write corrections and readouts into the bundled model; other input modes stay.

    Readouts are weights named as in `joint_network.Readout`; matrices become int8 rows.
    """
    folder = bundled_models_folder() / TertiumMulti.name
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    old = load_file(folder / READOUT) if (folder / READOUT).exists() else {}
    new: dict[str, Tensor] = {}
    for number, mode in enumerate(INPUT_MODES):
        prefix = f"{NETWORK}readouts.{number}."
        if mode not in readouts:
            new |= {name: tensor for name, tensor in old.items() if name.startswith(prefix)}
            continue
        tensors = {f"{prefix}{n}": tensor.float().clone() for n, tensor in readouts[mode].items()}
        compact = quantize({n: t for n, t in tensors.items() if n.endswith("squeeze.weight")})
        new |= {**tensors, **compact}
    save_file(new, folder / READOUT)
    config["parts"] = {**config.get("parts", {}), READOUT: hash_file(folder / READOUT)}
    write_config(
        folder, {**config, "corrections": {**config.get("corrections", {}), **corrections}}
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("columns", type=Path, help="output folder of recipes.multi.columns")
    parser.add_argument("--write", action="store_true", help="write into the bundled model")
    parser.add_argument(
        "--views",
        dest="modes",
        nargs="+",
        choices=INPUT_MODES,
        default=INPUT_MODES,
        help="input modes to write (default: all)",
    )
    args = parser.parse_args()
    corrections: dict[InputMode, dict[str, float]] = {}
    readouts: dict[InputMode, dict[str, Tensor]] = {}
    minimums: dict[str, float] = {}
    for mode in INPUT_MODES:
        both_minimums = minimums if mode == "both" else None
        softness, weights, means = choose_weights(args.columns, mode, both_minimums)
        minimums = {n: max(r, minimums.get(n, r)) for n, r in means.items()}
        shares = dict(zip(COLUMNS, (round(float(weight), 4) for weight in weights), strict=True))
        readout_shares = [shares[name] for name in READOUT_NAMES]
        corrections[mode] = {
            "share": shares["bounded"],
            "softness": softness,
            "letters": shares["chrf"],
            "strange_share": shares["fragmented share"],
            "strange_letters": shares["fragmented chrf"],
        }
        readouts[mode] = load_readouts(args.columns / READOUTS_FILE, mode).mix(readout_shares)
        print(
            mode,
            json.dumps(corrections[mode]),
            "readouts",
            *(f"{share:.3f}" for share in readout_shares),
        )
        for name in ("damage", "references") if mode == "source" else ("damage",):
            rates = detection_rates(args.columns, mode, softness, weights, name)
            kinds = " ".join(f"{kind} {rate:.2f}" for kind, rate in rates.items())
            print(f"{mode} {name} {np.mean([*rates.values()]):.4f}: {kinds}", flush=True)
    if args.write:
        write_corrections(
            {mode: corrections[mode] for mode in args.modes},
            {mode: readouts[mode] for mode in args.modes},
        )


if __name__ == "__main__":
    main()
