"""Guzmán, Joty, Màrquez, Nakov 2015, "Pairwise Neural Machine Translation Evaluation" (ACL): strict
Kendall's tau on the comparisons of WMT12.

Networks learn from WMT11, and the epoch is chosen on 5,000 comparisons of WMT13; a figure is the
mean of five seeds. Adagrad starts at a rate of 0.1 (1 for the Kendall cost from a random start,
0.001 after the logistic one) instead of 0.01, and stops after 40 epochs without a better tau, not
after 10,000 in all, so that a row takes minutes. METEOR reads its paraphrases from the package
that carries them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import nan
from typing import Any

from papers.bounds import BestWeights, Folds, FromWMT13, Reached
from papers.causes import FOUR as PLAIN_FOUR
from papers.causes import OWN_NIST, PARAPHRASES, Variation, Worth
from papers.departures import (
    BOTH_ORDERS,
    GUZMAN_METEOR,
    KENDALL_SIGN,
    NETWORKS,
    NIST_INFORMATION,
    RANKER_RATE,
    SYNTAX_VECTORS,
    WMT11_SEGMENTS,
    WMT13_PAIRS,
)
from papers.experiments import Comparisons
from papers.overview import Shipped
from papers.seeds import OPTIONS, WMT15, Recipe, SeededComparisons
from papers.table import PaperTable, Row
from tertium.meta.pairwise import kendall_wmt14
from tertium.metrics.pairwise.ranker import PairwiseOptions

COLUMNS = ("cs-en", "de-en", "es-en", "fr-en")
SET = "rankings/wmt12"
WMT12 = Comparisons(set=SET, columns=COLUMNS)
SEEDED = SeededComparisons(set=SET, columns=COLUMNS)
TIES_AS_ZERO = Comparisons(
    set=SET, columns=COLUMNS, compare=kendall_wmt14,
    statistic="Kendall's tau of WMT14 x 100: (concordant - discordant) / all",
)  # fmt: skip
TER = (17.80, 25.31, 22.86, 21.05)
NETWORK = (
    BOTH_ORDERS, SYNTAX_VECTORS, RANKER_RATE, replace(WMT11_SEGMENTS, rows=NETWORKS), WMT13_PAIRS,
)  # fmt: skip
WITH_METRICS = (*NETWORK, GUZMAN_METEOR, NIST_INFORMATION)
NOWHERE = (nan, nan, nan, nan)

METEOR = PARAPHRASES
SYNTAX, WIKI, PARTS = "syntax25", "glove", ("bleucomp",)
FOUR = ("bleu", "nist", "ter:normalized=true", METEOR)
FULL = Recipe(vectors=(SYNTAX, WIKI), features=FOUR)
FULL_FIGURES = (26.30, 33.19, 30.38, 28.92)
# Of the settings in `CAUSES` the best on WMT13; without paraphrases it needs no other package.
FAITHFUL = replace(FULL, features=PLAIN_FOUR, options=replace(OPTIONS, rate=0.3))

# Chosen on the comparisons of WMT13, as every setting here.
OURS = Recipe(
    vectors=("minilm~48",), features=("bleu", "chrf", "ter", "meteor", "layers/minilm"),
    scaling="standard",
    options=PairwiseOptions(rate=0.02, decay=2e-3, epochs=150, patience=25, order="random"),
)  # fmt: skip
FOUR_YEARS = tuple(f"rankings/wmt{year}" for year in (11, 13, 15, 16))
FREE = "tertium-small:length=free"
SHIPPED = Recipe(
    features=(FREE, "bleu", "chrf"), hidden=0, scaling="standard", train=FOUR_YEARS, choose=WMT15,
    options=PairwiseOptions(rate=0.1, batch_size=100, epochs=6, patience=0, order="random"),
)  # fmt: skip


OWN = ("bleu", OWN_NIST, *PLAIN_FOUR[2:])


def _with(variation: Variation, **options: Any) -> Variation:
    """A variation with other options of training."""
    return replace(variation, options=replace(variation.options, **options))


BASE = Variation()
SHOWN_RANDOM = _with(BASE, order="random")
STANDARD = replace(SHOWN_RANDOM, scaling="standard")
CAUSES: Mapping[str, Variation] = {
    "the full network": BASE,
    "without hidden layer": replace(BASE, hidden=0),
    "4METRICS alone, without hidden layer": replace(BASE, hidden=0, vectors=()),
    "epoch chosen as WMT13 is listed, the winner first": replace(BASE, choice="listed"),
    "epoch chosen by one order, drawn at random": replace(BASE, choice="mixed"),
    "pairs turned at random in every epoch": SHOWN_RANDOM,
    "both orders of every pair": replace(BASE, doubled=True),
    "without hidden layer, turned at random": replace(SHOWN_RANDOM, hidden=0),
    "rate .02, 800 epochs": _with(BASE, rate=0.02, epochs=800, patience=150),
    "rate .3": _with(BASE, rate=0.3),
    "600 epochs, 200 of patience": _with(BASE, epochs=600, patience=200),
    "decay for a summed cost, 1e-4 / 30": _with(BASE, decay=1e-4 / 30),
    "no decay": _with(BASE, decay=0.0),
    "decay 1e-3": _with(BASE, decay=1e-3),
    "decay 3e-3": _with(BASE, decay=3e-3),
    "NIST by the references of each set": replace(BASE, features=OWN),
    "TER without splitting punctuation": replace(BASE, features=("bleu", "nist", "ter", "meteor")),
    "unknown words as zeros in the mean": replace(BASE, vectors=(SYNTAX, "glove, zeros")),
    "words' vectors summed": replace(BASE, vectors=(SYNTAX, "glove, sum")),
    "words split at blanks, lowered": replace(BASE, vectors=(SYNTAX, "glove, at blanks")),
    "words split at blanks, as written": replace(BASE, vectors=(SYNTAX, "glove, as written")),
    "inputs scaled on all texts": replace(BASE, scaled_on="all"),
    "inputs standardised": replace(BASE, scaling="standard"),
    "2 hidden nodes": replace(BASE, hidden=2),
    "16 hidden nodes": replace(BASE, hidden=16),
    "half of WMT11": replace(BASE, share=0.5),
    "a quarter of WMT11": replace(BASE, share=0.25),
    "epoch chosen on WMT12 itself (a bound, no choice)": replace(BASE, choose="test"),
    "turned, decay 1e-3": _with(SHOWN_RANDOM, decay=1e-3),
    "turned, decay 3e-3": _with(SHOWN_RANDOM, decay=3e-3),
    "turned, standardised": STANDARD,
    "turned, standardised, decay 1e-3": _with(STANDARD, decay=1e-3),
    "turned, standardised, decay 3e-3": _with(STANDARD, decay=3e-3),
    "turned, standardised, decay 1e-3, own NIST": replace(
        _with(STANDARD, decay=1e-3), features=OWN
    ),
    "turned, decay 1e-3, then Kendall's cost": replace(
        _with(SHOWN_RANDOM, decay=1e-3, kendall_rate=1e-3), costs=("logistic", "kendall")
    ),
    "without hidden layer, turned, decay 1e-3": replace(_with(SHOWN_RANDOM, decay=1e-3), hidden=0),
}
RICH = replace(BASE, features=FOUR)  # METEOR with paraphrases
BOUNDS: Mapping[str, Variation | Folds | FromWMT13] = {
    "4METRICS, from WMT11": replace(RICH, vectors=(), hidden=0),
    "the full network, from WMT11": RICH,
    "4METRICS, from WMT12": Folds(variation=replace(RICH, vectors=(), hidden=0)),
    "4METRICS + SYNTAX25, from WMT12": Folds(variation=replace(RICH, vectors=(SYNTAX,))),
    "4METRICS + WIKI-GW25, from WMT12": Folds(variation=replace(RICH, vectors=(WIKI,))),
    "the full network, from WMT12": Folds(variation=RICH),
    "the full network without hidden layer, from WMT12": Folds(variation=replace(RICH, hidden=0)),
    "the full network, from 5,000 comparisons of WMT13": FromWMT13(variation=SHOWN_RANDOM),
    "the full network, from 5,000 comparisons of WMT11": replace(SHOWN_RANDOM, share=0.2627),
}


def _learned_row(
    label: str, published: tuple[float, ...], average: float, recipe: Recipe, note: str = ""
) -> Row:
    return Row(
        label=label, published=published, average=average, model=recipe, experiment=SEEDED,
        note=note,
    )  # fmt: skip


TABLES = [
    PaperTable(
        paper="guzman2015",
        number="1",
        title="WMT12 into English",
        experiment=WMT12,
        digits=2,
        departures=WITH_METRICS,
        rows=[
            Row(label="BLEU", published=(15.88, 18.56, 18.57, 20.83), average=18.46, model="bleu"),
            Row(label="NIST", published=(19.66, 23.09, 20.41, 22.21), average=21.34, model="nist"),
            Row(
                label="TER",
                published=TER,
                average=21.75,
                model="ter",
                note="TER counts whole edits, so it often ties, and strict tau counts a tie as "
                "wrong: plain TER cannot come near the published figure, which must be that of a "
                "variant with finer costs or of another treatment of ties",
            ),
            Row(
                label="TER, ties as zero", published=TER, average=21.75, model="ter",
                experiment=TIES_AS_ZERO,
            ),
            Row(
                label="METEOR",
                published=(20.82, 26.79, 23.81, 22.93),
                average=23.59,
                model=METEOR,
            ),
            Row(
                label="METEOR without paraphrases", published=(20.82, 26.79, 23.81, 22.93),
                average=23.59, model="meteor",
            ),
            _learned_row("SYNTAX25", (8.00, 13.03, 12.11, 7.42), 10.14, Recipe(vectors=(SYNTAX,))),
            _learned_row("WIKI-GW25", (14.31, 11.49, 9.24, 4.99), 10.01, Recipe(vectors=(WIKI,))),
            _learned_row(
                "4METRICS, logistic regression", (23.46, 29.95, 27.49, 27.36), 27.06,
                Recipe(features=FOUR, hidden=0),
            ),
            _learned_row(
                "the same, METEOR without paraphrases", (23.46, 29.95, 27.49, 27.36), 27.06,
                Recipe(features=(*FOUR[:3], "meteor"), hidden=0),
            ),
            _learned_row(
                "4METRICS + SYNTAX25", (26.09, 30.58, 29.30, 28.07), 28.51,
                Recipe(vectors=(SYNTAX,), features=FOUR),
            ),
            _learned_row(
                "4METRICS + WIKI-GW25", (25.67, 32.50, 29.21, 28.92), 29.07,
                Recipe(vectors=(WIKI,), features=FOUR),
            ),
            _learned_row("4METRICS + SYNTAX25 + WIKI-GW25", FULL_FIGURES, 29.70, FULL),
            _learned_row(
                "the same, as it ships", FULL_FIGURES, 29.70, FAITHFUL,
                "METEOR without paraphrases, Adagrad from .3, the best of 34 settings on WMT13; "
                "the seed that is best there is pairwise-published",
            ),
            Row(
                label="pairwise-published", published=FULL_FIGURES, average=29.70,
                model=Shipped("pairwise:model=pairwise-published"), note="the one seed that ships",
            ),
            Row(label="DiscoTK", published=NOWHERE, average=30.5),
            Row(label="SPEDE07PP", published=(21.2, 27.8, 26.5, 26.0), average=25.4),
            Row(label="METEOR at WMT12", published=(21.2, 27.5, 24.9, 25.1), average=24.7),
            Row(label="Guzmán et al. 2014", published=(23.1, 25.8, 22.6, 23.2), average=23.7),
            Row(label="AMBER", published=(19.1, 24.8, 23.1, 24.5), average=22.9),
        ],
    ),
    PaperTable(
        paper="guzman2015",
        number="2",
        title="WMT12 into English, BLEU taken apart",
        experiment=WMT12,
        digits=2,
        departures=NETWORK,
        rows=[
            Row(label="BLEU", published=(15.88, 18.56, 18.57, 20.83), average=18.46, model="bleu"),
            _learned_row(
                "BLEUCOMP, logistic regression", (18.18, 21.13, 19.79, 19.91), 19.75,
                Recipe(features=PARTS, hidden=0),
            ),
            _learned_row(
                "BLEUCOMP + SYNTAX25", (20.75, 25.32, 24.85, 23.88), 23.70,
                Recipe(vectors=(SYNTAX,), features=PARTS),
            ),
            _learned_row(
                "BLEUCOMP + WIKI-GW25", (22.96, 26.63, 25.99, 24.10), 24.92,
                Recipe(vectors=(WIKI,), features=PARTS),
            ),
            _learned_row(
                "BLEUCOMP + SYNTAX25 + WIKI-GW25", (22.84, 28.92, 27.95, 24.90), 26.15,
                Recipe(vectors=(SYNTAX, WIKI), features=PARTS),
            ),
            _learned_row(
                "BLEU + SYNTAX25 + WIKI-GW25", (20.03, 25.95, 27.07, 23.16), 24.05,
                Recipe(vectors=(SYNTAX, WIKI), features=("bleu",)),
            ),
        ],
    ),
    PaperTable(
        paper="guzman2015",
        number="3",
        title="WMT12 into English, other sentence vectors alone and in combination",
        experiment=WMT12,
        digits=2,
        note="combination: with 4METRICS and SYNTAX25; of the vectors of the paper only WIKI-GW25 "
        "can be had, and encoders that it could not have stand in for the others",
        departures=WITH_METRICS,
        rows=[
            _learned_row("WIKI-GW25, alone", (), 10.01, Recipe(vectors=(WIKI,))),
            _learned_row("WIKI-GW25, combined", (), 29.70, FULL),
            *(
                Row(label=f"{name}, {kind}", average=value)
                for name, *values in (
                    ("WIKI-GW300", 9.66, 29.90),
                    ("CC-300-42B", 12.16, 29.68),
                    ("CC-300-840B", 11.41, 29.88),
                    ("WORD2VEC300", 7.72, 29.13),
                    ("COMPOSES400", 12.35, 28.54),
                )
                for kind, value in zip(("alone", "combined"), values, strict=True)
            ),
            *(
                _learned_row(f"{label}, {kind}", (), nan, recipe)
                for label, name in (
                    ("MiniLM, 384 d", "minilm"),
                    ("MiniLM, first 48 d", "minilm~48"),
                    ("USE, 512 d", "use"),
                )
                for kind, recipe in (
                    ("alone", Recipe(vectors=(name,))),
                    ("combined", replace(FULL, vectors=(SYNTAX, name))),
                )
            ),
        ],
    ),
    PaperTable(
        paper="guzman2015",
        number="4",
        title="WMT12 into English, with and without hidden layer",
        experiment=SEEDED,
        digits=2,
        departures=WITH_METRICS,
        rows=[
            _learned_row(
                "single-layer", (25.86, 32.06, 30.03, 28.45), 29.10, replace(FULL, hidden=0)
            ),
            _learned_row("multi-layer", FULL_FIGURES, 29.70, FULL),
        ],
    ),
    PaperTable(
        paper="guzman2015",
        number="5",
        title="WMT12 into English, costs",
        experiment=SEEDED,
        digits=2,
        departures=(*WITH_METRICS, KENDALL_SIGN),
        rows=[
            _learned_row("Logistic", FULL_FIGURES, 29.70, FULL),
            _learned_row(
                "Kendall", (27.04, 33.60, 29.48, 28.54), 29.53,
                replace(FULL, cost="kendall", options=replace(OPTIONS, kendall_rate=1.0)),
                "the printed average is not the mean of the printed row, 29.67",
            ),
            _learned_row(
                "Log.+Ken.", (26.90, 33.17, 30.40, 29.21), 29.92,
                replace(
                    FULL, cost="logistic+kendall", options=replace(OPTIONS, kendall_rate=1e-3)
                ),
            ),
        ],
    ),
    PaperTable(
        paper="guzman2015",
        number="causes",
        title="What might keep the network under its published figures, and what each is worth",
        experiment=Worth(),
        digits=2,
        averaged=False,
        departures=tuple(replace(d, rows="") for d in (*NETWORK, NIST_INFORMATION)),
        rows=[Row(label=label, model=variation) for label, variation in CAUSES.items()],
        note="each row is the first but for what it names; METEOR is without paraphrases, so that "
        "the first row is the full network of table 1 less what those are worth (27.10 there); the "
        "paper's figure is 29.70. Networks were trained on vectors rounded to half precision",
    ),
    PaperTable(
        paper="guzman2015",
        number="bounds",
        title="What the network reaches if it learns from the year it is tested on",
        experiment=Worth(),
        digits=2,
        averaged=False,
        departures=tuple(replace(d, rows="") for d in WITH_METRICS),
        rows=[Row(label=label, model=model) for label, model in BOUNDS.items()],
        note="from WMT12 are bounds: three quarters of its references teach, the last is decided, "
        "four times over; WMT13 chooses the epoch. METEOR is with paraphrases, but in the last two "
        "rows, where the pairs are turned at random, as WMT13 lists the winner first; the epoch of "
        "the one from WMT13 is chosen on WMT11, and its figure on WMT13 is of what it learned from",
    ),
    PaperTable(
        paper="guzman2015",
        number="weights",
        title="The best that any weights of 4METRICS reach on WMT12",
        experiment=Reached(),
        digits=2,
        averaged=False,
        departures=(GUZMAN_METEOR,),
        rows=[
            Row(label="4METRICS", model=BestWeights(features=FOUR)),
            Row(label="4METRICS, METEOR without paraphrases", model=BestWeights()),
        ],
        note="weights found on WMT12 itself, a bound and no choice: the paper's 27.06 is by "
        "weights that were learned from WMT11",
    ),
    PaperTable(
        paper="guzman2015",
        number="ours",
        title="WMT12 into English, with columns and vectors the paper did not have",
        experiment=SEEDED,
        digits=2,
        departures=(BOTH_ORDERS, WMT11_SEGMENTS, WMT13_PAIRS),
        rows=[
            _learned_row(
                "columns alone, single-layer", (), nan, replace(OURS, hidden=0, vectors=())
            ),
            _learned_row("trained on WMT11", (), nan, OURS),
            _learned_row(
                "tertium-small alone", (), nan, replace(SHIPPED, features=(FREE,)),
                "it learned from the rankings of WMT11, 13, 15, 16 and from direct assessments",
            ),
            _learned_row("trained on WMT11, 13, 15, 16, with tertium-small", (), nan, SHIPPED),
        ],
    ),
]  # fmt: skip
