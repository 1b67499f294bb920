"""Stage 8: the last layer learns anew from modern judgements, and longer references get a cost.

    python -m recipes.flagship.anew --data DIR -o anew/ [--most 8000] [--workers 8]

All below the last layer stays as it is. The layer (256 numbers) is a ridge regression towards the
one that shipped, on experts' error weights of 2020 and 2021, direct assessments of 2020 to 2022 and
those of WMT16, each set standardised. Experts add up the errors of a segment, so that longer ones
cost more; crowds hardly do: the cost of length is the greatest of a grid that da/wmt15 bears.
Strength and shares of the regression are chosen on da/wmt15 and modern/dev, among those with which
da/wmt15 and the damage that is noticed lose nothing. What comes of it is a part beside the weights,
with a calibration of its own.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from multiprocessing import Pool
from multiprocessing.pool import Pool as Workers
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save_file

from recipes.flagship.corpus import to_english
from recipes.flagship.damage import KINDS
from recipes.flagship.evaluate import damaged
from recipes.flagship.ship import calibration, judged_scores, percentiles, wmt18_scores, write
from tertium.arrays import FloatArray, IntArray
from tertium.cache.files import hash_of
from tertium.data.collection import Collection
from tertium.data.judgements import JudgementSet
from tertium.data.leaks import drop_shared
from tertium.data.preferences import RankingSet
from tertium.meta.correlation import pearson
from tertium.metrics.flagship import small
from tertium.metrics.flagship.late import Tokens
from tertium.metrics.flagship.packaged import LengthCost
from tertium.metrics.flagship.small import TertiumSmall
from tertium.metrics.flagship.surface import surface_features
from tertium.models.trained import shipped_models
from tertium.runtime import choose_device, current_runtime
from tertium.segment import Segment

PART = "judged.safetensors"
LAST = "head.head.4"  # the last layer, by its name in the weights
EXPERTS = ("modern/train/mqm/news20", "modern/train/mqm/news21", "modern/train/mqm/bio21")
CROWDS = ("modern/train/da/wmt20", "modern/train/da/wmt21", "modern/train/da/wmt22")
GROUPS = {"experts": EXPERTS, "crowds": CROWDS, "old": ("da/wmt16",)}
OLD, CHOOSING = "da/wmt15", ("da/wmt15", "modern/dev/da/wmt22", "modern/dev/mqm/ted21")
SHARES = ((1, 1, 1), (2, 1, 1), (1, 1, 2))  # of the groups
STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0)
COSTS = tuple(round(0.05 * n, 2) for n in range(1, 7))
LEAST, MOST = 6, 64  # words; nearly all references of these sets lie between
BEARABLE = 0.0005  # of r on da/wmt15
LOST = 0.2  # points of damage noticed


@dataclass(frozen=True)
class Judged:
    """Pairs of a set: `hidden` (n, 256) below the last layer, what shipped and people say."""

    hidden: FloatArray
    raw: FloatArray
    words: FloatArray  # log of the reference's, from LEAST to MOST
    human: FloatArray
    segment: IntArray

    def moved(self, change: FloatArray, cost: float = 0.0) -> FloatArray:
        moved: FloatArray = self.raw + self.hidden @ change - cost * self.words
        return moved

    def agreement(self, change: FloatArray, cost: float = 0.0) -> float:
        return float(pearson(self.human, self.moved(change, cost)))

    def within(self, change: FloatArray) -> float:
        """Tau over pairs of one segment that people tell apart."""
        said, right, pairs = self.moved(change), 0.0, 0
        order = np.argsort(self.segment, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(self.segment[order])) + 1):
            human = np.sign(self.human[rows][:, None] - self.human[rows])
            right += float((human * np.sign(said[rows][:, None] - said[rows])).sum())
            pairs += int((human != 0).sum())
        return right / max(pairs, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", help="the human judgements (default: TERTIUM_DATA)")
    parser.add_argument("-o", "--output", type=Path, required=True, help="what was read is kept")
    parser.add_argument("--most", type=int, default=8000, help="rows of a set and language pair")
    parser.add_argument("--each", type=int, default=40, help="outputs of each WMT18 system")
    parser.add_argument("--damage", type=int, default=200, help="texts damaged in each way")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    data = Collection.at(args.data)
    args.output.mkdir(parents=True, exist_ok=True)
    with Pool(args.workers) as workers:  # forked before anything is on a device
        reader = Reader(args.output, workers)
        told = read_all(data, reader, args.most)
        damage = read_damage(data, reader, args.damage)
    change = choose(told, damage)
    cost = choose_cost(told, change)
    report(told, change, cost)
    ship(data, told, change, cost, args.each)


def read_all(data: Collection, reader: Reader, most: int) -> dict[str, Judged]:
    """Every set that teaches or chooses, by its name and language pair."""
    told = {}
    for name in (*itertools.chain(*GROUPS.values()), *CHOOSING):
        for lp in to_english(data, name):
            rows = draw(judged_rows(data, name, lp), most)
            items = dict.fromkeys(segment.references for segment, _ in rows)
            place = {references: number for number, references in enumerate(items)}
            hidden, raw, words = reader.read(f"{name} {lp}", [segment for segment, _ in rows])
            human = np.array([score for _, score in rows])
            segment = np.array([place[segment.references] for segment, _ in rows])
            told[f"{name} {lp}"] = Judged(hidden, raw, words, human, segment)
            print(f"{name} {lp}: {len(rows)} rows", flush=True)
    return told


def judged_rows(data: Collection, name: str, lp: str) -> list[tuple[Segment, float]]:
    """Segments of a set with people's scores, leaks dropped; modern ones came without any."""
    if name.startswith("modern/"):  # their spans are not needed, and take long to check
        with gzip.open(data.find(name).file(lp), "rt", encoding="utf-8") as lines:
            rows = [row for row in map(json.loads, lines) if row.get("reference")]
        return [(Segment(r["hypothesis"], None, (r["reference"],)), r["score"]) for r in rows]
    judged = data.judgements(name, lp)
    judged = judged if name in CHOOSING else drop_shared(judged, held_out(data))
    return [(j.segment, j.score) for j in judged.judgements]


@lru_cache(maxsize=1)
def held_out(data: Collection) -> list[JudgementSet | RankingSet]:
    """The older sets that choose and test."""
    kept: list[JudgementSet | RankingSet] = [
        data.judgements(name, lp)
        for name in ("da/wmt15", "da/wmt17")
        for lp in to_english(data, name)
    ]
    tested = to_english(data, "rankings/wmt12")
    return kept + [data.rankings("rankings/wmt12", lp) for lp in tested]


def draw(rows: Sequence[tuple[Segment, float]], most: int) -> list[tuple[Segment, float]]:
    """Whole segments under one seed, about `most` rows."""
    by_item: dict[tuple[str, ...], list[tuple[Segment, float]]] = {}
    for row in rows:
        by_item.setdefault(row[0].references, []).append(row)
    items = list(by_item.values())
    drawn: list[tuple[Segment, float]] = []
    for place in np.random.default_rng(1).permutation(len(items)):
        if len(drawn) >= most:
            break
        drawn += items[place]
    return drawn


def read_damage(data: Collection, reader: Reader, each: int) -> tuple[FloatArray, FloatArray]:
    """Whole and damaged texts of da/wmt15, side by side: (n, 257), hidden and raw."""
    rng, cases = np.random.default_rng(99), []
    judged = [
        j.segment for lp in to_english(data, OLD) for j in data.judgements(OLD, lp).judgements
    ]
    whole = [Segment(s.references[0], None, s.references) for s in judged] + judged
    for kind in KINDS:
        cases += damaged(whole, kind, each, rng)
    sides = [[pair[side] for pair in cases] for side in (0, 1)]
    found = [reader.read(f"damage {side}", sides[side])[:2] for side in (0, 1)]
    left, right = (np.concatenate([hidden, raw[:, None]], axis=1) for hidden, raw in found)
    same = np.array([s.hypothesis == s.references[0] for s in sides[0]])
    return left[~same], right[~same]  # a copy of its reference scores 1, whatever it is said of


@dataclass(frozen=True)
class Reader:
    """What the network makes of pairs, computed once and kept in a folder."""

    folder: Path
    workers: Workers

    def read(
        self, name: str, segments: Sequence[Segment]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What is said of pairs below and after the last layer, and the words' logs."""
        file = self.folder / f"{name.replace('/', '_').replace(' ', '_')}.npy"
        left, right = [s.hypothesis for s in segments], [s.references[0] for s in segments]
        if not file.exists():
            cuts = [slice(n, n + 250) for n in range(0, len(left), 250)]
            pairs = [(left[cut], right[cut]) for cut in cuts]
            surface = np.concatenate(self.workers.starmap(surface_features, pairs))
            np.save(file, states_of(left, right, surface).astype(np.float32))
        found = np.load(file).astype(np.float64)
        words = np.log([min(max(len(text.split()), LEAST), MOST) for text in right])
        return found[:, :-1], found[:, -1], words


def states_of(left: list[str], right: list[str], surface: FloatArray) -> FloatArray:
    """(n, 257): the last hidden layer of the head, and the score of the layer that shipped."""
    metric = TertiumSmall()
    network = small._network(metric.model, choose_device(current_runtime().device))
    body, device, kept = metric.encoder.body, network.temperature.device, list[torch.Tensor]()
    handle = network.head[2].register_forward_hook(lambda _, __, out: kept.append(out))
    texts = list(dict.fromkeys((*right, *left)))
    numbers = dict(zip(texts, body.number(texts), strict=True))
    pairs = zip(left, right, strict=True)
    sizes = np.array([2 * max(len(numbers[a]), len(numbers[b])) + 4 for a, b in pairs])
    result = np.zeros((len(left), 257))
    with torch.inference_mode():
        for rows in batches(sizes, 4096 if device.type == "cpu" else 32768):
            sides = [[side[row] for row in rows] for side in (left, right)]
            at = {text: n for n, text in enumerate(dict.fromkeys(itertools.chain(*sides)))}
            tokens = Tokens(*body.states([numbers[text] for text in at], metric.encoder.layer))
            places = [torch.tensor([at[text] for text in side]).to(device) for side in sides]
            seen = torch.tensor(surface[rows]).float().to(device)
            said = network(tokens.take(places[0]), tokens.take(places[1]), seen)
            result[rows] = torch.cat([kept.pop(), said[:, None]], dim=1).float().cpu().numpy()
    handle.remove()
    return result


def batches(sizes: IntArray, budget: int) -> Iterable[IntArray]:
    """Rows of like size, together at most `budget`."""
    order, start = np.argsort(sizes, kind="stable"), 0
    for end in range(1, len(order) + 1):
        if end == len(order) or (end - start + 1) * sizes[order[end]] > budget:
            yield order[start:end]
            start = end


def fit(told: Mapping[str, Judged], shares: Sequence[float], strength: float) -> FloatArray:
    """The change of the last layer, (256,), on the scale of what shipped."""
    gram, right = np.zeros((258, 258)), np.zeros(258)
    for (group, names), share in zip(GROUPS.items(), shares, strict=True):
        sets = [one for name, one in told.items() if name.split()[0] in names]
        whole = sum(np.sqrt(len(one.raw)) for one in sets)
        for one in sets:
            y = -np.log1p(np.maximum(-one.human, 0)) if group == "experts" else one.human
            x = np.concatenate([one.raw[:, None], one.words[:, None], one.hidden], axis=1)
            x, y = x - x.mean(axis=0), (y - y.mean()) / y.std()
            weight = share / sum(shares) / whole / np.sqrt(len(y))
            gram += weight * x.T @ x
            right += weight * x.T @ y
    penalty = np.diag([0.0, 0.0, *[strength] * 256])
    found = np.linalg.solve(gram + penalty, right)
    change: FloatArray = found[2:] / found[0]
    return change


def choose(told: Mapping[str, Judged], damage: tuple[FloatArray, FloatArray]) -> FloatArray:
    """The best change on average with which da/wmt15 and damage lose nothing; all are printed."""
    best = np.zeros(256)
    reached, bound = mean_of(told, best), noticed(damage, best) - LOST
    least = agreement(told, OLD, best) - BEARABLE
    print("shares\tstrength", *CHOOSING, "damage noticed, %", sep="\t")
    print("as shipped\t", *figures(told, best), f"{bound + LOST:.2f}", sep="\t")
    for shares, strength in itertools.product(SHARES, STRENGTHS):
        change = fit(told, shares, strength)
        seen = noticed(damage, change)
        print(shares, strength, *figures(told, change), f"{seen:.2f}", sep="\t", flush=True)
        borne = seen >= bound and agreement(told, OLD, change) >= least
        if borne and mean_of(told, change) > reached:
            best, reached = change, mean_of(told, change)
    return best


def choose_cost(told: Mapping[str, Judged], change: FloatArray) -> float:
    """The greatest cost of length with which da/wmt15 is not below what shipped."""
    for name in CHOOSING:
        row = [f"{cost:g} {agreement(told, name, change, cost):.4f}" for cost in (0, *COSTS)]
        print(name, *row, sep="\t", flush=True)
    bound = agreement(told, OLD, np.zeros(256)) - BEARABLE
    return max(cost for cost in (0, *COSTS) if agreement(told, OLD, change, cost) >= bound)


def of_set(told: Mapping[str, Judged], name: str) -> list[Judged]:
    return [one for key, one in told.items() if key.split()[0] == name]


def agreement(
    told: Mapping[str, Judged], name: str, change: FloatArray, cost: float = 0.0
) -> float:
    return float(np.mean([one.agreement(change, cost) for one in of_set(told, name)]))


def within(told: Mapping[str, Judged], name: str, change: FloatArray) -> float:
    return float(np.mean([one.within(change) for one in of_set(told, name)]))


def mean_of(told: Mapping[str, Judged], change: FloatArray) -> float:
    """The mean of r on the sets that choose, and of tau within segments of the modern ones."""
    return float(
        np.mean(
            [agreement(told, name, change) for name in CHOOSING]
            + [within(told, name, change) for name in CHOOSING[1:]]
        )
    )


def figures(told: Mapping[str, Judged], change: FloatArray) -> list[str]:
    return [
        f"{agreement(told, name, change):.4f} {within(told, name, change):.4f}" for name in CHOOSING
    ]


def noticed(damage: tuple[FloatArray, FloatArray], change: FloatArray) -> float:
    """How many damaged texts score below the whole ones, in percent."""
    whole, broken = (side[:, -1] + side[:, :-1] @ change for side in damage)
    return 100 * float(np.mean(broken < whole))


def report(told: Mapping[str, Judged], change: FloatArray, cost: float) -> None:
    """Every set as shipped, with the new layer, and with the cost of length as well."""
    none = np.zeros(256)
    print("set\tr shipped\tlayer\tlayer and length\ttau shipped\tlayer")
    for name, one in told.items():
        by_r = one.agreement(none), one.agreement(change), one.agreement(change, cost)
        row = (*by_r, one.within(none), one.within(change))
        print(name, *(f"{figure:.4f}" for figure in row), sep="\t", flush=True)


def ship(
    data: Collection, told: Mapping[str, Judged], change: FloatArray, cost: float, each: int
) -> None:
    """Write the layer as a part of the model, the cost, and what goes with them."""
    metric, folder = TertiumSmall(), shipped_models() / TertiumSmall.name
    last = {
        key: metric.model.weights[f"{LAST}.{key}"].double().numpy() for key in ("weight", "bias")
    }
    centre = np.mean([one.hidden.mean(axis=0) for one in of_set(told, "da/wmt16")], axis=0)
    layer = {"weight": last["weight"] + change, "bias": last["bias"] - change @ centre}
    save_file(
        {f"{LAST}.{key}": value.astype(np.float32) for key, value in layer.items()}, folder / PART
    )
    config = {**metric.model.config, "parts": {PART: hash_of(folder / PART)}}
    config["length"] = asdict(LengthCost(cost=cost, least=LEAST, most=MOST)) if cost else None
    write_and_forget(folder, config)
    config |= calibration(*judged_scores(data, metric))
    write_and_forget(folder, config)
    config["percentiles"] = percentiles(wmt18_scores(data, metric, each))
    write_and_forget(folder, config)
    print(json.dumps({key: config[key] for key in ("parts", "length", "calibration")}, indent=1))


def write_and_forget(folder: Path, config: dict[str, Any]) -> None:
    """Write the settings; networks made of what was there before are not used again."""
    write(folder, config)
    small._network.cache_clear()
    small._encoder.cache_clear()


if __name__ == "__main__":
    main()
