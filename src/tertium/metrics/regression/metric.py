"""Metrics that are linear regressions: features of a segment, weights learned from people.

Features come from featurizers; this module joins them to a `LinearModel`, trains it and scores.
What Python does pair by pair is done on all cores, chunks of segments in forked processes: memory
is bounded by the chunks in flight. Where a process cannot be forked, or for few segments, the work
is done here. A featurizer that runs a network is never forked: the threads of torch do not survive
it, and a child would wait for ever.
"""

from __future__ import annotations

import logging
import multiprocessing
import threading
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from tertium.arrays import FloatArray
from tertium.encoders.encoder import load_encoder
from tertium.errors import ModelError
from tertium.metrics.base.components import Information, tokens
from tertium.metrics.base.featurizer import Featurizer, split_references
from tertium.metrics.base.trainable import Trainable
from tertium.metrics.regression.linear import (
    FOLDS,
    NOTHING_KNOWN,
    STRENGTHS,
    LinearModel,
    Prior,
    fit,
)
from tertium.models.checkpoint import WEIGHTS, Checkpoint, Like, check_arrays, read_declared
from tertium.models.judged import JudgedSets, check_targets
from tertium.models.options import Options, Rates, Recipe
from tertium.models.trained import SETTINGS, Lesson
from tertium.runtime import cores, task
from tertium.segment import Judgment, Segment

logger = logging.getLogger(__name__)

BLOCK = 4096  # segments whose features are held at once
ARRAYS = {
    **dict.fromkeys(("mean", "scale", "weights"), Like("f", ("features",))),
    "numbers": Like("f", (3,)),
    **dict.fromkeys(("information_keys", "information_counts"), Like("u", ("n-grams",))),
    "information_total": Like("i", (1,)),
}
CHUNK = 128  # segments one process takes at a time
WORTHWHILE = 4 * CHUNK  # segments; fewer are not worth starting processes for
ALONE = 8 * CHUNK  # segments that a featurizer which must not fork takes at a time
LOOKED_AT = 200  # judgments by which a fitted model is checked
OFTEN = 0.1  # of them above their references: none is, under the models that ship
REMEMBERED = 20_000  # rows of each featurizer that are kept between calls


@dataclass(frozen=True, kw_only=True)
class RegressionConfig:
    """What a regression's folder says of it: the fields of its metric, the names of its columns."""

    settings: Mapping[str, Any]
    features: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class RegressionOptions(Options):
    """How the weights are found."""

    strengths: Annotated[
        Rates, "regularisations to try, on pairs or segments left out or on --dev"
    ] = STRENGTHS
    prior: Annotated[
        bool, "weights keep the sign that their features mean, and families count alike"
    ] = True


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedRegression:
    """The regression, and the information of n-grams for NIST's columns."""

    linear: LinearModel
    information: Information


@dataclass(frozen=True, kw_only=True, eq=False)
class Regression(Trainable):
    """A linear regression on features of a hypothesis and its reference.

    The score is on the scale of the human scores it was trained on (standardised direct assessment
    for those that ship: 0 is an average translation of WMT15 and WMT16, higher is better). With
    several references it is the best over them. Two ends are fixed, whatever weights say of texts
    unlike those of training: nothing scores above what a reference would as its own translation,
    and nothing below the lowest human score of training, which is the score of a blank hypothesis
    (unless its reference is blank, too).

    `model` names the folder of a model that was trained and saved; empty is the one that ships.
    """

    citation: ClassVar[str] = """\
@inproceedings{pado-etal-2009-robust,
    title = "Robust Machine Translation Evaluation with Entailment Features",
    author = "Pad{\\'o}, Sebastian and Galley, Michel and Jurafsky, Dan and Manning, Chris",
    booktitle = "Proceedings of ACL-IJCNLP 2009", year = "2009", pages = "297--305"
}"""
    options: ClassVar[type[Any]] = RegressionOptions
    recipes: ClassVar[Mapping[str, Recipe]] = {
        "published": Recipe(
            says="Pado et al. (2009): ridge on standardised features, nothing known beforehand",
            options=RegressionOptions(prior=False),
        ),
        "ours": Recipe(
            says="as those that ship: known signs, families alike", options=RegressionOptions()
        ),
    }
    teachers: ClassVar[tuple[str, ...]] = ("scores",)

    @abstractmethod
    def featurizers(self, information: Information) -> tuple[Featurizer, ...]:
        """What makes its columns, from left to right."""

    @property
    def encoders(self) -> tuple[str, ...]:
        """The names of the encoders behind its features."""
        return ()

    def uses(self, column: str) -> bool:
        """Whether a column of its featurizers is among its features."""
        return True

    def sign(self, column: str) -> int:
        """The sign that a column's weight must have, 1 or -1; 0 where either makes sense."""
        return 0

    def family(self, column: str) -> str:
        """What a column is a component of."""
        return column.removeprefix("log ").partition(".")[0]

    @property
    def trained(self) -> FittedRegression:
        """The weights, read when they are first asked for, and of these features."""
        found = _restore(self.checkpoint, self.where)
        names = self.feature_names
        if found.linear.names != names:
            raise ModelError(
                f"{self.where} was trained on {len(found.linear.names)} other features than the "
                f"{len(names)} of {self.spec}: train it again"
            )
        for encoder in self.checkpoint.encoders:
            self.load_frozen(encoder)
        return found

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of its features."""
        parts = self.featurizers(Information.nothing())
        return tuple(name for part in parts for name in part.names if self.uses(name))

    @property
    def coefficients(self) -> dict[str, float]:
        """The weight of each standardised feature, the strongest first."""
        return self.trained.linear.coefficients

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        trained = self.trained
        parts, owner = split_references(segments)
        # References stay together, so that each is analysed once; features are dropped block by
        # block, so that memory does not grow with the number of segments.
        order = sorted(range(len(parts)), key=lambda n: parts[n].references)
        best = np.full(len(segments), -np.inf)
        for start in range(0, len(parts), BLOCK):
            block = order[start : start + BLOCK]
            scores, _ = self.predictions([parts[n] for n in block], trained)
            np.maximum.at(best, owner[block], scores)
        return best

    def predictions(
        self, segments: Sequence[Segment], trained: FittedRegression
    ) -> tuple[FloatArray, FloatArray]:
        """The scores of segments with one reference each, and of each reference as its own
        translation, (n,) each."""
        references = list(dict.fromkeys(s.references[0] for s in segments))
        place = {text: n for n, text in enumerate(references)}
        themselves = [Segment(text, None, (text,)) for text in references]
        rows = self.features([*segments, *themselves], trained.information)
        values = np.maximum(trained.linear.predict(rows), trained.linear.least)
        perfect = values[len(segments) :][[place[s.references[0]] for s in segments]]
        blank = [not s.hypothesis.strip() and bool(s.references[0].strip()) for s in segments]
        scores = np.minimum(values[: len(segments)], perfect)
        return np.where(blank, trained.linear.least, scores), perfect

    def features(
        self, segments: Sequence[Segment], information: Information | None = None
    ) -> FloatArray:
        """The columns of segments with one reference each, (n, features)."""
        if information is None:
            information = self.trained.information
        parts = self.featurizers(information)
        rows = np.hstack([rows_of(part, segments, self.title) for part in parts])
        return rows[:, [self.uses(name) for part in parts for name in part.names]]

    @property
    def digest(self) -> str:
        return self.trained.linear.digest

    @property
    def learned(self) -> tuple[str, ...]:
        encoders = [load_encoder(name).signature_fields()["model"] for name in self.encoders]
        return (*super().learned, *encoders)

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        count = str(len(self.trained.linear.names))
        return {**super().signature_fields(segments), "features": count}

    @classmethod
    def fit(cls, lesson: Lesson) -> Checkpoint:
        """Learn the weights from judgments, the strength by leaving out language pairs in turn.

        Of fewer than three pairs, a fifth of the segments is left out in turn.
        With `dev` judgments, the strength is the one that serves them best instead.
        """
        metric, options = lesson.settings, lesson.options
        data, dev = _judgments(lesson.data), _judgments(lesson.dev)
        check_targets(np.array([judgment.score for judgment in data]))
        names = metric.feature_names
        information = Information.nothing()
        if "nist.nist-1" in names:
            references = dict.fromkeys(r for one in data for r in one.segment.references)
            information = Information.of(map(tokens, references))
        features, targets, groups = _examples(metric, data, information)
        prior = metric.prior if options.prior else NOTHING_KNOWN
        several = len(options.strengths) > 1
        held = None
        if dev and several:
            check_targets(np.array([judgment.score for judgment in dev]), "chosen by")
            held = _examples(metric, dev, information)[:2]
        linear = fit(names, features, targets, groups, options.strengths, prior, held)
        _warn_of_bounds(metric, linear, data, information)
        training = {
            "judgements": len(data),
            "dev": len(dev),
            "strength": linear.strength,
            "data": lesson.note or lesson.data.sizes,
        }
        return _as_checkpoint(metric, linear, information, training)

    @property
    def prior(self) -> Prior:
        """What is known of its features before anything is learned."""
        names = self.feature_names
        return Prior(
            signs=tuple(self.sign(name) for name in names),
            families=tuple(self.family(name) for name in names),
        )


def _judgments(sets: JudgedSets) -> list[Judgment]:
    return [j if j.lp else replace(j, lp=one.lp) for one in sets.scores for j in one.judgments]


def _examples(
    metric: Regression, data: Sequence[Judgment], information: Information
) -> tuple[FloatArray, FloatArray, list[str]]:
    """Features (n, k), human scores (n,) and what is held out together, one row for each reference.

    Those are language pairs or, of fewer than three, parts of the references: translations of one
    segment stay together, in whichever order a file has them.
    """
    parts, owner = split_references([judgment.segment for judgment in data])
    scores = np.array([data[i].score for i in owner], dtype=np.float64)
    groups = [data[i].lp for i in owner]
    if len(set(groups)) < 3:
        places = np.unique([data[i].segment.references[0] for i in owner], return_inverse=True)[1]
        groups = [str(place % FOLDS) for place in places.tolist()]
    return metric.features(parts, information), scores, groups


def _warn_of_bounds(
    metric: Regression, linear: LinearModel, data: Sequence[Judgment], information: Information
) -> None:
    """Say so where weights put references below their translations, which then score alike."""
    parts, _ = split_references([judgment.segment for judgment in data[:LOOKED_AT]])
    themselves = [Segment(part.references[0], None, part.references) for part in parts]
    given, most = (linear.predict(metric.features(s, information)) for s in (parts, themselves))
    share = float(np.mean(given > most))
    if share > OFTEN:
        logger.warning(
            "%s puts %.0f %% of translations above their references, whose scores they then get: "
            "it learned too little, from %d judgments; take more, or another metric",
            metric.title,
            100 * share,
            len(data),
        )


def _as_checkpoint(
    metric: Regression, linear: LinearModel, information: Information, training: Mapping[str, Any]
) -> Checkpoint:
    """What is stored: numbers in double precision, named coefficients beside them to be read."""
    coefficients = {name: round(value, 6) for name, value in linear.coefficients.items()}
    return Checkpoint(
        name=metric.name,
        config={SETTINGS: metric.own_settings, "features": list(linear.names)},
        encoders={name: load_encoder(name).weights_hash for name in metric.encoders},
        arrays={
            **linear.arrays,
            "information_keys": information.keys,
            "information_counts": information.counts,
            "information_total": np.array([information.total], dtype=np.int64),
        },
        training={**training, "coefficients": coefficients},
    )


@lru_cache(maxsize=16)
def _restore(stored: Checkpoint, where: str) -> FittedRegression:
    """The regression of a checkpoint, its numbers checked."""
    features = read_declared(RegressionConfig, stored, where).features
    file = Path(where) / WEIGHTS
    check_arrays(stored.arrays, ARRAYS, file, features=len(features))
    if not (stored.arrays["scale"] > 0).all():
        raise ModelError(f"{file}: scale holds a number that is not above 0")
    keys, counts = stored.arrays["information_keys"], stored.arrays["information_counts"]
    total = int(stored.arrays["information_total"][0])
    return FittedRegression(
        linear=LinearModel.from_arrays(features, stored.arrays),
        information=Information(keys, counts, total),
    )


def rows_of(featurizer: Featurizer, segments: Sequence[Segment], label: str = "") -> FloatArray:
    """The rows of all segments in their order, each distinct segment computed once, (n, k).

    Rows of earlier calls are remembered, so that several metrics and training runs share them.
    Segments with one reference stay together, so that it is analysed in one process.
    """
    known = _memory(featurizer)
    missing = sorted(set(segments) - known.keys(), key=lambda s: (s.references, s.hypothesis))
    if len(known) + len(missing) > REMEMBERED:
        fresh = {s: known[s] for s in set(segments) & known.keys()}
        known.clear()
    else:
        fresh = known
    with task(label or "features", total=len(missing)) as advance:
        for start, part in _compute(featurizer, missing):
            fresh.update(zip(missing[start : start + len(part)], part, strict=True))
            advance(len(part))
    rows = [fresh[segment] for segment in segments]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(featurizer.names))


@lru_cache(maxsize=16)
def _memory(featurizer: Featurizer) -> dict[Segment, FloatArray]:
    return {}


def _compute(
    featurizer: Featurizer, segments: Sequence[Segment]
) -> Iterator[tuple[int, FloatArray]]:
    size = CHUNK if featurizer.forks else ALONE
    starts = range(0, len(segments), size)
    chunks = (segments[start : start + size] for start in starts)
    workers = min(cores(), len(starts)) if featurizer.forks else 1
    if len(segments) < WORTHWHILE or workers < 2 or not _can_fork():
        yield from zip(starts, map(featurizer, chunks), strict=True)
        return
    # What a process inherits it need not load: a first row loads parser, dictionary and vectors.
    featurizer(segments[:1])
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        yield from zip(starts, pool.map(partial(_rows, featurizer), chunks), strict=True)


def _rows(featurizer: Featurizer, segments: Sequence[Segment]) -> FloatArray:
    return featurizer(segments)


def _can_fork() -> bool:
    """Forking is safe from the main thread of a main process only."""
    return (
        "fork" in multiprocessing.get_all_start_methods()
        and threading.current_thread() is threading.main_thread()
        and multiprocessing.parent_process() is None
    )
