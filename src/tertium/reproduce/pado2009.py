"""Padó, Galley, Jurafsky, Manning 2009, "Robust Machine Translation Evaluation with Entailment
Features" (ACL-IJCNLP): regressions on lexical scores and on entailment features.

Their corpora (NIST OpenMT08, absolute scores of WMT06 and WMT07) cannot be had. Experiment 1 is
done as theirs, a round robin over languages, on direct assessments of WMT16; experiment 2 on news
of their test set, with models trained on the direct assessments of WMT15 and WMT16. Published
averages stand beside ours for the order of the rows, not for the size of the figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tertium.data.collection import Collection
from tertium.data.rankings import win_ratio
from tertium.meta.agreement import Agreement
from tertium.meta.correlation import spearman
from tertium.meta.curves import draw
from tertium.meta.pairwise import consistency
from tertium.meta.systems import tie_aware_spearman
from tertium.metrics.entailment import BLEUR, METEORR, MTR, MTRTER, NISTR, RTER, TERR
from tertium.metrics.regression import Regression
from tertium.reproduce.experiments import Comparisons, Segments, oriented
from tertium.reproduce.table import Figure, MakeModel, PaperTable, Row
from tertium.scores import FloatArray
from tertium.segment import Judgement

WMT16 = ("cs-en", "de-en", "fi-en", "ro-en", "ru-en", "tr-en")
WMT17 = ("cs-en", "de-en", "fi-en", "lv-en", "ru-en", "tr-en", "zh-en")
WMT08 = ("cs-en", "de-en", "es-en", "fr-en")
TIE_RATE = 0.6  # of first places, as in the paper's training data
DRAWS = 5
GROUPS = ("alignment", "compatibility", "insertions", "reference", "structure")

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


def others(collection: Collection, column: str) -> list[Judgement]:
    """The judgements of WMT16 in all language pairs but one."""
    return [
        judgement
        for lp in WMT16
        if lp != column
        for judgement in collection.judgements("da/wmt16", lp).judgements
    ]


def round_robin(cls: type[Regression], **config: Any) -> MakeModel:
    """Trains on the other language pairs of WMT16."""
    return lambda collection, column: cls.train(others(collection, column), **config)


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
        matrix = rankings.arrange(oriented(scores), model.name)
        order = [matrix.systems.index(system) for system in rankings.systems]
        human = win_ratio(rankings, ties="won")
        agreement = tie_aware_spearman(human, matrix.values[order], tie_rate=TIE_RATE)
        return Figure(
            value=100 * float(agreement), count=len(rankings.systems), signature=scores.signature
        )


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

TABLES = [
    PaperTable(
        paper="pado2009",
        number="1",
        title="Experiment 1, sentences: WMT16 into English, round robin over languages",
        experiment=_ROUND_ROBIN,
        rows=[
            *(
                Row(label=cls.title, average=average, model=round_robin(cls))
                for cls, average, _, _ in METRICS
            ),
            Row(label="MT+RTER, embeddings", model=round_robin(MTRTER, embeddings=True)),
        ],
        note="published averages are over Urdu, Chinese and Arabic of NIST OpenMT08",
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
        rows=[
            *(Row(label=cls.title, model=cls.name) for cls, _, _, _ in METRICS),
            Row(label="MT+RTER, embeddings", model="mt-rte-r:embeddings=true"),
        ],
    ),
    PaperTable(
        paper="pado2009",
        number="ablation",
        title="Section 5: RTER without each group of features, and with each alone",
        picture="rows",
        experiment=_ROUND_ROBIN,
        rows=[
            Row(label="RTER", model=round_robin(RTER)),
            *(
                Row(
                    label=f"without {group}",
                    model=round_robin(RTER, groups=tuple(g for g in GROUPS if g != group)),
                )
                for group in GROUPS
            ),
            *(
                Row(label=f"only {group}", model=round_robin(RTER, groups=(group,)))
                for group in GROUPS
            ),
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
