"""The pairwise ranker of Guzmán, Joty, Màrquez and Nakov (2015), with any vectors and columns.

The network is in `tertium.metrics.pairwise.network`; here texts become its inputs, comparisons its
training data, and folders its memory.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from tertium.arrays import FloatArray, IntArray, generator
from tertium.data.rankings import sample_comparisons
from tertium.encoders.encoder import count_unread, load_encoder
from tertium.errors import DataError, ModelError, UsageError
from tertium.metrics.base.components import Information, tokens
from tertium.metrics.base.featurizer import split_references
from tertium.metrics.base.metric import distinct_texts
from tertium.metrics.base.ranker import Ranker
from tertium.metrics.pairwise.columns import Columns, encoder_behind, learned_model
from tertium.metrics.pairwise.model import InputNumbers, PairwiseModel, as_checkpoint, restore_model
from tertium.metrics.pairwise.network import Cost, Rows, inputs_of
from tertium.metrics.pairwise.training import (
    Comparisons,
    PairwiseOptions,
    Scaler,
    Scaling,
    train_networks,
)
from tertium.metrics.pairwise.vectors import (
    SYNTAX,
    Projection,
    VectorName,
    joint_vectors,
    sentence_vectors,
)
from tertium.models.checkpoint import Checkpoint
from tertium.models.judged import JudgedSets
from tertium.models.options import Recipe
from tertium.models.trained import Lesson, Trained
from tertium.segment import Preference, Segment
from tertium.specs import Range

__all__ = ["Pairwise", "PairwiseOptions"]

logger = logging.getLogger(__name__)
DRAWN_BY = 13  # the seed of comparisons to choose by: the same for every seed of a network
COSTS: dict[str, tuple[Cost, ...]] = {
    "logistic": ("logistic",),
    "kendall": ("kendall",),
    "logistic+kendall": ("logistic", "kendall"),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Pairwise(Trained, Ranker):
    """A small network reads two translations and the reference, and says which is better.

        f(t1, t2, r) = sig(w [h_12, h_1r, h_2r, psi(t1, r), psi(t2, r)] + b)

    with three groups of `hidden` tanh nodes over pairs of sentence vectors, and columns psi that
    skip them. What a user gets is the mean over both orders of a pair, so that
    prefer(a, b) + prefer(b, a) = 1; `raw` gives f itself. With several references it is the mean
    over them.

    `vectors` (glove, syntax25, minilm~32, source/use) and `features` (4metrics, bleucomp,
    layers/minilm, any metric) are named as the modules `vectors` and `columns` say.
    `hidden=0` is the flat network, a logistic regression. `cost` and `scaling` say how it was
    trained: the published ones are `logistic+kendall` and `minmax`. `model` names the folder of a
    model that was trained and saved, or another that ships (`pairwise-minilm`, and
    `pairwise-published` with the inputs of the paper); empty is the default, which reads no
    vectors: they added nothing to its columns.

    Relatives: any metric ranks too (`load_ranker("chrf")`), by a score it gives to one translation
    at a time; this one sees both.
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
            says="Guzman et al. (2015): syntax and word vectors with four metrics, one cost after "
            "the other",
            options=PairwiseOptions(patience=0, choose_on=5000),
            settings={
                "vectors": ("syntax25", "glove"),
                "features": ("4metrics",),
                "hidden": 4,
                "cost": "logistic+kendall",
                "scaling": "minmax",
            },
        ),
        "ours": Recipe(
            says="as the one that ships: a logistic regression on what other metrics say",
            options=PairwiseOptions(
                rate=0.1, batch_size=100, epochs=6, patience=0, order="random", seed=1
            ),
        ),
    }
    teachers: ClassVar[tuple[str, ...]] = ("comparisons",)

    vectors: tuple[str, ...] = ()
    features: tuple[str, ...] = ("tertium-small:length=free", "bleu", "chrf")
    hidden: Annotated[int, Range(0)] = 0
    cost: Literal["logistic", "kendall", "logistic+kendall"] = "logistic"
    scaling: Scaling = "standard"
    model: str = ""

    def __post_init__(self) -> None:
        if not self.vectors and not self.features:
            raise UsageError("a ranker without vectors and features has nothing to go by")
        for name in self.vectors:
            VectorName.parse(name)

    @property
    def needs(self) -> frozenset[str]:
        sourced = any(name.of_source for name in self._vectors) or self._columns().reads_source
        return frozenset({"references", "source"} if sourced else {"references"})

    @property
    def trained(self) -> PairwiseModel:
        """The model, read when it is first asked for, and of these columns."""
        checkpoint, where = self.checkpoint, self.where
        model = restore_model(checkpoint, self.vectors, where)
        if model.columns != self._columns().names:
            raise ModelError(
                f"{self.model or 'the model that ships'} was trained on {len(model.columns)} other "
                f"columns than those of {self.spec}: train it again"
            )
        _warn_of_others(checkpoint, where)
        for encoder in checkpoint.encoders:
            self.load_frozen(encoder)
        return model

    def prefer_rows(
        self, segments: Sequence[Segment], left: IntArray, right: IntArray
    ) -> FloatArray:
        parts, owner = split_references(segments)
        first, second, pair = _pair_parts(owner, len(segments), left, right)
        network = self.trained.network
        chances = network.prefer(self.inputs(parts), first, second).astype(np.float64)
        counts = np.bincount(pair, minlength=len(left))
        result: FloatArray = np.bincount(pair, chances, len(left)) / counts
        return result

    def inputs(self, segments: Sequence[Segment]) -> Rows:
        """What the network reads of segments with one reference each."""
        model = self.trained
        return model.scaler(self._rows(segments, model))

    def raw(self, left: Sequence[Segment], right: Sequence[Segment]) -> FloatArray:
        """f(left, right, reference) of the network as it is, for segments with one reference."""
        count, rows = len(left), self.inputs([*left, *right])
        inputs = inputs_of(rows, np.arange(count), np.arange(count, 2 * count))
        return self.trained.network.probabilities(inputs).astype(np.float64)

    def warnings(self, segments: Sequence[Segment]) -> dict[str, int]:
        """What its metrics and encoders count; of several, what counts most."""
        encoders = [load_encoder(name) for name in self._encoders()]
        counted = [metric.warnings(segments) for metric in self._columns().metrics]
        counted.append(count_unread(encoders, distinct_texts(segments, "reference")))
        result = super().warnings(segments)
        for kind, count in (item for counts in counted for item in counts.items()):
            if count > result.get(kind, 0):
                result[kind] = count
        return result

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        return {"model": f"{self.origin}@{self.trained.digest}"}

    @classmethod
    def unread(cls, settings: Any, options: Any, data: JudgedSets) -> frozenset[str]:
        return frozenset() if "kendall" in COSTS[settings.cost] else frozenset({"kendall_rate"})

    @classmethod
    def fit(cls, lesson: Lesson) -> Checkpoint:
        """Learn from comparisons; `dev` decides which epoch is kept. Ties are left out of both.

        Scales, projections and the information of n-grams come from the training data alone.
        """
        if not lesson.dev.comparisons:
            raise UsageError(
                f"{cls.name} chooses its epoch on held-out comparisons: give some with dev= or "
                "--dev-preferences"
            )
        options, note = lesson.options, lesson.note or lesson.data.sizes
        held = lesson.dev.comparisons
        if 0 < options.choose_on < sum(map(len, held)):
            held = sample_comparisons(held, options.choose_on, generator(DRAWN_BY))
        data, dev = ([p for one in sets for p in one] for sets in (lesson.data.comparisons, held))
        (learned,) = learn(lesson.settings, data, dev, (options.seed,), options, note)
        return learned

    @property
    def _vectors(self) -> tuple[VectorName, ...]:
        return tuple(VectorName.parse(name) for name in self.vectors)

    def _columns(self, information: Information | None = None) -> Columns:
        return Columns(self.features, information or Information.nothing())

    def _rows(self, segments: Sequence[Segment], numbers: InputNumbers) -> Rows:
        """Segments with one reference each as rows, unscaled."""
        hypotheses = [s.hypothesis for s in segments]
        references = [s.references[0] for s in segments]
        sources = [s.source or "" for s in segments]
        names, count = self._vectors, len(segments)
        return Rows(
            vectors=joint_vectors(names, lambda _: hypotheses, numbers.projections, count),
            anchors=joint_vectors(
                names, lambda n: sources if n.of_source else references, numbers.projections, count
            ),
            features=self._columns(numbers.information)(segments).astype(np.float32),
        )

    def _encoders(self) -> dict[str, str]:
        """The encoders behind vectors and columns with the hashes of their weights."""
        names = [n.encoder for n in self._vectors if n.encoder != SYNTAX]
        names += [encoder for part in self._columns().parts if (encoder := encoder_behind(part))]
        return {name: load_encoder(name).weights_hash for name in names}

    def _metrics(self) -> dict[str, str]:
        """The learned metrics among the columns, each with the model it is."""
        found = {part: learned_model(part) for part in self._columns().parts}
        return {part: model for part, model in found.items() if model}


@lru_cache(maxsize=8)
def _warn_of_others(checkpoint: Checkpoint, where: str) -> None:
    """Say once where a column is now another model than the one it was learned with."""
    for name, wanted in checkpoint.config.get("metrics", {}).items():
        if (found := learned_model(name)) != wanted:
            logger.warning("%s learned to read %s, but finds %s here", where, wanted, found)


def _prepare(blank: Pairwise, segments: Sequence[Segment]) -> InputNumbers:
    """Projections and information, learned from training references."""
    references = list(dict.fromkeys(s.references[0] for s in segments))
    projections = {
        name: Projection.fit(sentence_vectors(name.encoder, references), name.width)
        for name in blank._vectors
        if name.width
    }
    informed = "nist" in blank._columns().parts
    information = Information.of(map(tokens, references)) if informed else Information.nothing()
    return InputNumbers(projections=projections, information=information)


def learn(
    blank: Pairwise,
    data: Iterable[Preference],
    dev: Iterable[Preference],
    seeds: Sequence[int],
    options: PairwiseOptions,
    note: Any,
) -> list[Checkpoint]:
    """What a ranker of these settings learns from each seed.

    Inputs are computed once and scaled alike.
    """
    segments, known = _comparisons(data)
    numbers = _prepare(blank, segments)
    raw = blank._rows(segments, numbers)
    scaler = Scaler.fit(raw, blank.scaling)
    seen = known(scaler(raw))
    segments, known = _comparisons(dev)
    chosen = known(scaler(blank._rows(segments, numbers)))
    networks = train_networks(
        seen, chosen, hidden=blank.hidden, costs=COSTS[blank.cost], options=options, seeds=seeds
    )
    encoders, metrics = blank._encoders(), blank._metrics()
    checkpoints = []
    for seed, learned in zip(seeds, networks, strict=True):
        training = {
            "comparisons": len(seen),
            "dev": len(chosen),
            "tau": round(learned.tau, 4),
            "epoch": learned.epoch,
            "data": note,
            "options": {**dataclasses.asdict(options), "seed": seed},
        }
        model = PairwiseModel(
            network=learned.network,
            scaler=scaler,
            columns=blank._columns().names,
            projections=numbers.projections,
            information=numbers.information,
        )
        checkpoints.append(
            as_checkpoint(blank, model, encoders=encoders, metrics=metrics, training=training)
        )
    return checkpoints


def _comparisons(
    preferences: Iterable[Preference],
) -> tuple[list[Segment], Callable[[Rows], Comparisons]]:
    """Segments with one reference each, and what makes comparisons of their rows; ties left out.

    A comparison with several references is one with each.
    """
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
        raise DataError("there is no comparison with a reference to learn from")
    index = np.array([left, right], dtype=np.int64)
    said = np.array(verdicts, dtype=np.float32)
    return list(rows), lambda table: Comparisons(
        rows=table, left=index[0], right=index[1], verdicts=said
    )


def _pair_parts(
    owner: IntArray, count: int, left: IntArray, right: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Pairs of segments to pairs of parts with the same reference, and the pair each belongs to."""
    sizes = np.bincount(owner, minlength=count)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    repeats = sizes[left]
    pair = np.repeat(np.arange(len(left)), repeats)
    within = np.arange(len(pair)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    return starts[left][pair] + within, starts[right][pair] + within, pair
