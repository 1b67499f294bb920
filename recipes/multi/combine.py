"""Chooses how the network of tertium-multi is bounded, read a second time, and corrected by chrF.

    python -m recipes.multi.combine columns/ --write

`columns/` is what `recipes.multi.columns` wrote. Of the readings that were learned there
(`recipes.multi.readouts`), of the bounded score and of chrF, and of what the latter two gain or
lose where words are strange to the vocabulary, the shares are chosen on the sets that choose and on
paragraphs of them: the best mean of r over groups of sets, those of older systems counted six
times, less what sets stay behind chrF, and less what a group stays behind its r by fewer texts.
Shares that are learned from the rows which the network learned from do worse: what it says of them
is better there than anywhere else.
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
OLD = {"dev/dev:wmt15": 6.0, "dev/dev:qe20": 6.0}
STEPS = (0.5, 0.25, 0.125, 0.0625)
MIN_ROWS = 50
# what it costs to be behind chrF on a set, and how far to be ahead: maps to 0..1 move r a little
BEHIND, AHEAD = 0.5, 0.004
COLUMNS = ("bounded", *READOUT_NAMES, "letters", "strange letters", "strange share", "said")
LETTERS, STRANGE, SAID = (COLUMNS.index(n) for n in ("letters", "strange share", "said"))
# the network's score as it is
IDENTITY_CORRECTION = {
    "share": 1.0,
    "softness": 1e6,
    "letters": 0.0,
    "strange_share": 0.0,
    "strange_letters": 0.0,
}


@dataclass(frozen=True)
class Moments:
    """Of the rows of a set: the covariance of their columns, people's score the last."""

    name: str
    covariance: Floats
    means: Floats
    rows: int

    def r(self, weights: Floats) -> float:
        inner, outer = self.covariance[:-1, :-1], self.covariance[:-1, -1]
        fit_uncertainty = np.sqrt(max(weights @ inner @ weights, 1e-12) * self.covariance[-1, -1])
        return float(weights @ outer / fit_uncertainty)

    def slope(self, weights: Floats) -> float:
        """How much people's score rises with the sum."""
        inner = self.covariance[:-1, :-1]
        return float(weights @ self.covariance[:-1, -1] / (weights @ inner @ weights))


def soft_clip(said: Floats, softness: float) -> Floats:
    return np.asarray(said / np.sqrt(1 + (said / softness) ** 2))


@dataclass(frozen=True)
class ColumnTable:
    """What `recipes.multi.columns` wrote of rows, as a view sees them."""

    table: Floats  # (rows, COLUMNS)
    copied: Floats  # what the correction holds against copies of the source
    human: Floats
    sets: NDArray[np.int16]
    names: list[str]

    @classmethod
    def load(cls, folder: Path, name: str, mode: InputMode, softness: float) -> ColumnTable:
        """chrF is zero by the source, and what the network says is there for comparison alone."""
        with np.load(folder / f"{name}.npz") as stored:
            said = stored[f"said_{mode}"].astype(np.float64)
            read = stored[f"read_{mode}"].astype(np.float64)
            source, letters = stored["letters"][:, :2].astype(np.float64).T
            none, bounded = np.zeros_like(said), soft_clip(said, softness)
            strange = none if mode == "source" else stored["strange"].astype(np.float64)
            beside = none if mode == "source" else letters
            copied = np.maximum(2 * source - 1, 0) * np.minimum(bounded, 0)
            return cls(
                np.column_stack(
                    [
                        bounded,
                        read,
                        beside,
                        strange * (beside - NEUTRAL_CHRF),
                        -strange * bounded,
                        said,
                    ]
                ),
                none if mode == "reference" else copied,
                stored["human"].astype(np.float64),
                stored["set"],
                stored["names"].tolist(),
            )


def moments(folder: Path, name: str, mode: InputMode, softness: float) -> list[Moments]:
    looked, found = ColumnTable.load(folder, name, mode, softness), []
    table = np.column_stack([looked.table, looked.human])
    for number, title in enumerate(looked.names):
        rows = table[(looked.sets == number) & np.isfinite(looked.table[:, SAID])]
        if len(rows) >= MIN_ROWS:
            found.append(Moments(f"{name}/{title}", np.cov(rows.T), rows.mean(0), len(rows)))
    return found


def detection_rates(
    folder: Path, mode: InputMode, softness: float, weights: Floats, name: str = "damage"
) -> dict[str, float]:
    """Of each kind of damage the share of texts that score below the whole ones before them.

    Or, of each set, of the outputs that score below their human references.
    """
    looked = ColumnTable.load(folder, name, mode, softness)
    raw = looked.table @ weights + looked.copied
    lower = raw[1::2] < raw[::2]
    return {t: float(lower[looked.sets[::2] == n].mean()) for n, t in enumerate(looked.names)}


def unit_weights(column: int) -> Floats:
    return np.eye(len(COLUMNS))[column]


def value(
    sets: Sequence[Moments], weights: Floats, floors: Mapping[str, float] | None = None
) -> float:
    """The mean over groups of sets, less what sets are behind chrF and groups behind floors."""
    groups: dict[str, list[float]] = {}
    behind = 0.0
    for one in sets:
        r = one.r(weights)
        if one.covariance[LETTERS, LETTERS]:
            behind += max(0.0, one.r(unit_weights(LETTERS)) + AHEAD - r)
        groups.setdefault(group_name(one), []).append(r)
    worth = {name: float(np.mean(found)) for name, found in groups.items()}
    for name, floor in (floors or {}).items():
        if name in worth:
            worth[name] -= max(0.0, floor - worth[name])
    sampling_weights = [OLD.get(name, 1.0) for name in worth]
    return float(np.average([*worth.values()], weights=sampling_weights)) - BEHIND * behind


def group_name(one: Moments) -> str:
    return one.name.rpartition("/")[0]


def group_means(sets: Sequence[Moments], weights: Floats) -> dict[str, float]:
    groups: dict[str, list[float]] = {}
    for one in sets:
        groups.setdefault(group_name(one), []).append(one.r(weights))
    return {name: float(np.mean(rs)) for name, rs in groups.items()}


def hill_climb(
    sets: Sequence[Moments], floors: Mapping[str, float] | None = None
) -> tuple[float, Floats]:
    """Shares of all columns but the last, none below zero, wherever words are strange."""
    weights = unit_weights(0)
    best = value(sets, weights, floors)
    for step in STEPS:
        moved = True
        while moved:
            moved = False
            for place, move in product(range(SAID), (step, -step)):
                tried = weights.copy()
                tried[place] += move
                fair = tried[place] >= 0 and tried[0] >= tried[STRANGE]
                found = value(sets, tried, floors) if fair else best
                if found > best + 1e-5:
                    best, weights, moved = found, tried, True
    return best, weights


def choose(
    folder: Path, mode: InputMode, floors: Mapping[str, float] | None = None
) -> tuple[float, Floats, dict[str, float]]:
    """Softness, shares on the scale of standardised direct assessments, and r of each group."""
    tried = []
    for softness in SOFTNESS:
        sets = [m for n in ("dev", "dev-paragraphs") for m in moments(folder, n, mode, softness)]
        tried.append((*hill_climb(sets, floors), softness, sets))
    # of equals the one that bounds least, which leaves most of what is held against copies
    _, weights, softness, sets = max(tried, key=lambda t: (round(t[0], 4), t[2]))
    print(f"{mode}: {value(sets, weights):.4f}")
    old = [m.slope(weights) for m in sets if group_name(m) in OLD]
    weights = weights * np.mean(old)
    for one in sets:
        chrf = (
            f"  chrF {one.r(unit_weights(LETTERS)):.3f}" if one.covariance[LETTERS, LETTERS] else ""
        )
        print(
            f"  {one.name:36} {one.rows:5} {one.r(unit_weights(SAID)):.3f} -> {one.r(weights):.3f}{chrf}"
        )
    means = group_means(sets, weights)
    for name, floor in (floors or {}).items():
        if name in means:
            print(f"  {name:36} {means[name]:.4f}, by fewer texts {floor:.4f}")
    return softness, weights, means


def write_corrections(
    corrections: Mapping[InputMode, dict[str, float]],
    readouts: Mapping[InputMode, Mapping[str, Tensor]],
) -> None:
    """Puts what was chosen into the model that ships; views that are not given stay as they are.

    Readouts are weights by their names in `joint.Readout`; matrices become int8 rows.
    """
    folder = bundled_models_folder() / TertiumMulti.name
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    old = load_file(folder / READOUT) if (folder / READOUT).exists() else {}
    new: dict[str, Tensor] = {}
    for number, mode in enumerate(INPUT_MODES):
        own = f"{NETWORK}readouts.{number}."
        if mode not in readouts:
            new |= {name: value for name, value in old.items() if name.startswith(own)}
            continue
        tensors = {f"{own}{name}": value.float().clone() for name, value in readouts[mode].items()}
        compact = quantize({n: t for n, t in tensors.items() if n.endswith("squeeze.weight")})
        new |= {**tensors, **compact}
    save_file(new, folder / READOUT)
    config["parts"] = {**config.get("parts", {}), READOUT: hash_file(folder / READOUT)}
    write_config(
        folder, {**config, "corrections": {**config.get("corrections", {}), **corrections}}
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("columns", type=Path, help="the folder that recipes.multi.columns wrote")
    parser.add_argument("--write", action="store_true", help="put them into the model that ships")
    parser.add_argument(
        "--views", nargs="+", choices=INPUT_MODES, default=INPUT_MODES, help="which to put"
    )
    args = parser.parse_args()
    corrections: dict[InputMode, dict[str, float]] = {}
    readouts: dict[InputMode, dict[str, Tensor]] = {}
    floors: dict[str, float] = {}
    for mode in INPUT_MODES:
        known = floors if mode == "both" else None
        softness, weights_, means = choose(args.columns, mode, known)
        floors = {n: max(r, floors.get(n, r)) for n, r in means.items()}
        shares = dict(zip(COLUMNS, (round(float(weight), 4) for weight in weights_), strict=True))
        read = [shares[name] for name in READOUT_NAMES]
        corrections[mode] = {
            "share": shares["bounded"],
            "softness": softness,
            "letters": shares["letters"],
            "strange_share": shares["strange share"],
            "strange_letters": shares["strange letters"],
        }
        readouts[mode] = load_readouts(args.columns / READOUTS_FILE, mode).mix(read)
        print(mode, json.dumps(corrections[mode]), "readings", *(f"{share:.3f}" for share in read))
        for name in ("damage", "references") if mode == "source" else ("damage",):
            noticed = detection_rates(args.columns, mode, softness, weights_, name)
            kinds = " ".join(f"{kind} {share:.2f}" for kind, share in noticed.items())
            print(f"{mode} {name} {np.mean([*noticed.values()]):.4f}: {kinds}", flush=True)
    if args.write:
        write_corrections(
            {mode: corrections[mode] for mode in args.modes},
            {mode: readouts[mode] for mode in args.modes},
        )


if __name__ == "__main__":
    main()
