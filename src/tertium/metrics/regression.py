"""Metrics that are linear regressions: features of a segment, weights learned from people.

The features come from `tertium.features`; this module joins them to a `LinearModel`, trains it,
keeps it in a folder (`config.json`, `weights.safetensors`) and finds the folders that ship with the
package.
"""

from __future__ import annotations

import dataclasses
import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from tertium.errors import DataError, ModelError, UsageError
from tertium.features.featurizer import Featurizer, single
from tertium.features.information import Information
from tertium.features.parallel import rows_of
from tertium.learning.linear import LinearModel, fit
from tertium.metrics.metric import SegmentMetric
from tertium.scores import FloatArray
from tertium.segment import Judgement, Segment

SHIPPED = Path(__file__).parent.parent / "trained"
CONFIG, WEIGHTS = "config.json", "weights.safetensors"
UNSAVED = "unsaved-"


@dataclass(frozen=True, eq=False, kw_only=True)
class Trained:
    """What training leaves: the regression, and the information of n-grams for NIST's columns."""

    linear: LinearModel
    information: Information
    training: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Regression(SegmentMetric):
    """A linear regression on features of a hypothesis and its reference.

    The score is on the scale of the human scores it was trained on (standardised direct assessment
    for those that ship: 0 is an average translation of WMT15 and WMT16, higher is better). With
    several references it is the best over them.

    `model` names the folder of a model that was trained and saved; empty is the one that ships.
    """

    name: ClassVar[str]
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
    def trained(self) -> Trained:
        """The weights, read when they are first asked for."""
        found = load_trained(self._folder)
        names = self._names(found.information)
        if found.linear.names != names:
            raise ModelError(
                f"{self._folder} was trained on {len(found.linear.names)} other features than the "
                f"{len(names)} of {self.spec}: train it again"
            )
        return found

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        trained = self.trained
        parts, owner = single(segments)
        predicted = trained.linear.predict(self.features(parts, trained.information))
        best = np.full(len(segments), -np.inf)
        np.maximum.at(best, owner, predicted)
        return best

    def features(
        self, segments: Sequence[Segment], information: Information | None = None
    ) -> FloatArray:
        """The columns of segments with one reference each, (n, features)."""
        if information is None:
            information = self.trained.information
        parts = self.featurizers(information)
        rows = np.hstack([rows_of(part, segments, self.title) for part in parts])
        names = [name for part in parts for name in part.names]
        return rows[:, [self.uses(name) for name in names]]

    def uses(self, column: str) -> bool:
        """Whether a column of its featurizers is among its features."""
        return True

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        trained = self.trained
        origin = Path(self.model).name if self.model else "default"
        return {
            "model": f"{origin}@{trained.linear.digest}".replace(":", "-").replace("|", "-"),
            "features": str(len(trained.linear.names)),
        }

    @property
    def coefficients(self) -> dict[str, float]:
        """The weight of each standardised feature, the strongest first."""
        return self.trained.linear.coefficients

    @classmethod
    def train(
        cls,
        data: Sequence[Judgement],
        *,
        dev: Sequence[Judgement] = (),
        strengths: Sequence[float] = (),
        note: str = "",
        **config: Any,
    ) -> Self:
        """Learn the weights from judgements; language pairs are the groups of cross validation.

        `dev` judgements take part in choosing the strength as one more group, and in nothing else.
        """
        blank = cls(**config)
        trained = _learn(blank, data, dev, strengths, note)
        name = UNSAVED + trained.linear.digest
        _unsaved[name] = trained
        return dataclasses.replace(blank, model=name)

    def save(self, folder: str | Path) -> Self:
        """Write the model to a folder; the metric that reads it from there."""
        settings = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.init and field.name != "model"
        }
        write_trained(Path(folder), self.name, settings, self.trained)
        return dataclasses.replace(self, model=str(folder))

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """The metric that was saved to a folder."""
        config = read_config(Path(folder))
        if config.get("metric") != cls.name:
            raise ModelError(f"{folder} holds a {config.get('metric')} model, not {cls.name}")
        settings = {k: tuple(v) if isinstance(v, list) else v for k, v in config["config"].items()}
        return cls(**settings, model=str(folder))

    @property
    def _folder(self) -> str:
        return self.model or str(SHIPPED / self.shipped)

    @property
    def shipped(self) -> str:
        """The folder of these settings among those that ship."""
        return self.name

    def _names(self, information: Information) -> tuple[str, ...]:
        names = (name for part in self.featurizers(information) for name in part.names)
        return tuple(filter(self.uses, names))


_unsaved: dict[str, Trained] = {}


def _learn(
    metric: Regression,
    data: Sequence[Judgement],
    dev: Sequence[Judgement],
    strengths: Sequence[float],
    note: str,
) -> Trained:
    from tertium.features.lexical import tokens

    if not data:
        raise DataError(f"{metric.name}: there is nothing to learn from (no judgements)")
    references = dict.fromkeys(r for judgement in data for r in judgement.segment.references)
    informed = "nist.nist-1" in metric._names(Information.nothing())
    information = Information.of(map(tokens, references)) if informed else Information.nothing()
    features, targets, groups = _examples(metric, data, information)
    names = metric._names(information)
    options = {"strengths": tuple(strengths)} if strengths else {}
    if dev and len(strengths) != 1:
        options = {"strengths": (_tune(metric, (features, targets), dev, information, options),)}
    linear = fit(names, features, targets, groups, **options)
    training = {"judgements": len(data), "dev": len(dev), "strength": linear.strength, "data": note}
    return Trained(linear=linear, information=information, training=training)


def _tune(
    metric: Regression,
    known: tuple[FloatArray, FloatArray],
    dev: Sequence[Judgement],
    information: Information,
    options: Mapping[str, Any],
) -> float:
    """The strength that serves held-out judgements best."""
    from tertium.learning.linear import STRENGTHS, held_out_strength

    features, targets, _ = _examples(metric, dev, information)
    return held_out_strength(*known, features, targets, options.get("strengths", STRENGTHS))


def _examples(
    metric: Regression, data: Sequence[Judgement], information: Information
) -> tuple[FloatArray, FloatArray, list[str]]:
    """Features (n, k), human scores (n,) and language pairs, one row for each reference."""
    parts, owner = single([judgement.segment for judgement in data])
    if not parts:
        raise DataError(f"{metric.name} learns from references, and no judgement has one")
    scores = np.array([data[i].score for i in owner], dtype=np.float64)
    return metric.features(parts, information), scores, [data[i].lp for i in owner]


def write_trained(folder: Path, metric: str, settings: Mapping[str, Any], trained: Trained) -> None:
    """Write a model: what it is and its named coefficients as text, its numbers beside it."""
    from safetensors.numpy import save_file

    config = {
        "metric": metric,
        "config": dict(settings),
        "training": dict(trained.training),
        "features": list(trained.linear.names),
        "coefficients": {k: round(v, 6) for k, v in trained.linear.coefficients.items()},
    }
    arrays = {
        **trained.linear.arrays,
        "information_keys": trained.information.keys,
        "information_counts": trained.information.counts,
        "information_total": np.array([trained.information.total], dtype=np.int64),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        save_file({name: np.ascontiguousarray(a) for name, a in arrays.items()}, folder / WEIGHTS)
        (folder / WEIGHTS).chmod(0o644)
        text = json.dumps(config, indent=1, ensure_ascii=False)
        (folder / CONFIG).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise DataError(f"{folder} cannot be written: {error.strerror}") from None


def read_config(folder: Path) -> dict[str, Any]:
    """What `config.json` says."""
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        settings, _ = config["config"], config["features"]
        if isinstance(settings, dict):
            return dict(config)
    except FileNotFoundError:
        raise ModelError(f"{folder} has no {CONFIG}: not a trained metric") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{folder / CONFIG} cannot be read: {error}") from None
    raise ModelError(f"{folder / CONFIG} is not an object of settings")


@lru_cache(maxsize=16)
def load_trained(folder: str) -> Trained:
    """The model in a folder, or one of this process that was not saved."""
    if folder in _unsaved:
        return _unsaved[folder]
    if folder.startswith(UNSAVED):
        raise UsageError(f"the model {folder} was never saved, and is gone with its process")
    where = Path(folder)
    if where.parent == SHIPPED and not where.exists():
        raise UsageError(
            f"no weights ship for {where.name}: train it, or name a trained one with model=FOLDER"
        )
    config = read_config(where)
    arrays = _read_arrays(where / WEIGHTS)
    try:
        information = Information(
            arrays.pop("information_keys"),
            arrays.pop("information_counts"),
            int(arrays.pop("information_total")[0]),
        )
        linear = LinearModel.from_arrays(config["features"], arrays)
    except (KeyError, ValueError, IndexError) as error:
        raise ModelError(f"{where / WEIGHTS} is incomplete: {error}") from None
    if not len(linear.names) == len(linear.weights) == len(linear.mean) == len(linear.scale):
        raise ModelError(f"{where}: {len(linear.weights)} weights for {len(linear.names)} features")
    return Trained(linear=linear, information=information, training=config.get("training", {}))


def _read_arrays(file: Path) -> dict[str, Any]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return dict(load_file(file))
    except FileNotFoundError:
        raise ModelError(f"{file}: no such file") from None
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{file} is damaged or was cut short: {error}") from None
