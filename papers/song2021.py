"""Song, Zhao, Specia 2021, "SentSim: Crosslingual Semantic Evaluation of Machine Translation"
(NAACL): WMT17, Multi30K and WMT20 QE, against references and against sources.

The paper's encoders are RoBERTa large and base and XLM-R base, its sentence vectors trained on NLI.
The rows here take encoders that need no download: `mpnet` where the paper has RoBERTa large, the
smaller `minilm` where it has RoBERTa base, `e5` where it has XLM-R, and `use` on references that
are not English. Against sources the language pair is named. SentSim is normalised over the test
set, as published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Any

import numpy as np

from papers.departures import BERTSCORE_F1, SMD_SUM, SONG_METEOR, UNIT_LENGTH
from papers.experiments import Segments
from papers.printed import Example, Printed
from papers.table import Figure, PaperTable, Row
from tertium.data.collection import Collection
from tertium.encoders import foresee
from tertium.encoders.encoder import load_encoder
from tertium.segment import Segment

TO_ENGLISH = ("de-en", "zh-en", "fi-en", "lv-en", "ru-en", "cs-en", "tr-en")
SOURCES = ("de-en", "zh-en", "fi-en", "lv-en", "ru-en", "cs-en", "en-ru", "en-zh", "tr-en")
QE = ("ne-en", "en-de", "et-en", "en-zh", "ro-en", "si-en", "ru-en")

NO_ROBERTA = "published with RoBERTa {}, measured with {}"
NO_XLMR = "published with XLM-R base, measured with {}"
REMEDIES = (
    f"{NO_XLMR.format('e5')}, whose layers have a quarter of its parameters; what each remedy was "
    "worth stands in encoders.md, under means of languages"
)

Figures = tuple[float, ...]


def _sentsim(encoder: str, sentence: str, token: str, against: str) -> str:
    return (
        f"sentsim:encoder={encoder},against={against},sentence={sentence},token={token},"
        "normalise=corpus"
    )


def _rows(
    encoder: str,
    against: str,
    sentence: str,
    published: Sequence[Figures],
    averages: Figures,
    pairs: Sequence[str] = (),
) -> list[Row]:
    """The five rows of a table: both token metrics, the sentence metric, and both sums.

    `averages` are the paper's; `pairs` are the columns, where metrics are told the languages.
    """
    place = f"encoder={encoder},against={against}"
    title = sentence.upper()
    models = [
        ("WMD", f"wmd:{place}"),
        ("BERTScore", f"bertscore:{place}"),
        (title, f"{sentence}:{place}"),
        (f"{title} + WMD", _sentsim(encoder, sentence, "wmd", against)),
        (f"{title} + BERTScore", _sentsim(encoder, sentence, "bertscore", against)),
    ]
    return [
        Row(
            label=label,
            published=figures,
            average=average,
            model=spec,
            specs={pair: f"{spec},lp={pair}" for pair in pairs},
        )
        for (label, spec), figures, average in zip(models, published, averages, strict=True)
    ]


@dataclass(frozen=True, kw_only=True)
class LayerCurve(Segments):
    """Segments under the layers of encoders, which come from one pass for all rows.

    `depths` is the number of layers of each encoder. The vectors wait in the cache, 2 GB for
    minilm and 9 GB for mpnet on WMT17: with less room than that a layer is computed anew.
    """

    depths: tuple[tuple[str, int], ...]

    def measure(self, collection: Collection, model: Any, column: str) -> Figure:
        judged = collection.judgments(self.set, column, self.part)
        encoder = model.encoder.partition("@")[0]
        layers = range(dict(self.depths)[encoder] + 1)
        others = [replace(model, encoder=f"{encoder}@{layer}") for layer in layers]
        with foresee([need for other in others for need in other.asks(judged.segments)]):
            return super().measure(collection, model, column)

    def rows(self, against: str, more: str = "") -> list[Row]:
        """WMD at every layer, with `more` settings."""
        return [
            Row(label=f"{name}, layer {n}", model=f"wmd:encoder={name}@{n},against={against}{more}")
            for name, depth in self.depths
            for n in range(depth + 1)
        ]


MULTI30K = Segments(set="da/multi30k", columns=("en-de", "en-fr"))
WMT17 = Segments(set="da/wmt17", columns=TO_ENGLISH)
WMT17_SOURCES = Segments(set="da/wmt17", columns=SOURCES)
WMT20 = Segments(set="qe/wmt20", columns=QE, part="test")

SOURCE_LAYERS = LayerCurve(set="da/wmt17", columns=SOURCES, depths=(("e5", 12),))
REFERENCE_LAYERS = LayerCurve(
    set="da/wmt17", columns=TO_ENGLISH, depths=(("minilm", 6), ("mpnet", 12))
)

TURNAROUND = "We have made a complete turnaround."
TABLE_1 = (
    Example("MT1", TURNAROUND, "We did a complete turnaround."),
    Example("MT2", TURNAROUND, "We made a turnaround."),
    Example("MT3", TURNAROUND, "We have not made a complete turnaround."),
    Example("MT4", TURNAROUND, "We have made an incomplete turnaround."),
)
FOOD, OBAMA = "The food tastes good.", "President Barack Obama also backs the proposal."
POLICE = "She is recovering, and police are still searching for a suspect."
TABLE_6 = (
    Example("E1 MT1", FOOD, "The food tastes not good."),
    Example("E1 MT2", FOOD, "The food tastes not bad."),
    Example("E2 MT1", OBAMA, "President Obama also supported this proposal."),
    Example("E2 MT2", OBAMA, "Supported President Obama also this proposal."),
    Example("E3 MT1", POLICE, "She is recovering, and police are searching for a suspect."),
    Example("E3 MT2", POLICE, "Police searched for a suspect, and she recovered."),
)
TABLE_6_SOURCE = (
    Example("E4 MT1", FOOD, "这食物味道好."),
    Example("E4 MT2", FOOD, "好道味物食这."),
)
EXAMPLES_NOTE = (
    "{}; ours of SentSim are by fixed bounds and divided by e, so that equal texts have 1: the "
    "paper's bounds are the least and the greatest value of a test set, which examples have none of"
)


@dataclass(frozen=True, kw_only=True)
class PrintedShare(Printed):
    """The score of each example as a share of what equal texts have."""

    statistic: str = "score, as a share of what equal texts have"

    def measure(self, collection: Collection, model: Any, column: str) -> Figure:
        other = self.segment(column).references[0]
        most = float(model.score([Segment(other, other, (other,))]).segments[0])
        figure = super().measure(collection, model, column)
        return replace(figure, value=figure.value / most)


def _printed(
    number: str,
    title: str,
    examples: tuple[Example, ...],
    encoders: Sequence[str],
    published: Sequence[Figures],
    against: str = "reference",
) -> PaperTable:
    """BERTScore, SSS and their sum on printed examples, over each encoder."""
    metrics = {"BERTScore": "bertscore", "SSS": "sss", "SSS + BERTScore": "sentsim"}
    who = (
        NO_ROBERTA.format("large", " and ".join(encoders))
        if len(encoders) > 1
        else NO_XLMR.format(encoders[0])
    )
    return PaperTable(
        paper="song2021",
        number=number,
        title=title,
        experiment=PrintedShare(examples=examples),
        averaged=False,
        departures=(BERTSCORE_F1,),
        rows=[
            Row(
                label=f"{label}, {encoder}",
                published=figures,
                model=f"{name}:encoder={encoder},against={against}",
            )
            for (label, name), figures in zip(metrics.items(), published, strict=True)
            for encoder in encoders
        ],
        note=EXAMPLES_NOTE.format(who),
    )


@dataclass(frozen=True, kw_only=True)
class TwoLayers(Segments):
    """Segments under a sum whose two parts read different layers of an encoder.

    The model is a SentSim with the layer of its token metric; `layer` is that of its sentence
    metric. Both are brought to [0, 1] over the test set, as published.
    """

    layer: int

    def measure(self, collection: Collection, model: Any, column: str) -> Figure:
        judged = collection.judgments(self.set, column, self.part)
        whole, parts = model.components
        name = model.encoder.partition("@")[0]
        whole = replace(whole, encoder=f"{name}@{self.layer}")
        parts = replace(parts, encoder=model.encoder)
        values = np.stack([m.score(judged.segments).segments for m in (whole, parts)], axis=1)
        scores = model.finish(values, load_encoder(name), "reference")[:, 0]
        agreement = self.correlate(judged.scores, scores)
        return Figure(value=float(agreement), count=int(agreement.used))


# Tables 3 and 8, 5 and 10, 4 and 9 share two rows: WMD and BERTScore.
WMT17_TOKENS: list[Figures] = [
    (0.366, 0.501, 0.373, 0.373, 0.308, 0.267, 0.404, 0.408, 0.350),
    (0.409, 0.510, 0.414, 0.402, 0.337, 0.319, 0.434, 0.446, 0.382),
]
WMT20_TOKENS: list[Figures] = [
    (0.361, 0.456, 0.463, 0.251, 0.647, 0.308, 0.315),
    (0.357, 0.459, 0.460, 0.260, 0.673, 0.309, 0.320),
]
LARGE: list[Figures] = [
    (0.730, 0.769, 0.827, 0.736, 0.733, 0.698, 0.770),
    (0.745, 0.775, 0.833, 0.756, 0.746, 0.710, 0.751),
    (0.612, 0.653, 0.730, 0.703, 0.700, 0.622, 0.654),
    (0.755, 0.779, 0.847, 0.781, 0.786, 0.731, 0.781),
    (0.770, 0.785, 0.860, 0.792, 0.796, 0.746, 0.782),
]

SMD_LARGE: list[Figures] = [
    (0.703, 0.686, 0.763, 0.693, 0.698, 0.648, 0.644),
    (0.745, 0.757, 0.832, 0.750, 0.736, 0.705, 0.753),
    (0.757, 0.771, 0.846, 0.764, 0.752, 0.717, 0.752),
]
TOP = TwoLayers(set="da/wmt17", columns=TO_ENGLISH, layer=12)


def _top_layer() -> list[Row]:
    """SMD at the layer that WMT15 and WMT16 choose for it, and its sums."""
    specs = (
        "smd:encoder=mpnet@12,against=reference",
        *(_sentsim("mpnet@7", "smd", token, "reference") for token in ("wmd", "bertscore")),
    )
    labels = ("SMD, layer 12", "SMD, layer 12 + WMD", "SMD, layer 12 + BERTScore")
    return [
        Row(
            label=label,
            published=figures,
            average=average,
            model=spec,
            experiment=None if label == labels[0] else TOP,
            note="SMD reads layer 12 of mpnet, which WMT15 and WMT16 choose for it; WMD and "
            "BERTScore read layer 7, which they choose for those",
        )
        for label, figures, average, spec in zip(
            labels, SMD_LARGE, (0.691, 0.754, 0.766), specs, strict=True
        )
    ]


TABLES = [
    _printed(
        "1",
        "A reference, two paraphrases of it and two of its negation",
        TABLE_1,
        ("minilm", "mpnet"),
        [
            (0.7975, 0.7748, 0.8296, 0.8318),
            (0.9578, 0.8898, 0.3878, 0.4431),
            (0.8111, 0.7427, 0.4832, 0.5107),
        ],
    ),
    PaperTable(
        paper="song2021",
        number="2-source",
        title="Multi30K against the source",
        experiment=MULTI30K,
        departures=(UNIT_LENGTH, BERTSCORE_F1),
        rows=_rows(
            "e5",
            "source",
            "sss",
            [(0.360, 0.319), (0.335, 0.291), (0.483, 0.449), (0.508, 0.477), (0.486, 0.434)],
            (0.340, 0.313, 0.466, 0.492, 0.460),
            MULTI30K.columns,
        ),
        note=REMEDIES,
    ),
    PaperTable(
        paper="song2021",
        number="2-reference",
        title="Multi30K against the reference",
        experiment=MULTI30K,
        departures=(UNIT_LENGTH, BERTSCORE_F1, SONG_METEOR),
        rows=[
            Row(label="BLEU", published=(0.262, 0.387), average=0.325, model="bleu"),
            Row(
                label="METEOR",
                published=(0.461, 0.411),
                average=0.436,
                model="meteor:language=de",
                specs={"en-fr": "meteor:language=fr"},
            ),
            *_rows(
                "use",
                "reference",
                "sss",
                [(0.492, 0.425), (0.434, 0.352), (0.487, 0.446), (0.546, 0.501), (0.527, 0.462)],
                (0.459, 0.393, 0.467, 0.524, 0.494),
            ),
        ],
        note=NO_XLMR.format("use"),
    ),
    PaperTable(
        paper="song2021",
        number="3",
        title="WMT17 against the source",
        experiment=WMT17_SOURCES,
        departures=(UNIT_LENGTH, BERTSCORE_F1),
        rows=_rows(
            "e5",
            "source",
            "sss",
            [
                *WMT17_TOKENS,
                (0.456, 0.514, 0.540, 0.555, 0.541, 0.464, 0.505, 0.458, 0.540),
                (0.504, 0.594, 0.566, 0.569, 0.534, 0.476, 0.538, 0.513, 0.562),
                (0.523, 0.600, 0.578, 0.574, 0.551, 0.499, 0.553, 0.531, 0.569),
            ],
            (0.372, 0.406, 0.508, 0.540, 0.553),
            SOURCES,
        ),
        note=REMEDIES,
    ),
    PaperTable(
        paper="song2021",
        number="4",
        title="WMT17 to English against the reference, the larger encoder",
        experiment=WMT17,
        departures=(UNIT_LENGTH, BERTSCORE_F1, SONG_METEOR),
        rows=[
            Row(
                label="BLEU",
                published=(0.366, 0.440, 0.444, 0.321, 0.413, 0.344, 0.441),
                average=0.396,
                model="bleu",
            ),
            Row(
                label="METEOR",
                published=(0.460, 0.557, 0.631, 0.450, 0.525, 0.480, 0.596),
                average=0.528,
                model="meteor",
            ),
            Row(
                label="MEANT 2.0",
                published=(0.565, 0.639, 0.687, 0.586, 0.607, 0.578, 0.596),
                average=0.608,
            ),
            Row(
                label="WMDO (word vectors)",
                published=(0.531, 0.595, 0.689, 0.505, 0.562, 0.513, 0.561),
                average=0.565,
                model="wmdo:encoder=glove",
                note="published with word2vec, 300 d, measured with GloVe, 50 d",
            ),
            Row(
                label="WMDO (contextual)",
                published=(0.546, 0.623, 0.710, 0.543, 0.585, 0.531, 0.637),
                average=0.596,
                model="wmdo:encoder=mpnet",
                note="published with BERT",
            ),
            *_rows("mpnet", "reference", "sss", LARGE, (0.752, 0.759, 0.668, 0.780, 0.790)),
        ],
        note=NO_ROBERTA.format("large", "mpnet"),
    ),
    PaperTable(
        paper="song2021",
        number="5",
        title="WMT20 quality estimation, against the source",
        experiment=WMT20,
        departures=(UNIT_LENGTH, BERTSCORE_F1),
        rows=[
            Row(
                label="Leaderboard baseline (supervised)",
                published=(0.386, 0.146, 0.477, 0.190, 0.685, 0.374, 0.548),
                note="the paper prints an average of 0.322, which is not that of its figures",
            ),
            Row(
                label="D-TP (model probabilities)",
                published=(0.558, 0.259, 0.642, 0.321, 0.693, 0.460, nan),
                average=0.489,
                note="the average is over the six pairs it has",
            ),
            Row(
                label="D-Lex-Sim (several outputs)",
                published=(0.600, 0.172, 0.612, 0.313, 0.663, 0.513, nan),
                average=0.479,
                note="the average is over the six pairs it has",
            ),
            *_rows(
                "e5",
                "source",
                "sss",
                [
                    *WMT20_TOKENS,
                    (0.313, 0.330, 0.481, 0.401, 0.694, 0.404, 0.441),
                    (0.390, 0.472, 0.553, 0.427, 0.724, 0.426, 0.476),
                    (0.392, 0.484, 0.553, 0.427, 0.727, 0.426, 0.475),
                ],
                (0.400, 0.405, 0.438, 0.495, 0.498),
                QE,
            ),
        ],
        note=REMEDIES,
    ),
    _printed(
        "6",
        "Examples from several sets, against the reference",
        TABLE_6,
        ("minilm", "mpnet"),
        [
            (0.954, 0.948, 0.8419, 0.4604, 0.984, 0.911),
            (0.778, 0.948, 0.954, 0.625, 0.903, 0.688),
            (0.821, 0.950, 0.844, 0.405, 0.912, 0.713),
        ],
    ),
    _printed(
        "6-source",
        "An example from several sets, against the source",
        TABLE_6_SOURCE,
        ("e5",),
        [(0.882, 0.207), (1.000, 0.682), (0.958, 0.309)],
        "source",
    ),
    PaperTable(
        paper="song2021",
        number="7",
        title="WMT17 to English against the reference, the smaller encoder",
        experiment=WMT17,
        departures=(UNIT_LENGTH, BERTSCORE_F1),
        rows=_rows(
            "minilm",
            "reference",
            "sss",
            [
                (0.667, 0.743, 0.818, 0.693, 0.705, 0.663, 0.744),
                (0.683, 0.740, 0.818, 0.693, 0.707, 0.675, 0.718),
                (0.612, 0.655, 0.705, 0.680, 0.642, 0.599, 0.644),
                (0.718, 0.767, 0.832, 0.755, 0.736, 0.703, 0.764),
                (0.728, 0.767, 0.843, 0.755, 0.744, 0.717, 0.758),
            ],
            (0.719, 0.719, 0.648, 0.754, 0.759),
        ),
        note=NO_ROBERTA.format("base", "minilm"),
    ),
    PaperTable(
        paper="song2021",
        number="8",
        title="WMT17 against the source, with the distance of mean vectors",
        experiment=WMT17_SOURCES,
        departures=(UNIT_LENGTH, BERTSCORE_F1, SMD_SUM),
        rows=_rows(
            "e5",
            "source",
            "smd",
            [
                *WMT17_TOKENS,
                (0.348, 0.394, 0.360, 0.342, 0.276, 0.158, 0.271, 0.345, 0.250),
                (0.392, 0.491, 0.392, 0.382, 0.343, 0.239, 0.373, 0.429, 0.310),
                (0.417, 0.503, 0.416, 0.400, 0.361, 0.271, 0.394, 0.454, 0.341),
            ],
            (0.372, 0.406, 0.305, 0.372, 0.395),
            SOURCES,
        )[2:],
        note=REMEDIES,
    ),
    PaperTable(
        paper="song2021",
        number="9",
        title="WMT17 to English against the reference, with the distance of mean vectors",
        experiment=WMT17,
        departures=(UNIT_LENGTH, BERTSCORE_F1, SMD_SUM),
        rows=_rows(
            "mpnet",
            "reference",
            "smd",
            [*LARGE[:2], *SMD_LARGE],
            (0.752, 0.759, 0.691, 0.754, 0.766),
        )[2:]
        + _top_layer(),
        note=f"{NO_ROBERTA.format('large', 'mpnet')}; rows without a layer read layer 7",
    ),
    PaperTable(
        paper="song2021",
        number="10",
        title="WMT20 quality estimation, against the source, with the distance of mean vectors",
        experiment=WMT20,
        departures=(UNIT_LENGTH, BERTSCORE_F1, SMD_SUM),
        rows=_rows(
            "e5",
            "source",
            "smd",
            [
                *WMT20_TOKENS,
                (0.436, 0.368, 0.302, 0.277, 0.570, 0.298, 0.281),
                (0.452, 0.423, 0.401, 0.279, 0.618, 0.355, 0.326),
                (0.449, 0.439, 0.413, 0.289, 0.638, 0.363, 0.327),
            ],
            (0.400, 0.405, 0.362, 0.408, 0.417),
            QE,
        )[2:],
        note=REMEDIES,
    ),
    PaperTable(
        paper="song2021",
        number="figure-3",
        title="WMD by layer, WMT17 against the source",
        experiment=SOURCE_LAYERS,
        departures=(UNIT_LENGTH,),
        rows=SOURCE_LAYERS.rows("source", ",centre=none"),
        note="vectors as they are, as in the paper; the figure's values are not printed there, its "
        "best layer is 9 of 12 of XLM-R",
        picture="layers",
    ),
    PaperTable(
        paper="song2021",
        number="figure-4",
        title="WMD by layer, WMT17 to English against the reference",
        experiment=REFERENCE_LAYERS,
        departures=(UNIT_LENGTH,),
        rows=REFERENCE_LAYERS.rows("reference"),
        note="the figure's values are not printed in the paper; its best layer is 17 of 24 of "
        "RoBERTa large. Layers are chosen on WMT15 and WMT16, never here",
        picture="layers",
    ),
]
