"""What commands that write a report share: the option, people's scores, and explanations."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tertium.data.evidence import Evidence, read_evidence
from tertium.data.preferences import RankingSet
from tertium.data.testset import TestSet
from tertium.errors import DataError, TertiumError
from tertium.evaluation.comparison import DEFAULT_RESAMPLES, Comparison, Test, compare_evaluation
from tertium.evaluation.scoring import Evaluation, score, with_intervals
from tertium.meta.curves import Curve, Run
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.ranker import ByScore, Ranker, load_ranker
from tertium.progress import track
from tertium.reporting.markup import Markup
from tertium.reporting.page.explained import Explained, explanation, win_probabilities
from tertium.reporting.page.grid import Grid
from tertium.reporting.page.interest import interesting_items, systems_to_explain
from tertium.reporting.page.page import Report
from tertium.reporting.page.reports import evaluation_grid, evaluation_report, with_matrix
from tertium.scores import ScoreMatrix
from tertium.segment import Segment

logger = logging.getLogger(__name__)

EXPLAINED = 8  # segments that a report explains unless told otherwise


def write_report(path: str, report: Report, quiet: bool) -> None:
    """Write the page and say where it is."""
    report.write(path)
    if not quiet:
        size = Path(path).stat().st_size / 1e6
        print(f"tertium: wrote {path} ({size:.1f} MB)", file=sys.stderr)


def make_report(
    results: Evaluation | Comparison,
    metrics: Sequence[Metric],
    *,
    ranker: Ranker | None = None,
    human: ScoreMatrix | None = None,
    explain: int = EXPLAINED,
    curves: dict[str, Curve] | None = None,
    title: str = "",
) -> Report:
    """A report of an evaluation, with explanations of its most disputed segments."""
    evaluation = results.evaluation if isinstance(results, Comparison) else results
    grid = located_warnings(evaluation_grid(evaluation, human), evaluation, metrics)
    explained = explain_items(evaluation.testset, grid, metrics, ranker, explain)
    return evaluation_report(
        results, grid=grid, human=human, explained=explained, curves=curves, title=title
    )


def located_warnings(grid: Grid, evaluation: Evaluation, metrics: Sequence[Metric]) -> Grid:
    """The grid with what metrics warn of, row by row; scores only say how often."""
    several = len(evaluation.systems)
    found: dict[str, Any] = {}
    for metric in metrics:
        for place, system in enumerate(evaluation.systems):
            counted = evaluation.scores[system][metric.spec].warnings
            kinds = [kind for kind in counted if kind not in grid.warnings]
            segments = evaluation.testset.segments(system) if kinds else []
            for kind in kinds:
                mask = found.setdefault(kind, np.zeros(len(grid), dtype=bool))
                mask[[n * several + place for n in _warned(metric, kind, segments)]] = True
    return replace(grid, warnings={**grid.warnings, **found})


def _warned(metric: Metric, kind: str, segments: Sequence[Segment], start: int = 0) -> list[int]:
    """The places of segments that a metric warns of, by halving those that hold any."""
    if not metric.warnings(segments).get(kind):
        return []
    if len(segments) == 1:
        return [start]
    half = len(segments) // 2
    return [
        *_warned(metric, kind, segments[:half], start),
        *_warned(metric, kind, segments[half:], start + half),
    ]


def the_ranker(spec: str | None) -> Ranker | None:
    """The ranker of a spec; None without one."""
    return load_ranker(spec) if spec else None


def scored(testset: TestSet, metrics: Sequence[Metric], ranker: Ranker | None) -> Evaluation:
    """A test set under some metrics, with a ranker's chances as one more column."""
    evaluation = score(testset, metrics)
    return ranked(evaluation, ranker) if ranker is not None else evaluation


def ranked(evaluation: Evaluation, ranker: Ranker) -> Evaluation:
    """An evaluation with a ranker's mean chances to win as one more column."""
    matrix = ranker.rank(evaluation.testset)
    signature = ranker.signature(evaluation.testset.segments(matrix.systems[0]))
    return _with_chances(evaluation, matrix, ranker, signature)


def _with_chances(
    evaluation: Evaluation, matrix: ScoreMatrix, ranker: Ranker, signature: str
) -> Evaluation:
    label = f"wins by {ranker.spec}" if isinstance(ranker, ByScore) else ranker.title
    named = replace(matrix, name=f"wins by {matrix.name}")
    return with_matrix(evaluation, named, name=label, signature=signature)


def ranking_report(
    testset: TestSet, matrix: ScoreMatrix, ranker: Ranker, signature: str
) -> Report:
    """A report of a ranking, in which the mean chance to win is the only score."""
    nothing = Evaluation(testset, matrix.systems, (), {system: {} for system in matrix.systems})
    evaluation = _with_chances(nothing, matrix, ranker, signature)
    return make_report(compared(evaluation), [], ranker=ranker)


def compared(
    evaluation: Evaluation, *, test: Test = "bootstrap", resamples: int | None = None,
    seed: int = 12345, alpha: float = 0.05,
) -> Evaluation | Comparison:  # fmt: skip
    """Two systems or more compared, a lone one with its intervals."""
    if len(evaluation.systems) < 2:
        return with_intervals(evaluation, DEFAULT_RESAMPLES["bootstrap"], seed)
    return compare_evaluation(
        evaluation, test=test, resamples=resamples, seed=seed, alpha=alpha
    )


def explain_items(
    testset: TestSet, grid: Grid, metrics: Sequence[Metric], ranker: Ranker | None, count: int
) -> list[Explained]:
    """What metrics and the ranker say of the segments that are worth it."""
    able = [metric for metric in metrics if metric.explains]
    items = interesting_items(grid, count) if able or ranker else []
    segments = {system: testset.segments(system) for system in testset.systems} if items else {}
    found: list[Explained] = []
    for item in track(items, "explaining"):
        group = [segments[system][item] for system in grid.systems]
        if ranker is not None and len(group) > 1:
            votes = ranker.explain(group, grid.systems).votes
            html = win_probabilities(votes, ranker.title) if votes else Markup("")
            found.append(Explained(item=item, system=-1, title=ranker.title, html=html))
        for system in systems_to_explain(grid, item):
            found += _explained(able, group[system], item, system)
    return found


def _explained(
    metrics: Sequence[Metric], segment: Segment, item: int, system: int
) -> list[Explained]:
    found = []
    for metric in metrics:
        try:
            html = explanation(metric.explain(segment))
        except TertiumError as error:  # an empty output, say, has nothing to align
            logger.info("segment %d: %s", item + 1, error)
            continue
        found.append(Explained(item=item, system=system, title=metric.label, html=html))
    return found


def read_people(path: str, testset: TestSet) -> ScoreMatrix:
    """Human scores of a test set's segments from any file `tertium meta` reads."""
    found = read_evidence(path)
    if len(found) > 1:
        names = ", ".join(entry.lp or entry.name for entry in found)
        raise DataError(f"{path} holds several sets ({names}): a report is about one test set")
    matrix = people_of(found[0])
    if not set(matrix.systems) & set(testset.systems):
        raise DataError(
            f"{path}: none of the judged systems ({', '.join(matrix.systems[:3])}) is among those "
            f"of the report ({', '.join(list(testset.systems)[:3])}); name them with --names"
        )
    return matrix


def people_of(entry: Evidence) -> ScoreMatrix:
    """Segment scores by people; of comparisons, the share each translation won."""
    if entry.judgements is not None:
        return entry.judgements.matrix()
    if entry.matrix is not None:
        return entry.matrix
    if entry.comparisons is not None:
        return win_shares(entry.comparisons)
    raise DataError(f"{entry.name}: scores of whole systems only; a report needs those of segments")


def win_shares(rankings: RankingSet) -> ScoreMatrix:
    """The share of its comparisons that each translation won, a tie being half a win."""
    won, counted = np.zeros((2, len(rankings.segments)))
    for side, verdicts in ((rankings.left, rankings.verdicts), (rankings.right,
                                                                1 - rankings.verdicts)):
        np.add.at(won, side, verdicts)
        np.add.at(counted, side, 1.0)
    shares = np.divide(won, counted, out=np.full(len(won), np.nan), where=counted > 0)
    return rankings.arrange(shares, "human")


def texts_of(entry: Evidence) -> dict[tuple[str, str], Segment]:
    """The judged translations by system and item, as far as they are known."""
    if entry.testset is not None:
        return {
            (system, str(n + 1)): segment
            for system in entry.testset.systems
            for n, segment in enumerate(entry.testset.segments(system))
        }
    if entry.comparisons is not None:
        c = entry.comparisons
        places = zip(c.system_of.tolist(), c.item_of.tolist(), c.segments, strict=True)
        return {(c.systems[s], c.items[i]): segment for s, i, segment in places}
    if entry.judgements is None:
        return {}
    judged = entry.judgements
    items: Sequence[str] = [j.item for j in judged.judgements]
    if judged.systems == ("",):
        items = judged.matrix().items
    return {
        (j.system, item): j.segment
        for j, item in zip(judged.judgements, items, strict=True)
        if j.segment.hypothesis
    }


def read_curves(files: Sequence[str]) -> dict[str, Curve]:
    """Learning curves and ablations: JSON files of runs, named by their files."""
    return {Path(file).stem: _read_curve(Path(file)) for file in files}


def _read_curve(path: Path) -> Curve:
    try:
        records = json.loads(path.read_text(encoding="utf-8"))
        return Curve(runs=tuple(Run(**record) for record in records))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, TypeError):
        raise DataError(
            f"{path}: expected a JSON list of runs with setting, size, seed, test and value"
        ) from None
