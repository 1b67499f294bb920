"""People and metrics side by side, before any statistic: judgments beside scores of any origin.

Metrics come with their scores in files, or score the judged translations now; `meta` then sees
matrices only. People may stand beside them (`data.ratings`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import TypeVar, cast

import numpy as np

from tertium.arrays import FloatArray
from tertium.data.evidence import ScoreTable, read_evidence, refuse_twice
from tertium.data.formats import PathLike
from tertium.data.human import Evidence
from tertium.data.metric_scores import MetricScores, merge_levels, read_metric_scores
from tertium.data.rankings import RankingSet
from tertium.data.ratings import RATER, even_out, hold_out_rater, second_campaign
from tertium.errors import DataError, UnknownNameError, UsageError, one_line
from tertium.evaluation.scoring import score_systems, served_by_all, serves
from tertium.frames import is_frame
from tertium.meta.judged import JudgedSet
from tertium.metrics.base.loading import load_metrics
from tertium.metrics.base.metric import Metric, foresee
from tertium.runtime import track
from tertium.scores import ScoreMatrix, Scores

Files = PathLike | Sequence[PathLike]
Sources = PathLike | Evidence | Sequence[PathLike | Evidence]
One = TypeVar("One", bound=PathLike | Evidence)


@dataclass(frozen=True, kw_only=True, eq=False)
class Gathered:
    """People and metrics side by side, before any statistic.

    `sets` hold both on the same cells, `people` the judgments by the name of their set; `metrics`
    are those that scored now, `lower_better` the names of those whose scores were read and turned
    over.
    """

    sets: tuple[JudgedSet, ...]
    people: Mapping[str, Evidence]
    metrics: tuple[Metric, ...] = ()
    lower_better: tuple[str, ...] = ()

    @property
    def turned_over(self) -> frozenset[str]:
        """The metrics, by name, of which less is better: `sets` hold their scores with a minus."""
        now = (metric.spec for metric in self.metrics if not metric.higher_is_better)
        return frozenset((*self.lower_better, *now))

    @property
    def left_out(self) -> dict[str, dict[str, int]]:
        """By set and reason, how many judgments were not used."""
        entries = self.people.items()
        return {name: dict(entry.left_out) for name, entry in entries if entry.left_out}


@dataclass
class _SetScores:
    """What metrics say of one set: matrices of segment scores, scores of systems by metric."""

    matrices: list[ScoreMatrix] = field(default_factory=list)
    systems: dict[str, Mapping[str, float]] = field(default_factory=dict)


def gather(
    human: Sources,
    metrics: str | Metric | Sequence[str | Metric] = (),
    *,
    scores: Files = (),
    level: str = "segment",
    asked: str = "",
    lps: Sequence[str] = (),
    exclude: Sequence[str] = (),
    gold: str = "",
    data: PathLike | None = None,
    standardise: bool = False,
    lower_better: Sequence[str] = (),
    ceiling: Sources = (),
) -> Gathered:
    """Read judgments (at the level `asked`), read or make scores, and match the two.

    `ceiling` puts people beside the metrics: files of a second campaign, or "rater" for one rater
    of each translation, who is then held out of the judgments.
    """

    def read(sources: Sources) -> dict[str, Evidence]:
        where = asked or level
        return read_sets(
            several(sources), where, lps=lps, gold=gold, data=data, standardise=standardise
        )

    people, rows = _with_ceiling(read(human), ceiling, level, read)
    now = load_metrics(metrics) if metrics else []
    beside = [file for entry in people.values() for file in entry.files]
    files = several(scores) or ([] if now else beside)
    if not files and not now:
        raise UsageError("nothing to compare with people: give --scores FILES or -m METRICS")
    if lower_better and not files:
        raise UsageError(
            f"--lower-better {' '.join(lower_better)} is about --scores, and there are none: "
            "metrics that score now know which way they go"
        )
    tables, turned = _read_scores(files, people, lps, lower_better) if files else ({}, ())
    if now:
        _score_now(now, people, level, tables, exclude)
    for name, row in rows.items():
        tables.setdefault(name, _SetScores()).matrices.append(row)
    aligned = [
        _align(name, entry, tables.get(name, _SetScores()), level) for name, entry in people.items()
    ]
    check_excluded(exclude, {judged.name: judged.systems for judged in aligned})
    sets = tuple(j.drop_systems([s for s in exclude if s in j.systems]) for j in aligned)
    return Gathered(sets=sets, people=people, metrics=tuple(now), lower_better=turned)


def check_excluded(exclude: Sequence[str], systems: Mapping[str, Collection[str]]) -> None:
    """Refuse to leave out what no set has; a system need not take part in all of them."""
    every = {system for own in systems.values() for system in own}
    if unknown := next((system for system in exclude if system not in every), None):
        raise UnknownNameError(f"system of {', '.join(systems)}", unknown, every)


def _with_ceiling(
    people: dict[str, Evidence],
    ceiling: Sources,
    level: str,
    read: Callable[[Sources], dict[str, Evidence]],
) -> tuple[dict[str, Evidence], dict[str, ScoreMatrix]]:
    """The judgments to compare with, and what other people said of the same translations."""
    given = several(ceiling)
    if not given:
        return people, {}
    if [str(source) for source in given] != [RATER]:
        return people, second_campaign(people, read(given), level)
    split = {name: hold_out_rater(entry, level) for name, entry in people.items()}
    return {n: rest for n, (rest, _) in split.items()}, {n: row for n, (_, row) in split.items()}


def several(sources: One | Sequence[One]) -> list[One]:
    """One source or many, as a list."""
    if isinstance(sources, str | os.PathLike | Evidence) or is_frame(sources):
        return [cast(One, sources)]
    if not isinstance(sources, Iterable):
        raise UsageError(f"expected one or several names, files or sets, got {one_line(sources)}")
    return list(sources)


def read_sets(
    sources: Sequence[PathLike | Evidence],
    level: str,
    *,
    lps: Sequence[str] = (),
    gold: str = "",
    data: PathLike | None = None,
    standardise: bool = False,
) -> dict[str, Evidence]:
    """All human judgments by the name of their column: the language pair where that is unique."""
    entries: list[Evidence] = []
    refuse_twice(source for source in sources if isinstance(source, str | os.PathLike))
    for source in sources:
        if isinstance(source, Evidence):
            if gold:
                raise UsageError(f"gold={gold!r} chooses in a file or folder, not in {source!r}")
            entries += [source] if source.lp in lps or not lps else []
            continue
        try:
            entries += read_evidence(source, level=level, lps=lps, gold=gold, data=data)
        except UnknownNameError as error:
            if Path(source).exists() or error.name != str(source):
                raise
            raise DataError(f"{source}: there is no such file or folder; {error}") from None
    if missing := [lp for lp in lps if lp not in {entry.lp for entry in entries}]:
        searched = [s.title if isinstance(s, Evidence) else str(s) for s in sources]
        raise DataError(f"no judgments of {', '.join(missing)} in {', '.join(searched)}")
    if standardise:
        entries = [even_out(entry) for entry in entries]
    pairs = [entry.lp for entry in entries]
    names = [e.lp if e.lp and pairs.count(e.lp) == 1 else e.title for e in entries]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise DataError(f"two sets of judgments are named {repeated!r}; rename one of the files")
    return dict(zip(names, entries, strict=True))


def _read_scores(
    files: Sequence[PathLike],
    people: Mapping[str, Evidence],
    lps: Sequence[str],
    lower_better: Sequence[str],
) -> tuple[dict[str, _SetScores], tuple[str, ...]]:
    """Scores of the judged sets that files belong to, higher always better; who was turned over."""
    entries = [entry for file in files for entry in read_metric_scores(file)]
    names = {entry.metric for entry in entries}
    for name in lower_better:
        if name not in names:
            raise UsageError(f"--lower-better {name}: no such metric ({', '.join(sorted(names))})")
    dealt: dict[str, list[MetricScores]] = {name: [] for name in people}
    turned = set(lower_better)
    for entry in entries:
        if lps and entry.lp and entry.lp not in lps:
            continue
        down = not entry.higher_is_better or entry.metric in lower_better
        dealt[_set_of(entry, people)].append(_turn_over(entry) if down else entry)
        turned |= {entry.metric} if down else set()
    tables = {}
    for name, own in dealt.items():
        merged = merge_levels(own)
        tables[name] = _SetScores(
            [e.segments for e in merged if e.segments is not None],
            {e.metric: e.systems for e in merged if e.systems},
        )
    return tables, tuple(sorted(turned))


def _set_of(entry: MetricScores, people: Mapping[str, Evidence]) -> str:
    """The judged set that scores belong to: by language pair, or the only one there is."""
    matching = [name for name, judged in people.items() if judged.lp == entry.lp]
    if entry.lp and len(matching) == 1:
        return matching[0]
    open_ended = not entry.lp or not any(judged.lp for judged in people.values())
    if len(people) == 1 and open_ended:
        return next(iter(people))
    raise DataError(
        f"cannot tell which judgments the scores of {entry.metric} "
        f"({entry.lp or 'no language pair'}) belong to: {', '.join(people)}; put the language pair "
        "into the file name (NAME.de-en.tsv), its folder, or a column lp"
    )


def _turn_over(entry: MetricScores) -> MetricScores:
    segments = entry.segments
    if segments is not None:
        segments = replace(segments, values=-segments.values)
    return replace(entry, segments=segments, systems={s: -v for s, v in entry.systems.items()})


def _score_now(
    metrics: Sequence[Metric],
    people: Mapping[str, Evidence],
    level: str,
    tables: dict[str, _SetScores],
    exclude: Sequence[str],
) -> None:
    """Add to the tables what each metric says of the judged translations."""
    known = [[segment for _, segment in e.translations(level)] for e in people.values()]
    served = [[*compress(part, served_by_all(part, metrics))] for part in known]
    with foresee(metrics, *filter(None, served)):
        for metric, name in track([(m, name) for m in metrics for name in people], "scoring"):
            matrix, systems = _score_set(metric, people[name], level, exclude)
            table = tables.setdefault(name, _SetScores())
            table.matrices.append(matrix)
            table.systems[metric.spec] = systems


def _score_set(
    metric: Metric, people: Evidence, level: str, exclude: Sequence[str]
) -> tuple[ScoreMatrix, Mapping[str, float]]:
    if isinstance(people, ScoreTable) and people.testset is not None:
        # whole outputs: a metric that reads the corpus reads one system's at a time
        by_system = score_systems(people.testset, metric)
        values = np.concatenate([scores.upward for scores in by_system])
        totals = [scores.sign * scores.system for scores in by_system]
        systems = dict(zip(people.testset.systems, totals, strict=True))
        return people.arrange(values, metric.spec), systems
    translations = people.translations(level)
    if not translations:
        raise DataError(
            f"{people.title}: the judgments come without texts, so nothing can be scored now; "
            "score the systems first (`tertium score ... -o scores.tsv`), then --scores scores.tsv"
        )
    wanted = [n for n, (system, _) in enumerate(translations) if system not in exclude]
    mask = serves([translations[n][1] for n in wanted], metric)
    rows = [n for n, will_do in zip(wanted, mask, strict=True) if will_do]
    rows = rows or list(range(len(translations)))  # where none will do, the metric says why
    scores = metric.score([translations[n][1] for n in rows])
    values = np.full(len(translations), np.nan)
    values[rows] = scores.upward
    matrix = people.arrange(values, metric.spec, level)
    return matrix, _totals(scores, [translations[n][0] for n in rows])


def _totals(scores: Scores, systems: Sequence[str]) -> dict[str, float]:
    """A metric's own score of each system over its judged segments."""
    names = list(dict.fromkeys(systems))
    owner: FloatArray = np.array([[system == name for system in systems] for name in names], float)
    return dict(zip(names, (scores.sign * scores.aggregate(owner)).tolist(), strict=True))


def _align(name: str, people: Evidence, scores: _SetScores, level: str) -> JudgedSet:
    """People and metrics put side by side, for one column of the table."""
    return JudgedSet.align(
        name,
        scores.matrices,
        human=people.matrix(level),
        comparisons=people if isinstance(people, RankingSet) else None,
        human_systems=people.system_scores() or None,
        system_scores=scores.systems,
    )
