"""Mathur, Baldwin, Cohn 2019, "Putting Evaluation in Context: Contextual Embeddings Improve Machine
Translation Evaluation" (ACL): the tables against WMT17 and the WMT16 IT task.

Table 2 is on segments, as its text says (its caption says systems). Its taus (DARR) rest on raw
ratings that were not published; the two language pairs with Pearson's r are here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import nan

from papers.departures import (
    ATTENTION_INDEX,
    BERTR_LAYER,
    COMPARISONS_FIRST,
    HEAD_INPUT,
    HEAD_SCHEDULE,
    SHIPPED_ESIM,
    SINGLE_SEED,
    WMT11_SEGMENTS,
)
from papers.experiments import Segments, Systems
from papers.learners import Curve, Head, SeededSegments, SeededSystems, curve_row, first_of
from papers.printed import Example, Standing
from papers.table import PaperTable, Row
from tertium.metrics.heads.settings import PUBLISHED

TO_ENGLISH = ("cs-en", "de-en", "fi-en", "lv-en", "ru-en", "tr-en", "zh-en")
FROM_ENGLISH = ("en-cs", "en-de", "en-fi", "en-lv", "en-ru", "en-tr", "en-zh")
IT_TASK = ("en-cs", "en-de", "en-es", "en-nl", "en-pt")

# Moses' sentence-bleu, which WMT reports as sentBLEU, adds one to every count above unigrams.
SENT_BLEU = "bleu:smooth_method=add-k,smooth_value=1"
CHINESE_SENT_BLEU = f"{SENT_BLEU},tokenize=zh"
# mteval-v13a.pl --international-tokenization, WMT's BLEU of systems, which ignores case.
BLEU = "bleu:tokenize=intl,lowercase=true"
CHINESE_BLEU = "bleu:tokenize=zh,lowercase=true"

NEWS = "wmt17-metrics-task"
MEAN_NOTE = "WMT's figures of chrF are means of segment scores"

MULTILINGUAL = Head(metric="esim", encoder="use", pairs="all")
USE_NOTE = "over the multilingual encoder use, which knows neither Czech, Finnish nor Latvian"
MULTILINGUAL_NOTE = f"trained on TrainS and en-ru {USE_NOTE}"
TOP = ("minilm@6", "mpnet@12")
NOTES = {"use": USE_NOTE, **dict.fromkeys(TOP, "at its top layer, as the paper reads BERT")}
SIZES = ("210", "420", "840", "1680", "3360")
STRICT = (
    "signed differences, dropout of .5 on the encoder's vectors too, Adam at 4e-4 throughout, "
    "stopped after five epochs without a better one on WMT15; the other rows of heads are ours"
)
SEEDED = SeededSegments(set="da/wmt17", columns=TO_ENGLISH)
HEADS = (ATTENTION_INDEX, HEAD_INPUT, HEAD_SCHEDULE)
TITLES = {"bilstm": "BiLSTM", "bilstm-attention": "BiLSTM + attention", "esim": "ESIM"}

TRAIN_S = {
    "bilstm": ((0.517, 0.556, 0.735, 0.672, 0.606, 0.619, 0.565), 0.610),
    "bilstm-attention": ((0.611, 0.603, 0.763, 0.740, 0.655, 0.695, 0.694), 0.680),
    "esim": ((0.534, 0.546, 0.757, 0.704, 0.621, 0.632, 0.629), 0.632),
}
TRAIN_L = {
    "bilstm": ((0.628, 0.621, 0.774, 0.732, 0.689, 0.682, 0.655), 0.682),
    "bilstm-attention": ((0.704, 0.710, 0.818, 0.777, 0.744, 0.753, 0.737), 0.749),
    "esim": ((0.692, 0.706, 0.829, 0.764, 0.726, 0.776, 0.732), 0.746),
}


GOOD = (
    Example(
        "negotiations",
        "The negotiations have been scheduled to take place next Saturday, the Russian Minister of "
        "Energy, Alexander Nowak, said on Monday.",
        "The negotiations are scheduled for coming Saturday, said the Russian energy minister "
        "Alexander Nowak on Monday.",
    ),
    Example(
        "Lesotho",
        "Lesotho military says no coup planned; PM stays in South Africa",
        "Lesotho-military member says that no coup is planned; Prime Minister remains in South "
        "Africa",
    ),
    Example(
        "Abbott",
        "In September 2011, Abbott's condition worsened again, and his consultant took his CT "
        "scans and X-rays to a panel of experts.",
        "In September 2011 Abbotts state worsened again and his family doctor brought his CT-Scans "
        "and X-rays to an expert group.",
    ),
    Example(
        "boardroom",
        "The boardroom is now contemplating the possibility of working together.",
        "Now the boards are thinking about a possible cooperation.",
    ),
    Example(
        "month off",
        "He ended up spending a month off work.",
        "In the end, he could not go to work for a month.",
    ),
)
BAD = (
    Example(
        "Richter",
        "For the benefit of the school, Richter nurtured a good relationship with the then Mayor, "
        "Ludwig Götz (CSU).",
        "For the good of the school of judges as rector of a good relationship with the former "
        "mayor Ludwig Götz (CSU).",
    ),
    Example(
        "Pakistan",
        "The military plays an important role in Pakistan and has taken power by force several "
        "times in the past.",
        "The military plays an important role in Pakistan and has already more frequently "
        "geputscht.",
    ),
    Example(
        "Hong Kong",
        "Behind much of the pro-democracy campaign in Hong Kong is the Occupy Central With Love "
        "and Peace movement, whose organizers have threatened to shut down the financial district "
        "if Beijing does not grant authentic universal suffrage.",
        "Behind the pro-democracy campaign in Hong Kong is the movement Occupy Central With Love "
        "and Peace, whose organizers have threatened the acupuncture, off, if Beijing allows no "
        "real universal suffrage.",
    ),
    Example(
        "trade",
        "Foreign goods trade had slowed, too.",
        "Foreign trade also slowed the economy.",
    ),
    Example(
        "knee",
        "Some shrapnel pieces are still in my knee.",
        "Some garnet fragments are still in my knee.",
    ),
    Example(
        "Stewart",
        "Stewart hit the wall for the second time after his right front tire blew out on lap 172, "
        "ending his night.",
        "Stewart raced for the second time against the wall after his right front tire on lap 172 "
        "and ended his evening.",
    ),
)


def _examples(
    number: str, title: str, examples: tuple[Example, ...], said: Mapping[str, tuple[int, ...]]
) -> PaperTable:
    """Printed examples with what the paper says of three metrics, 1 for HIGH and 0 for LOW."""
    models = {
        "ESIM": ("esim", "the model that ships: it learned from nine tenths of WMT15"),
        "BERTR, minilm": ("bertr:encoder=minilm", ""),
        "BLEU": (SENT_BLEU, ""),
    }
    return PaperTable(
        paper="mathur2019",
        number=number,
        title=title,
        experiment=Standing(examples=examples),
        digits=2,
        averaged=False,
        departures=(BERTR_LAYER, SHIPPED_ESIM),
        rows=[
            Row(label=label, published=said[label.partition(",")[0]], model=model, note=note)
            for label, (model, note) in models.items()
        ],
        note="published: 1 for HIGH and 0 for LOW, which is all the paper prints, without saying "
        "where one ends; where several examples share its words, they are given to each",
    )


def _bertr(published: tuple[float, ...], *encoders: str, average: float = nan) -> list[Row]:
    """The published row of BERTR, over BERT base, beside ours over other encoders."""
    return [
        Row(
            label=f"BERTR, {encoder}",
            published=published,
            average=average,
            model=f"bertr:encoder={encoder}",
            note=NOTES.get(encoder, ""),
        )
        for encoder in encoders
    ]


def _heads(
    label: str,
    figures: Mapping[str, tuple[tuple[float, ...], float]],
    preferences: bool = False,
) -> list[Row]:
    """Each head over each encoder, three seeds a row."""
    return [
        Row(
            label=f"{label} {TITLES[metric]}, {encoder}",
            published=published,
            average=average,
            model=Head(metric=metric, encoder=encoder, preferences=preferences),
            experiment=SEEDED,
        )
        for metric, (published, average) in figures.items()
        for encoder in ("minilm", "mpnet")
    ]


def _published_heads() -> list[Row]:
    """Each head trained as the paper says, three seeds a row."""
    return [
        Row(
            label=f"TrainS {TITLES[metric]}, minilm, as published",
            published=published,
            average=average,
            model=Head(
                metric=metric, input_dropout=None, difference="signed", options=PUBLISHED.options
            ),
            experiment=SEEDED,
            note=STRICT,
        )
        for metric, (published, average) in TRAIN_S.items()
    ]


TABLES = [
    PaperTable(
        paper="mathur2019",
        number="1",
        title="WMT17 to English, segments",
        experiment=Segments(set="da/wmt17", columns=TO_ENGLISH),
        departures=(
            BERTR_LAYER,
            *HEADS,
            COMPARISONS_FIRST,
            replace(WMT11_SEGMENTS, rows="^TrainL"),
        ),
        rows=[
            Row(
                label="BLEU",
                published=(0.435, 0.432, 0.571, 0.393, 0.484, 0.538, 0.512),
                average=0.481,
                model=SENT_BLEU,
                note="published with Moses' tokenizer, measured with mteval's (13a)",
            ),
            Row(
                label="chrF",
                published=(0.514, 0.531, 0.671, 0.525, 0.599, 0.607, 0.591),
                average=0.577,
                model="chrf",
            ),
            Row(
                label="MEANT 2.0",
                published=(0.578, 0.565, 0.687, 0.586, 0.607, 0.596, 0.639),
                average=0.608,
            ),
            Row(
                label="RUSE",
                published=(0.614, 0.637, 0.756, 0.705, 0.680, 0.704, 0.677),
                average=0.682,
            ),
            *_bertr(
                (0.655, 0.650, 0.777, 0.671, 0.680, 0.702, 0.687),
                "minilm",
                "mpnet",
                *TOP,
                average=0.689,
            ),
            *_published_heads(),
            *_heads("TrainS", TRAIN_S),
            *_heads("TrainL", TRAIN_L, preferences=True),
        ],
        note="ours are trained over minilm or mpnet in place of BERT base; TrainL cannot be had, "
        "and comparisons of WMT11, 13, 15 and 16 before TrainS stand in for it",
    ),
    PaperTable(
        paper="mathur2019",
        number="figure 1",
        title="ESIM against the number of judgments (average over WMT17 to English)",
        picture="columns",
        experiment=Curve(set="da/wmt17", pairs=TO_ENGLISH, columns=SIZES),
        departures=HEADS,
        rows=[
            Row(
                label="ESIM, judgments of TrainS",
                published=(nan, nan, nan, nan, 0.632),
                model=curve_row(Head(metric="esim")),
            ),
        ],
        note="the paper's curve counts annotations, 15 to each judgment of TrainS; its figure "
        "gives no numbers but those of table 1",
    ),
    PaperTable(
        paper="mathur2019",
        number="2",
        title="WMT17 from English, segments (the pairs with Pearson's r)",
        experiment=Segments(set="da/wmt17", columns=("en-ru", "en-zh")),
        departures=HEADS,
        rows=[
            Row(
                label="BLEU",
                published=(0.468, 0.642),
                model=SENT_BLEU,
                specs={"en-zh": CHINESE_SENT_BLEU},
            ),
            Row(label="chrF", published=(0.605, 0.608), model="chrf"),
            Row(label="BEER", published=(0.569, 0.622)),
            Row(label="MEANT 2.0-nosrl", published=(0.636, 0.705)),
            Row(label="MEANT 2.0", published=(nan, 0.727)),
            *_bertr((0.630, 0.803), "use"),
            Row(
                label="ESIM",
                published=(0.700, 0.699),
                model=MULTILINGUAL,
                experiment=SeededSegments(set="da/wmt17", columns=("en-ru", "en-zh")),
                note=MULTILINGUAL_NOTE,
            ),
        ],
    ),
    PaperTable(
        paper="mathur2019",
        number="3",
        title="WMT17 to English, systems",
        experiment=Systems(set=NEWS, columns=TO_ENGLISH),
        departures=(BERTR_LAYER, *HEADS, SHIPPED_ESIM, replace(WMT11_SEGMENTS, rows="^ESIM")),
        rows=[
            Row(
                label="BLEU",
                published=(0.971, 0.923, 0.903, 0.979, 0.912, 0.976, 0.864),
                model=BLEU,
            ),
            Row(
                label="chrF",
                published=(0.939, 0.968, 0.938, 0.968, 0.952, 0.944, 0.859),
                model="chrf",
                experiment=Systems(set=NEWS, columns=TO_ENGLISH, aggregate="mean"),
                note=MEAN_NOTE,
            ),
            Row(label="CharacTER", published=(0.972, 0.974, 0.946, 0.932, 0.958, 0.949, 0.799)),
            Row(label="BEER", published=(0.972, 0.960, 0.955, 0.978, 0.936, 0.972, 0.902)),
            Row(label="RUSE", published=(0.990, 0.968, 0.977, 0.962, 0.953, 0.991, 0.974)),
            *_bertr((0.996, 0.971, 0.948, 0.980, 0.950, 0.994, 0.970), "minilm", "mpnet"),
            Row(
                label="ESIM",
                published=(0.983, 0.949, 0.985, 0.974, 0.921, 0.986, 0.901),
                model="esim",
                note="the model that ships, over minilm",
            ),
        ],
    ),
    PaperTable(
        paper="mathur2019",
        number="4",
        title="WMT17 from English, systems",
        experiment=Systems(set=NEWS, columns=FROM_ENGLISH),
        departures=(*HEADS, SINGLE_SEED),
        rows=[
            Row(
                label="BLEU",
                published=(0.956, 0.804, 0.920, 0.866, 0.898, 0.924, 0.981),
                model=BLEU,
                specs={"en-zh": CHINESE_BLEU},
            ),
            Row(label="BEER", published=(0.970, 0.842, 0.976, 0.930, 0.944, 0.980, 0.914)),
            Row(label="CharacTER", published=(0.981, 0.938, 0.972, 0.897, 0.939, 0.975, 0.933)),
            Row(
                label="chrF",
                published=(0.976, 0.863, 0.981, 0.955, 0.950, 0.991, 0.976),
                model="chrf",
                experiment=Systems(set=NEWS, columns=FROM_ENGLISH, aggregate="mean"),
                note=MEAN_NOTE,
            ),
            *_bertr((0.982, 0.877, 0.979, 0.949, 0.971, 0.996, 0.992), "use"),
            Row(
                label="ESIM",
                published=(0.974, 0.861, 0.971, 0.954, 0.968, 0.978, 0.970),
                model=MULTILINGUAL,
                experiment=SeededSystems(set=NEWS, columns=FROM_ENGLISH),
                note=MULTILINGUAL_NOTE,
            ),
            Row(
                label="ESIM, a single seed",
                published=(0.974, 0.861, 0.971, 0.954, 0.968, 0.978, 0.970),
                model=first_of(MULTILINGUAL),
                note="a network of an earlier training, on all language pairs",
            ),
        ],
    ),
    PaperTable(
        paper="mathur2019",
        number="5",
        title="WMT16 IT task, systems",
        experiment=Systems(set="rankings/wmt16it", columns=IT_TASK),
        departures=HEADS,
        rows=[
            Row(label="BLEU", published=(0.750, 0.621, 0.976, 0.596, 0.997), model=BLEU),
            Row(
                label="chrF",
                published=(0.845, 0.588, 0.915, 0.951, 0.967),
                model="chrf",
                experiment=Systems(set="rankings/wmt16it", columns=IT_TASK, aggregate="mean"),
            ),
            Row(label="BEER", published=(0.744, 0.621, 0.931, 0.983, 0.989)),
            Row(label="CharacTER", published=(0.901, 0.930, 0.963, 0.927, 0.976)),
            *_bertr((0.974, 0.780, 0.925, 0.896, 0.980), "use"),
            Row(
                label="ESIM",
                published=(0.964, 0.780, 0.991, 0.798, 0.996),
                model=MULTILINGUAL,
                experiment=SeededSystems(set="rankings/wmt16it", columns=IT_TASK),
                note=MULTILINGUAL_NOTE,
            ),
        ],
        note="scored on the segments that people ranked, 287 to 289 of each test set, not on all",
    ),
    _examples(
        "6",
        "Translations of WMT15 that people rate high",
        GOOD,
        {"ESIM": (1, 1, 1, 1, 0), "BERTR": (1, 1, 1, 0, 0), "BLEU": (0, 0, 0, 0, 0)},
    ),
    _examples(
        "7",
        "Translations of WMT15 that people rate low",
        BAD,
        {"ESIM": (0, 0, 0, 1, 1, 1), "BERTR": (0, 0, 1, 0, 1, 1), "BLEU": (1, 1, 1, 0, 1, 1)},
    ),
]
