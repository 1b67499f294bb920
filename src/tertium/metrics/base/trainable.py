"""Metrics that learn: trained by a constructor, kept in a folder, equal by what they know.

    esim = ESIM.train(judgements, dev=others)      # an object that can score
    esim.save("models/esim")
    load_metric("models/esim") == esim

`model` is where a metric's weights come from: empty for those that ship with the package, a folder,
or a mark for a model of this process that was not saved yet.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np

from tertium.arrays import FloatArray, IntArray
from tertium.data.judgements import JudgementSet
from tertium.data.leaks import drop_shared
from tertium.data.preferences import Comparison, ItemTexts, RankingSet, gather
from tertium.encoders import Encoder, load_encoder
from tertium.errors import DataError, MissingResourceError, ModelError, UsageError
from tertium.metrics.base.metric import SegmentMetric
from tertium.models.checkpoint import (
    Checkpoint,
    check_encoder,
    read_checkpoint,
    read_declared,
    write_checkpoint,
)
from tertium.models.examples import JudgedSets, texts_read
from tertium.models.shipped import check_installed, shipped_models
from tertium.runtime import Long, Precision
from tertium.segment import Judgement, Preference, Segment

UNSAVED = "unsaved-"

TrainingData = Iterable[JudgementSet | RankingSet | Judgement | Preference]

_unsaved: dict[str, Checkpoint] = {}


@dataclass(frozen=True, kw_only=True, eq=False)
class Trainable(SegmentMetric):
    """A metric with weights that were learned from people.

    Two are equal if they would give equal scores: same settings and same weights, wherever these
    came from. A subclass trains a `Checkpoint` and hands it to `from_checkpoint`; `settings` is the
    dataclass of what may be chosen before training.
    """

    settings: ClassVar[type]

    model: str = ""

    @classmethod
    @abstractmethod
    def train(cls, data: TrainingData, *, dev: TrainingData = (), **config: Any) -> Self:
        """Learn from judgements and comparisons; `dev` chooses, and is never trained on."""

    @property
    def checkpoint(self) -> Checkpoint:
        """What was learned, read when it is first asked for."""
        found = load_checkpoint(self.where)
        if found.metric != self.name:
            raise ModelError(f"{self.model} holds a model of {found.metric}, not of {self.name}")
        return found

    @property
    def where(self) -> str:
        """The folder of its model, or the mark of one that was not saved."""
        return self.model or str(shipped_models() / self.name)

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint) -> Self:
        """The metric of a checkpoint that lies nowhere but in memory."""
        mark = UNSAVED + checkpoint.hash[:16]
        _unsaved[mark] = checkpoint
        load_checkpoint.cache_clear()
        return cls(model=mark)

    def save(self, folder: str | Path) -> Self:
        """Write the model to a folder; the metric that reads it from there."""
        write_checkpoint(Path(folder), self.checkpoint)
        load_checkpoint.cache_clear()
        return dataclasses.replace(self, model=str(folder))

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """The metric that was saved to a folder."""
        metric = cls(model=str(folder))
        read_declared(cls.settings, metric.checkpoint, metric.where)  # what is wrong shows here
        return metric

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trainable) or type(other) is not type(self):
            return NotImplemented
        return self._settings == other._settings and self.checkpoint.hash == other.checkpoint.hash

    def __hash__(self) -> int:
        return hash((self.name, self._settings))

    @property
    def _settings(self) -> tuple[Any, ...]:
        fields = [f.name for f in dataclasses.fields(self) if f.name != "model"]
        return tuple(getattr(self, name) for name in fields)

    @property
    def learned(self) -> tuple[str, ...]:
        return (f"{self.name}@{self.checkpoint.hash[:8]}",)

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        origin = Path(self.model).name if self.model else "default"
        plain = origin.replace(":", "-").replace("|", "-")
        return {"weights": f"{plain}@{self.checkpoint.hash[:8]}"}


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparingMetric(Trainable):
    """What compares a hypothesis with its references, its source or both over frozen encoders.

    `references` takes the best or the mean over several; `precision` and `long` are the encoders'.
    """

    references: Literal["best", "mean"] = "best"
    precision: Precision = "fp32"
    long: Long = "truncate"

    @property
    @abstractmethod
    def config(self) -> Any:
        """What was trained: the `settings` of its checkpoint."""

    @property
    @abstractmethod
    def encoders(self) -> tuple[Encoder, ...]:
        """The frozen encoders, of the weights it was trained with."""

    @property
    def needs(self) -> frozenset[str]:
        needed: frozenset[str] = self.config.needs
        return needed

    def frozen(self, name: str) -> Encoder:
        """The encoder of a name; refused where its weights are not those of training."""
        encoder = load_encoder(name, precision=self.precision, long=self.long)
        check_encoder(name, self.checkpoint.encoders.get(name, ""), encoder.weights_hash)
        return encoder

    def reduced(self, values: FloatArray, owners: IntArray, count: int) -> FloatArray:
        """One value for each segment, (count,), from one for each of its comparisons."""
        if self.references == "mean":
            return np.bincount(owners, weights=values, minlength=count) / np.bincount(owners)
        best = np.full(count, -np.inf)
        np.maximum.at(best, owners, values)
        return best

    def warnings(self, segments: Sequence[Segment]) -> dict[str, int]:
        counts = super().warnings(segments)
        cut = self.truncated(segments)
        return {**counts, "truncated text": cut} if cut else counts

    def truncated(self, segments: Sequence[Segment]) -> int:
        """How many distinct texts are cut; of several encoders, by the one that cuts most."""
        texts = texts_read(segments, self.config.against)
        return max(encoder.truncated(texts) for encoder in self.encoders)

    @property
    def learned(self) -> tuple[str, ...]:
        return (*super().learned, *(e.signature_fields()["model"] for e in self.encoders))

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        fields = {"against": self.config.against, **super().signature_fields(segments)}
        if any(len(s.references) > 1 for s in segments):
            fields["refs"] = self.references
        return {**fields, **_side_by_side(self.encoders), "trunc": str(self.truncated(segments))}


def _side_by_side(encoders: Sequence[Encoder]) -> dict[str, str]:
    """What a signature says of encoders, different values of a field joined by a plus."""
    values: dict[str, dict[str, None]] = {}
    for encoder in encoders:
        for field, value in encoder.signature_fields().items():
            values.setdefault(field, {})[value] = None
    return {field: "+".join(found) for field, found in values.items()}


@lru_cache(maxsize=16)
def load_checkpoint(model: str) -> Checkpoint:
    """The checkpoint in a folder, or one of this process that was not saved."""
    if model in _unsaved:
        return _unsaved[model]
    if model.startswith(UNSAVED):
        raise UsageError(f"the model {model} was never saved, and is gone with its process")
    folder = Path(model)
    if folder.parent == shipped_models() and not folder.exists():
        check_installed(folder.name)
        raise MissingResourceError(
            f"no weights ship for {folder.name}: train them (`tertium train {folder.name}`) and "
            "name their folder with model=FOLDER"
        )
    return read_checkpoint(folder)


def judged_sets(
    metric: str, data: TrainingData, dev: TrainingData, needs: frozenset[str]
) -> tuple[JudgedSets, JudgedSets]:
    """What to train on and what to choose on, checked, and without what they share."""
    held = JudgedSets(*training_sets(dev))
    scores, rankings = without_leaks(*training_sets(data), held.all)
    sets = JudgedSets(scores, rankings)
    check_needs(metric, [*sets.all, *held.all], needs)
    return sets, held


def training_sets(data: TrainingData) -> tuple[list[JudgementSet], list[RankingSet]]:
    """Sets and single verdicts, sorted into sets of scores and sets of comparisons."""
    if isinstance(data, JudgementSet | RankingSet):
        data = [data]
    scores: list[JudgementSet] = []
    rankings: list[RankingSet] = []
    judgements: list[Judgement] = []
    preferences: list[Preference] = []
    for entry in data:
        if isinstance(entry, JudgementSet):
            scores.append(entry)
        elif isinstance(entry, RankingSet):
            rankings.append(entry)
        elif isinstance(entry, Judgement):
            judgements.append(entry)
        else:
            preferences.append(entry)
    if judgements:
        scores.append(JudgementSet(name="judgements", judgements=tuple(judgements)))
    if preferences:
        rankings.append(_ranking_set(preferences))
    return scores, rankings


def _ranking_set(preferences: Sequence[Preference]) -> RankingSet:
    """Single comparisons as a set: an item for each distinct source and references."""
    texts: dict[str, ItemTexts] = {}
    comparisons = []
    for p in preferences:
        item = repr((p.item, p.left.source, p.left.references))
        names = (p.left_system or p.left.hypothesis, p.right_system or p.right.hypothesis)
        outputs = dict(zip(names, (p.left.hypothesis, p.right.hypothesis), strict=True))
        known = texts[item].outputs if item in texts else {}
        texts[item] = ItemTexts({**known, **outputs}, p.left.source, p.left.references)
        comparisons.append(Comparison(item, *names, p.verdict, p.judge))
    return gather(comparisons, texts, name="preferences")


def without_leaks(
    scores: Sequence[JudgementSet],
    rankings: Sequence[RankingSet],
    held_out: Sequence[JudgementSet | RankingSet],
) -> tuple[list[JudgementSet], list[RankingSet]]:
    """Training sets without what shares a reference with held-out sets."""
    if not held_out:
        return list(scores), list(rankings)
    references = dict.fromkeys((s.references, s.source) for one in held_out for s in one.segments)
    rows = tuple(Judgement(Segment("", s, r), 0.0) for r, s in references)
    held = [JudgementSet(name="held out", judgements=rows)]
    return [_kept(one, held) for one in scores], [drop_shared(one, held) for one in rankings]


def _kept(one: JudgementSet, held: Sequence[JudgementSet]) -> JudgementSet:
    try:
        return drop_shared(one, held)
    except DataError:
        raise DataError(
            f"{one.name} {one.lp}: every reference of it occurs in the data held out for choosing "
            "or testing, so nothing is left to train on"
        ) from None


def check_needs(
    metric: str, sets: Sequence[JudgementSet | RankingSet], needs: frozenset[str]
) -> None:
    """Refuse training data whose segments lack what the metric compares with."""
    for one in sets:
        used = one.compared if isinstance(one, RankingSet) else np.ones(len(one), dtype=bool)
        for number in np.flatnonzero(used):
            segment = one.segments[number]
            missing = [
                *(["references"] if "references" in needs and not segment.references else []),
                *(["a source"] if "source" in needs and segment.source is None else []),
            ]
            if missing:
                raise DataError(
                    f"{metric} learns from {' and '.join(sorted(needs))}, and segment "
                    f"{number + 1} of {one.name} {one.lp}".rstrip()
                    + f" has no {' and no '.join(m.removeprefix('a ') for m in missing)}"
                )
