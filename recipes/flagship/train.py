r"""Stages 2 to 4: train teachers, score the corpus with them, and distill a student.

    python -m recipes.flagship.train teacher CORPUS --model cross --encoder mpnet/ -o teacher1/
    python -m recipes.flagship.train label CORPUS teacher1/ teacher2/ -o labels.npz
    python -m recipes.flagship.train student CORPUS teacher1/ teacher2/ --encoder minilm/ -o small/
    python -m recipes.flagship.train student CORPUS teacher1/ teacher2/ --encoder mpnet/ \
        --model cross --start teacher1/ --epochs 1 --rate 2e-5 --size 256 -o base/

A student learns the mean score of its teachers. The last command trains the base model, a
cross-encoder initialized from a teacher. The checkpoint with the best correlation on da/wmt15 is
kept; no other dataset is used for selection.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from recipes.flagship.corpus import CASE_ONLY_DAMAGE, ORIGINS, Corpus
from recipes.flagship.damage import KINDS
from recipes.flagship.models import CrossEncoder, IntArray, LateEncoder, Tokenized
from tertium.metrics.bundled.tertium_small import FEATURE_NAMES, surface_features

FloatArray = NDArray[np.float64]
LAYERS = {"minilm": (2, 4, 6), "mpnet": (4, 8, 12)}
KIND_NAMES = tuple(KINDS)


class TrainingRun:
    """A model with its corpus: scores of batches, and correlation on da/wmt15."""

    def __init__(
        self, corpus: Corpus, folder: Path, model: str, surface: FloatArray | None
    ) -> None:
        self.corpus = corpus
        self.folder, self.model = folder, model
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.tokens = Tokenized.from_texts(corpus.texts, folder, self.device)
        layers = LAYERS["mpnet" if "mpnet" in folder.name else "minilm"]
        cls = CrossEncoder if model == "cross" else LateEncoder
        self.net: Any = cls(folder, layers=layers, surface=len(FEATURE_NAMES)).to(self.device)
        self.surface: Tensor | None = None
        if self.net.needs_surface:
            assert surface is not None
            self.surface = torch.tensor(surface, dtype=torch.float32, device=self.device)
            head: Any = self.net.head  # its buffers are declared as modules
            head.surface_mean.copy_(self.surface.mean(0))
            head.surface_scale.copy_(self.surface.std(0).clamp(min=0.05))
        self.scale, self.shift = 1.0, 0.0

    def scores(self, pairs: IntArray) -> Tensor:
        surface = None if self.surface is None else self.surface[torch.as_tensor(pairs)]
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.device == "cuda"):
            raw: Tensor = self.net.score(
                self.tokens, self.corpus.hypothesis[pairs], self.corpus.reference[pairs], surface
            )
        return raw * self.scale + self.shift

    @torch.no_grad()
    def predict(self, pairs: IntArray, size: int = 1024) -> FloatArray:
        self.net.eval()
        corpus = self.corpus
        length = self.tokens.lengths[corpus.hypothesis[pairs]]
        order = np.argsort(length, kind="stable")
        out = np.zeros(len(pairs))
        for rows in np.array_split(order, max(1, math.ceil(len(order) / size))):
            out[rows] = self.scores(pairs[rows]).float().cpu().numpy()
        return out

    def dev_correlation(self) -> float:
        """Return the mean Pearson correlation on da/wmt15 over language pairs."""
        corpus = self.corpus
        scores = self.predict(corpus.dev)
        parts = [corpus.dev_lp == lp for lp in np.unique(corpus.dev_lp)]
        return float(np.mean([np.corrcoef(scores[p], corpus.dev_scores[p])[0, 1] for p in parts]))

    def save(self, folder: Path, correlation: float) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        weights = {
            k: v.detach().to("cpu", torch.float16).contiguous()
            for k, v in self.net.state_dict().items()
        }
        save_file(weights, folder / "weights.safetensors")
        config = {
            "model": self.model,
            "encoder": str(self.folder),
            "scale": self.scale,
            "shift": self.shift,
            "da/wmt15": correlation,
        }
        (folder / "config.json").write_text(json.dumps(config))

    @classmethod
    def load(cls, corpus: Corpus, folder: Path, surface: FloatArray | None) -> TrainingRun:
        config = json.loads((folder / "config.json").read_text())
        run = cls(corpus, Path(config["encoder"]), config["model"], surface)
        run.net.load_state_dict(
            {k: v.float() for k, v in load_file(folder / "weights.safetensors").items()},
            strict=True,
        )
        run.scale, run.shift = config["scale"], config["shift"]
        return run


class Optimizer:
    """AdamW with warmup and linear decay, and a higher rate for the head."""

    def __init__(self, net: nn.Module, rate: float, head_rate: float, total: int) -> None:
        encoder: Any = net.encoder
        encoder_names = {id(p) for p in encoder.parameters()}
        frozen = [p for n, p in encoder.named_parameters() if ".embeddings." in n]
        for p in frozen if rate < 1e-4 else []:
            p.requires_grad_(False)  # keeps the difference to the public encoder small
        self.net = net
        groups = [
            {"params": [p for p in encoder.parameters() if p.requires_grad], "lr": rate},
            {
                "params": [p for p in net.parameters() if id(p) not in encoder_names],
                "lr": head_rate,
            },
        ]
        self.optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
        warmup_steps = max(1, int(0.05 * total))
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer,
            lambda n: min(
                (n + 1) / warmup_steps, max(0.02, (total - n) / max(1, total - warmup_steps))
            ),
        )

    def step(self, loss: Tensor) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.optimizer.step()
        self.schedule.step()


def segment_batches(
    corpus: Corpus, rows: IntArray, size: int, rng: np.random.Generator
) -> Iterator[IntArray]:
    """Yield batches of about `size` rows that keep segments together."""
    segments = corpus.segment[rows]
    shuffled = rng.permutation(int(segments.max()) + 1)[segments]
    order = np.argsort(shuffled, kind="stable")
    bounds = np.flatnonzero(np.diff(shuffled[order], prepend=-1))
    cuts, last = [], 0
    for bound in bounds:
        if bound - last >= size:
            cuts.append(int(bound))
            last = int(bound)
    batches = np.split(order, cuts)
    for n in rng.permutation(len(batches)):
        yield rows[batches[n]]


def train_preferences(run: TrainingRun, epochs: float, rate: float, size: int, seed: int) -> None:
    """Train with a logistic loss on human and synthetic comparisons."""
    corpus, rng = run.corpus, np.random.default_rng(seed)
    usable = np.ones(len(corpus.better), dtype=bool)
    for name in CASE_ONLY_DAMAGE:
        if run.model == "cross":
            usable &= corpus.kind[corpus.worse] != KIND_NAMES.index(name)
    synthetic = np.isin(
        corpus.origin[corpus.worse],
        [ORIGINS.index(o) for o in ("damage", "source copy")],
    ) | (corpus.origin[corpus.better] == ORIGINS.index("copy"))
    pairs_compared = corpus.better, corpus.worse
    total = int(epochs * len(corpus.better) * 0.75 / size)
    steps = Optimizer(run.net, rate, 5 * rate, total)
    start, done = time.time(), 0
    for epoch in range(math.ceil(epochs)):
        selected = usable & (~synthetic | (rng.random(len(usable)) < 0.3))
        for batch in comparison_batches(corpus, np.flatnonzero(selected), size, rng):
            if done >= total:
                break
            run.net.train()
            pairs, place = np.unique(
                np.concatenate([pairs_compared[0][batch], pairs_compared[1][batch]]),
                return_inverse=True,
            )
            scores = run.scores(pairs)
            where = torch.as_tensor(place, device=scores.device)
            gap = scores[where[: len(batch)]] - scores[where[len(batch) :]]
            weight = torch.as_tensor(np.where(synthetic[batch], 0.5, 1.0), device=gap.device)
            loss = (nn.functional.softplus(-gap) * weight).sum() / weight.sum()
            steps.step(loss)
            done += 1
            if done % 200 == 0:
                elapsed = time.time() - start
                print(f"  {done}/{total} loss {loss.item():.3f} {elapsed:.0f} s", flush=True)
        print(
            f"preferences epoch {epoch + 1}: da/wmt15 {run.dev_correlation():.4f}, "
            f"{time.time() - start:.0f} s",
            flush=True,
        )


def comparison_batches(
    corpus: Corpus, rows: IntArray, size: int, rng: np.random.Generator
) -> Iterator[IntArray]:
    """Yield batches of comparisons grouped by segment."""
    segments = corpus.segment[corpus.better[rows]]
    shuffled = rng.permutation(int(segments.max()) + 1)[segments]
    order = np.argsort(shuffled, kind="stable")
    # four comparisons share a pair on average, so a batch of `size` comparisons is cheap
    for batch in np.array_split(order, max(1, len(order) // size)):
        yield rows[batch]


def train_judgments(run: TrainingRun, epochs: int, rate: float, seed: int, folder: Path) -> float:
    """Train with squared error on direct assessments, after a linear fit of the scale."""
    corpus, rng = run.corpus, np.random.default_rng(seed)
    raw = run.predict(corpus.scored)
    slope, intercept = np.polyfit(raw, corpus.scores, 1)
    run.scale, run.shift = float(slope * run.scale), float(slope * run.shift + intercept)
    best = run.dev_correlation()
    run.save(folder, best)
    target = torch.tensor(corpus.scores, dtype=torch.float32, device=run.device)
    total = epochs * math.ceil(len(corpus.scored) / 32)
    steps = Optimizer(run.net, rate, rate, total)
    for epoch in range(epochs):
        order = rng.permutation(len(corpus.scored))
        for rows in np.array_split(order, math.ceil(len(order) / 32)):
            run.net.train()
            loss = ((run.scores(corpus.scored[rows]) - target[torch.as_tensor(rows)]) ** 2).mean()
            steps.step(loss)
        correlation = run.dev_correlation()
        print(f"judgments epoch {epoch + 1}: da/wmt15 {correlation:.4f}", flush=True)
        if correlation > best:
            best = correlation
            run.save(folder, best)
    return best


def distill(
    run: TrainingRun,
    labels: FloatArray,
    epochs: float,
    rate: float,
    size: int,
    seed: int,
    folder: Path,
) -> float:
    """Train on teacher scores with a margin between original and damaged texts."""
    corpus, rng = run.corpus, np.random.default_rng(seed)
    target = torch.tensor(labels, dtype=torch.float32, device=run.device)
    usable = ~np.isin(np.arange(len(labels)), corpus.dev)
    if run.model == "cross":
        usable &= ~np.isin(corpus.kind, [KIND_NAMES.index(name) for name in CASE_ONLY_DAMAGE])
    rows = np.flatnonzero(usable)
    parent = torch.as_tensor(corpus.parent, device=run.device)
    total = int(epochs * (len(rows) // size + 1))
    steps = Optimizer(run.net, rate, 5 * rate, total)
    best, start, done = -1.0, time.time(), 0
    place_of = torch.full((len(labels),), -1, dtype=torch.long, device=run.device)
    for epoch in range(math.ceil(epochs)):
        for batch in segment_batches(corpus, rows, size, rng):
            if done >= total:
                break
            done += 1
            run.net.train()
            index = torch.as_tensor(batch, device=run.device)
            scores = run.scores(batch)
            loss = nn.functional.smooth_l1_loss(scores, target[index], beta=1.0)
            place_of[index] = torch.arange(len(batch), device=run.device)
            origin = parent[index]
            has_parent = (origin >= 0) & (place_of[origin.clamp(min=0)] >= 0)
            if bool(has_parent.any()):
                parent_scores = scores[place_of[origin[has_parent]]]
                loss = (
                    loss
                    + 0.5 * nn.functional.relu(0.15 - (parent_scores - scores[has_parent])).mean()
                )
            place_of[index] = -1
            steps.step(loss)
        correlation = run.dev_correlation()
        print(
            f"distillation epoch {epoch + 1}: loss {loss.item():.3f}, da/wmt15 {correlation:.4f}, "
            f"{time.time() - start:.0f} s",
            flush=True,
        )
        if correlation > best:
            best = correlation
            run.save(folder, best)
    return best


def load_initial_weights(run: TrainingRun, folder: Path, labels: FloatArray) -> None:
    """Load the weights of another model and fit a linear map to the labels."""
    weights = load_file(folder / "weights.safetensors")
    run.net.load_state_dict({name: value.float() for name, value in weights.items()})
    sample = np.random.default_rng(1).choice(len(labels), 2000, replace=False)
    run.scale, run.shift = (float(x) for x in np.polyfit(run.predict(sample), labels[sample], 1))


def combine_teacher_scores(corpus: Corpus, teachers: list[FloatArray]) -> FloatArray:
    """Return the mean of standardized teacher scores as labels.

    Labels of damaged texts are below those of their originals. Damage that is invisible to an
    uncased teacher gets a fixed penalty.
    """
    human = corpus.origin == ORIGINS.index("ranking")
    labels = np.mean([(t - t[human].mean()) / t[human].std() for t in teachers], axis=0)
    damaged = corpus.parent >= 0
    parent_scores = labels[np.where(damaged, corpus.parent, 0)]
    unseen = np.isin(corpus.kind, [KIND_NAMES.index(name) for name in CASE_ONLY_DAMAGE])
    labels = np.where(damaged, np.minimum(labels, parent_scores - 0.1), labels)
    return np.where(damaged & unseen, parent_scores - 0.35, labels)


def load_surface_features(corpus: Corpus, folder: Path, workers: int) -> FloatArray:
    """Return the surface features of all pairs; computed once in parallel."""
    file = folder / "surface.npy"
    if file.exists():
        features: FloatArray = np.load(file)
        return features
    hypotheses = [corpus.texts[n] for n in corpus.hypothesis]
    references = [corpus.texts[n] for n in corpus.reference]
    cuts = [slice(n, n + 5000) for n in range(0, len(hypotheses), 5000)]
    with ProcessPoolExecutor(workers) as pool:
        parts = pool.map(
            surface_features, [hypotheses[c] for c in cuts], [references[c] for c in cuts]
        )
        rows = np.concatenate(list(parts))
    np.save(file, rows.astype(np.float32))
    return rows


def make_teacher(args: argparse.Namespace, corpus: Corpus, surface: FloatArray | None) -> None:
    """Train a teacher on preferences, then on judgments."""
    if args.limit:
        corpus = replace(
            corpus, better=corpus.better[: args.limit], worse=corpus.worse[: args.limit]
        )
    run = TrainingRun(corpus, args.encoder, args.model, surface)
    train_preferences(run, args.epochs, args.rate or 4e-5, args.size, args.seed)
    best = train_judgments(run, 3, 1e-5, args.seed, args.output)
    print(f"teacher {args.output}: da/wmt15 {best:.4f}")


def make_labels(args: argparse.Namespace, corpus: Corpus, surface: FloatArray | None) -> None:
    """Write the scores of each teacher for all pairs to its folder."""
    rows = np.arange(len(corpus.hypothesis))[: args.limit]
    for folder in args.inputs:
        run = TrainingRun.load(corpus, folder, surface)
        print(f"{folder}: da/wmt15 {run.dev_correlation():.4f}", flush=True)
        np.savez(folder / "labels.npz", scores=run.predict(rows).astype(np.float32))


def make_student(args: argparse.Namespace, corpus: Corpus, surface: FloatArray | None) -> None:
    """Train a student on teacher scores."""
    teachers = [np.load(f / "labels.npz")["scores"].astype(np.float64) for f in args.inputs]
    labels = combine_teacher_scores(corpus, teachers)
    run = TrainingRun(corpus, args.encoder, args.model, surface)
    if args.start:
        load_initial_weights(run, args.start, labels)
    rate = args.rate or 2e-4
    best = distill(run, labels, args.epochs, rate, args.size, args.seed, args.output)
    print(f"student {args.output}: da/wmt15 {best:.4f}")


STAGES = {"teacher": make_teacher, "label": make_labels, "student": make_student}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("stage", choices=("surface", *STAGES))
    parser.add_argument("corpus", type=Path, help="corpus folder")
    parser.add_argument("inputs", nargs="*", type=Path, help="teacher folders")
    parser.add_argument("--encoder", type=Path, help="folder of the public encoder")
    parser.add_argument(
        "--model", choices=("cross", "late"), default="late", help="architecture (default: late)"
    )
    parser.add_argument("--start", type=Path, help="model that initializes the student")
    parser.add_argument("-o", "--output", type=Path, help="output folder")
    parser.add_argument("--seed", type=int, default=1, help="random seed (default: 1)")
    parser.add_argument("--epochs", type=float, default=2, help="epochs (default: 2)")
    parser.add_argument("--rate", type=float, help="learning rate")
    parser.add_argument("--size", type=int, default=512, help="batch size (default: 512)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--limit", type=int, help="use only the first N comparisons or pairs")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    corpus = Corpus.load(args.corpus)
    has_no_surface = args.stage in ("teacher", "student") and args.model == "cross"
    surface = None if has_no_surface else load_surface_features(corpus, args.corpus, args.workers)
    if args.stage in STAGES:
        STAGES[args.stage](args, corpus, surface)


if __name__ == "__main__":
    main()
