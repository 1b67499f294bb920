"""What `tertium meta` compares: human judgements, and metrics that were scored or are to be."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tertium.arrays import FloatArray
from tertium.data.evidence import Evidence, read_evidence
from tertium.data.metric_scores import MetricScores, merge_levels, read_metric_scores
from tertium.data.ratings import average, standardise
from tertium.errors import DataError, UnknownNameError, UsageError
from tertium.meta.judged import JudgedSet
from tertium.progress import track
from tertium.scores import ScoreMatrix, Scores

if TYPE_CHECKING:
    from tertium.metrics.base.metric import Metric


@dataclass(frozen=True)
class Scored:
    """What metrics say: matrices of segment scores, and scores of systems by metric.

    Higher is always better; `turned` are the metrics of which lower was.
    """

    matrices: list[ScoreMatrix]
    systems: dict[str, Mapping[str, float]]
    turned: frozenset[str] = frozenset()


def read_human(args: argparse.Namespace, level: str) -> dict[str, Evidence]:
    """All human judgements by the name of their column: the language pair where that is unique."""
    found: list[Evidence] = []
    for source in args.human:
        if args.gold and Path(source).is_file():
            raise UsageError(f"--gold chooses among scores of a folder, and {source} is a file")
        try:
            found += read_evidence(
                source, level=level, lps=args.lps, gold=args.gold or "", data=args.data
            )
        except UnknownNameError as error:
            if Path(source).exists() or error.name != source:
                raise
            raise DataError(f"{source}: there is no such file or folder; {error}") from None
    missing = [lp for lp in args.lps if lp not in {entry.lp for entry in found}]
    if missing:
        raise DataError(f"no judgements of {', '.join(missing)} in {', '.join(args.human)}")
    if args.standardise:
        found = [_standardised(entry) for entry in found]
    pairs = [entry.lp for entry in found]
    names = [
        entry.lp if entry.lp and pairs.count(entry.lp) == 1 else f"{entry.name} {entry.lp}".strip()
        for entry in found
    ]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise DataError(f"two sets of judgements are named {repeated!r}; rename one of the files")
    return dict(zip(names, found, strict=True))


def _standardised(entry: Evidence) -> Evidence:
    if entry.judgements is None:
        raise UsageError(f"{entry.name}: --standardise goes with ratings that name annotators")
    judged = average(standardise(entry.judgements))
    return replace(entry, judgements=judged, left_out=judged.left_out)


def read_scores(
    args: argparse.Namespace, files: Sequence[str], human: Mapping[str, Evidence]
) -> dict[str, Scored]:
    """Score files dealt to the judged sets they belong to, higher always better."""
    scores = [entry for file in files for entry in read_metric_scores(file)]
    known = {entry.metric for entry in scores}
    for name in args.lower_better:
        if name not in known:
            raise UsageError(f"--lower-better {name}: no such metric ({', '.join(sorted(known))})")
    dealt: dict[str, list[MetricScores]] = {name: [] for name in human}
    turned = set(args.lower_better)
    for entry in scores:
        if args.lps and entry.lp and entry.lp not in args.lps:
            continue
        down = not entry.higher_is_better or entry.metric in args.lower_better
        dealt[_set_of(entry, human)].append(_turned(entry) if down else entry)
        turned |= {entry.metric} if down else set()
    found = {name: _scored(merge_levels(entries)) for name, entries in dealt.items()}
    return {name: replace(part, turned=frozenset(turned)) for name, part in found.items()}


def _set_of(entry: MetricScores, human: Mapping[str, Evidence]) -> str:
    """The judged set that scores belong to: by language pair, or the only one there is."""
    matching = [name for name, people in human.items() if people.lp == entry.lp]
    if entry.lp and len(matching) == 1:
        return matching[0]
    open_ended = not entry.lp or not any(people.lp for people in human.values())
    if len(human) == 1 and open_ended:
        return next(iter(human))
    raise DataError(
        f"cannot tell which judgements the scores of {entry.metric} "
        f"({entry.lp or 'no language pair'}) belong to: {', '.join(human)}; put the language pair "
        "into the file name (NAME.de-en.tsv), its folder, or a column lp"
    )


def _turned(entry: MetricScores) -> MetricScores:
    segments = entry.segments
    if segments is not None:
        segments = replace(segments, values=-segments.values)
    return replace(entry, segments=segments, systems={s: -v for s, v in entry.systems.items()})


def _scored(entries: Sequence[MetricScores]) -> Scored:
    return Scored(
        [e.segments for e in entries if e.segments is not None],
        {e.metric: e.systems for e in entries if e.systems},
    )


def score_now(
    metrics: Sequence[Metric], human: Mapping[str, Evidence], level: str
) -> dict[str, Scored]:
    """Score the judged translations with each metric."""
    result = {name: Scored([], {}) for name in human}
    jobs = [(metric, name) for metric in metrics for name in human]
    for metric, name in track(jobs, "scoring"):
        matrix, systems = _score_one(metric, human[name], level)
        result[name].matrices.append(matrix)
        result[name].systems[metric.spec] = systems
    return result


def _score_one(
    metric: Metric, people: Evidence, level: str
) -> tuple[ScoreMatrix, Mapping[str, float]]:
    sign = 1.0 if metric.higher_is_better else -1.0
    if people.testset is not None:
        from tertium.evaluation.scoring import score_systems

        scored = score_systems(people.testset, metric)
        values = sign * np.stack([scores.segments for scores in scored])
        names = tuple(people.testset.systems)
        totals = {s: sign * scores.system for s, scores in zip(names, scored, strict=True)}
        return ScoreMatrix(metric.spec, names, values), totals
    if people.judgements is not None and people.judgements.has_texts:
        judged = people.judgements
        scores = metric.score(judged.segments)
        split = level == "system"
        matrix = judged.arrange(sign * scores.segments, metric.spec, split_joint=split)
        return matrix, _totals(scores, sign, [j.system for j in judged.judgements])
    if people.comparisons is not None and people.comparisons.has_texts:
        rankings = people.comparisons
        used = np.flatnonzero(rankings.compared | (level == "system"))
        scores = metric.score([rankings.segments[n] for n in used])
        values = np.full(len(rankings.segments), np.nan)
        values[used] = sign * scores.segments
        owners = [rankings.systems[s] for s in rankings.system_of[used]]
        return rankings.arrange(values, metric.spec), _totals(scores, sign, owners)
    where = f"{people.name} {people.lp}".strip()
    raise DataError(
        f"{where}: the judgements come without texts, so nothing can be scored now; "
        "give --scores instead"
    )


def _totals(scores: Scores, sign: float, systems: Sequence[str]) -> dict[str, float]:
    """A metric's own score of each system over its judged segments."""
    names = list(dict.fromkeys(systems))
    owner: FloatArray = np.array([[system == name for system in systems] for name in names], float)
    return dict(zip(names, (sign * scores.aggregate(owner)).tolist(), strict=True))


def judged_sets(
    human: Mapping[str, Evidence], scored: Sequence[Mapping[str, Scored]], level: str
) -> list[JudgedSet]:
    """People and metrics put side by side, one set for each column of the table."""
    result = []
    for name, people in human.items():
        parts = [part[name] for part in scored]
        matrix = people.matrix
        if people.judgements is not None:
            matrix = people.judgements.matrix(split_joint=level == "system")
        result.append(
            JudgedSet.align(
                name,
                [matrix for part in parts for matrix in part.matrices],
                human=matrix,
                comparisons=people.comparisons,
                human_systems=people.systems or None,
                system_scores={m: s for part in parts for m, s in part.systems.items()},
            )
        )
    return result
