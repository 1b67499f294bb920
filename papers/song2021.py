"""Song, Zhao, Specia 2021, "SentSim: Crosslingual Semantic Evaluation of Machine Translation"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Any

import numpy as np

from papers.departures import BERTSCORE_F1, SMD_SUM, SONG_METEOR, UNIT_LENGTH
from papers.experiments import Segments
from papers.language_pairs import MULTI30K as MULTI30K_PAIRS
from papers.language_pairs import QE_WMT20
from papers.printed_examples import ExampleScores, load_examples
from papers.table import Experiment, Figure, PaperTable, Row
from tertium.data.dataset_folder import DatasetFolder
from tertium.encoders import share_encoding
from tertium.encoders.encoder import load_encoder
from tertium.segment import Segment

INTRODUCTION = """\
SentSim adds a sentence metric (SSS or SMD) to a token metric (WMD or BERTScore). The tables show
Pearson's r on segments, with references (WMT17, Multi30K) and source-only (WMT17, Multi30K, WMT20
quality estimation).

- SentSim is normalized over the test set, as published. Source-only metrics get the language pair.
- Encoders: `mpnet` replaces RoBERTa large, `minilm` RoBERTa base, `e5` XLM-R, and `use` the
  multilingual encoder on German and French references.

Limitations: the sentence vectors of the paper are fine-tuned on NLI data; ours are not. The layers
of `e5` have a quarter of the parameters of XLM-R, so source-only figures are lower.
"""
HEADLINES = [
    ("2-reference", "SSS + WMD"),
    ("3", "SSS + BERTScore"),
    ("4", "WMD"),
    ("4", "BERTScore"),
    ("4", "SSS"),
    ("4", "SSS + BERTScore"),
    ("5", "SSS + BERTScore"),
]

TO_ENGLISH = ("de-en", "zh-en", "fi-en", "lv-en", "ru-en", "cs-en", "tr-en")
SOURCES = ("de-en", "zh-en", "fi-en", "lv-en", "ru-en", "cs-en", "en-ru", "en-zh", "tr-en")

ROBERTA_NOTE = "published with RoBERTa {}, measured with {}"
XLMR_NOTE = "published with XLM-R base, measured with {}"
E5_NOTE = (
    f"{XLMR_NOTE.format('e5')}, whose layers have a quarter of its parameters; the page on "
    "encoders has the effect of centering"
)

Figures = tuple[float, ...]
DEPARTURES = (UNIT_LENGTH, BERTSCORE_F1, SONG_METEOR, SMD_SUM)


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
    pairs: Sequence[str] = (),
) -> list[Row]:
    """Return rows for both token metrics, the sentence metric and both sums.

    The last of the published figures of a row is its average. With three rows, the token metrics
    are left out. Metrics get the language pair in the columns `pairs`.
    """
    options, title = f"encoder={encoder},against={against}", sentence.upper()
    models = [
        ("WMD", f"wmd:{options}"),
        ("BERTScore", f"bertscore:{options}"),
        (title, f"{sentence}:{options}"),
        (f"{title} + WMD", _sentsim(encoder, sentence, "wmd", against)),
        (f"{title} + BERTScore", _sentsim(encoder, sentence, "bertscore", against)),
    ][-len(published) :]
    return [
        Row(
            label,
            figures[:-1],
            figures[-1],
            spec,
            column_specs={pair: f"{spec},lp={pair}" for pair in pairs},
        )
        for (label, spec), figures in zip(models, published, strict=True)
    ]


def _table(
    number: str, title: str, experiment: Experiment, rows: Sequence[Row], note: str, **options: Any
) -> PaperTable:
    """Return a table with the departures that apply to one of its rows."""
    return PaperTable(
        paper="song2021",
        number=number,
        title=title,
        experiment=experiment,
        rows=rows,
        note=note,
        departures=tuple(d for d in DEPARTURES if any(map(d.applies_to, rows))),
        **options,
    )


@dataclass(frozen=True, kw_only=True)
class LayerCurve(Segments):
    """Correlation at each layer of encoders; one forward pass serves the rows of all layers.

    `depths` has the number of layers of each encoder. The cache needs 2 GB for minilm and 9 GB for
    mpnet on WMT17; with less memory, layers are computed again.
    """

    depths: tuple[tuple[str, int], ...]

    def measure(self, datasets: DatasetFolder, model: Any, column: str) -> Figure:
        judgment_set = self.read(datasets, column)
        encoder = model.encoder.partition("@")[0]
        layers = range(dict(self.depths)[encoder] + 1)
        models = [replace(model, encoder=f"{encoder}@{layer}") for layer in layers]
        with share_encoding(
            [need for one in models for need in one.required_embeddings(judgment_set.segments)]
        ):
            return super().measure(datasets, model, column)

    def rows(self, against: str, more: str = "") -> list[Row]:
        """Return WMD at every layer, with `more` options."""
        return [
            Row(f"{name}, layer {n}", model=f"wmd:encoder={name}@{n},against={against}{more}")
            for name, depth in self.depths
            for n in range(depth + 1)
        ]


MULTI30K = Segments(set="da/multi30k", columns=MULTI30K_PAIRS)
WMT17 = Segments(set="da/wmt17", columns=TO_ENGLISH)
WMT17_SOURCES = Segments(set="da/wmt17", columns=SOURCES)
WMT20 = Segments(set="qe/wmt20", columns=QE_WMT20, part="test")

SOURCE_LAYERS = LayerCurve(set="da/wmt17", columns=SOURCES, depths=(("e5", 12),))
REFERENCE_LAYERS = LayerCurve(
    set="da/wmt17", columns=TO_ENGLISH, depths=(("minilm", 6), ("mpnet", 12))
)

EXAMPLES_NOTE = (
    "{}. Our SentSim has fixed bounds and is divided by e, so that equal texts have 1. The paper "
    "takes the bounds from a test set, which single examples do not have"
)


@dataclass(frozen=True, kw_only=True)
class ExampleScoreShares(ExampleScores):
    """The score of each example, divided by the score of equal texts."""

    statistic: str = "score, divided by the score of equal texts"

    def measure(self, datasets: DatasetFolder, model: Any, column: str) -> Figure:
        text = self.segment(column).references[0]
        maximum = float(model.score([Segment(text, text, (text,))]).segments[0])
        figure = super().measure(datasets, model, column)
        return replace(figure, value=figure.value / maximum)


def _example_table(
    number: str,
    title: str,
    encoders: Sequence[str],
    published: Sequence[Figures],
    against: str = "reference",
) -> PaperTable:
    """Return a table of BERTScore, SSS and their sum on printed examples, per encoder."""
    metrics = {"BERTScore": "bertscore", "SSS": "sss", "SSS + BERTScore": "sentsim"}
    encoder_note = (
        ROBERTA_NOTE.format("large", " and ".join(encoders))
        if len(encoders) > 1
        else XLMR_NOTE.format(encoders[0])
    )
    rows = [
        Row(f"{label}, {encoder}", figures, model=f"{name}:encoder={encoder},against={against}")
        for (label, name), figures in zip(metrics.items(), published, strict=True)
        for encoder in encoders
    ]
    experiment = ExampleScoreShares(examples=load_examples(f"song2021-{number}"))
    note = EXAMPLES_NOTE.format(encoder_note)
    return _table(number, title, experiment, rows, note, has_average=False)


@dataclass(frozen=True, kw_only=True)
class TwoLayers(Segments):
    """Correlation of a SentSim whose two parts use different layers of an encoder.

    The model has the layer of the token metric; `layer` is that of the sentence metric. Both are
    scaled to [0, 1] over the test set, as published.
    """

    layer: int

    def measure(self, datasets: DatasetFolder, model: Any, column: str) -> Figure:
        judgment_set = self.read(datasets, column)
        sentence, token = model.components
        name = model.encoder.partition("@")[0]
        sentence = replace(sentence, encoder=f"{name}@{self.layer}")
        token = replace(token, encoder=model.encoder)
        values = np.stack(
            [m.score(judgment_set.segments).segments for m in (sentence, token)], axis=1
        )
        scores = model.postprocess(values, load_encoder(name), "reference")[:, 0]
        agreement = self.correlate(judgment_set.scores, scores)
        return Figure(value=float(agreement), count=int(agreement.used))


SMD_LARGE: list[Figures] = [
    (0.703, 0.686, 0.763, 0.693, 0.698, 0.648, 0.644, 0.691),
    (0.745, 0.757, 0.832, 0.750, 0.736, 0.705, 0.753, 0.754),
    (0.757, 0.771, 0.846, 0.764, 0.752, 0.717, 0.752, 0.766),
]
TWO_LAYERS = TwoLayers(set="da/wmt17", columns=TO_ENGLISH, layer=12)


def _smd_layer_12() -> list[Row]:
    """Return SMD at its best layer on WMT15 and WMT16, and its sums."""
    single, *sums = _rows("mpnet@7", "reference", "smd", SMD_LARGE)
    single = replace(single, model="smd:encoder=mpnet@12,against=reference")
    rows = [single, *(replace(row, experiment=TWO_LAYERS) for row in sums)]
    note = "layer 12 of mpnet for SMD, layer 7 for WMD and BERTScore, chosen on WMT15 and WMT16"
    return [replace(r, label=r.label.replace("SMD", "SMD, layer 12"), note=note) for r in rows]


TABLES = [
    _example_table(
        "1",
        "A reference, two paraphrases and two negations",
        ("minilm", "mpnet"),
        [
            (0.7975, 0.7748, 0.8296, 0.8318),
            (0.9578, 0.8898, 0.3878, 0.4431),
            (0.8111, 0.7427, 0.4832, 0.5107),
        ],
    ),
    _table(
        "2-source",
        "Multi30K, source-only",
        MULTI30K,
        _rows(
            "e5",
            "source",
            "sss",
            [
                (0.360, 0.319, 0.340),
                (0.335, 0.291, 0.313),
                (0.483, 0.449, 0.466),
                (0.508, 0.477, 0.492),
                (0.486, 0.434, 0.460),
            ],
            MULTI30K.columns,
        ),
        E5_NOTE,
    ),
    _table(
        "2-reference",
        "Multi30K, reference-based",
        MULTI30K,
        [
            Row("BLEU", (0.262, 0.387), 0.325, "bleu"),
            Row(
                "METEOR",
                (0.461, 0.411),
                0.436,
                "meteor:language=de",
                column_specs={"en-fr": "meteor:language=fr"},
            ),
            *_rows(
                "use",
                "reference",
                "sss",
                [
                    (0.492, 0.425, 0.459),
                    (0.434, 0.352, 0.393),
                    (0.487, 0.446, 0.467),
                    (0.546, 0.501, 0.524),
                    (0.527, 0.462, 0.494),
                ],
            ),
        ],
        XLMR_NOTE.format("use"),
    ),
    _table(
        "3",
        "WMT17, source-only",
        WMT17_SOURCES,
        _rows(
            "e5",
            "source",
            "sss",
            [
                (0.366, 0.501, 0.373, 0.373, 0.308, 0.267, 0.404, 0.408, 0.350, 0.372),
                (0.409, 0.510, 0.414, 0.402, 0.337, 0.319, 0.434, 0.446, 0.382, 0.406),
                (0.456, 0.514, 0.540, 0.555, 0.541, 0.464, 0.505, 0.458, 0.540, 0.508),
                (0.504, 0.594, 0.566, 0.569, 0.534, 0.476, 0.538, 0.513, 0.562, 0.540),
                (0.523, 0.600, 0.578, 0.574, 0.551, 0.499, 0.553, 0.531, 0.569, 0.553),
            ],
            SOURCES,
        ),
        E5_NOTE,
    ),
    _table(
        "4",
        "WMT17 to English, reference-based, larger encoder",
        WMT17,
        [
            Row("BLEU", (0.366, 0.440, 0.444, 0.321, 0.413, 0.344, 0.441), 0.396, "bleu"),
            Row("METEOR", (0.460, 0.557, 0.631, 0.450, 0.525, 0.480, 0.596), 0.528, "meteor"),
            Row("MEANT 2.0", (0.565, 0.639, 0.687, 0.586, 0.607, 0.578, 0.596), 0.608),
            Row(
                "WMDO (word vectors)",
                (0.531, 0.595, 0.689, 0.505, 0.562, 0.513, 0.561),
                0.565,
                "wmdo:encoder=glove",
                note="published with word2vec (300 d), measured with GloVe (50 d)",
            ),
            Row(
                "WMDO (contextual)",
                (0.546, 0.623, 0.710, 0.543, 0.585, 0.531, 0.637),
                0.596,
                "wmdo:encoder=mpnet",
                note="published with BERT",
            ),
            *_rows(
                "mpnet",
                "reference",
                "sss",
                [
                    (0.730, 0.769, 0.827, 0.736, 0.733, 0.698, 0.770, 0.752),
                    (0.745, 0.775, 0.833, 0.756, 0.746, 0.710, 0.751, 0.759),
                    (0.612, 0.653, 0.730, 0.703, 0.700, 0.622, 0.654, 0.668),
                    (0.755, 0.779, 0.847, 0.781, 0.786, 0.731, 0.781, 0.780),
                    (0.770, 0.785, 0.860, 0.792, 0.796, 0.746, 0.782, 0.790),
                ],
            ),
        ],
        ROBERTA_NOTE.format("large", "mpnet"),
    ),
    _table(
        "5",
        "WMT20 quality estimation, source-only",
        WMT20,
        [
            Row(
                "Leaderboard baseline (supervised)",
                (0.386, 0.146, 0.477, 0.190, 0.685, 0.374, 0.548),
                note="the paper prints an average of 0.322, which is not the mean of its figures",
            ),
            Row(
                "D-TP (model probabilities)",
                (0.558, 0.259, 0.642, 0.321, 0.693, 0.460, nan),
                0.489,
                note="average over six language pairs",
            ),
            Row(
                "D-Lex-Sim (several outputs)",
                (0.600, 0.172, 0.612, 0.313, 0.663, 0.513, nan),
                0.479,
                note="average over six language pairs",
            ),
            *_rows(
                "e5",
                "source",
                "sss",
                [
                    (0.361, 0.456, 0.463, 0.251, 0.647, 0.308, 0.315, 0.400),
                    (0.357, 0.459, 0.460, 0.260, 0.673, 0.309, 0.320, 0.405),
                    (0.313, 0.330, 0.481, 0.401, 0.694, 0.404, 0.441, 0.438),
                    (0.390, 0.472, 0.553, 0.427, 0.724, 0.426, 0.476, 0.495),
                    (0.392, 0.484, 0.553, 0.427, 0.727, 0.426, 0.475, 0.498),
                ],
                QE_WMT20,
            ),
        ],
        E5_NOTE,
    ),
    _example_table(
        "6",
        "Examples from several sets, reference-based",
        ("minilm", "mpnet"),
        [
            (0.954, 0.948, 0.8419, 0.4604, 0.984, 0.911),
            (0.778, 0.948, 0.954, 0.625, 0.903, 0.688),
            (0.821, 0.950, 0.844, 0.405, 0.912, 0.713),
        ],
    ),
    _example_table(
        "6-source",
        "An example, source-only",
        ("e5",),
        [(0.882, 0.207), (1.000, 0.682), (0.958, 0.309)],
        "source",
    ),
    _table(
        "7",
        "WMT17 to English, reference-based, smaller encoder",
        WMT17,
        _rows(
            "minilm",
            "reference",
            "sss",
            [
                (0.667, 0.743, 0.818, 0.693, 0.705, 0.663, 0.744, 0.719),
                (0.683, 0.740, 0.818, 0.693, 0.707, 0.675, 0.718, 0.719),
                (0.612, 0.655, 0.705, 0.680, 0.642, 0.599, 0.644, 0.648),
                (0.718, 0.767, 0.832, 0.755, 0.736, 0.703, 0.764, 0.754),
                (0.728, 0.767, 0.843, 0.755, 0.744, 0.717, 0.758, 0.759),
            ],
        ),
        ROBERTA_NOTE.format("base", "minilm"),
    ),
    _table(
        "8",
        "WMT17, source-only, with SMD",
        WMT17_SOURCES,
        _rows(
            "e5",
            "source",
            "smd",
            [
                (0.348, 0.394, 0.360, 0.342, 0.276, 0.158, 0.271, 0.345, 0.250, 0.305),
                (0.392, 0.491, 0.392, 0.382, 0.343, 0.239, 0.373, 0.429, 0.310, 0.372),
                (0.417, 0.503, 0.416, 0.400, 0.361, 0.271, 0.394, 0.454, 0.341, 0.395),
            ],
            SOURCES,
        ),
        E5_NOTE,
    ),
    _table(
        "9",
        "WMT17 to English, reference-based, with SMD",
        WMT17,
        [*_rows("mpnet", "reference", "smd", SMD_LARGE), *_smd_layer_12()],
        f"{ROBERTA_NOTE.format('large', 'mpnet')}; rows without a layer use layer 7",
    ),
    _table(
        "10",
        "WMT20 quality estimation, source-only, with SMD",
        WMT20,
        _rows(
            "e5",
            "source",
            "smd",
            [
                (0.436, 0.368, 0.302, 0.277, 0.570, 0.298, 0.281, 0.362),
                (0.452, 0.423, 0.401, 0.279, 0.618, 0.355, 0.326, 0.408),
                (0.449, 0.439, 0.413, 0.289, 0.638, 0.363, 0.327, 0.417),
            ],
            QE_WMT20,
        ),
        E5_NOTE,
    ),
    _table(
        "figure-3",
        "WMD by layer, WMT17, source-only",
        SOURCE_LAYERS,
        SOURCE_LAYERS.rows("source", ",centre=none"),
        "vectors are not centered, as in the paper. The paper prints no values; its best layer is "
        "9 of 12 of XLM-R",
        chart="layers",
    ),
    _table(
        "figure-4",
        "WMD by layer, WMT17 to English, reference-based",
        REFERENCE_LAYERS,
        REFERENCE_LAYERS.rows("reference"),
        "the paper prints no values; its best layer is 17 of 24 of RoBERTa large. Our layers are "
        "chosen on WMT15 and WMT16",
        chart="layers",
    ),
]
