"""Ablations of the network of Guzmán et al. (2015): the effect of one change at a time.

A `NetworkVariant` is trained on WMT11 like the full network of table 1, with one change. It is
measured on the development comparisons (WMT13), on WMT12 and on WMT11. METEOR has no paraphrases,
because these need another package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

import numpy as np

from papers.experiments import average_over_seeds, read_rankings
from papers.guzman2015_rankers import OPTIONS, SEEDS, WMT13, held_out_sets
from papers.table import Figure
from tertium.core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from tertium.core.segment import Segment
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.rankings import RankingSet
from tertium.data.train_test_overlap import drop_overlap
from tertium.encoders.encoder import load_encoder
from tertium.metrics import load_metric
from tertium.metrics.base.lexical_features import NgramInformation, tokenize_13a
from tertium.metrics.pairwise.features import PairwiseFeatures
from tertium.metrics.pairwise.ranker_options import PairwiseOptions
from tertium.metrics.pairwise.ranker_training import Comparisons, train_networks
from tertium.metrics.pairwise.ranking_network import Cost, PairwiseNetwork, Rows, inputs_of
from tertium.metrics.pairwise.scaling import Scaler, Scaling
from tertium.metrics.pairwise.sentence_vectors import Projection, sentence_vectors

NIST_OWN_REFERENCES = "nist, own references"
FOUR_METRICS = ("bleu", "nist", "ter:normalized=true", "meteor")
METEOR_PARAPHRASES = "meteor:paraphrases=pycocoevalcap"
SYNTAX_WIDTH = 25
Part = Literal["train", "dev", "test"]
PARTS: Mapping[str, Part] = {"WMT11": "train", "WMT13": "dev"}  # other columns: test
TausByColumn = Mapping[str, FloatArray]


class ComparisonPairs(NamedTuple):
    """Comparisons of one language pair without ties: row indices and verdicts 1 (left) or 0."""

    left: IntArray
    right: IntArray
    verdicts: FloatArray

    def swap(self, mask: BoolArray) -> ComparisonPairs:
        """Return the comparisons with left and right swapped where the mask is True."""
        left, right = np.where(mask, self.right, self.left), np.where(mask, self.left, self.right)
        return ComparisonPairs(left, right, np.where(mask, 1 - self.verdicts, self.verdicts))

    def select(self, rows: IntArray | BoolArray) -> ComparisonPairs:
        """Return some of the comparisons."""
        return ComparisonPairs(self.left[rows], self.right[rows], self.verdicts[rows])


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkInputs:
    """All vectors and features of the compared translations."""

    vectors: Mapping[str, Float32Array]  # of each translation
    anchors: Mapping[str, Float32Array]  # of its reference
    columns: Mapping[str, Float32Array]
    pairs: Mapping[Part, Sequence[ComparisonPairs]]
    items: IntArray  # index of the reference of each translation, (n,)

    def rows(self, features: Sequence[str], vectors: Sequence[str]) -> Rows:
        """Return the inputs of a network, unscaled."""
        count = len(next(iter(self.columns.values())))
        empty = np.zeros((count, 0), dtype=np.float32)
        return Rows(
            vectors=np.hstack([empty, *(self.vectors[name] for name in vectors)]),
            anchors=np.hstack([empty, *(self.anchors[name] for name in vectors)]),
            features=np.hstack([empty, *(self.columns[name] for name in features)]),
        )


@dataclass(frozen=True, kw_only=True)
class NetworkVariant:
    """The full network with changes; a call trains and measures it.

    `scaled_on`: texts on which the scaling is fitted. `train_both_orders`: train on both orders of
    each pair. `training_share`: share of WMT11. `dev_order`: choose the epoch by both orders of
    a pair, by the order in the file (`listed`, winner first), or by one random order. `dev_set`:
    choose the epoch on WMT13, or on WMT12 itself ("test", an upper bound).
    """

    features: tuple[str, ...] = FOUR_METRICS
    vectors: tuple[str, ...] = ("syntax25", "glove")
    hidden: int = 4
    costs: tuple[Cost, ...] = ("logistic",)
    scaling: Scaling = "minmax"
    scaled_on: Literal["train", "all"] = "train"
    train_both_orders: bool = False
    training_share: float = 1.0
    dev_order: Literal["both", "listed", "random"] = "both"
    dev_set: Literal["dev", "test"] = "dev"
    options: PairwiseOptions = field(default=OPTIONS)

    def __call__(self, datasets: DatasetFolder, column: str) -> TausByColumn:
        return train_and_measure(datasets, self)


@dataclass(frozen=True, kw_only=True)
class AblationTaus:
    """Strict tau x 100 of a variant, mean of four language pairs and five seeds."""

    columns: tuple[str, ...] = ("WMT13", "WMT12", "WMT12, one order", "WMT12, ensemble", "WMT11")
    data: str = "rankings/wmt11, rankings/wmt12, 5,000 comparisons of rankings/wmt13"
    statistic: str = (
        "strict Kendall's tau x 100, mean of cs-en, de-en, es-en and fr-en; averaged over both "
        "orders of a pair, with the listed order only, and for the mean of all five networks"
    )

    def measure(self, datasets: DatasetFolder, model: TausByColumn, column: str) -> Figure:
        sets = read_comparison_sets(datasets)[PARTS.get(column, "test")]
        return average_over_seeds(model[column], sum(len(one) for one in sets))


class ListedOrderComparisons(Comparisons):
    """Development comparisons that are predicted in their listed order only."""

    def tau(self, network: PairwiseNetwork) -> float:
        probabilities = network.probabilities(inputs_of(self.rows, self.left, self.right))
        return strict_tau(probabilities, self.verdicts) / 100


@lru_cache(maxsize=64)
def train_and_measure(datasets: DatasetFolder, variant: NetworkVariant) -> TausByColumn:
    """Train the five networks of a variant; return their taus by column, (seeds,)."""
    has_paraphrases = METEOR_PARAPHRASES in variant.features
    return measure_variant(load_network_inputs(datasets, paraphrases=has_paraphrases), variant)


def measure_variant(inputs: NetworkInputs, variant: NetworkVariant) -> TausByColumn:
    """Train the networks of a variant on these inputs; return their taus by column."""
    networks, rows = train_variant(inputs, variant)
    rng = np.random.default_rng(11)
    dev = [p.swap(rng.random(len(p.left)) < 0.5) for p in inputs.pairs["dev"]]
    both, listed, ensemble = network_taus(networks, rows, inputs.pairs["test"])
    return {
        "WMT13": network_taus(networks, rows, dev)[0],
        "WMT12": both,
        "WMT12, one order": listed,
        "WMT12, ensemble": ensemble[:1],
        "WMT11": network_taus(networks, rows, inputs.pairs["train"])[0],
    }


def train_variant(
    inputs: NetworkInputs, variant: NetworkVariant
) -> tuple[list[PairwiseNetwork], Rows]:
    """Return the networks of a variant, and their scaled inputs."""
    raw = inputs.rows(variant.features, variant.vectors)
    train = _join(inputs.pairs["train"])
    if variant.training_share < 1:
        order = np.random.default_rng(7).permutation(len(train.left))
        train = train.select(order[: int(variant.training_share * len(order))])
    used = np.unique(np.concatenate([train.left, train.right]))
    scaler_rows = raw if variant.scaled_on == "all" else raw.take(used)
    rows = Scaler.fit(scaler_rows, variant.scaling)(raw)
    if variant.train_both_orders:
        train = _join([train, train.swap(np.ones(len(train.left), dtype=bool))])
    dev = _join(inputs.pairs[variant.dev_set])
    if variant.dev_order == "random":
        dev = dev.swap(np.random.default_rng(3).random(len(dev.left)) < 0.5)
    kind = Comparisons if variant.dev_order == "both" else ListedOrderComparisons
    trained = train_networks(
        _make_comparisons(Comparisons, rows, train),
        _make_comparisons(kind, rows, dev),
        hidden=variant.hidden,
        costs=variant.costs,
        options=variant.options,
        seeds=SEEDS,
    )
    return [one.network for one in trained], rows


def strict_tau(probabilities: Any, verdicts: Any) -> float:
    """Return (concordant - discordant - ties) / all x 100; probabilities are of the left side.

    >>> strict_tau(np.array([0.9, 0.2, 0.5, 0.6]), np.array([1.0, 0.0, 1.0, 0.0]))
    0.0
    """
    is_concordant = np.where(verdicts > 0.5, probabilities > 0.5, probabilities < 0.5)
    return 100 * float(2 * is_concordant.mean() - 1)


def network_taus(
    networks: Sequence[PairwiseNetwork], rows: Rows, sets: Sequence[ComparisonPairs]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the mean taus over sets of comparisons; see `compute_taus`."""
    return compute_taus(
        [(*predict_both_orders(networks, rows, pairs), pairs.verdicts) for pairs in sets]
    )


def predict_both_orders(
    networks: Sequence[PairwiseNetwork], rows: Rows, pairs: ComparisonPairs
) -> tuple[Float32Array, Float32Array]:
    """Return P(left) as listed and P(right) after swapping, (networks, pairs) each."""
    listed = [n.probabilities(inputs_of(rows, pairs.left, pairs.right)) for n in networks]
    swapped = [n.probabilities(inputs_of(rows, pairs.right, pairs.left)) for n in networks]
    return np.stack(listed), np.stack(swapped)


def compute_taus(
    sets: Sequence[tuple[Float32Array, Float32Array, FloatArray]],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the taus by both orders, by the listed order and of the ensemble, (networks,) each.

    Each set has the two outputs of `predict_both_orders` and the verdicts.
    """
    taus = []
    for left, right, verdicts in sets:
        both = [strict_tau(0.5 + (f - b) / 2, verdicts) for f, b in zip(left, right, strict=True)]
        listed = [strict_tau(f, verdicts) for f in left]
        ensemble = strict_tau(0.5 + (left - right).mean(axis=0) / 2, verdicts)
        taus.append([both, listed, [ensemble] * len(left)])
    means = np.mean(taus, axis=0)
    return means[0], means[1], means[2]


def _make_comparisons(kind: type[Comparisons], rows: Rows, pairs: ComparisonPairs) -> Comparisons:
    verdicts = pairs.verdicts.astype(np.float32)
    return kind(rows=rows, left=pairs.left, right=pairs.right, verdicts=verdicts)


def _join(sets: Sequence[ComparisonPairs]) -> ComparisonPairs:
    return ComparisonPairs(*(np.concatenate(parts) for parts in zip(*sets, strict=True)))


@lru_cache(maxsize=2)
def read_comparison_sets(datasets: DatasetFolder) -> Mapping[Part, Sequence[RankingSet]]:
    """Read WMT11, WMT12 and the comparisons of WMT13, without ties, by language pair."""
    dev = held_out_sets(datasets, WMT13)
    train = [drop_overlap(one, dev) for one in read_rankings(datasets, "rankings/wmt11")]
    return {
        "train": [one.without_ties() for one in train],
        "dev": [one.without_ties() for one in dev],
        "test": [one.without_ties() for one in read_rankings(datasets, "rankings/wmt12")],
    }


@lru_cache(maxsize=2)
def load_network_inputs(datasets: DatasetFolder, *, paraphrases: bool = False) -> NetworkInputs:
    """Compute the inputs of all variants for WMT11, WMT12 and the comparisons of WMT13.

    `paraphrases` adds METEOR with paraphrases, which needs another package.
    """
    sets = read_comparison_sets(datasets)
    indices: dict[Segment, int] = {}
    pairs = {part: [_index_pairs(one, indices) for one in group] for part, group in sets.items()}
    segments = list(indices)
    train_references = list(
        dict.fromkeys(
            r.segments[n].references[0] for r in sets["train"] for n in (*r.left, *r.right)
        )
    )
    hypotheses = [s.hypothesis for s in segments]
    references = [s.references[0] for s in segments]
    glove = {"glove": lambda texts: sentence_vectors("glove", texts), **GLOVE_COMPOSITIONS}
    project = Projection.fit(sentence_vectors("syntax", train_references), SYNTAX_WIDTH)
    information = NgramInformation.from_texts(map(tokenize_13a, train_references))
    names = (*FOUR_METRICS, "ter", *(METEOR_PARAPHRASES,) * paraphrases)
    columns = {n: PairwiseFeatures((n,), information)(segments).astype(np.float32) for n in names}
    groups = [np.unique(np.concatenate([p.left, p.right])) for g in pairs.values() for p in g]
    columns[NIST_OWN_REFERENCES] = _nist_own_references(segments, groups)
    return NetworkInputs(
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


def _index_pairs(rankings: RankingSet, indices: dict[Segment, int]) -> ComparisonPairs:
    left, right = (
        np.array([indices.setdefault(rankings.segments[n], len(indices)) for n in side], np.int64)
        for side in (rankings.left, rankings.right)
    )
    return ComparisonPairs(left, right, np.asarray(rankings.verdicts, dtype=np.float64))


def _nist_own_references(segments: Sequence[Segment], groups: Sequence[IntArray]) -> Float32Array:
    """Return NIST with the n-gram information of each set's own references, (n, 1)."""
    column = np.zeros((len(segments), 1), dtype=np.float32)
    for rows in groups:
        column[rows, 0] = load_metric("nist").score([segments[n] for n in rows]).segments
    return column


def _glove_with_unknowns(texts: Sequence[str], *, is_sum: bool) -> Float32Array:
    """Return the mean or sum of GloVe vectors, with zeros for unknown words, (n, 50)."""
    encoder: Any = load_encoder("glove")
    token_counts = np.array([len(words) for words in encoder.tokenize(texts)], dtype=np.float32)
    unknown = np.array([encoder.count_unknown_words(text) for text in texts], dtype=np.float32)
    factor = token_counts if is_sum else token_counts / np.maximum(token_counts + unknown, 1)
    result: Float32Array = encoder.encode(texts, tokens=False).sentences * factor[:, None]
    return result


def _glove_split_at_spaces(texts: Sequence[str], *, lowercase: bool) -> Float32Array:
    """Return means of GloVe vectors of words split at spaces; unknown words are skipped.

    GloVe 6B is lowercased and has no words with punctuation. Without tokenization and lowercasing,
    capitalized words and words before a comma are lost.
    """
    encoder: Any = load_encoder("glove")
    rows, matrix = encoder._table.rows, encoder._table.matrix
    result = np.zeros((len(texts), encoder.dim), dtype=np.float32)
    for n, text in enumerate(texts):
        words = (text.lower() if lowercase else text).split()
        if token_counts := [rows[word] for word in words if word in rows]:
            result[n] = matrix[token_counts].mean(axis=0)
    return result


GLOVE_COMPOSITIONS: Mapping[str, Callable[[Sequence[str]], Float32Array]] = {
    "glove, zeros": partial(_glove_with_unknowns, is_sum=False),
    "glove, sum": partial(_glove_with_unknowns, is_sum=True),
    "glove, split at spaces": partial(_glove_split_at_spaces, lowercase=True),
    "glove, split at spaces, case kept": partial(_glove_split_at_spaces, lowercase=False),
}
