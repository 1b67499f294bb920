"""tertium-small goes on from what ships, with judgements of modern systems, and keeps what it knew.

    python -m recipes.flagship.renew weights/tertium_models/tertium-small --parts parts/ \
        --run run/ --seconds 300 --modern 0.5 -o renewed/

Reads the parts of `recipes.multi.pack` and what `recipes.multi.english` said. Everything is learned
on the model's own raw scale: old outputs at the mean of what it said and what tertium-base says,
damaged ones at what it said, judged modern ones at its own mean and spread of their set, ordered as
people did, so that a score goes on meaning what it meant.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import nn

from recipes.flagship.damage import KINDS
from recipes.flagship.models import LateEncoder, Tokenised
from recipes.flagship.package import write_parts
from recipes.flagship.train import LAYERS, Steps
from recipes.multi.store import ARCHIVE, read_lines, read_outputs
from tertium.metrics.flagship.compact import quantise, restore
from tertium.metrics.flagship.surface import NAMES, surface_features

Floats = NDArray[np.float64]
OLD, MODERN, DAMAGED = range(3)
BATCH = 512


@dataclass
class Rows:
    """Pairs of texts: what they are, which set they belong to, what people or tertium-base said."""

    texts: list[str]
    hypothesis: NDArray[np.int64]
    reference: NDArray[np.int64]
    kind: NDArray[np.int64]
    group: NDArray[np.int64]
    said: Floats

    def part(self, rows: NDArray[np.int64]) -> tuple[list[str], list[str]]:
        return (
            [self.texts[n] for n in self.hypothesis[rows]],
            [self.texts[n] for n in self.reference[rows]],
        )


class Gathering:
    """Rows as they come, each text once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._rows: list[tuple[int, int, int, int, float]] = []

    def add(self, hypothesis: str, reference: str, kind: int, group: int, said: float) -> None:
        numbers = self._numbers
        left, right = (numbers.setdefault(text, len(numbers)) for text in (hypothesis, reference))
        self._rows.append((left, right, kind, group, said))

    def close(self) -> Rows:
        columns = np.array(self._rows)
        left, right, kind, group = (columns[:, n].astype(np.int64) for n in range(4))
        return Rows(list(self._numbers), left, right, kind, group, columns[:, 4])


def columns_of(folder: Path) -> tuple[dict[str, Any], list[str], list[str]]:
    with np.load(folder / "rows.npz") as stored:
        columns = {name: stored[name] for name in stored.files}
    return columns, read_lines(folder / "texts.xz"), json.loads((folder / "names.json").read_text())


def gather(parts: Path, run: Path, most: int, rng: np.random.Generator) -> Rows:
    """Compared outputs and FLORES outputs with tertium-base's scores; judged rows; damage."""
    found = Gathering()
    columns, lines, _ = columns_of(parts / "rankings")
    rows, scores = (np.load(run / f"english-rankings/{n}.npy") for n in ("rows", "scores"))
    for row, score in list(zip(rows, scores, strict=True))[:most]:
        hypothesis, reference = (lines[columns[c][row]] for c in ("hypothesis", "reference"))
        found.add(hypothesis, reference, OLD, 0, score)
        if rng.random() < 0.15:
            kind = list(KINDS)[int(rng.integers(len(KINDS)))]
            damaged = KINDS[kind](hypothesis.split(), rng)
            if damaged:
                found.add(" ".join(damaged), reference, DAMAGED, 2, 0.0)
    for hypothesis, reference, score in output_rows(parts, run, most):
        found.add(hypothesis, reference, OLD, 1, score)
    columns, lines, names = columns_of(parts / "judgements")
    english = np.array([name.endswith("-en") for name in names])
    chosen = np.flatnonzero(english[columns["set"]] & (columns["reference"] >= 0))
    for row in rng.permutation(chosen)[: 3 * most]:
        hypothesis, reference = (lines[columns[c][row]] for c in ("hypothesis", "reference"))
        group = 3 + int(columns["set"][row])
        found.add(hypothesis, reference, MODERN, group, float(columns["score"][row].clip(-4, 3)))
    return found.close()


def output_rows(parts: Path, run: Path, most: int) -> list[tuple[str, str, float]]:
    from recipes.multi.examples import Outputs

    outputs = Outputs(parts / "outputs")
    rows, scores = (np.load(run / f"english-outputs/{n}.npy") for n in ("rows", "scores"))
    names, blocks = read_outputs(parts / "outputs" / ARCHIVE)
    found = []
    for (line, system), score in list(zip(rows.tolist(), scores, strict=True))[:most]:
        own, _, target = outputs.systems[system]
        found.append((blocks[names[own]][line], blocks[names[target]][line], float(score)))
    return found


class Small:
    """The network of tertium-small on a device, with the texts it is to read."""

    def __init__(self, shipped: Path, texts: Sequence[str], device: str) -> None:
        folder = shipped / "encoder"
        self.device, self.tokens = device, Tokenised.of(texts, folder, device)
        self.net = LateEncoder(folder, layers=LAYERS["minilm"], surface=len(NAMES))
        state = restore(load_file(shipped / "weights.safetensors"))
        missing, unknown = self.net.load_state_dict(state, strict=False)
        if unknown or any(not name.endswith("position_ids") for name in missing):
            raise ValueError(f"tertium-small does not fit: {missing}, {unknown}")
        self.net.to(device)

    def scores(
        self, left: NDArray[np.int64], right: NDArray[np.int64], surface: torch.Tensor
    ) -> torch.Tensor:
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.device != "cpu"):
            return self.net.score(self.tokens, left, right, surface).float()

    @torch.no_grad()
    def predict(self, rows: Rows, surface: torch.Tensor, chosen: NDArray[np.int64]) -> Floats:
        self.net.eval()
        order = chosen[np.argsort(self.tokens.lengths[rows.hypothesis[chosen]], kind="stable")]
        out = np.zeros(len(rows.hypothesis))
        for part in np.array_split(order, max(1, len(order) // 1024)):
            said = self.scores(rows.hypothesis[part], rows.reference[part], surface[part])
            out[part] = said.cpu().numpy()
        self.net.train()
        return out[chosen]


def surface_of(rows: Rows, workers: int) -> NDArray[np.float32]:
    cuts = np.array_split(np.arange(len(rows.hypothesis)), max(1, len(rows.hypothesis) // 4000))
    with ProcessPoolExecutor(workers) as pool:
        texts = [rows.part(cut) for cut in cuts]
        found = pool.map(surface_features, [t[0] for t in texts], [t[1] for t in texts])
        return np.concatenate(list(found)).astype(np.float32)


def set_targets(rows: Rows, before: Floats) -> Floats:
    """What each row is to score, on the scale of what the model said before."""
    targets = before.copy()
    for group in np.unique(rows.group):
        mine = rows.group == group
        own, said = before[mine], rows.said[mine]
        if (rows.kind[mine] == DAMAGED).all() or said.std() == 0:
            continue
        mapped = (said - said.mean()) / said.std() * own.std() + own.mean()
        targets[mine] = (own + mapped) / 2 if rows.kind[mine][0] == OLD else mapped
    return targets


class HeldOut:
    """What chooses and what tests, into English with a reference."""

    def __init__(self, parts: Path, most: int) -> None:
        columns, lines, self.names = columns_of(parts / "held-out")
        found, self.human = Gathering(), list[float]()
        self.comparisons = columns["comparisons"]
        compared = {int(n) for n in self.comparisons[:, 2]}
        self.place: dict[int, int] = {}
        for number, name in enumerate(self.names):
            rows = np.flatnonzero((columns["set"] == number) & (columns["reference"] >= 0))
            if not name.endswith("-en"):
                continue
            for row in rows if number in compared else rows[:most]:
                self.place[int(row)] = len(self.human)
                self.human.append(float(columns["score"][row]))
                texts = (lines[columns[c][row]] for c in ("hypothesis", "reference"))
                found.add(*texts, MODERN, number, 0.0)  # type: ignore[call-arg]
        self.rows = found.close()

    def measure(self, said: Floats) -> dict[str, float]:
        figures, human = {}, np.array(self.human)
        taken = {int(n) for n in self.comparisons[:, 2]}
        for number in np.unique(self.rows.group):
            mine = self.rows.group == number
            if number not in taken and mine.sum() > 50:
                figures[self.names[number]] = float(np.corrcoef(said[mine], human[mine])[0, 1])
        left, right, which, outcome = self.comparisons.T
        for number in np.unique(which):
            mine = (which == number) & (outcome != 0)
            mine &= np.array(
                [
                    int(a) in self.place and int(b) in self.place
                    for a, b in zip(left, right, strict=True)
                ]
            )
            a, b = ([self.place[int(n)] for n in side[mine]] for side in (left, right))
            agree = np.sign(said[a] - said[b]) * outcome[mine] > 0
            figures[self.names[number]] = float((agree * 2.0 - 1).mean()) if len(agree) else 0.0
        return {name: round(value, 4) for name, value in figures.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("shipped", type=Path)
    parser.add_argument("--parts", type=Path, required=True)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--modern", type=float, default=0.5, help="share of judged rows")
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--steps", type=int, default=6000, help="for the schedule")
    parser.add_argument("--most", type=int, default=150_000)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args()
    rng = np.random.default_rng(1)
    torch.manual_seed(1)
    rows, held = gather(given.parts, given.run, given.most, rng), HeldOut(given.parts, 2500)
    both = Rows(
        rows.texts + held.rows.texts,
        np.concatenate([rows.hypothesis, held.rows.hypothesis + len(rows.texts)]),
        np.concatenate([rows.reference, held.rows.reference + len(rows.texts)]),
        np.concatenate([rows.kind, held.rows.kind]),
        np.concatenate([rows.group, held.rows.group]),
        np.concatenate([rows.said, held.rows.said]),
    )
    count = len(rows.hypothesis)
    print(np.bincount(rows.kind), "rows", len(both.texts), "texts", flush=True)
    small = Small(given.shipped, both.texts, given.device)
    surface = torch.tensor(surface_of(both, given.workers), device=given.device)
    tests = np.arange(count, len(both.hypothesis))
    print("before", json.dumps(held.measure(small.predict(both, surface, tests))), flush=True)
    targets = set_targets(rows, small.predict(both, surface, np.arange(count)))
    fit(small, both, surface, torch.tensor(targets, device=given.device).float(), given, rng)
    after = held.measure(small.predict(both, surface, tests))
    print("after", json.dumps(after), flush=True)
    compact = quantise({k: v.detach().cpu() for k, v in small.net.state_dict().items()})
    write_parts(compact, given.out, {"scale": "1.0", "shift": "0.0", "model": "late"})
    (given.out / "figures.json").write_text(json.dumps(after))


def fit(
    small: Small,
    rows: Rows,
    surface: torch.Tensor,
    targets: torch.Tensor,
    given: argparse.Namespace,
    rng: np.random.Generator,
) -> None:
    count = len(targets)
    pools = [np.flatnonzero(rows.kind[:count] == kind) for kind in (OLD, MODERN, DAMAGED)]
    shares = np.array([0.85 - given.modern, given.modern, 0.15])
    steps = Steps(small.net, given.rate, 3 * given.rate, given.steps)
    begin = time.monotonic()
    for number in range(given.steps):
        sizes = (shares * BATCH).astype(int)
        chosen = np.concatenate(
            [rng.choice(pool, size) for pool, size in zip(pools, sizes, strict=True)]
        )
        said = small.scores(rows.hypothesis[chosen], rows.reference[chosen], surface[chosen])
        loss = nn.functional.smooth_l1_loss(said, targets[chosen], beta=0.5)
        steps.step(loss)
        if number % 200 == 0:
            print(number, round(float(loss), 4), round(time.monotonic() - begin), "s", flush=True)
        if time.monotonic() - begin > given.seconds:
            print("out of time at step", number, flush=True)
            break


if __name__ == "__main__":
    main()
