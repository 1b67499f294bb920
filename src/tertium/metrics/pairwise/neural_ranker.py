"""The pairwise ranker of Guzmán, Joty, Màrquez and Nakov (2015), with configurable inputs.

The network is in `tertium.metrics.pairwise.ranking_network`, its training in `pairwise.training`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np

from tertium.core.arrays import FloatArray, IntArray
from tertium.core.errors import ModelError, UsageError
from tertium.core.fields import Range
from tertium.core.segment import Segment
from tertium.encoders.encoder import load_encoder
from tertium.metrics.base.lexical_features import NgramInformation, split_references
from tertium.metrics.base.ranker import Ranker
from tertium.metrics.base.text_warnings import (
    LANGUAGE_UNKNOWN,
    Flags,
    flag_inputs,
    flag_language_unknown,
    flag_not_english,
    merge_flags,
)
from tertium.metrics.pairwise.features import (
    SYNTAX,
    PairwiseFeatures,
    VectorName,
    joint_vectors,
    part_encoder,
    part_model_ids,
)
from tertium.metrics.pairwise.ranking_network import (
    InputNumbers,
    PairwiseModel,
    Rows,
    Scaling,
    restore_model,
)
from tertium.models.checkpoint import Checkpoint, cache_by_checkpoint
from tertium.models.trained_model import TrainedModel
from tertium.models.training_options import Options, Recipe

if TYPE_CHECKING:
    from tertium.models.training_data import TrainingJob, TrainingSets

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class PairwiseOptions(Options):
    """Training options of the pairwise ranker; defaults as published, except `patience`."""

    rate: Annotated[float, Range(0, exclusive=True), "learning rate of Adagrad"] = 0.01
    kendall_rate: Annotated[
        float, Range(0), "learning rate under Kendall's cost (0: same as --rate)"
    ] = 0.0
    batch_size: Annotated[int, Range(1), "comparisons per step"] = 30
    decay: Annotated[float, Range(0), "weight decay"] = 1e-4
    epochs: Annotated[int, Range(1), "maximum number of epochs per cost"] = 10_000
    patience: Annotated[
        int, Range(0), "stop after this many epochs without improvement (0: never)"
    ] = 100
    order: Annotated[
        Literal["given", "random"], "order of the two translations of a pair, per epoch"
    ] = "given"
    choose_on: Annotated[
        int, Range(0), "dev comparisons sampled for selecting the epoch (0: all)"
    ] = field(default=0, repr=False)
    seed: Annotated[int, Range(0), "random seed"] = 0

    def rate_of(self, cost: str) -> float:
        """Return the learning rate under a cost."""
        return (self.kendall_rate if cost == "kendall" else 0.0) or self.rate


@dataclass(frozen=True, kw_only=True, eq=False)
class Pairwise(TrainedModel, Ranker):
    """A small network that reads two translations and the reference and predicts which is better.

        f(t1, t2, r) = sig(w [h_12, h_1r, h_2r, psi(t1, r), psi(t2, r)] + b)

    with three groups of `hidden` tanh nodes over pairs of sentence vectors, and features psi that
    skip them. `prefer` averages both orders of a pair, so prefer(a, b) + prefer(b, a) = 1. Several
    references are averaged.

    `vectors` (glove, syntax25, minilm~32) and `features` (bleucomp,
    layers/minilm, any metric) are described in the module `features`.
    `hidden=0` is logistic regression. `cost` and `scaling` are the training cost and the input
    scaling; the published ones are `logistic+kendall` and `minmax`. `model` is the folder of a
    trained model or the name of a bundled one (`pairwise-minilm`, `pairwise-published`); the
    default model reads no vectors, because they did not improve on its features.

    Any metric can rank as well (`load_ranker("chrf")`), by scoring one translation at a time.
    """

    name: ClassVar[str] = "pairwise"
    title: ClassVar[str] = "Pairwise"
    citation: ClassVar[str] = """\
@inproceedings{guzman-etal-2015-pairwise,
    title = "Pairwise Neural Machine Translation Evaluation",
    author = "Guzm{\\'a}n, Francisco and Joty, Shafiq and M{\\`a}rquez, Llu{\\'i}s and
        Nakov, Preslav",
    booktitle = "Proceedings of ACL-IJCNLP 2015", year = "2015", pages = "805--814"
}"""
    kind: ClassVar[Literal["metric", "ranker"]] = "ranker"
    options: ClassVar[type[Any]] = PairwiseOptions
    recipes: ClassVar[Mapping[str, Recipe]] = {
        "published": Recipe(
            description="Guzmán et al. (2015): syntax and word vectors, four metrics, two costs",
            options=PairwiseOptions(patience=0, choose_on=5000),
            settings={
                "vectors": ("syntax25", "glove"),
                "features": ("bleu", "nist", "ter", "meteor"),
                "hidden": 4,
                "cost": "logistic+kendall",
                "scaling": "minmax",
            },
        ),
        "ours": Recipe(
            description="as the bundled model: logistic regression on scores of other metrics",
            options=PairwiseOptions(
                rate=0.1, batch_size=100, epochs=6, patience=0, order="random", seed=1
            ),
        ),
    }
    accepted_data: ClassVar[tuple[str, ...]] = ("comparisons",)
    train_examples: ClassVar[str] = """\
  tertium train {name} --train rankings/wmt11/*-en.judgements.tsv.gz --choose-on 5000 \\
      --dev rankings/wmt13/*-en.judgements.tsv.gz -o models/ranker
  tertium train {name}:cost=logistic --recipe published --rate .3 --epochs 200 --patience 40 \\
      --train rankings/wmt11/*-en.judgements.tsv.gz \\
      --dev rankings/wmt13/*-en.judgements.tsv.gz -o models/published
"""

    vectors: tuple[str, ...] = ()
    features: tuple[str, ...] = ("tertium-small:length=free", "bleu", "chrf")
    hidden: Annotated[int, Range(0)] = 0
    cost: Literal["logistic", "kendall", "logistic+kendall"] = "logistic"
    scaling: Scaling = "standard"
    model: str = ""

    def __post_init__(self) -> None:
        if not self.vectors and not self.features:
            raise UsageError("pairwise needs vectors or features: give at least one of them")
        for name in self.vectors:
            VectorName.parse(name)

    @property
    def required_inputs(self) -> frozenset[str]:
        reads_source = self.feature_columns().reads_source
        return frozenset({"references", "source"} if reads_source else {"references"})

    @property
    def trained(self) -> PairwiseModel:
        """The trained model, loaded on first use and checked against the features."""
        checkpoint = self.checkpoint
        where = self.location
        model = restore_model(checkpoint, self.vectors, where)
        if model.columns != self.feature_columns().names:
            raise ModelError(
                f"{self.model or 'the bundled model'} was trained on other features "
                f"({len(model.columns)} columns) than {self.spec} has: train it again"
            )
        _warn_about_changed_metrics(checkpoint, where)
        for encoder in checkpoint.encoders:
            self.load_training_encoder(encoder)
        return model

    def prefer_pairs(
        self, segments: Sequence[Segment], left: IntArray, right: IntArray
    ) -> FloatArray:
        parts, owner = split_references(segments)
        first, second, pair = _pair_parts(owner, len(segments), left, right)
        network = self.trained.network
        chances = network.prefer(self.inputs(parts), first, second).astype(np.float64)
        counts = np.bincount(pair, minlength=len(left))
        return np.bincount(pair, chances, len(left)) / counts

    def inputs(self, segments: Sequence[Segment]) -> Rows:
        """Compute the scaled network inputs of segments with one reference each."""
        model = self.trained
        return model.scaler(self.make_rows(segments, model))

    def flags(self, segments: Sequence[Segment]) -> Flags:
        """Merge the flags of its metrics and encoders."""
        encoders = [load_encoder(name) for name in self.encoder_hashes()]
        parts = [super().flags(segments)]
        parts += [metric.flags(segments) for metric in self.feature_columns().metrics]
        parts += [flag_inputs(encoders, segments), flag_language_unknown(encoders, segments)]
        if any(name.encoder == SYNTAX for name in self.vector_names):
            parts.append({"reference not English": flag_not_english(segments)})
        return merge_flags(parts)

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        return {"model": f"{self.weights_label}@{self.trained.digest}"}

    @classmethod
    def flag_languages(cls, settings: Any, segments: Sequence[Segment]) -> Flags:
        kinds = (LANGUAGE_UNKNOWN, "hypothesis not English", "reference not English")
        flags = settings.flags(segments)
        return {kind: mask for kind, mask in flags.items() if kind.startswith(kinds)}

    @classmethod
    def unused_options(cls, settings: Any, options: Any, data: TrainingSets) -> frozenset[str]:
        return frozenset() if "kendall" in settings.cost else frozenset({"kendall_rate"})

    @classmethod
    def fit(cls, job: TrainingJob) -> Checkpoint:
        """Train on comparisons without ties; `dev` selects the epoch."""
        from tertium.metrics.pairwise.ranker_training import train_on_job

        return train_on_job(job)

    @property
    def vector_names(self) -> tuple[VectorName, ...]:
        return tuple(VectorName.parse(name) for name in self.vectors)

    def feature_columns(self, information: NgramInformation | None = None) -> PairwiseFeatures:
        return PairwiseFeatures(self.features, information or NgramInformation.empty())

    def make_rows(self, segments: Sequence[Segment], numbers: InputNumbers) -> Rows:
        """Compute unscaled inputs of segments with one reference each."""
        sides = [s.hypothesis for s in segments], [s.references[0] for s in segments]
        vectors, anchors = (
            joint_vectors(self.vector_names, texts, numbers.projections) for texts in sides
        )
        features = self.feature_columns(numbers.information)(segments).astype(np.float32)
        return Rows(vectors, anchors, features)

    def encoder_hashes(self) -> dict[str, str]:
        """Return the encoders of vectors and features with the hashes of their weights."""
        names = [n.encoder for n in self.vector_names if n.encoder != SYNTAX]
        parts = self.feature_columns().parts
        names += [encoder for part in parts if (encoder := part_encoder(part))]
        return {name: load_encoder(name).weights_hash for name in names}

    def metric_ids(self) -> dict[str, str]:
        """Return the trained metrics among the features with their model identifiers."""
        ids = {part: part_model_ids(part) for part in self.feature_columns().parts}
        return {part: model for part, model in ids.items() if model}


@cache_by_checkpoint
def _warn_about_changed_metrics(checkpoint: Checkpoint, where: str) -> None:
    """Warn once if a feature now uses another model than in training."""
    for name, expected in checkpoint.config.get("metrics", {}).items():
        if (installed := part_model_ids(name)) != expected:
            logger.warning(
                "%s was trained with %s, but %s is installed", where, expected, installed
            )


def _pair_parts(
    owner: IntArray, count: int, left: IntArray, right: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Expand pairs of segments to pairs per reference; also return the pair index of each."""
    starts = np.searchsorted(owner, np.arange(count + 1))
    sizes = np.diff(starts)[left]
    pair = np.repeat(np.arange(len(left)), sizes)
    within = np.arange(len(pair)) - np.searchsorted(pair, pair)
    return starts[left][pair] + within, starts[right][pair] + within, pair
