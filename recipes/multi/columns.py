"""What the frozen tertium-multi sees in rows, as columns that a combination learns from.

    python -m recipes.multi.columns parts/ -o columns/ --device cuda

Rows are samples of packed parts (`recipes.multi.samples`). Columns are what the network says in
each view, readings of the head's hidden layer and of all that the head was given, learned here from
judgments that train (`recipes.multi.readouts`), chrF, and how strange the words of hypothesis and
reference are to the vocabulary.
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
from recipes.multi.examples import INPUT_MODES
from recipes.multi.network import Multi, Texts, keep_there, make_layout, send_batch
from recipes.multi.readouts import READINGS, Readings, learn_readings, save_readings
from recipes.multi.samples import MOST, Rows, Strings, gather
from tertium.metrics.flagship.bundled_model import BundledModel, load_bundled_model
from tertium.metrics.flagship.score_correction import mean_fragmentation
from tertium.metrics.lexical.chrf import CHRF
from tertium.segment import Segment

Floats = NDArray[np.float32]
READOUTS = "readouts.npz"


class Looking(Multi):
    """The network that ships, which keeps what a readout sees: the head's hidden layer and input.

    `found` is (rows, hidden layer and what is there of the input) by the `view` that is set.
    """

    view = "both"

    def __init__(self, model: BundledModel) -> None:
        words = load_words(model)
        every = model.restore_tensors("network.")
        weights = {name: w for name, w in every.items() if not name.startswith("readouts.")}
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
        self.found = torch.cat([hidden[0], keep_there(self._given, self.view)], 1)


def load_words(model: BundledModel) -> Tensor:
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
    network.view = view
    for some in batches(seen, budget) if seen else ():
        judged = network(send_batch(make_layout([seen[n] for n in some]), device))
        yield there[some], judged.scores[:, 0]


@torch.no_grad()
def features_of(
    network: Looking, rows: Rows, view: str, device: str, budget: int
) -> tuple[NDArray[np.int64], Tensor]:
    """The rows that a view can see, and what the head sees in them, (rows, features)."""
    numbers, parts = [], []
    for chosen, _ in passes(network, rows.texts, view, device, budget):
        numbers.append(chosen)
        parts.append(network.found.half())
    return np.concatenate(numbers), torch.cat(parts)


def look_at(
    network: Looking, views: Mapping[str, Readings], rows: Rows, device: str, budget: int
) -> dict[str, Any]:
    """What the network says in each view, and what is read of it; NaN where a text is absent."""
    result: dict[str, Any] = {}
    for view in INPUT_MODES:
        said = np.full(len(rows.texts), np.nan, np.float32)
        read = np.full((len(rows.texts), len(READINGS)), np.nan, np.float32)
        for chosen, scores in passes(network, rows.texts, view, device, budget):
            said[chosen] = scores.cpu().numpy()
            read[chosen] = views[view](network.found).cpu().numpy()
        result |= {f"said_{view}": said, f"read_{view}": read}
    return result


def chrf_similarity(some: Sequence[Strings]) -> Floats:
    """chrF beside source and reference, 0 to 1, (rows, 2); NaN where one is absent."""
    table = np.full((len(some), 2), np.nan, np.float32)
    for side in (1, 2):
        there = [n for n, row in enumerate(some) if row[side] is not None]
        segments = [Segment(some[n][0], None, (some[n][side] or "",)) for n in there]
        if segments:
            table[there, side - 1] = CHRF().reduce(CHRF().statistics(segments)) / 100
    return table


def match_all(strings: Sequence[Strings], processes: int) -> Floats:
    parts = [strings[n : n + 2000] for n in range(0, len(strings), 2000)]
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        found = pool.map(chrf_similarity, parts, chunksize=1)
    return np.concatenate([chrf_similarity([]), *found])


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
    model = load_bundled_model("tertium-multi")
    pieces = Pieces(model.folder / "encoder/tokenizer.json")
    network, views = Looking(model).to(given.device).eval(), dict[str, Readings]()
    budget = given.budget or (250_000 if given.device.startswith("cuda") else 6_000)
    for name, rows, more in gather(given.parts, vars(given), pieces):
        begin = time.monotonic()
        # what is only learned from may be a little rougher, and twice as fast
        rough = given.rough or name == "read"
        torch.set_float32_matmul_precision("high" if rough else "highest")
        if name == "read":
            human, names = np.array(rows.human, np.float32), np.array(rows.names)
            for view in INPUT_MODES:
                numbers, found = features_of(network, rows, view, given.device, budget)
                views[view] = learn_readings(found, human[numbers], names[numbers].tolist())
            save_readings(given.out / READOUTS, views)
        else:
            columns = look_at(network, views, rows, given.device, budget)
            columns["letters"] = match_all(rows.strings, given.processes)
            columns["strange"] = mean_fragmentation(rows.strings, pieces.encode)
            rows.save(given.out / f"{name}.npz", **columns, **more)
        print(name, len(rows.names), f"{time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
