"""What teachers say of rows: networks, the model that ships, tertium-base for English.

python -m recipes.multi.teachers --parts parts/ --run run/ --processes 6

writes chrF of these rows, which is a part of what a corrected network says.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from recipes.multi import tables
from recipes.multi.batching import Floats, Ints, score_rows, select_mode
from recipes.multi.network import SCALES, Head, MultiNetwork, select_head_input
from recipes.multi.store import ARCHIVE, read_lines, read_outputs
from recipes.multi.tables import Parts
from tertium.metrics.flagship.bundled_model import dequantize
from tertium.metrics.flagship.joint_network import Readout
from tertium.metrics.flagship.row_scorer import NETWORK
from tertium.metrics.flagship.score_correction import chrf_similarity
from tertium.metrics.flagship.tertium_multi import INPUT_MODES, READOUT, TertiumMulti
from tertium.models.checkpoint import bundled_models_folder

SHIPPED = "weights"  # the name of a file of `train start`
TEACHER_MODES = {
    "rankings": ("both",),
    "outputs": ("reference", "both"),
    "judgements": ("both", "source"),
}
MIN_ENGLISH_ROWS = 1000
PART = 5000


def distillation_rows(parts: Parts, rows: int) -> dict[str, Ints]:
    """The rows that teachers score, (rows, 3) texts by kind."""
    ranked, _ = parts.rankings
    return {
        "rankings": tables.store_texts(*parts.rankings, tables.compared_rows(ranked)),
        "outputs": parts.outputs.texts(*parts.outputs.sample(rows)),
        "judgements": tables.store_texts(*parts.judgments),
    }


def iter_modes(name: str, texts: Ints) -> Iterator[tuple[str, Ints, float]]:
    """A view, the rows that are scored in it, and what share of their mean that is.

    Judged rows, many of which have no reference, are seen once, with all they have.
    """
    whole = texts[:, 2] >= 0
    for mode in TEACHER_MODES[name]:
        if name == "judgements":
            yield mode, np.flatnonzero(whole == (mode == "both")), 1.0
        else:
            yield mode, np.arange(len(texts)), 1 / len(TEACHER_MODES[name])


class CorrectedHead(nn.Module):
    """The last layer of a network, which says what a correction makes of that, chrF left out.

    Scales that differ go on to do so. What counts copies is left out, too: damage teaches these;
    so is what changes with strange words.
    """

    def __init__(self, head: Head, folder: Path) -> None:
        super().__init__()
        last = self.last = head.last
        self.mode, self._head_input = INPUT_MODES[0], torch.zeros(0)
        head.register_forward_pre_hook(self._store_head_input)
        every = dequantize(load_file(folder / READOUT))
        self.readouts = nn.ModuleList()
        for number, _ in enumerate(INPUT_MODES):
            own = f"{NETWORK}readouts.{number}."
            tensors = {n.removeprefix(own): t for n, t in every.items() if n.startswith(own)}
            directions, features = tensors["squeeze.weight"].shape
            readout = Readout(features, directions, len(tensors["inner.bias"]))
            readout.load_state_dict(tensors)
            self.readouts.append(readout.to(last.weight.device))
        config = json.loads((folder / "config.json").read_text())
        self.shares: dict[str, dict[str, float]] = config["corrections"]

    def _store_head_input(self, _: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        self._head_input = inputs[0].float()

    @property
    def letters(self) -> float:
        return self.shares[self.mode]["letters"]

    def forward(self, hidden: Tensor) -> Tensor:
        out, own = self.last(hidden), self.shares[self.mode]
        scores, score = out[:, : len(SCALES)], out[:, :1]
        bounded = score / torch.sqrt(1 + (score / own["softness"]) ** 2)
        found = torch.cat([hidden, select_head_input(self._head_input, self.mode)], 1)
        raw = own["share"] * bounded + self.readouts[INPUT_MODES.index(self.mode)](found)
        return torch.cat([raw + scores - score, out[:, len(SCALES) :]], 1)


def write_teacher_scores(
    network: MultiNetwork, parts: Parts, rows: int, run: Path, stem: str, folder: Path | None = None
) -> None:
    """Writes what a network says of the rows, `run/taught-KIND-stem.npy`.

    It is corrected by what `folder` holds beside weights; the model that ships always is.
    """
    corrected = None
    if folder is not None or stem == SHIPPED:
        folder = folder or bundled_models_folder() / TertiumMulti.name
        corrected = CorrectedHead(network.head, folder)
        network.head.last = corrected  # type: ignore[assignment]
    for name, texts in distillation_rows(parts, rows).items():
        letters = np.load(tables.wait_for_file(run / f"letters-{name}.npy")) if corrected else None
        mean = np.zeros((len(texts), len(SCALES)), np.float32)
        for mode, some, share in iter_modes(name, texts):
            if corrected is not None:
                corrected.mode = mode  # type: ignore[assignment]
            said = score_rows(network, parts.pool, select_mode(texts[some], mode))
            if corrected is not None and letters is not None:
                said = said + corrected.letters * letters[some, None]
            mean[some] += share * said
        np.save(run / f"taught-{name}-{stem}.npy", mean)


def average_teachers(run: Path, name: str, shipped: float, english: float) -> Floats:
    """What all teachers say of rows, (rows, scales), tertium-base mixed in where it spoke.

    A model that ships has one scale, that of direct assessment: it teaches no other, counts
    `shipped` times, and is first brought to the mean and spread of those that are new.
    """
    told = {path.stem: np.load(path) for path in sorted(run.glob(f"taught-{name}-*.npy"))}
    old = told.pop(f"taught-{name}-{SHIPPED}", None)
    mean = np.mean(list(told.values()), 0) if told else np.array(old)
    if told and old is not None:
        fitted = match_moments(old[:, 0], mean[:, 0])
        mean[:, 0] = (len(told) * mean[:, 0] + shipped * fitted) / (len(told) + shipped)
    known = np.zeros(len(mean))
    if (path := run / f"english-{name}.npy").exists():
        known = np.load(path)
        there = np.isfinite(known)
        if there.sum() > MIN_ENGLISH_ROWS:
            fitted = match_moments(known[there], mean[there, 0])
            mean[there, 0] = (1 - english) * mean[there, 0] + english * fitted
    print(name, mean.shape, [*told], old is not None, int(np.isfinite(known).sum()), flush=True)
    return np.asarray(mean, np.float32)


def match_moments(values: Floats, others: Floats) -> Floats:
    """The values with the mean and spread of others.

    >>> like(np.array([1.0, 3.0]), np.array([0.0, 10.0])).tolist()
    [0.0, 10.0]
    """
    return np.asarray((values - values.mean()) / values.std() * others.std() + others.mean())


def distillation_pairs(
    parts: Parts, rows: int
) -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """By kind hypothesis and reference of the rows that teachers score, as strings."""
    for kind in ("rankings", "judgements"):
        store, _ = getattr(parts, kind)
        lines = read_lines(parts.folder / kind / "texts.xz")
        own, other = store.columns["hypothesis"], store.columns["reference"]
        some = tables.compared_rows(store) if kind == "rankings" else range(len(store))
        yield kind, [(lines[own[n]], lines[other[n]] if other[n] >= 0 else None) for n in some]
    names, blocks = read_outputs(parts.folder / "outputs" / ARCHIVE)
    lines_, systems = parts.outputs.sample(rows)
    columns = parts.outputs.systems[systems]
    found = zip(lines_, columns, strict=True)
    yield "outputs", [(blocks[names[h]][n], blocks[names[r]][n]) for n, (h, _, r) in found]


def chrf_scores(pairs: Sequence[tuple[str, str | None]]) -> Floats:
    there = [n for n, (_, reference) in enumerate(pairs) if reference is not None]
    found = np.zeros(len(pairs), np.float32)
    if there:
        found[there] = chrf_similarity([(pairs[n][0], None, pairs[n][1]) for n in there], 2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", type=Path, required=True)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=tables.DISTILLED_OUTPUTS, help="taught outputs")
    parser.add_argument("--processes", type=int, default=6)
    args = parser.parse_args()
    args.run.mkdir(parents=True, exist_ok=True)
    with multiprocessing.get_context("fork").Pool(args.processes) as pool:
        for name, pairs in distillation_pairs(Parts(args.parts, "cpu"), args.rows):
            parts = [pairs[n : n + PART] for n in range(0, len(pairs), PART)]
            partial = args.run / f"letters-{name}.part.npy"
            np.save(partial, np.concatenate(pool.map(chrf_scores, parts, chunksize=1)))
            partial.rename(args.run / f"letters-{name}.npy")
            print(name, len(pairs), flush=True)


if __name__ == "__main__":
    main()
