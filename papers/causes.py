"""Why the network of Guzmán et al. (2015) stays under its published figures: one change at a time.

A `Variation` trains five networks on WMT11 like the full network of table 1 but for what it names,
and says what came of it on the comparisons that epochs are chosen on (WMT13), on WMT12 in several
ways, and on WMT11 itself. METEOR is the one without paraphrases, which needs no other package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

import numpy as np

from papers.experiments import over_seeds, read_rankings
from papers.seeds import OPTIONS, SEEDS, WMT13, held_out_sets
from papers.table import Figure
from tertium.arrays import BoolArray, Float32Array, FloatArray, IntArray
from tertium.data.collection import Collection
from tertium.data.leaks import drop_shared
from tertium.data.rankings import RankingSet
from tertium.encoders.encoder import load_encoder
from tertium.metrics import load_metric
from tertium.metrics.base.components import Information, tokens
from tertium.metrics.pairwise.columns import Columns
from tertium.metrics.pairwise.network import Cost, PairwiseNetwork, Rows, inputs_of
from tertium.metrics.pairwise.training import (
    Comparisons,
    PairwiseOptions,
    Scaler,
    Scaling,
    train_networks,
)
from tertium.metrics.pairwise.vectors import Projection, sentence_vectors
from tertium.segment import Segment

OWN_NIST = "nist, own references"
FOUR = ("bleu", "nist", "ter:normalized=true", "meteor")
PARAPHRASES = "meteor:paraphrases=pycocoevalcap"
SYNTAX_WIDTH = 25
Part = Literal["train", "dev", "test"]


class Pairs(NamedTuple):
    """Comparisons of one language pair without ties: rows of a table, and verdicts 1 or 0."""

    left: IntArray
    right: IntArray
    verdicts: FloatArray

    def turn(self, turned: BoolArray) -> Pairs:
        """The same comparisons, some in the other order."""
        left, right = (
            np.where(turned, self.right, self.left),
            np.where(turned, self.left, self.right),
        )
        return Pairs(left, right, np.where(turned, 1 - self.verdicts, self.verdicts))


@dataclass(frozen=True, kw_only=True, eq=False)
class Material:
    """All translations that were compared with everything a network may read of them."""

    vectors: Mapping[str, Float32Array]  # of each translation
    anchors: Mapping[str, Float32Array]  # of its reference
    columns: Mapping[str, Float32Array]
    pairs: Mapping[Part, Sequence[Pairs]]
    items: IntArray  # which reference each translation is one of, (n,)

    def rows(self, features: Sequence[str], vectors: Sequence[str]) -> Rows:
        """What a network of these inputs reads, unscaled."""
        count = len(next(iter(self.columns.values())))
        nothing = np.zeros((count, 0), dtype=np.float32)
        return Rows(
            vectors=np.hstack([nothing, *(self.vectors[name] for name in vectors)]),
            anchors=np.hstack([nothing, *(self.anchors[name] for name in vectors)]),
            features=np.hstack([nothing, *(self.columns[name] for name in features)]),
        )


@dataclass(frozen=True, kw_only=True)
class Variation:
    """A network, by where it differs from the full one; called, it is trained and measured.

    `scaled_on` all texts, or those of training; `doubled` trains on both orders of each pair;
    `share` of the training data; `choice` of the epoch by both orders of a pair, as `listed` in the
    file (where the winner always stands first), or one order drawn at random (`mixed`); `choose` is
    what it is chosen on, where "test" is no choice but a bound.
    """

    features: tuple[str, ...] = FOUR
    vectors: tuple[str, ...] = ("syntax25", "glove")
    hidden: int = 4
    costs: tuple[Cost, ...] = ("logistic",)
    scaling: Scaling = "minmax"
    scaled_on: Literal["train", "all"] = "train"
    doubled: bool = False
    share: float = 1.0
    choice: Literal["both", "listed", "mixed"] = "both"
    choose: Literal["dev", "test"] = "dev"
    options: PairwiseOptions = field(default=OPTIONS)

    def __call__(self, collection: Collection, column: str) -> Mapping[str, FloatArray]:
        return outcome_of(collection, self)


@dataclass(frozen=True, kw_only=True)
class Worth:
    """What a variation reaches: strict tau x 100, mean of four language pairs and five seeds."""

    columns: tuple[str, ...] = ("WMT13", "WMT12", "WMT12, one order", "WMT12, together", "WMT11")
    data: str = "rankings/wmt11, rankings/wmt12, 5,000 comparisons of rankings/wmt13"
    statistic: str = (
        "strict Kendall's tau x 100, mean of cs-en, de-en, es-en and fr-en; by both orders of a "
        "pair, by one as it is listed, and by the mean of all five networks in both orders"
    )

    def measure(
        self, collection: Collection, model: Mapping[str, FloatArray], column: str
    ) -> Figure:
        return over_seeds(model[column], 0)


class AsListed(Comparisons):
    """Held-out comparisons that a network decides in the order they stand in."""

    def tau(self, network: PairwiseNetwork) -> float:
        chances = network.probabilities(inputs_of(self.rows, self.left, self.right))
        return strict_tau(chances, self.verdicts) / 100


@lru_cache(maxsize=64)
def outcome_of(collection: Collection, variation: Variation) -> Mapping[str, FloatArray]:
    """Train the five networks of a variation; the taus of each by column, (seeds,)."""
    material = material_of(collection, paraphrases=PARAPHRASES in variation.features)
    return measure_variation(material, variation)


def measure_variation(material: Material, variation: Variation) -> Mapping[str, FloatArray]:
    """The same on given material."""
    networks, rows = train_variation(material, variation)
    halves = np.random.default_rng(11)
    dev = [p.turn(halves.random(len(p.left)) < 0.5) for p in material.pairs["dev"]]
    found = {"WMT13": _taus(networks, rows, dev)[0]}
    found["WMT12"], found["WMT12, one order"], together = _taus(
        networks, rows, material.pairs["test"]
    )
    found["WMT12, together"] = together[:1]
    found["WMT11"] = _taus(networks, rows, material.pairs["train"])[0]
    return found


def train_variation(material: Material, variation: Variation) -> tuple[list[PairwiseNetwork], Rows]:
    """The networks of a variation, and the scaled rows they read."""
    raw = material.rows(variation.features, variation.vectors)
    train = _join(material.pairs["train"])
    if variation.share < 1:
        order = np.random.default_rng(7).permutation(len(train.left))
        some = order[: int(variation.share * len(order))]
        train = Pairs(train.left[some], train.right[some], train.verdicts[some])
    used = np.unique(np.concatenate([train.left, train.right]))
    scaled_on = raw if variation.scaled_on == "all" else raw.take(used)
    rows = Scaler.fit(scaled_on, variation.scaling)(raw)
    if variation.doubled:
        train = _join([train, train.turn(np.ones(len(train.left), dtype=bool))])
    dev = _join(material.pairs[variation.choose])
    if variation.choice == "mixed":
        dev = dev.turn(np.random.default_rng(3).random(len(dev.left)) < 0.5)
    kind = Comparisons if variation.choice == "both" else AsListed
    learned = train_networks(
        _compared(Comparisons, rows, train),
        _compared(kind, rows, dev),
        hidden=variation.hidden,
        costs=variation.costs,
        options=variation.options,
        seeds=SEEDS,
    )
    return [one.network for one in learned], rows


def strict_tau(chances: Any, verdicts: Any) -> float:
    """(concordant - discordant - ties) / all, x 100, of chances that the first is better.

    >>> strict_tau(np.array([0.9, 0.2, 0.5, 0.6]), np.array([1.0, 0.0, 1.0, 0.0]))
    0.0
    """
    agrees = np.where(verdicts > 0.5, chances > 0.5, chances < 0.5)
    return 100 * float(2 * agrees.mean() - 1)


def _taus(
    networks: Sequence[PairwiseNetwork], rows: Rows, sets: Sequence[Pairs]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The mean tau over sets by both orders, by the order listed, and of all networks together."""
    return taus_of([(*decide(networks, rows, pairs), pairs.verdicts) for pairs in sets])


def decide(
    networks: Sequence[PairwiseNetwork], rows: Rows, pairs: Pairs
) -> tuple[Float32Array, Float32Array]:
    """The chance of left by each network as pairs are listed, that of right turned, (n, pairs)."""
    forth = np.stack([n.probabilities(inputs_of(rows, pairs.left, pairs.right)) for n in networks])
    back = np.stack([n.probabilities(inputs_of(rows, pairs.right, pairs.left)) for n in networks])
    return forth, back


def taus_of(
    sets: Sequence[tuple[Float32Array, Float32Array, FloatArray]],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The same three of what `decide` gave for each set, with its verdicts; (networks,) each."""
    found = []
    for forth, back, verdicts in sets:
        both = [strict_tau(0.5 + (f - b) / 2, verdicts) for f, b in zip(forth, back, strict=True)]
        listed = [strict_tau(f, verdicts) for f in forth]
        together = strict_tau(0.5 + (forth - back).mean(axis=0) / 2, verdicts)
        found.append([both, listed, [together] * len(forth)])
    means = np.mean(found, axis=0)
    return means[0], means[1], means[2]


def _compared(kind: type[Comparisons], rows: Rows, pairs: Pairs) -> Comparisons:
    verdicts = pairs.verdicts.astype(np.float32)
    return kind(rows=rows, left=pairs.left, right=pairs.right, verdicts=verdicts)


def _join(sets: Sequence[Pairs]) -> Pairs:
    return Pairs(*(np.concatenate(parts) for parts in zip(*sets, strict=True)))


@lru_cache(maxsize=2)
def material_of(collection: Collection, *, paraphrases: bool = False) -> Material:
    """Everything the variations read, of WMT11, WMT12 and the comparisons drawn from WMT13.

    METEOR's paraphrases come from another package, so that they are there only where asked for.
    """
    dev = held_out_sets(collection, WMT13)
    train = [drop_shared(one, dev) for one in read_rankings(collection, "rankings/wmt11")]
    sets: Mapping[Part, Sequence[RankingSet]] = {
        "train": [one.drop_ties() for one in train],
        "dev": [one.drop_ties() for one in dev],
        "test": [one.drop_ties() for one in read_rankings(collection, "rankings/wmt12")],
    }
    places: dict[Segment, int] = {}
    pairs = {kind: [_pairs(one, places) for one in group] for kind, group in sets.items()}
    segments = list(places)
    taught = {r.segments[n].references[0]: None for r in sets["train"] for n in (*r.left, *r.right)}
    hypotheses = [s.hypothesis for s in segments]
    references = [s.references[0] for s in segments]
    glove = {"glove": lambda texts: sentence_vectors("glove", texts), **COMPOSED}
    project = Projection.fit(sentence_vectors("syntax", list(taught)), SYNTAX_WIDTH)
    information = Information.of(map(tokens, taught))
    names = (*FOUR, "ter", *(PARAPHRASES,) * paraphrases)
    columns = {n: Columns((n,), information)(segments).astype(np.float32) for n in names}
    groups = [np.unique(np.concatenate([p.left, p.right])) for g in pairs.values() for p in g]
    columns[OWN_NIST] = _own_nist(segments, groups)
    return Material(
        vectors={
            "syntax25": project(sentence_vectors("syntax", hypotheses)),
            **{name: compose(hypotheses) for name, compose in glove.items()},
        },
        anchors={
            "syntax25": project(sentence_vectors("syntax", references)),
            **{name: compose(references) for name, compose in glove.items()},
        },
        columns=columns,
        pairs=pairs,
        items=np.unique(references, return_inverse=True)[1],
    )


def _pairs(rankings: RankingSet, places: dict[Segment, int]) -> Pairs:
    left, right = (
        np.array([places.setdefault(rankings.segments[n], len(places)) for n in side], np.int64)
        for side in (rankings.left, rankings.right)
    )
    return Pairs(left, right, np.asarray(rankings.verdicts, dtype=np.float64))


def _own_nist(segments: Sequence[Segment], groups: Sequence[IntArray]) -> Float32Array:
    """NIST with the information of each set's own references, (n, 1)."""
    column = np.zeros((len(segments), 1), dtype=np.float32)
    for rows in groups:
        column[rows, 0] = load_metric("nist").score([segments[n] for n in rows]).segments
    return column


def _means(texts: Sequence[str], *, total: bool) -> Float32Array:
    """GloVe vectors of a text's words, unknown ones zero: their mean, or their sum, (n, 50)."""
    encoder: Any = load_encoder("glove")
    known = np.array([len(words) for words in encoder.pieces(texts)], dtype=np.float32)
    unknown = np.array([encoder.count_unknown([text]) for text in texts], dtype=np.float32)
    factor = known if total else known / np.maximum(known + unknown, 1)
    result: Float32Array = encoder.encode(texts, tokens=False).sentences * factor[:, None]
    return result


def _split_at_blanks(texts: Sequence[str], *, lower: bool) -> Float32Array:
    """Means of GloVe vectors of what stands between blanks; what is not in the table is left out.

    GloVe 6B is in lower case, and so is nothing with a mark at its end: a text that was neither
    tokenized nor lowered loses its capitalized words and those before a comma.
    """
    encoder: Any = load_encoder("glove")
    rows, matrix = encoder._table.rows, encoder._table.matrix
    result = np.zeros((len(texts), encoder.dim), dtype=np.float32)
    for place, text in enumerate(texts):
        words = (text.lower() if lower else text).split()
        if known := [rows[word] for word in words if word in rows]:
            result[place] = matrix[known].mean(axis=0)
    return result


COMPOSED: Mapping[str, Callable[[Sequence[str]], Float32Array]] = {
    "glove, zeros": partial(_means, total=False),
    "glove, sum": partial(_means, total=True),
    "glove, at blanks": partial(_split_at_blanks, lower=True),
    "glove, as written": partial(_split_at_blanks, lower=False),
}
