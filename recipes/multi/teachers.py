"""Score distillation rows with teachers: trained networks, the shipped model, tertium-base.

    python -m recipes.multi.teachers --parts parts/ --run run/ --processes 6

This command writes chrF of these rows, which is part of the corrected score.
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

SHIPPED_STEM = "weights"  # the name of a file of `train start`
TEACHER_MODES = {
    "rankings": ("both",),
    "outputs": ("reference", "both"),
    "judgements": ("both", "source"),
}
MIN_ENGLISH_ROWS = 1000
CHUNK_PAIRS = 5000


def distillation_rows(parts: Parts, rows: int) -> dict[str, Ints]:
    """Return the rows that teachers score, (rows, 3) texts by kind."""
    ranked, _ = parts.rankings
    return {
        "rankings": tables.store_texts(*parts.rankings, tables.compared_rows(ranked)),
        "outputs": parts.outputs.texts(*parts.outputs.sample(rows)),
        "judgements": tables.store_texts(*parts.judgments),
    }


def iter_modes(name: str, texts: Ints) -> Iterator[tuple[str, Ints, float]]:
    """Yield an input mode, the rows scored in it, and its share of their mean.

    Judged rows, many without a reference, are scored once with all their texts.
    """
    has_reference = texts[:, 2] >= 0
    for mode in TEACHER_MODES[name]:
        if name == "judgements":
            yield mode, np.flatnonzero(has_reference == (mode == "both")), 1.0
        else:
            yield mode, np.arange(len(texts)), 1 / len(TEACHER_MODES[name])


class CorrectedHead(nn.Module):
    """The last layer of a network plus its correction, without chrF.

    Differences between the scales are kept. The terms for copies and for fragmented words are left
    out; the student learns about copies from damage.
    """

    def __init__(self, head: Head, folder: Path) -> None:
        super().__init__()
        last = self.last = head.last
        self.mode, self._head_input = INPUT_MODES[0], torch.zeros(0)
        head.register_forward_pre_hook(self._store_head_input)
        tensors_by_name = dequantize(load_file(folder / READOUT))
        self.readouts = nn.ModuleList()
        for number, _ in enumerate(INPUT_MODES):
            prefix = f"{NETWORK}readouts.{number}."
            tensors = {
                n.removeprefix(prefix): t
                for n, t in tensors_by_name.items()
                if n.startswith(prefix)
            }
            directions, features = tensors["squeeze.weight"].shape
            readout = Readout(features, directions, len(tensors["inner.bias"]))
            readout.load_state_dict(tensors)
            self.readouts.append(readout.to(last.weight.device))
        config = json.loads((folder / "config.json").read_text())
        self.shares: dict[str, dict[str, float]] = config["corrections"]

    def _store_head_input(self, _: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        self._head_input = inputs[0].float()

    @property
    def chrf_weight(self) -> float:
        return self.shares[self.mode]["letters"]

    def forward(self, hidden: Tensor) -> Tensor:
        out, correction = self.last(hidden), self.shares[self.mode]
        scores, score = out[:, : len(SCALES)], out[:, :1]
        bounded = score / torch.sqrt(1 + (score / correction["softness"]) ** 2)
        features = torch.cat([hidden, select_head_input(self._head_input, self.mode)], 1)
        readout = self.readouts[INPUT_MODES.index(self.mode)]
        raw = correction["share"] * bounded + readout(features)
        return torch.cat([raw + scores - score, out[:, len(SCALES) :]], 1)


def write_teacher_scores(
    network: MultiNetwork, parts: Parts, rows: int, run: Path, stem: str, folder: Path | None = None
) -> None:
    """Write the scores of a network to `run/taught-KIND-stem.npy`.

    `folder` holds the correction of the network; the shipped model always has one.
    """
    corrected = None
    if folder is not None or stem == SHIPPED_STEM:
        folder = folder or bundled_models_folder() / TertiumMulti.name
        corrected = CorrectedHead(network.head, folder)
        network.head.last = corrected  # type: ignore[assignment]
    for name, texts in distillation_rows(parts, rows).items():
        chrf = np.load(tables.wait_for_file(run / f"letters-{name}.npy")) if corrected else None
        mean = np.zeros((len(texts), len(SCALES)), np.float32)
        for mode, numbers, share in iter_modes(name, texts):
            if corrected is not None:
                corrected.mode = mode  # type: ignore[assignment]
            scores = score_rows(network, parts.pool, select_mode(texts[numbers], mode))
            if corrected is not None and chrf is not None:
                scores = scores + corrected.chrf_weight * chrf[numbers, None]
            mean[numbers] += share * scores
        np.save(run / f"taught-{name}-{stem}.npy", mean)


def average_teachers(run: Path, name: str, shipped: float, english: float) -> Floats:
    """Return the mean score of all teachers, (rows, scales).

    The shipped model has only the direct assessment scale and counts `shipped` times. It and
    tertium-base (weight `english`) are first matched to the mean and spread of the others.
    """
    scores_by_teacher = {
        path.stem: np.load(path) for path in sorted(run.glob(f"taught-{name}-*.npy"))
    }
    shipped_scores = scores_by_teacher.pop(f"taught-{name}-{SHIPPED_STEM}", None)
    count = len(scores_by_teacher)
    mean = np.mean(list(scores_by_teacher.values()), 0) if count else np.array(shipped_scores)
    if count and shipped_scores is not None:
        fitted = match_moments(shipped_scores[:, 0], mean[:, 0])
        mean[:, 0] = (count * mean[:, 0] + shipped * fitted) / (count + shipped)
    english_scores = np.zeros(len(mean))
    if (path := run / f"english-{name}.npy").exists():
        english_scores = np.load(path)
        has_score = np.isfinite(english_scores)
        if has_score.sum() > MIN_ENGLISH_ROWS:
            fitted = match_moments(english_scores[has_score], mean[has_score, 0])
            mean[has_score, 0] = (1 - english) * mean[has_score, 0] + english * fitted
    print(
        name,
        mean.shape,
        [*scores_by_teacher],
        shipped_scores is not None,
        int(np.isfinite(english_scores).sum()),
        flush=True,
    )
    return np.asarray(mean, np.float32)


def match_moments(values: Floats, reference_values: Floats) -> Floats:
    """Return the values with the mean and spread of others.

    >>> match_moments(np.array([1.0, 3.0]), np.array([0.0, 10.0])).tolist()
    [0.0, 10.0]
    """
    return np.asarray(
        (values - values.mean()) / values.std() * reference_values.std() + reference_values.mean()
    )


def distillation_pairs(
    parts: Parts, rows: int
) -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """Yield hypotheses and references of the distillation rows, by kind."""
    stores = {"rankings": parts.rankings[0], "judgements": parts.judgments[0]}
    for kind, store in stores.items():
        lines = read_lines(parts.folder / kind / "texts.xz")
        hypotheses, references = store.columns["hypothesis"], store.columns["reference"]
        numbers = tables.compared_rows(store) if kind == "rankings" else range(len(store))
        yield (
            kind,
            [
                (lines[hypotheses[n]], lines[references[n]] if references[n] >= 0 else None)
                for n in numbers
            ],
        )
    names, blocks = read_outputs(parts.folder / "outputs" / ARCHIVE)
    line_numbers, systems = parts.outputs.sample(rows)
    outputs = zip(line_numbers, parts.outputs.systems[systems], strict=True)
    yield "outputs", [(blocks[names[h]][n], blocks[names[r]][n]) for n, (h, _, r) in outputs]


def chrf_scores(pairs: Sequence[tuple[str, str | None]]) -> Floats:
    """Return chrF against the reference, 0 where there is none."""
    has_score = [n for n, (_, reference) in enumerate(pairs) if reference is not None]
    scores = np.zeros(len(pairs), np.float32)
    if has_score:
        rows = [(pairs[n][0], None, pairs[n][1]) for n in has_score]
        scores[has_score] = chrf_similarity(rows, 2)
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", type=Path, required=True, help="folder of packed data")
    parser.add_argument("--run", type=Path, required=True, help="output folder")
    parser.add_argument("--rows", type=int, default=tables.DISTILLED_OUTPUTS, help="FLORES outputs")
    parser.add_argument("--processes", type=int, default=6, help="number of processes (default: 6)")
    args = parser.parse_args()
    args.run.mkdir(parents=True, exist_ok=True)
    with multiprocessing.get_context("fork").Pool(args.processes) as pool:
        for name, pairs in distillation_pairs(Parts(args.parts, "cpu"), args.rows):
            parts = [pairs[n : n + CHUNK_PAIRS] for n in range(0, len(pairs), CHUNK_PAIRS)]
            partial = args.run / f"letters-{name}.part.npy"
            np.save(partial, np.concatenate(pool.map(chrf_scores, parts, chunksize=1)))
            partial.rename(args.run / f"letters-{name}.npy")
            print(name, len(pairs), flush=True)


if __name__ == "__main__":
    main()
