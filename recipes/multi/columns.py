"""What the frozen tertium-multi sees in rows, as columns that a combination learns from.

    python -m recipes.multi.columns parts/ -o columns/ --device cuda

Rows are samples of packed parts (`recipes.multi.samples`). Columns are what the network says in
each view, linear readings of the head's hidden layer and of all that the head was given, learned
here from judgements that train, chrF, and how strange the words of hypothesis and reference are to
the vocabulary.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from recipes.multi.e5 import BLOCK_BYTES, Pieces, unpack_blocks
from recipes.multi.evaluate import hide
from recipes.multi.examples import VIEWS
from recipes.multi.network import Multi, Texts, lay_out, send_batch
from recipes.multi.samples import MOST, Rows, Strings, gather
from tertium.metrics.flagship.combination import strange_words
from tertium.metrics.flagship.packaged import Packaged, load_packaged
from tertium.metrics.lexical.chrf import ChrF
from tertium.segment import Segment

Floats = NDArray[np.float32]
READ = (("da", "qe", "old"), ("da", "mqm", "esa", "qe", "old"))  # what crowds said; everyone
RIDGE = 0.3  # of the variance of each feature
TEACHES = (0.44, 0.62, 0.44)  # of the bounded score and these readings by both texts
SOFTNESS = 3.0  # within which that score is bounded
CONSTANT = 1e-9  # a variance below which a feature says nothing


class Looking(Multi):
    """The network that ships, which keeps what its readout sees: the head's hidden layer and input.

    `found` is (rows, hidden layer and input).
    """

    def __init__(self, model: Packaged) -> None:
        words = load_words(model)
        every = model.restore_tensors("network.")
        weights = {name: w for name, w in every.items() if not name.startswith("readout.")}
        with torch.device("meta"):  # so that no weight is drawn, all being there
            super().__init__(len(words), apart=4, dropout=0.0)
            self.head.last = nn.Linear(512, len(weights["head.last.bias"]))
        self.load_state_dict({**weights, "words.weight": words}, assign=True)
        self.found = self._given = torch.zeros(0)
        self.head.register_forward_pre_hook(self._keep_given)
        self.head.last.register_forward_pre_hook(self._keep_found)

    def _keep_given(self, _: nn.Module, given: tuple[Tensor, ...]) -> None:
        self._given = given[0].float()

    def _keep_found(self, _: nn.Module, hidden: tuple[Tensor, ...]) -> None:
        self.found = torch.cat([hidden[0], self._given], 1)


def load_words(model: Packaged) -> Tensor:
    """The embedding table that ships, unpacked."""
    nibbles = model.weights["words.nibbles"].numpy()
    scales = model.weights["words.scales"].numpy().astype("<f2")
    blocks = np.concatenate([scales[..., None].view(np.uint8), nibbles], axis=-1)
    return torch.from_numpy(unpack_blocks(blocks.reshape(-1, BLOCK_BYTES))).view(len(scales), -1)


def batches(texts: Sequence[Texts], budget: int) -> Iterator[NDArray[np.int64]]:
    """Numbers of texts, long ones first, each batch below a budget of pieces with padding."""
    wide = np.array([max(len(t) for t in row if t is not None) + 2 for row in texts])
    order, at = np.argsort(-wide, kind="stable"), 0
    while at < len(order):
        size = max(1, min(budget // int(3 * wide[order[at]]), len(order) - at))
        yield order[at : at + size]
        at += size


@torch.no_grad()
def passes(
    network: Looking, texts: Sequence[Texts], view: str, device: str, budget: int
) -> Iterator[tuple[NDArray[np.int64], Tensor]]:
    """Batches of the rows that a view can see: their numbers and the score of each."""
    shown = [hide(t, view) for t in texts]
    there = np.array([n for n, t in enumerate(shown) if t is not None], np.int64)
    seen: list[Texts] = [t for t in shown if t is not None]
    for some in batches(seen, budget) if seen else ():
        judged = network(send_batch(lay_out([seen[n] for n in some]), device))
        yield there[some], judged.scores[:, 0]


class Readouts:
    """Ridge regressions of people's scores on what the head sees, by view and kinds of sets.

    Normal equations of each kind are added up, sets weighing alike; `solve` makes weights of them.
    A last reading learns from what is read by both texts, where those are more than a view sees.
    `solved` are (features and a bias, READ and what is taught), by view.
    """

    def __init__(self, device: str) -> None:
        self.device, self.solved = device, dict[str, Tensor]()

    def learn(
        self, found: Tensor, human: Floats, kinds: Sequence[str], often: Floats
    ) -> dict[str, Tensor]:
        """What a batch adds to the normal equations of each kind."""
        target, weight = (torch.from_numpy(x).to(self.device).double() for x in (human, often))
        ones = torch.ones_like(target)[:, None]
        row = torch.cat([found.double(), ones, target[:, None].clamp(-4, 3)], 1)
        sums = {}
        for kind in set(kinds):
            mine = torch.tensor([k == kind for k in kinds], device=self.device)
            sums[kind] = (row[mine] * weight[mine, None]).T @ row[mine]
        return sums

    def solve(self, view: str, sums: Mapping[str, Tensor], taught: Tensor | None = None) -> None:
        """The readings of a view; a kind that nobody judged in it says nothing."""
        found = []
        for kinds in READ:
            there = [sums[kind] for kind in kinds if kind in sums]
            found.append(solve_ridge(sum(there[1:], there[0])))
        found.append(torch.zeros_like(found[0]) if taught is None else solve_ridge(taught))
        self.solved[view] = torch.stack(found, 1).float()

    def read(self, view: str, found: Tensor) -> Tensor:
        weights = self.solved[view]
        return found @ weights[:-1] + weights[-1]

    def save(self, path: Path) -> None:
        stored = {view: weights.cpu().numpy() for view, weights in self.solved.items()}
        np.savez_compressed(path, allow_pickle=False, **stored)


def solve_ridge(total: Tensor) -> Tensor:
    """Weights of features and a bias, from sums of products of features, ones and the target.

    Features are brought to one variance first, so that all pay alike for their weights.
    """
    rows, places = total[-2, -2], slice(0, -2)
    mean, target = total[-2, places] / rows, total[-2, -1] / rows
    covariance = total[places, places] / rows - mean[:, None] * mean
    says = covariance.diagonal() > CONSTANT
    spread = torch.where(says, covariance.diagonal(), 1.0).sqrt()
    left = torch.where(says[:, None] & says, covariance / (spread[:, None] * spread), 0.0)
    left.diagonal().add_(RIDGE + (~says).double())
    right = (total[places, -1] / rows - mean * target) / spread * says
    weights = torch.cholesky_solve(right[:, None], torch.linalg.cholesky(left))[:, 0] / spread
    return torch.cat([weights, (target - mean @ weights)[None]])


def learn_readouts(
    network: Looking, readouts: Readouts, rows: Rows, device: str, budget: int
) -> None:
    """Passes over rows that train, for the normal equations alone; by both texts first."""
    count = dict(zip(*np.unique(rows.names, return_counts=True), strict=True))
    often = np.array([1 / count[name] for name in rows.names], np.float32)
    human, kinds = np.array(rows.human, np.float32), [kind_of(name) for name in rows.names]
    taught = np.full_like(human, np.nan)

    def add_up(view: str, target: Floats, kinds: Sequence[str]) -> dict[str, Tensor]:
        sums: dict[str, Tensor] = {}
        for chosen, _ in passes(network, rows.texts, view, device, budget):
            told = np.isfinite(target[chosen])
            if told.any():
                some, its = chosen[told], [kinds[n] for n in chosen[told]]
                found = network.found[torch.from_numpy(told).to(device)]
                more = readouts.learn(found, target[some], its, often[some])
                sums |= {kind: sums[kind] + m if kind in sums else m for kind, m in more.items()}
        return sums

    for view in reversed(VIEWS):
        extra = add_up(view, taught, ["taught"] * len(kinds)) if view == "source" else {}
        readouts.solve(view, add_up(view, human, kinds), extra.get("taught"))
        if view == "both":
            for chosen, said in passes(network, rows.texts, view, device, budget):
                read = readouts.read(view, network.found)[:, : len(READ)]
                bounded = said / torch.sqrt(1 + (said / SOFTNESS) ** 2)
                parts = torch.cat([bounded[:, None], read], 1) @ read.new_tensor(TEACHES)
                taught[chosen] = parts.cpu().numpy()
            taught = standardise(taught, rows.names)


def standardise(values: Floats, names: Sequence[str]) -> Floats:
    """Values of each set less their mean, over their spread; where there are none, NaN."""
    owner, result = np.array(names), np.full_like(values, np.nan)
    for name in set(names):
        mine = (owner == name) & np.isfinite(values)
        if mine.sum() > 1:
            result[mine] = (values[mine] - values[mine].mean()) / max(values[mine].std(), 1e-6)
    return result


def kind_of(name: str) -> str:
    start = name.split("/")[0]
    if start == "wmt16":
        return "old"
    if start.startswith(("mlqe", "qe2")):
        return "qe"
    return "esa" if start == "wmt24" else "da" if start.startswith("wmt") else "mqm"


def look_at(
    network: Looking, readouts: Readouts, rows: Rows, device: str, budget: int
) -> dict[str, Any]:
    """What the network says in each view, and what is read of it; NaN where a text is absent."""
    result: dict[str, Any] = {}
    for view in VIEWS:
        said = np.full(len(rows.texts), np.nan, np.float32)
        read = np.full((len(rows.texts), len(READ) + 1), np.nan, np.float32)
        for chosen, scores in passes(network, rows.texts, view, device, budget):
            said[chosen] = scores.cpu().numpy()
            read[chosen] = readouts.read(view, network.found).cpu().numpy()
        result |= {f"said_{view}": said, f"read_{view}": read}
    return result


def match_letters(some: Sequence[Strings]) -> Floats:
    """chrF beside source and reference, 0 to 1, (rows, 2); NaN where one is absent."""
    table = np.full((len(some), 2), np.nan, np.float32)
    for side in (1, 2):
        there = [n for n, row in enumerate(some) if row[side] is not None]
        segments = [Segment(some[n][0], None, (some[n][side] or "",)) for n in there]
        if segments:
            table[there, side - 1] = ChrF().reduce(ChrF().statistics(segments)) / 100
    return table


def match_all(strings: Sequence[Strings], processes: int) -> Floats:
    parts = [strings[n : n + 2000] for n in range(0, len(strings), 2000)]
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        found = pool.map(match_letters, parts, chunksize=1)
    return np.concatenate([match_letters([]), *found])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--budget", type=int, default=0, help="pieces of a batch, padding included")
    parser.add_argument("--rough", action="store_true", help="all passes in TF32: faster on a GPU")
    for name, many in MOST.items():
        parser.add_argument(f"--{name}", type=int, default=many)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    model = load_packaged("tertium-multi")
    pieces = Pieces(model.folder / "encoder/tokenizer.json")
    network, readouts = Looking(model).to(given.device).eval(), Readouts(given.device)
    budget = given.budget or (250_000 if given.device.startswith("cuda") else 6_000)
    for name, rows, more in gather(given.parts, vars(given), pieces):
        begin = time.monotonic()
        # what is only learned from may be a little rougher, and twice as fast
        rough = given.rough or name == "read"
        torch.set_float32_matmul_precision("high" if rough else "highest")
        if name == "read":
            learn_readouts(network, readouts, rows, given.device, budget)
            readouts.save(given.out / "readouts.npz")
        else:
            columns = look_at(network, readouts, rows, given.device, budget)
            columns["letters"] = match_all(rows.strings, given.processes)
            columns["strange"] = strange_words(rows.strings, pieces.encode)
            rows.save(given.out / f"{name}.npz", **columns, **more)
        print(name, len(rows.names), f"{time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
