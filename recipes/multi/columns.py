"""Compute features of the frozen tertium-multi network for rows, as input of `combine`.

    python -m recipes.multi.columns parts/ -o columns/ --device cuda

Rows are samples of packed parts (`recipes.multi.samples`). Columns are the network score in each
input mode, readouts of the head's hidden layer and input (`recipes.multi.readouts`, fitted here on
training judgments), chrF, and the fragmentation of words into vocabulary pieces.
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
    """The bundled network, extended to expose the hidden layer and the input of its head.

    `features` is (rows, hidden units + head input) of the last batch, for the current `mode`.
    """

    mode = "both"

    def __init__(self, model: BundledModel) -> None:
        words = load_word_embeddings(model)
        tensors = model.restore_tensors("network.")
        weights = {name: w for name, w in tensors.items() if not name.startswith("readouts.")}
        with torch.device("meta"):  # skips the initialization of weights
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
    """Unpack the embedding table of the bundled model."""
    nibbles = model.weights["words.nibbles"].numpy()
    scales = model.weights["words.scales"].numpy().astype("<f2")
    blocks = np.concatenate([scales[..., None].view(np.uint8), nibbles], axis=-1)
    return torch.from_numpy(unpack_blocks(blocks.reshape(-1, BLOCK_BYTES))).view(len(scales), -1)


def batch_by_length(texts: Sequence[Texts], budget: int) -> Iterator[NDArray[np.int64]]:
    """Yield row numbers in batches below a budget of padded pieces, long texts first."""
    width = np.array([max(len(t) for t in row if t is not None) + 2 for row in texts])
    order, at = np.argsort(-width, kind="stable"), 0
    while at < len(order):
        size = max(1, min(budget // int(3 * width[order[at]]), len(order) - at))
        yield order[at : at + size]
        at += size


@torch.no_grad()
def iter_scores(
    network: ProbedNetwork, texts: Sequence[Texts], mode: str, device: str, budget: int
) -> Iterator[tuple[NDArray[np.int64], Tensor]]:
    """Yield the row numbers and scores of batches, for rows with the texts of a mode."""
    mode_texts = [select_texts(t, mode) for t in texts]
    visible = np.array([n for n, t in enumerate(mode_texts) if t is not None], np.int64)
    visible_texts: list[Texts] = [t for t in mode_texts if t is not None]
    network.mode = mode
    for batch in batch_by_length(visible_texts, budget) if visible_texts else ():
        prediction = network(move_batch(make_layout([visible_texts[n] for n in batch]), device))
        yield visible[batch], prediction.scores[:, 0]


@torch.no_grad()
def extract_features(
    network: ProbedNetwork, rows: Rows, mode: str, device: str, budget: int
) -> tuple[NDArray[np.int64], Tensor]:
    """Return the rows that have the texts of a mode, and their head features."""
    numbers, parts = [], []
    for chosen, _ in iter_scores(network, rows.texts, mode, device, budget):
        numbers.append(chosen)
        parts.append(network.features.half())
    return np.concatenate(numbers), torch.cat(parts)


def compute_columns(
    network: ProbedNetwork, readouts: Mapping[str, Readouts], rows: Rows, device: str, budget: int
) -> dict[str, Any]:
    """Return scores and readouts in each input mode; NaN where a text is missing."""
    result: dict[str, Any] = {}
    for mode in INPUT_MODES:
        raw = np.full(len(rows.texts), np.nan, np.float32)
        readout_scores = np.full((len(rows.texts), len(READOUT_NAMES)), np.nan, np.float32)
        for chosen, scores in iter_scores(network, rows.texts, mode, device, budget):
            raw[chosen] = scores.cpu().numpy()
            readout_scores[chosen] = readouts[mode](network.features).cpu().numpy()
        result |= {f"said_{mode}": raw, f"read_{mode}": readout_scores}
    return result


def chrf_columns(batch: Sequence[Strings]) -> Floats:
    """Return chrF against source and reference, 0 to 1, (rows, 2); NaN where missing."""
    table = np.full((len(batch), 2), np.nan, np.float32)
    for side in (1, 2):
        visible = [n for n, row in enumerate(batch) if row[side] is not None]
        segments = [Segment(batch[n][0], None, (batch[n][side] or "",)) for n in visible]
        if segments:
            table[visible, side - 1] = CHRF().reduce(CHRF().statistics(segments)) / 100
    return table


def compute_chrf(strings: Sequence[Strings], processes: int) -> Floats:
    """Compute chrF columns in several processes."""
    parts = [strings[n : n + 2000] for n in range(0, len(strings), 2000)]
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        parts_chrf = pool.map(chrf_columns, parts, chunksize=1)
    return np.concatenate([chrf_columns([]), *parts_chrf])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", type=Path, help="folder written by recipes.multi.pack")
    parser.add_argument("-o", "--out", type=Path, required=True, help="output folder")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    parser.add_argument("--processes", type=int, default=1, help="processes for chrF (default: 1)")
    parser.add_argument("--budget", type=int, default=0, help="pieces per batch, with padding")
    parser.add_argument("--rough", action="store_true", help="use TF32 everywhere: faster on a GPU")
    for name, limit in DEFAULT_LIMITS.items():
        parser.add_argument(f"--{name}", type=int, default=limit, help="sample size (%(default)s)")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    model = load_bundled_model("tertium-multi")
    pieces = Pieces(model.folder / "encoder/tokenizer.json")
    network, readouts = ProbedNetwork(model).to(args.device).eval(), dict[str, Readouts]()
    budget = args.budget or (250_000 if args.device.startswith("cuda") else 6_000)
    for name, rows, extra_columns in iter_samples(args.parts, vars(args), pieces):
        started = time.monotonic()
        # lower precision is enough to fit readouts, and twice as fast
        is_approximate = args.rough or name == "read"
        torch.set_float32_matmul_precision("high" if is_approximate else "highest")
        if name == "read":
            human, names = np.array(rows.human, np.float32), np.array(rows.names)
            for mode in INPUT_MODES:
                numbers, features = extract_features(network, rows, mode, args.device, budget)
                readouts[mode] = fit_readouts(features, human[numbers], names[numbers].tolist())
            save_readouts(args.out / READOUTS_FILE, readouts)
        else:
            columns = compute_columns(network, readouts, rows, args.device, budget)
            columns["letters"] = compute_chrf(rows.strings, args.processes)
            columns["strange"] = mean_fragmentation(rows.strings, pieces.encode)
            rows.save(args.out / f"{name}.npz", **columns, **extra_columns)
        print(name, len(rows.names), f"{time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
