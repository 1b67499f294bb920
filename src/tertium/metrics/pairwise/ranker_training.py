"""Train the pairwise network with Adagrad on small batches; keep the best epoch.

Guzmán et al. 2015, section 4.4. The epoch with the highest strict tau on held-out comparisons is
kept, the latest one in case of ties. Networks with different seeds are trained in parallel in the
same matrix products: five cost little more than one, with the same results as separate training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tertium.core.arrays import IntArray
from tertium.core.errors import DataError, UsageError
from tertium.core.resampling import make_rng
from tertium.core.runtime import progress_task
from tertium.core.segment import Preference, Segment
from tertium.data.rankings import sample_comparisons
from tertium.metrics.base.feature_extractor import split_references
from tertium.metrics.base.lexical_features import NgramInformation, tokenize_13a
from tertium.metrics.pairwise.model import InputNumbers, PairwiseModel, as_checkpoint
from tertium.metrics.pairwise.ranker_options import COST_STAGES, PairwiseOptions
from tertium.metrics.pairwise.ranking_network import (
    Array,
    Cost,
    PairInputs,
    PairwiseNetwork,
    Rows,
    Weights,
    gradient_of,
    inputs_of,
)
from tertium.metrics.pairwise.scaling import Scaler
from tertium.metrics.pairwise.sentence_vectors import Projection, sentence_vectors
from tertium.models.checkpoint import Checkpoint
from tertium.models.training_job import TrainingJob

if TYPE_CHECKING:
    from tertium.metrics.pairwise.neural_ranker import Pairwise

DEV_SAMPLE_SEED = 13  # the same dev comparisons for every training seed
BLOCK_PAIRS = 2048  # pairs whose inputs are gathered at a time
ADAGRAD_START = 1e-8  # avoids division by zero


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparisons:
    """Human comparisons without ties: `left` and `right` rows (n,), `verdicts` 1 or 0 (n,)."""

    rows: Rows
    left: IntArray
    right: IntArray
    verdicts: Array

    def __post_init__(self) -> None:
        if not len(self.verdicts):
            raise DataError("no comparison to learn from: ties are not used")

    def __len__(self) -> int:
        return len(self.verdicts)

    def tau(self, network: PairwiseNetwork) -> float:
        """Return (concordant - discordant - ties) / all for `prefer` (mean over both orders)."""
        chances = network.prefer(self.rows, self.left, self.right)
        agrees = np.where(self.verdicts > 0.5, chances > 0.5, chances < 0.5)
        return float(2 * agrees.mean() - 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Learned:
    """A trained network, its tau on held-out comparisons, and the selected epoch."""

    network: PairwiseNetwork
    tau: float
    epoch: int
    history: tuple[float, ...]


def train_networks(
    data: Comparisons,
    held_out: Comparisons,
    *,
    hidden: int,
    costs: tuple[Cost, ...],
    options: PairwiseOptions,
    seeds: Sequence[int],
) -> list[Learned]:
    """Train one network per seed with each cost in turn, continuing from the best epoch."""
    generators = [np.random.default_rng(seed) for seed in seeds]
    width, features = data.rows.widths
    starts = [
        PairwiseNetwork.start(hidden=hidden, width=width, features=features, generator=generator)
        for generator in generators
    ]
    learned = [Learned(network=n, tau=-np.inf, epoch=0, history=()) for n in starts]
    for cost in costs:
        learned = _train_by(cost, data, held_out, learned, options, generators)
    return learned


def _train_by(
    cost: Cost,
    data: Comparisons,
    held_out: Comparisons,
    before: Sequence[Learned],
    options: PairwiseOptions,
    generators: Sequence[np.random.Generator],
) -> list[Learned]:
    """Train with one cost until no network has improved for `patience` epochs."""
    best, waited = list(before), [0] * len(before)
    weights = _stack([learned.network for learned in before])
    optimizer = Adagrad(weights, options.rate_of(cost))
    with progress_task(f"training ({cost})", total=options.epochs) as advance:
        for _ in range(options.epochs):
            _epoch(weights, best[0].network.hidden, cost, data, options, optimizer, generators)
            for n, learned in enumerate(best):
                if options.patience and waited[n] >= options.patience:
                    continue
                own = Weights(weights.inner[n].copy(), weights.outer[n].copy())
                best[n] = _choose_epoch(learned, replace(learned.network, weights=own), held_out)
                waited[n] = 0 if best[n].tau > learned.tau else waited[n] + 1
            advance(1)
            if options.patience and min(waited) >= options.patience:
                break
    return best


def _choose_epoch(learned: Learned, network: PairwiseNetwork, held_out: Comparisons) -> Learned:
    """Return the better of the best epoch so far and the current one (the current one if equal)."""
    tau = held_out.tau(network)
    history = (*learned.history, tau)
    if tau < learned.tau:
        return replace(learned, history=history)
    return Learned(network=network, tau=tau, epoch=len(history), history=history)


def _stack(networks: Sequence[PairwiseNetwork]) -> Weights:
    return Weights(
        np.stack([n.weights.inner for n in networks]), np.stack([n.weights.outer for n in networks])
    )


def _epoch(
    weights: Weights,
    hidden: int,
    cost: Cost,
    data: Comparisons,
    options: PairwiseOptions,
    optimizer: Adagrad,
    generators: Sequence[np.random.Generator],
) -> None:
    """Train all networks for one epoch, each on its own order of the comparisons."""
    orders = [_shuffle(data, options, generator) for generator in generators]
    size = BLOCK_PAIRS - BLOCK_PAIRS % options.batch_size or options.batch_size
    for start in range(0, len(data), size):
        block = slice(start, start + size)
        parts = [inputs_of(data.rows, first[block], second[block]) for first, second, _ in orders]
        z, psi = np.stack([p.z for p in parts]), np.stack([p.psi for p in parts])
        verdicts = np.stack([v[block] for _, _, v in orders])
        for at in range(0, verdicts.shape[1], options.batch_size):
            part = slice(at, at + options.batch_size)
            batch = PairInputs(z[:, part], psi[:, part])
            gradient = gradient_of(weights, batch, verdicts[:, part], hidden, cost, options.decay)
            optimizer.step(weights, gradient)


def _shuffle(
    data: Comparisons, options: PairwiseOptions, generator: np.random.Generator
) -> tuple[IntArray, IntArray, Array]:
    """Shuffle all comparisons and, if `order` is random, swap sides at random."""
    order = generator.permutation(len(data))
    swapped = generator.random(len(data)) < (0.5 if options.order == "random" else 0.0)
    first = np.where(swapped, data.right, data.left)[order]
    second = np.where(swapped, data.left, data.right)[order]
    verdicts = np.where(swapped, 1 - data.verdicts, data.verdicts)[order]
    return first, second, verdicts.astype(np.float32)


class Adagrad:
    """w -= rate g / sqrt(sum of all g^2 so far), in place (Duchi et al. 2011)."""

    def __init__(self, weights: Weights, rate: float) -> None:
        self.rate = np.float32(rate)
        self.sums = [np.full_like(array, ADAGRAD_START) for array in weights]

    def step(self, weights: Weights, gradient: Weights) -> None:
        for array, slope, total in zip(weights, gradient, self.sums, strict=True):
            total += slope * slope
            array -= self.rate * slope / np.sqrt(total)


def _fit_inputs(settings: Pairwise, segments: Sequence[Segment]) -> InputNumbers:
    """Fit projections and n-gram information to the training references."""
    references = list(dict.fromkeys(s.references[0] for s in segments))
    projections = {
        name: Projection.fit(sentence_vectors(name.encoder, references), name.width)
        for name in settings.vector_names
        if name.width
    }
    information = NgramInformation.empty()
    if "nist" in settings.feature_columns().parts:
        information = NgramInformation.from_texts(map(tokenize_13a, references))
    return InputNumbers(projections=projections, information=information)


def train_on_job(job: TrainingJob) -> Checkpoint:
    """Train the ranker of a job; the dev comparisons select the epoch."""
    if not job.dev.comparisons:
        raise UsageError(
            f"{job.settings.name} selects its epoch on dev comparisons: give some with dev= or "
            "--dev"
        )
    options, held_out = job.options, job.dev.comparisons
    if 0 < options.choose_on < sum(map(len, held_out)):
        held_out = sample_comparisons(held_out, options.choose_on, make_rng(DEV_SAMPLE_SEED))
    data, dev = (
        [preference for ranking_set in sets for preference in ranking_set]
        for sets in (job.data.comparisons, held_out)
    )
    note = job.note or job.data.sizes
    (checkpoint,) = train_rankers(job.settings, data, dev, (options.seed,), options, note)
    return checkpoint


def train_rankers(
    settings: Pairwise,
    data: Iterable[Preference],
    dev: Iterable[Preference],
    seeds: Sequence[int],
    options: PairwiseOptions,
    note: Any,
) -> list[Checkpoint]:
    """Train rankers with these settings, one per seed; inputs are computed once."""
    segments, make_comparisons = _number_comparisons(data)
    numbers = _fit_inputs(settings, segments)
    unscaled = settings.make_rows(segments, numbers)
    scaler = Scaler.fit(unscaled, settings.scaling)
    comparisons = make_comparisons(scaler(unscaled))
    segments, make_comparisons = _number_comparisons(dev)
    dev_comparisons = make_comparisons(scaler(settings.make_rows(segments, numbers)))
    networks = train_networks(
        comparisons,
        dev_comparisons,
        hidden=settings.hidden,
        costs=COST_STAGES[settings.cost],
        options=options,
        seeds=seeds,
    )
    encoders, metrics = settings.encoder_hashes(), settings.metric_ids()
    checkpoints = []
    for seed, learned in zip(seeds, networks, strict=True):
        training = {
            "comparisons": len(comparisons),
            "dev": len(dev_comparisons),
            "tau": round(learned.tau, 4),
            "epoch": learned.epoch,
            "data": note,
            "options": {**asdict(options), "seed": seed},
        }
        model = PairwiseModel(
            network=learned.network,
            scaler=scaler,
            columns=settings.feature_columns().names,
            projections=numbers.projections,
            information=numbers.information,
        )
        checkpoints.append(
            as_checkpoint(settings, model, encoders=encoders, metrics=metrics, training=training)
        )
    return checkpoints


def _number_comparisons(
    preferences: Iterable[Preference],
) -> tuple[list[Segment], Callable[[Rows], Comparisons]]:
    """Return segments and a function from rows to comparisons, one per reference, without ties."""
    rows: dict[Segment, int] = {}
    left, right, verdicts = [], [], []
    for preference in preferences:
        if preference.is_tie:
            continue
        sides = (split_references([side])[0] for side in (preference.left, preference.right))
        for a, b in zip(*sides, strict=True):
            left.append(rows.setdefault(a, len(rows)))
            right.append(rows.setdefault(b, len(rows)))
            verdicts.append(preference.verdict)
    if not rows:
        raise DataError("no comparison with a reference to learn from")
    index = np.array([left, right], dtype=np.int64)
    targets = np.array(verdicts, dtype=np.float32)
    return list(rows), lambda table: Comparisons(
        rows=table, left=index[0], right=index[1], verdicts=targets
    )
