"""How well metrics agree with people: statistics of both, slice by slice too, and their tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tertium.data.formats import PathLike
from tertium.display import Displayed
from tertium.errors import UnknownNameError, UsageError
from tertium.evaluation.gathering import Files, Gathered, Sources, gather, several
from tertium.evaluation.slices import slice_agreement
from tertium.meta.evaluation import MetaEvaluation
from tertium.meta.results import Results
from tertium.meta.tasks import STATISTICS, tasks_for
from tertium.metrics.base.metric import Metric
from tertium.registry import check_once


@dataclass(frozen=True, kw_only=True, eq=False)
class AgreementStudy(Gathered, Displayed):
    """What came of people and metrics side by side, and what it was made of.

    `results` holds the figures, `slices` those slice by slice, by what was sliced by.
    """

    results: Results = field(repr=False)
    statistics: tuple[str, ...]
    level: str
    slices: Mapping[str, Results] = field(default_factory=dict, repr=False)

    def records(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        sliced = {by: results.records() for by, results in self.slices.items()}
        return {
            **self.results.records(),
            "judgements_left_out": self.left_out,
            **({"slices": sliced} if sliced else {}),
        }


def meta_evaluate(
    human: Sources,
    metrics: str | Metric | Sequence[str | Metric] = (),
    *,
    scores: Files = (),
    statistics: str | Sequence[str] = (),
    level: str = "",
    lps: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    gold: str = "",
    data: PathLike | None = None,
    standardise: bool = False,
    lower_better: str | Sequence[str] = (),
    slices: str | Sequence[str] = (),
    ceiling: Sources = (),
    seed: int = 12345,
    **choices: Any,
) -> AgreementStudy:
    """Measure how well metrics agree with human judgments, and whether they differ.

    `human` are files, folders, names of sets in `data` or sets in memory; `metrics` score the
    judged translations, `scores` are files of what metrics gave (without either, those that lie
    beside the judgments).
    `statistics` are names of `tertium.meta.tasks.STATISTICS`; Pearson's r unless they are given, or
    WMT's tau where people compared. `choices` are the other fields of a `Task`: by, test, over,
    samples, confidence, alpha, threshold, tie_rate. `slices` name what results are also wanted by:
    domain, document, length, language or another column of the judgments. `ceiling` are a second
    campaign, or "rater": see `gather`.
    """
    chosen, columns = tuple(several(statistics)), several(slices)
    check_once("--statistic", chosen)
    check_once("--by", columns)
    where = level or _common_level(chosen)
    _check_choices(chosen, level, choices)
    gathered = gather(
        human,
        metrics,
        scores=scores,
        level=where,
        # Soft accuracy is about systems, but asks people segment by segment how sure the order is.
        asked="segment" if "spa" in chosen else where,
        lps=several(lps),
        exclude=several(exclude),
        gold=gold,
        data=data,
        standardise=standardise,
        lower_better=several(lower_better),
        ceiling=ceiling,
    )
    sets = gathered.sets
    ranked = where == "segment" and all(judged.comparisons is not None for judged in sets)
    chosen = chosen or (("tau-strict",) if ranked else ("pearson",))
    names = [judged.name for judged in sets]
    tasks = [task for s in chosen for task in tasks_for(names, s, level=level, **choices)]
    return AgreementStudy(
        **vars(gathered),
        results=MetaEvaluation(sets, seed=seed).run(tasks),
        statistics=chosen,
        level=where,
        slices={by: slice_agreement(sets, gathered.people, by, tasks, seed=seed) for by in columns},
    )


def _check_choices(statistics: Sequence[str], level: str, choices: Mapping[str, Any]) -> None:
    """Refuse what does not go together before metrics score."""
    tasks_for((), "pearson", **choices)
    for statistic in statistics:
        tasks_for(("",), statistic, level=level, **choices)


def _common_level(statistics: Sequence[str]) -> str:
    """The level that all statistics asked for share, for the data are read at one level."""
    for name in statistics:
        if name not in STATISTICS:
            raise UnknownNameError("statistic", name, STATISTICS)
    levels = {STATISTICS[name].levels[0] for name in statistics or ("pearson",)}
    if len(levels) > 1:
        raise UsageError("statistics of segments and of systems need a call each (see --level)")
    return str(levels.pop())
