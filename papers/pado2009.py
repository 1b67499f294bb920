"""Padó, Galley, Jurafsky, Manning 2009, "Robust Machine Translation Evaluation with Entailment
Features" (ACL-IJCNLP): regressions on lexical scores and on entailment features.

Their corpora (NIST OpenMT08, absolute scores of WMT06 and WMT07) cannot be had. Experiment 1 is
done as theirs, a round robin over languages, on direct assessments of WMT16; experiment 2 on news
of their test set, with models trained on the direct assessments of WMT15 and WMT16. Published
averages stand beside ours for the order of the rows, not for the size of the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from papers.departures import (
    EXACT_ALIGNMENT,
    FEATURE_COUNT,
    FEWER_DRAWS,
    PADO_METEOR,
    RIDGE_PRIORS,
    SHARED_REFERENCES,
    TIE_SHARE,
)
from papers.experiments import Comparisons, Segments, orient
from papers.table import Figure, MakeModel, PaperTable, Row
from tertium.arrays import FloatArray
from tertium.data.collection import Collection
from tertium.data.leaks import drop_shared
from tertium.data.win_rates import win_ratio
from tertium.meta.agreement import Agreement
from tertium.meta.correlation import ranks, spearman
from tertium.meta.curves import draw
from tertium.meta.pairwise import consistency
from tertium.meta.significance import williams
from tertium.meta.systems import tie_aware_spearman
from tertium.metrics.regression.metric import Regression
from tertium.metrics.regression.regressions import BLEUR, METEORR, MTR, MTRTER, NISTR, RTER, TERR
from tertium.segment import Judgement

WMT15 = ("cs-en", "de-en", "fi-en", "ru-en")
WMT16 = ("cs-en", "de-en", "fi-en", "ro-en", "ru-en", "tr-en")
WMT17 = ("cs-en", "de-en", "fi-en", "lv-en", "ru-en", "tr-en", "zh-en")
WMT08 = ("cs-en", "de-en", "es-en", "fr-en")
TIE_RATE = 0.6  # of first places, as in the paper's training data
DRAWS = 5
GROUPS = ("alignment", "compatibility", "insertions", "reference", "structure")

REGRESSIONS = (RIDGE_PRIORS, EXACT_ALIGNMENT, FEATURE_COUNT, PADO_METEOR)

# class, its averages in tables 1 (sentences), 4 (consistency), 4 (systems)
METRICS: Sequence[tuple[type[Regression], float, float, float]] = (
    (BLEUR, 0.521, 49.6, 69.3),
    (METEORR, 0.568, 51.1, 72.6),
    (NISTR, 0.510, 50.2, 70.4),
    (TERR, 0.516, 51.2, 72.5),
    (MTR, 0.542, 51.5, 73.1),
    (RTER, 0.575, 51.8, 78.3),
    (MTRTER, 0.598, 52.5, 75.8),
)


def others(collection: Collection, column: str, *sets: str) -> list[Judgement]:
    """The judgements of sets (WMT16 by default) in all language pairs into English but one.

    Language pairs of a year share one reference in eleven: what shares one with the pair that is
    left out is left out, too.
    """
    names = sets or ("da/wmt16",)
    held = [
        collection.judgements(name, column) for name in names if column in collection.find(name).lps
    ]
    return [
        judgement
        for name in names
        for lp in collection.find(name).lps
        if lp.endswith("-en") and lp != column
        for judgement in drop_shared(collection.judgements(name, lp), held).judgements
    ]


def round_robin(cls: type[Regression], *sets: str, **config: Any) -> MakeModel:
    """Trains on the other language pairs, of WMT16 or of the sets named."""
    return lambda collection, column: cls.train(others(collection, column, *sets), **config)


def ships(cls: type[Regression]) -> MakeModel:
    """The model that ships, trained on WMT15 and WMT16."""
    return lambda collection, column: cls()


def shares(cls: type[Regression], test: str) -> MakeModel:
    """Trains several times on a share of the other language pairs; `column` is the share."""

    def train(collection: Collection, column: str) -> list[Regression]:
        data = others(collection, test)
        count = round(len(data) * float(column.rstrip("%")) / 100)
        draws = range(1 if count == len(data) else DRAWS)
        chosen = ([data[n] for n in draw(len(data), count, seed)] for seed in draws)
        return [cls.train(subset) for subset in chosen]

    return train


@dataclass(frozen=True, kw_only=True)
class LearningCurve:
    """Spearman's rho on one language pair after training on growing shares of the others.

    The mean over random draws of each share.
    """

    columns: tuple[str, ...]
    test: str

    data: str = "da/wmt16, the share of the other language pairs"
    statistic: str = f"Spearman's rho with human scores of segments, mean of {DRAWS} draws"

    def measure(self, collection: Collection, model: Sequence[Regression], column: str) -> Figure:
        judged = collection.judgements("da/wmt16", self.test)
        values = [
            float(spearman(judged.scores, one.score(judged.segments).segments)) for one in model
        ]
        return Figure(value=float(np.mean(values)), count=len(judged))


@dataclass(frozen=True, kw_only=True)
class TieAwareSystems:
    """Spearman's rho of systems: how often each is best or at most epsilon worse, against people.

    People's score of a system is the share of its comparisons that it does not lose.
    """

    columns: tuple[str, ...] = WMT08
    set: str = "rankings/wmt08"
    data: str = "rankings/wmt08, all systems with comparisons"
    statistic: str = "Spearman's rho x 100 of tie-aware system scores"

    def measure(self, collection: Collection, model: Regression, column: str) -> Figure:
        rankings = collection.rankings(self.set, column)
        scores = model.score(rankings.segments)
        matrix = rankings.arrange(orient(scores), model.name)
        order = [matrix.systems.index(system) for system in rankings.systems]
        human = win_ratio(rankings, ties="won")
        agreement = tie_aware_spearman(human, matrix.values[order], tie_rate=TIE_RATE)
        return Figure(
            value=100 * float(agreement), count=len(rankings.systems), signature=scores.signature
        )


@dataclass(frozen=True, kw_only=True)
class Advantage:
    """How much better one regression agrees with people than another, and whether by chance.

    The value is the difference of Spearman's rho; the note has the p-value of Williams' test on
    ranks in each language pair.
    """

    columns: tuple[str, ...]
    set: str
    statistic: str = "difference of Spearman's rho; p by Williams' test on ranks, one-sided"

    @property
    def data(self) -> str:
        return self.set

    def measure(
        self, collection: Collection, model: tuple[Regression, Regression], column: str
    ) -> Figure:
        judged = collection.judgements(self.set, column)
        scores = np.stack([orient(metric.score(judged.segments)) for metric in model])
        better, worse = (float(spearman(judged.scores, row)) for row in scores)
        p = williams(ranks(judged.scores), np.stack([ranks(row) for row in scores]))[0, 1]
        return Figure(value=better - worse, count=len(judged), signature=f"{column} p = {p:.2g}")


def both(left: MakeModel, right: MakeModel) -> MakeModel:
    """Two models side by side."""
    return lambda collection, column: (left(collection, column), right(collection, column))


def _spearman(human: FloatArray, metric: FloatArray) -> Agreement:
    return spearman(human, metric)


def _consistency(verdicts: FloatArray, left: FloatArray, right: FloatArray) -> Agreement:
    return consistency(verdicts, left, right)


_ROUND_ROBIN = Segments(
    set="da/wmt16",
    columns=WMT16,
    correlate=_spearman,
    statistic="Spearman's rho with human scores of segments, trained on the other pairs",
)

COMPARED: Sequence[tuple[type[Regression], type[Regression]]] = (
    (MTRTER, MTR),
    (MTRTER, RTER),
    (RTER, METEORR),
    (RTER, MTR),
    (MTR, BLEUR),
    (MTR, NISTR),
    (MTR, TERR),
    (MTR, METEORR),
)


def _ablation(cls: type[Regression]) -> list[Row]:
    """A regression, and without each group of features."""
    rows = [Row(label=cls.title, model=round_robin(cls))]
    for group in GROUPS:
        kept = tuple(g for g in GROUPS if g != group)
        label = f"{cls.title} without {group}"
        rows.append(Row(label=label, model=round_robin(cls, groups=kept)))
    return rows


def _embeddings(name: str, columns: tuple[str, ...]) -> PaperTable:
    both_years = ("da/wmt15", "da/wmt16")
    trained = round_robin(MTRTER, *both_years, embeddings=True)
    return PaperTable(
        paper="pado2009",
        number=f"embeddings-{name.removeprefix('da/')}",
        title="Beyond the paper: with columns of an encoder",
        experiment=Segments(set=name, columns=columns),
        departures=(*REGRESSIONS, SHARED_REFERENCES),
        rows=[
            Row(label="MT+RTER", model=round_robin(MTRTER, *both_years)),
            Row(label="MT+RTER, embeddings", model=trained),
        ],
        note="trained on the other language pairs of WMT15 and WMT16; single metrics on the same "
        f"judgements, by the same statistic, are in the overview of {name}",
    )


def _tests(
    number: str, title: str, experiment: Advantage, made: Callable[[type[Regression]], MakeModel]
) -> PaperTable:
    """By how much one regression is ahead of another, each as `made`."""
    return PaperTable(
        paper="pado2009",
        number=number,
        title=title,
        experiment=experiment,
        departures=REGRESSIONS,
        rows=[
            Row(label=f"{better.title} over {worse.title}", model=both(made(better), made(worse)))
            for better, worse in COMPARED
        ],
    )


TABLES = [
    PaperTable(
        paper="pado2009",
        number="1",
        title="Experiment 1, sentences: WMT16 into English, round robin over languages",
        experiment=_ROUND_ROBIN,
        departures=(*REGRESSIONS, SHARED_REFERENCES),
        rows=[
            *(
                Row(label=cls.title, average=average, recomputed=True, model=round_robin(cls))
                for cls, average, _, _ in METRICS
            ),
            Row(label="MT+RTER, embeddings", model=round_robin(MTRTER, embeddings=True)),
        ],
        note="published averages are ours of what the paper prints for Urdu, Chinese and Arabic of "
        "NIST OpenMT08",
    ),
    PaperTable(
        paper="pado2009",
        number="1-held-out",
        title="The models that ship, trained on WMT15 and WMT16, on WMT17 into English",
        experiment=Segments(
            set="da/wmt17",
            columns=WMT17,
            correlate=_spearman,
            statistic="Spearman's rho with human scores of segments",
        ),
        departures=REGRESSIONS,
        rows=[
            *(Row(label=cls.title, model=cls.name) for cls, _, _, _ in METRICS),
            Row(label="MT+RTER, embeddings", model="mt-rte-r:embeddings=true"),
        ],
    ),
    _tests(
        "1-tests",
        "Experiment 1: one regression over another, round robin on WMT16",
        Advantage(set="da/wmt16", columns=WMT16),
        round_robin,
    ),
    _tests(
        "1-held-out-tests",
        "The models that ship: one over another, on WMT17",
        Advantage(set="da/wmt17", columns=WMT17),
        ships,
    ),
    _embeddings("da/wmt15", WMT15),
    _embeddings("da/wmt16", WMT16),
    PaperTable(
        paper="pado2009",
        number="ablation",
        title="Section 5: without each group of features, and with each alone",
        picture="rows",
        experiment=_ROUND_ROBIN,
        departures=(*REGRESSIONS, SHARED_REFERENCES),
        rows=[
            *_ablation(RTER),
            *(
                Row(label=f"RTER, only {group}", model=round_robin(RTER, groups=(group,)))
                for group in GROUPS
            ),
            *_ablation(MTRTER),
        ],
        note="the paper reports drops of at least 3 points on Urdu, largest for structure (11) "
        "and insertions (8), and almost no correlation for insertions alone",
    ),
    PaperTable(
        paper="pado2009",
        number="figure-3",
        title="Figure 3: learning curve, tested on Finnish",
        picture="columns",
        experiment=LearningCurve(columns=("10%", "20%", "40%", "60%", "80%", "100%"), test="fi-en"),
        departures=(*REGRESSIONS, SHARED_REFERENCES, FEWER_DRAWS),
        rows=[
            Row(label=cls.title, model=shares(cls, "fi-en")) for cls in (METEORR, MTR, RTER, MTRTER)
        ],
    ),
    PaperTable(
        paper="pado2009",
        number="4",
        title="Experiment 2: consistency with comparisons of WMT08, trained on WMT15 and WMT16",
        experiment=Comparisons(
            set="rankings/wmt08",
            columns=WMT08,
            compare=_consistency,
            statistic="share of human comparisons reproduced, ties among them, in percent",
        ),
        departures=REGRESSIONS,
        rows=[
            *(
                Row(label=cls.title, average=average, model=cls.name)
                for cls, _, average, _ in METRICS
            ),
            Row(label="MT+RTER, embeddings", model="mt-rte-r:embeddings=true"),
        ],
        digits=1,
        note="published averages are over all parts of WMT08; a tie can never be reproduced",
    ),
    PaperTable(
        paper="pado2009",
        number="4-systems",
        title="Experiment 2: tie-aware system scores of WMT08",
        experiment=TieAwareSystems(),
        departures=(*REGRESSIONS, TIE_SHARE),
        rows=[
            *(
                Row(label=cls.title, average=average, model=cls.name)
                for cls, _, _, average in METRICS
            ),
            Row(label="MT+RTER, embeddings", model="mt-rte-r:embeddings=true"),
        ],
        digits=1,
        note="published averages are over 87 systems of all parts of WMT08",
    ),
]
