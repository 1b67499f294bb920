"""What the frozen tertium-multi sees in rows, as columns that a combination learns from.

    python -m recipes.multi.columns parts/ -o columns/ --device cuda

Rows are samples of packed parts (`recipes.multi.samples`). Columns are what the network says in
each view, readings of the head's hidden layer and of all that the head was args, learned here from
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
from recipes.multi.evaluate import select_texts
from recipes.multi.network import MultiNetwork, Texts, make_layout, move_batch, select_head_input
from recipes.multi.packed_rows import INPUT_MODES
from recipes.multi.readouts import READOUT_NAMES, Readouts, fit_readouts, save_readouts
from recipes.multi.samples import DEFAULT_LIMITS, Rows, Strings, iter_samples
from tertium.metrics.flagship.bundled_model import BundledModel, load_bundled_model
from tertium.metrics.flagship.score_correction import mean_fragmentation
from tertium.metrics.lexical.chrf import CHRF
from tertium.segment import Segment

Floats = NDArray[np.float32]
READOUTS_FILE = "readouts.npz"


class ProbedNetwork(MultiNetwork):
    """The network that ships, which keeps what a readout sees: the head's hidden layer and input.

    `found` is (rows, hidden layer and what is there of the input) by the `mode` that is set.
    """

    mode = "both"

    def __init__(self, model: BundledModel) -> None:
        words = load_word_embeddings(model)
        every = model.restore_tensors("network.")
        weights = {name: w for name, w in every.items() if not name.startswith("readouts.")}
        with torch.device("meta"):  # so that no weight is drawn, all being there
            super().__init__(len(words), lower_layers=4, dropout=0.0)
            self.head.last = nn.Linear(512, len(weights["head.last.bias"]))
        self.load_state_dict({**weights, "words.weight": words}, assign=True)
        self.features = self._head_input = torch.zeros(0)
        self.head.register_forward_pre_hook(self._store_head_input)
        self.head.last.register_forward_pre_hook(self._store_features)

    def _store_head_input(self, _: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        self._head_input = inputs[0].float()

    def _store_features(self, _: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        head_input = select_head_input(self._head_input, self.mode)
        self.features = torch.cat([inputs[0], head_input], 1)


def load_word_embeddings(model: BundledModel) -> Tensor:
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
def iter_scores(
    network: ProbedNetwork, texts: Sequence[Texts], mode: str, device: str, budget: int
) -> Iterator[tuple[NDArray[np.int64], Tensor]]:
    """Batches of the rows that a view can see: their numbers and the score of each."""
    shown = [select_texts(t, mode) for t in texts]
    there = np.array([n for n, t in enumerate(shown) if t is not None], np.int64)
    seen: list[Texts] = [t for t in shown if t is not None]
    network.mode = mode
    for some in batches(seen, budget) if seen else ():
        judged = network(move_batch(make_layout([seen[n] for n in some]), device))
        yield there[some], judged.scores[:, 0]


@torch.no_grad()
def extract_features(
    network: ProbedNetwork, rows: Rows, mode: str, device: str, budget: int
) -> tuple[NDArray[np.int64], Tensor]:
    """The rows that a view can see, and what the head sees in them, (rows, features)."""
    numbers, parts = [], []
    for chosen, _ in iter_scores(network, rows.texts, mode, device, budget):
        numbers.append(chosen)
        parts.append(network.features.half())
    return np.concatenate(numbers), torch.cat(parts)


def compute_columns(
    network: ProbedNetwork, modes: Mapping[str, Readouts], rows: Rows, device: str, budget: int
) -> dict[str, Any]:
    """What the network says in each view, and what is read of it; NaN where a text is absent."""
    result: dict[str, Any] = {}
    for mode in INPUT_MODES:
        said = np.full(len(rows.texts), np.nan, np.float32)
        read = np.full((len(rows.texts), len(READOUT_NAMES)), np.nan, np.float32)
        for chosen, scores in iter_scores(network, rows.texts, mode, device, budget):
            said[chosen] = scores.cpu().numpy()
            read[chosen] = modes[mode](network.features).cpu().numpy()
        result |= {f"said_{mode}": said, f"read_{mode}": read}
    return result


def chrf_columns(some: Sequence[Strings]) -> Floats:
    """chrF beside source and reference, 0 to 1, (rows, 2); NaN where one is absent."""
    table = np.full((len(some), 2), np.nan, np.float32)
    for side in (1, 2):
        there = [n for n, row in enumerate(some) if row[side] is not None]
        segments = [Segment(some[n][0], None, (some[n][side] or "",)) for n in there]
        if segments:
            table[there, side - 1] = CHRF().reduce(CHRF().statistics(segments)) / 100
    return table


def compute_chrf(strings: Sequence[Strings], processes: int) -> Floats:
    parts = [strings[n : n + 2000] for n in range(0, len(strings), 2000)]
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        found = pool.map(chrf_columns, parts, chunksize=1)
    return np.concatenate([chrf_columns([]), *found])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--budget", type=int, default=0, help="pieces of a batch, padding included")
    parser.add_argument("--rough", action="store_true", help="all passes in TF32: faster on a GPU")
    for name, many in DEFAULT_LIMITS.items():
        parser.add_argument(f"--{name}", type=int, default=many)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    model = load_bundled_model("tertium-multi")
    pieces = Pieces(model.folder / "encoder/tokenizer.json")
    network, modes = ProbedNetwork(model).to(args.device).eval(), dict[str, Readouts]()
    budget = args.budget or (250_000 if args.device.startswith("cuda") else 6_000)
    for name, rows, more in iter_samples(args.parts, vars(args), pieces):
        begin = time.monotonic()
        # what is only learned from may be a little rougher, and twice as fast
        rough = args.rough or name == "read"
        torch.set_float32_matmul_precision("high" if rough else "highest")
        if name == "read":
            human, names = np.array(rows.human, np.float32), np.array(rows.names)
            for mode in INPUT_MODES:
                numbers, features = extract_features(network, rows, mode, args.device, budget)
                modes[mode] = fit_readouts(features, human[numbers], names[numbers].tolist())
            save_readouts(args.out / READOUTS_FILE, modes)
        else:
            columns = compute_columns(network, modes, rows, args.device, budget)
            columns["letters"] = compute_chrf(rows.strings, args.processes)
            columns["strange"] = mean_fragmentation(rows.strings, pieces.encode)
            rows.save(args.out / f"{name}.npz", **columns, **more)
        print(name, len(rows.names), f"{time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
