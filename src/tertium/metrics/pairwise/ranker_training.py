"""Train the pairwise network with Adagrad on small batches; keep the best epoch.

Guzmán et al. 2015, section 4.4. The epoch with the highest strict tau on held-out comparisons is
kept, the latest one in case of ties. With s = f(t_1, t_2, r) and D = s - f(t_2, t_1, r) the costs
of a comparison with verdict y are

    Logistic: -(y log s + (1 - y) log(1 - s))                                      (equation 4)
    Kendall:  y sig(-g D) + (1 - y) sig(g D) + exp(-b D^2 / 2)                     (equation 6)

Equation 6 is printed with a leading minus sign, which would reward discordance. The text of the
paper says that discordance is penalized, as it is here. Biases are not decayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from tertium.core.arrays import IntArray
from tertium.core.errors import DataError, UsageError
from tertium.core.resampling import make_rng
from tertium.core.runtime import progress_task
from tertium.core.segment import Preference, Segment
from tertium.data.rankings import sample_comparisons
from tertium.metrics.base.lexical_features import NgramInformation, split_references, tokenize_13a
from tertium.metrics.pairwise.features import Projection, sentence_vectors
from tertium.metrics.pairwise.ranking_network import (
    Array,
    InputNumbers,
    PairwiseModel,
    PairwiseNetwork,
    Rows,
    Scaler,
    groups,
)
from tertium.models.checkpoint import Checkpoint
from tertium.models.trained_model import SETTINGS
from tertium.models.training_data import TrainingJob

if TYPE_CHECKING:
    from tertium.metrics.pairwise.neural_ranker import Pairwise, PairwiseOptions

DEV_SAMPLE_SEED = 13  # the same dev comparisons for every training seed
GAMMA = BETA = 100.0  # steepness of the step and of the tie penalty; any large value works
ADAGRAD_START = 1e-8  # avoids division by zero


@dataclass(frozen=True, eq=False)
class ComparedRows:
    """Human comparisons without ties: `left` and `right` rows (n,), `verdicts` 1 or 0 (n,)."""

    rows: Rows
    left: IntArray
    right: IntArray
    verdicts: Array

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


def train_network(
    data: ComparedRows,
    held_out: ComparedRows,
    *,
    hidden: int,
    costs: Sequence[str],
    options: PairwiseOptions,
) -> Learned:
    """Train a network with each cost in turn, continuing from the best epoch."""
    generator = np.random.default_rng(options.seed)
    network = PairwiseNetwork.start(
        hidden=hidden,
        width=data.rows.vectors.shape[1],
        features=data.rows.features.shape[1],
        generator=generator,
    )
    learned = Learned(network=network, tau=-np.inf, epoch=0, history=())
    for cost in costs:
        learned = _train_by(cost, data, held_out, learned, options, generator)
    return learned


def _train_by(
    cost: str,
    data: ComparedRows,
    held_out: ComparedRows,
    best: Learned,
    options: PairwiseOptions,
    generator: np.random.Generator,
) -> Learned:
    """Train with one cost until the network has not improved for `patience` epochs."""
    weights = [torch.tensor(array, requires_grad=True) for array in best.network]
    rate = options.rate_of(cost)
    optimizer = torch.optim.Adagrad(weights, rate, initial_accumulator_value=ADAGRAD_START)
    compute_cost = _cost_function(cost, data.rows, weights, options.decay)
    waited = 0
    with progress_task(f"training ({cost})", total=options.epochs) as advance:
        for _ in range(options.epochs):
            left, right, verdicts = _shuffle(data, options, generator)
            for start in range(0, len(data), options.batch_size):
                rows = slice(start, start + options.batch_size)
                optimizer.zero_grad()
                loss = compute_cost(left[rows], right[rows], verdicts[rows])
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            arrays = (tensor.detach().numpy().copy() for tensor in weights)
            network = PairwiseNetwork(*arrays)
            tau = held_out.tau(network)
            history = (*best.history, tau)
            waited = 0 if tau > best.tau else waited + 1
            if tau < best.tau:
                best = replace(best, history=history)
            else:
                best = Learned(network=network, tau=tau, epoch=len(history), history=history)
            advance(1)
            if 0 < options.patience <= waited:
                break
    return best


def _cost_function(
    cost: str, rows: Rows, weights: Sequence[Tensor], decay: float
) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Return the function of the mean cost of a batch: left and right rows, and verdicts."""
    inner, outer = weights
    vectors, anchors, features = map(torch.from_numpy, rows)
    mask = torch.from_numpy(groups(vectors.shape[1], inner.shape[1] // 3))

    def logits(left: Tensor, right: Tensor) -> Tensor:
        ones = torch.ones(len(left), 1)
        z = torch.cat([vectors[left], vectors[right], anchors[left], ones], dim=1)
        nodes = torch.tanh(z @ (inner * mask)) if mask.numel() else z[:, :-1]
        return torch.cat([nodes, features[left], features[right], ones], dim=1) @ outer

    def compute_cost(left: Tensor, right: Tensor, verdicts: Tensor) -> Tensor:
        penalty = decay * (inner[:-1].square().sum() + outer[:-1].square().sum())
        if cost == "logistic":
            losses = binary_cross_entropy_with_logits(logits(left, right), verdicts)
            return losses + penalty
        margins = logits(left, right).sigmoid() - logits(right, left).sigmoid()
        discordant = torch.sigmoid(GAMMA * margins * (1 - 2 * verdicts))
        return (discordant + torch.exp(-BETA / 2 * margins**2)).mean() + penalty

    return compute_cost


def _shuffle(
    data: ComparedRows, options: PairwiseOptions, generator: np.random.Generator
) -> tuple[Tensor, ...]:
    """Shuffle all comparisons and, if `order` is random, swap sides at random."""
    order = generator.permutation(len(data))
    swapped = generator.random(len(data)) < (0.5 if options.order == "random" else 0.0)
    left = np.where(swapped, data.right, data.left)
    right = np.where(swapped, data.left, data.right)
    verdicts = np.where(swapped, 1 - data.verdicts, data.verdicts).astype(np.float32)
    return tuple(torch.from_numpy(side[order]) for side in (left, right, verdicts))


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
    options = job.options
    held_out = job.dev.comparisons
    if 0 < options.choose_on < sum(map(len, held_out)):
        held_out = sample_comparisons(held_out, options.choose_on, make_rng(DEV_SAMPLE_SEED))
    data, dev = (
        [preference for ranking_set in sets for preference in ranking_set]
        for sets in (job.data.comparisons, held_out)
    )
    return train_ranker(job.settings, data, dev, options, job.note or job.data.sizes)


def train_ranker(
    settings: Pairwise,
    data: Iterable[Preference],
    dev: Iterable[Preference],
    options: PairwiseOptions,
    note: Any,
) -> Checkpoint:
    """Train a ranker with these settings on comparisons."""
    segments, sides = _number_comparisons(data)
    numbers = _fit_inputs(settings, segments)
    unscaled = settings.make_rows(segments, numbers)
    scaler = Scaler.fit(unscaled, settings.scaling)
    comparisons = ComparedRows(scaler(unscaled), *sides)
    segments, sides = _number_comparisons(dev)
    dev_comparisons = ComparedRows(scaler(settings.make_rows(segments, numbers)), *sides)
    learned = train_network(
        comparisons,
        dev_comparisons,
        hidden=settings.hidden,
        costs=settings.cost.split("+"),
        options=options,
    )
    model = PairwiseModel(
        network=learned.network,
        scaler=scaler,
        columns=settings.feature_columns().names,
        projections=numbers.projections,
        information=numbers.information,
    )
    return Checkpoint(
        name=settings.name,
        kind="ranker",
        config={
            SETTINGS: settings.scoring_fields,
            "columns": list(model.columns),
            "information_total": numbers.information.total,
            "farthest": scaler.farthest if np.isfinite(scaler.farthest) else None,
            "metrics": settings.metric_ids(),
        },
        encoders=settings.encoder_hashes(),
        arrays=model.arrays(settings.vector_names),
        training={
            "comparisons": len(comparisons),
            "dev": len(dev_comparisons),
            "tau": round(learned.tau, 4),
            "epoch": learned.epoch,
            "data": note,
            "options": asdict(options),
        },
    )


def _number_comparisons(
    preferences: Iterable[Preference],
) -> tuple[list[Segment], tuple[IntArray, IntArray, Array]]:
    """Return segments, and left rows, right rows and verdicts per reference, without ties."""
    rows: dict[Segment, int] = {}
    left = []
    right = []
    verdicts = []
    for preference in preferences:
        if preference.is_tie:
            continue
        sides = (split_references([side])[0] for side in (preference.left, preference.right))
        for a, b in zip(*sides, strict=True):
            left.append(rows.setdefault(a, len(rows)))
            right.append(rows.setdefault(b, len(rows)))
            verdicts.append(preference.verdict)
    if not rows:
        raise DataError("no comparison with a reference to learn from: ties are not used")
    indices = np.array(left, dtype=np.int64), np.array(right, dtype=np.int64)
    return list(rows), (*indices, np.array(verdicts, dtype=np.float32))
