"""Metrics that are linear regressions: features of a segment, weights learned from people.

The features come from `tertium.features`; this module joins them to a `LinearModel`, trains it,
keeps it in a folder and finds the folders that ship with the package.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from tertium.arrays import FloatArray
from tertium.encoders.encoder import load_encoder
from tertium.errors import DataError, ModelError, UsageError
from tertium.metrics.base.components import tokens
from tertium.metrics.base.featurizer import Featurizer, single
from tertium.metrics.base.information import Information
from tertium.metrics.base.metric import REFERENCES, SegmentMetric
from tertium.metrics.base.trainable import UNSAVED, TrainingData, judged_sets
from tertium.metrics.regression.linear import STRENGTHS, LinearModel, Prior, fit, held_out_strength
from tertium.metrics.regression.parallel import rows_of
from tertium.models.arrays import Like, check_arrays
from tertium.models.checkpoint import (
    CONFIG,
    WEIGHTS,
    Checkpoint,
    Stored,
    check_encoder,
    read_checkpoint,
    read_config,
    read_declared,
    write_checkpoint,
)
from tertium.models.examples import check_targets
from tertium.models.shipped import check_installed, shipped_models
from tertium.schema import construct, read, read_fields
from tertium.segment import Judgement, Segment

BLOCK = 4096  # segments whose features are held at once
ARRAYS = {
    **dict.fromkeys(("mean", "scale", "weights"), Like("f", ("features",))),
    "numbers": Like("f", (2,)),
    **dict.fromkeys(("information_keys", "information_counts"), Like("u", ("n-grams",))),
    "information_total": Like("i", (1,)),
}


@dataclass(frozen=True, kw_only=True)
class RegressionConfig:
    """What a regression's folder says of it: the fields of its metric, the names of its columns."""

    settings: Mapping[str, Any]
    features: tuple[str, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Trained:
    """What training leaves: the regression, and the information of n-grams for NIST's columns.

    `encoders` maps the encoders behind its features to the sha256 of their weights.
    """

    linear: LinearModel
    information: Information
    encoders: Mapping[str, str] = dataclasses.field(default_factory=dict)
    training: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Regression(SegmentMetric):
    """A linear regression on features of a hypothesis and its reference.

    The score is on the scale of the human scores it was trained on (standardised direct assessment
    for those that ship: 0 is an average translation of WMT15 and WMT16, higher is better). With
    several references it is the best over them. Nothing scores above what a reference would as its
    own translation: where weights say otherwise (for a reference without words, say, or a
    hypothesis that leaves out what is frequent), that score is given.

    `model` names the folder of a model that was trained and saved; empty is the one that ships.
    """

    citation: ClassVar[str] = """\
@inproceedings{pado-etal-2009-robust,
    title = "Robust Machine Translation Evaluation with Entailment Features",
    author = "Pad{\\'o}, Sebastian and Galley, Michel and Jurafsky, Dan and Manning, Chris",
    booktitle = "Proceedings of ACL-IJCNLP 2009", year = "2009", pages = "297--305"
}"""

    model: str = ""

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
    def trained(self) -> Trained:
        """The weights, read when they are first asked for."""
        found = load_trained(self.folder)
        names = self.feature_names
        if found.linear.names != names:
            raise ModelError(
                f"{self.folder} was trained on {len(found.linear.names)} other features than the "
                f"{len(names)} of {self.spec}: train it again"
            )
        for encoder, weights in found.encoders.items():
            check_encoder(encoder, weights, load_encoder(encoder).weights_hash)
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
        parts, owner = single(segments)
        # References stay together, so that each is analysed once; features are dropped block by
        # block, so that memory does not grow with the number of segments.
        order = sorted(range(len(parts)), key=lambda n: parts[n].references)
        best = np.full(len(segments), -np.inf)
        for start in range(0, len(parts), BLOCK):
            block = order[start : start + BLOCK]
            scores, perfect = self.predictions([parts[n] for n in block], trained)
            np.maximum.at(best, owner[block], np.minimum(scores, perfect))
        return best

    def predictions(
        self, segments: Sequence[Segment], trained: Trained
    ) -> tuple[FloatArray, FloatArray]:
        """What the weights say of segments with one reference each, and of each reference as its
        own translation, (n,) each."""
        references = list(dict.fromkeys(s.references[0] for s in segments))
        place = {text: n for n, text in enumerate(references)}
        themselves = [Segment(text, None, (text,)) for text in references]
        rows = self.features([*segments, *themselves], trained.information)
        values = trained.linear.predict(rows)
        perfect = values[len(segments) :]
        return values[: len(segments)], perfect[[place[s.references[0]] for s in segments]]

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
    def learned(self) -> tuple[str, ...]:
        encoders = [load_encoder(name).signature_fields()["model"] for name in self.encoders]
        return (f"{self.name}@{self.trained.linear.digest[:8]}", *encoders)

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        linear = self.trained.linear
        origin = Path(self.model).name if self.model else "default"
        return {
            "weights": f"{origin}@{linear.digest[:8]}".replace(":", "-").replace("|", "-"),
            "features": str(len(linear.names)),
        }

    @classmethod
    def train(
        cls,
        data: TrainingData,
        *,
        dev: TrainingData = (),
        strengths: Sequence[float] = STRENGTHS,
        note: str = "",
        **config: Any,
    ) -> Self:
        """Learn the weights from judgements, the strength by leaving out language pairs in turn.

        With `dev` judgements, the strength is the one that serves them best instead.
        """
        blank = cls(**config)
        sets, held = judged_sets(cls.name, data, dev, REFERENCES)
        if sets.comparisons or held.comparisons:
            raise UsageError(f"{cls.name} learns from human scores; it cannot use comparisons")
        known = [j for one in sets.scores for j in one.judgements]
        trained = _learn(blank, known, [j for one in held.scores for j in one.judgements],
                         strengths, note)  # fmt: skip
        name = UNSAVED + trained.linear.digest
        _unsaved[name] = trained
        load_trained.cache_clear()
        return dataclasses.replace(blank, model=name)

    def save(self, folder: str | Path) -> Self:
        """Write the model to a folder; the metric that reads it from there."""
        settings = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.init and field.name != "model"
        }
        write_checkpoint(Path(folder), _as_checkpoint(self.name, settings, self.trained))
        load_trained.cache_clear()
        return dataclasses.replace(self, model=str(folder))

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """The metric that was saved to a folder."""
        file = Path(folder) / CONFIG
        stored = read(Stored, read_config(Path(folder)), file)
        if stored.metric != cls.name:
            raise ModelError(f"{folder} holds a model of {stored.metric}, not of {cls.name}")
        settings = read(RegressionConfig, stored.config, file, "config").settings
        fields = read_fields(cls, settings, file, "config.settings", without="model")
        return construct(cls, {**fields, "model": str(folder)}, file, "config.settings")

    @property
    def folder(self) -> str:
        """Where its model lies."""
        return self.model or str(shipped_models() / self.shipped)

    @property
    def shipped(self) -> str:
        """The folder of these settings among those that ship."""
        return self.name


_unsaved: dict[str, Trained] = {}


def _learn(
    metric: Regression,
    data: Sequence[Judgement],
    dev: Sequence[Judgement],
    strengths: Sequence[float],
    note: str,
) -> Trained:
    if not data:
        raise DataError(f"{metric.name}: there is nothing to learn from (no judgements)")
    check_targets(np.array([judgement.score for judgement in data]))
    names = metric.feature_names
    prior = Prior(
        signs=tuple(metric.sign(name) for name in names),
        families=tuple(metric.family(name) for name in names),
    )
    information = Information.nothing()
    if "nist.nist-1" in names:
        references = dict.fromkeys(r for judgement in data for r in judgement.segment.references)
        information = Information.of(map(tokens, references))
    features, targets, groups = _examples(metric, data, information)
    if dev and len(strengths) > 1:
        held, held_targets, _ = _examples(metric, dev, information)
        strengths = (held_out_strength(features, targets, held, held_targets, strengths, prior),)
    linear = fit(names, features, targets, groups, strengths, prior)
    return Trained(
        linear=linear,
        information=information,
        encoders={name: load_encoder(name).weights_hash for name in metric.encoders},
        training={
            "judgements": len(data), "dev": len(dev), "strength": linear.strength, "data": note,
        },
    )  # fmt: skip


def _examples(
    metric: Regression, data: Sequence[Judgement], information: Information
) -> tuple[FloatArray, FloatArray, list[str]]:
    """Features (n, k), human scores (n,) and language pairs, one row for each reference."""
    parts, owner = single([judgement.segment for judgement in data])
    scores = np.array([data[i].score for i in owner], dtype=np.float64)
    return metric.features(parts, information), scores, [data[i].lp for i in owner]


def _as_checkpoint(metric: str, settings: Mapping[str, Any], trained: Trained) -> Checkpoint:
    """What is stored: numbers in double precision, named coefficients beside them to be read."""
    coefficients = {k: round(v, 6) for k, v in trained.linear.coefficients.items()}
    return Checkpoint(
        metric=metric,
        config={"settings": dict(settings), "features": list(trained.linear.names)},
        encoders=trained.encoders,
        arrays={
            **trained.linear.arrays,
            "information_keys": trained.information.keys,
            "information_counts": trained.information.counts,
            "information_total": np.array([trained.information.total], dtype=np.int64),
        },
        training={**trained.training, "coefficients": coefficients},
    )


@lru_cache(maxsize=16)
def load_trained(folder: str) -> Trained:
    """The model in a folder, or one of this process that was not saved."""
    if folder in _unsaved:
        return _unsaved[folder]
    if folder.startswith(UNSAVED):
        raise UsageError(f"the model {folder} was never saved, and is gone with its process")
    where = Path(folder)
    if where.parent == shipped_models() and not where.exists():
        check_installed(where.name)
        raise UsageError(
            f"no weights ship for {where.name}: train it, or name a trained one with model=FOLDER"
        )
    stored = read_checkpoint(where)
    features = read_declared(RegressionConfig, stored, folder).features
    check_arrays(stored.arrays, ARRAYS, where / WEIGHTS, features=len(features))
    if not (stored.arrays["scale"] > 0).all():
        raise ModelError(f"{where / WEIGHTS}: scale holds a number that is not above 0")
    return Trained(
        linear=LinearModel.from_arrays(features, stored.arrays),
        information=Information(
            stored.arrays["information_keys"],
            stored.arrays["information_counts"],
            int(stored.arrays["information_total"][0]),
        ),
        encoders=stored.encoders,
        training={k: v for k, v in stored.training.items() if k != "coefficients"},
    )
