"""Inputs of the pairwise network: feature columns and sentence vectors.

    features :=  bleucomp | layers/ENCODER | the spec of a metric

`bleucomp` are the sixteen components of BLEU (Guzmán et al. 2015, section 6.1). NIST takes n-gram
counts from `information`, so the columns of a segment do not depend on other segments.

`layers/` matches tokens greedily, as BERTScore does, in every layer of an encoder. Each direction
has four columns: mean (recall, precision), standard deviation, minimum, and share of good matches.
A last column measures how far matched tokens are displaced.

Sentence vectors are

    vectors :=  (encoder | "syntax") ["~" width]

`glove` is the mean of the word vectors of a sentence (WIKI-GW in Guzmán et al. 2015), `syntax` the
mean of the parser's token vectors, and `minilm~32` a sentence encoder reduced to 32 dimensions.
`syntax25` is short for `syntax~25`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from tertium.core.arrays import Float32Array, FloatArray, exact_dot_products
from tertium.core.errors import UsageError
from tertium.core.runtime import runtime
from tertium.core.segment import Segment
from tertium.core.store import cached_rows
from tertium.encoders.cached_encoding import Chunk, compare_pairs, embed_texts
from tertium.encoders.encoder import Encoder, load_encoder
from tertium.metrics.base.greedy_matching import cosine
from tertium.metrics.base.lexical_features import (
    NgramInformation,
    nist_components,
    only_reference,
    tokenize_13a,
)
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.scorer import format_signature
from tertium.metrics.base.word_tokenizers import bleu_brevity_penalty
from tertium.version import __version__

LAYERS = "layers/"
ORDERS = range(1, 5)
BLEU_PARTS = (
    *(f"precision-{n}" for n in ORDERS),
    *(f"matches-{n}" for n in ORDERS),
    *(f"totals-{n}" for n in ORDERS),
    "hypothesis-length",
    "reference-length",
    "ratio",
    "penalty",
)
NIST_ORDER = 5  # Doddington (2002)

Compute = Callable[[Sequence[Segment]], FloatArray]
GOOD_COSINE = 0.7  # matches above count as good
DIRECTIONS = ("recall", "precision")
MATCHES = ("", "-deviation", "-least", "-good")
COLUMNS = (*(f"{d}{m}" for d in DIRECTIONS for m in MATCHES), "displacement")
SENTENCE_COLUMNS = ("cosine", "length", "length-distance")


@dataclass(frozen=True)
class PairwiseFeatures:
    """A feature extractor with columns of several groups, cached on disk.

    >>> columns = PairwiseFeatures(("bleucomp", "chrf"))
    >>> row = columns([Segment("the cat sat", references=("the cat sat down",))])[0]
    >>> dict(zip(columns.names, row.round(3)))["bleucomp.penalty"]
    np.float64(0.717)
    """

    groups: tuple[str, ...]
    information: NgramInformation = field(default_factory=NgramInformation.empty)

    @property
    def parts(self) -> tuple[str, ...]:
        """Groups without duplicates."""
        return tuple(dict.fromkeys(self.groups))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for part in self.parts for name in _names(part))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Metrics among the parts."""
        return tuple(metric for part in self.parts if (metric := _metric(part)))

    @property
    def reads_source(self) -> bool:
        return any("source" in metric.required_inputs for metric in self.metrics)

    def __call__(self, segments: Sequence[Segment]) -> FloatArray:
        tables = [self._columns(part, segments) for part in self.parts]
        return np.hstack([np.zeros((len(segments), 0)), *tables])

    def _columns(self, part: str, segments: Sequence[Segment]) -> FloatArray:
        metric = _metric(part)
        fingerprint = f"{format_signature(metric, ())} {part_model_ids(part)}" if metric else ""
        keys: list[tuple[str, ...]] = [(s.hypothesis, only_reference(s)) for s in segments]
        if metric and "source" in metric.required_inputs:
            keys = [(*key, s.source or "") for key, s in zip(keys, segments, strict=True)]
        compute: Compute = bleu_parts
        if part == "nist":
            compute = partial(_nist, self.information)
            counts = self.information.keys.tobytes() + self.information.counts.tobytes()
            fingerprint = hashlib.sha256(counts).hexdigest()[:12]
        elif encoder := part_encoder(part):
            compute = partial(_compare_layers, encoder)
            fingerprint = load_encoder(encoder).weights_hash
        elif metric:
            compute = partial(_score_column, metric)
        rows = cached_rows(
            f"{part} {__version__} {fingerprint}",
            keys,
            len(_names(part)),
            lambda places: compute([segments[n] for n in places]),
        )
        return rows.astype(np.float64)


def part_model_ids(part: str) -> str:
    """Return the model identifiers of a part that is a trained metric; empty for other parts.

    >>> part_model_ids("tertium-small")[:14], part_model_ids("chrf"), part_model_ids("bleucomp")
    ('tertium-small@', '', '')
    """
    metric = _metric(part)
    return "+".join(metric.model_ids) if metric else ""


def part_encoder(part: str) -> str:
    """Return the encoder whose layers are compared; empty for other parts.

    >>> part_encoder("layers/minilm"), part_encoder("chrf")
    ('minilm', '')
    """
    return part.removeprefix(LAYERS) if part.startswith(LAYERS) else ""


def _metric(part: str) -> Metric | None:
    if part in ("bleucomp", "nist") or part_encoder(part):
        return None
    return load_metric(part)


def _names(part: str) -> tuple[str, ...]:
    if part == "bleucomp":
        return tuple(f"bleucomp.{name}" for name in BLEU_PARTS)
    if encoder := part_encoder(part):
        layers = range(_load_layers(encoder).layers)
        names = [f"{layer}.{name}" for layer in layers for name in COLUMNS]
        return tuple(f"{encoder}.{name}" for name in (*names, *SENTENCE_COLUMNS))
    return (part,)


def bleu_parts(segments: Sequence[Segment]) -> FloatArray:
    """Compute precisions, matches, totals, lengths, ratio and penalty of BLEU, (n, 16)."""
    rows = load_metric("bleu").statistics(segments)
    hypothesis = rows[:, 0]
    reference = rows[:, 1]
    matched = rows[:, 2:6]
    totals = rows[:, 6:10]
    precisions = np.divide(matched, totals, out=np.zeros_like(matched), where=totals > 0)
    ratio = hypothesis / np.maximum(reference, 1.0)
    lengths = [hypothesis, reference, ratio, bleu_brevity_penalty(rows)]
    return np.hstack([precisions, matched, totals, np.column_stack(lengths)])


def _nist(information: NgramInformation, segments: Sequence[Segment]) -> FloatArray:
    values = [
        nist_components(tokenize_13a(s.hypothesis), tokenize_13a(only_reference(s)), information)[
            NIST_ORDER - 1
        ]
        for s in segments
    ]
    return np.array(values)[:, None]


def _score_column(metric: Metric, segments: Sequence[Segment]) -> FloatArray:
    if metric.reads_corpus:
        raise UsageError(
            f"{metric.spec} cannot be a feature of a ranker: its segment scores depend on the "
            "corpus"
        )
    return metric.score(segments).segments[:, None]


def _load_layers(encoder: str) -> Encoder:
    has_layers = "@" in encoder or encoder in ("glove", "use", "toy")
    return load_encoder(encoder if has_layers else f"{encoder}@all")


def _compare_layers(encoder: str, segments: Sequence[Segment]) -> FloatArray:
    """Compute nine columns per encoder layer, the cosine of sentence vectors, and two lengths.

    `length` is log((h + 1) / (r + 1)) of the numbers of tokens, `length-distance` its absolute
    value.
    """
    loaded = _load_layers(encoder)
    with runtime(cache=False):  # the states of all layers would fill it; only columns are cached
        return compare_pairs(
            loaded,
            [segment.hypothesis for segment in segments],
            [only_reference(segment) for segment in segments],
            lambda chunk: _compare(chunk, loaded.layers),
            sentences=True,
        )


def _compare(chunk: Chunk, layers: int) -> FloatArray:
    rows = np.zeros((len(chunk), len(COLUMNS) * layers + len(SENTENCE_COLUMNS)))
    units: dict[int, list[Float32Array]] = {}
    pairs = zip(chunk.left.tolist(), chunk.right.tolist(), strict=True)
    for row, (left, right) in enumerate(pairs):
        for text in (left, right):
            if text not in units:
                units[text] = _by_layer(chunk.embeddings.token_vectors(text), layers)
        rows[row, : len(COLUMNS) * layers] = [
            value for h, r in zip(units[left], units[right], strict=True) for value in matches(h, r)
        ]
        ratio = np.log((len(units[left][0]) + 1) / (len(units[right][0]) + 1))
        similarity = cosine(chunk.embeddings.sentences[left], chunk.embeddings.sentences[right])
        rows[row, -len(SENTENCE_COLUMNS) :] = similarity, ratio, abs(ratio)
    return rows


def matches(hypothesis: Float32Array, reference: Float32Array) -> list[float]:
    """Compute the nine columns of two lists of unit vectors; zeros if one is empty.

    >>> np.round(matches(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32)[:1]), 2)
    array([1. , 0. , 1. , 1. , 0.5, 0.5, 0. , 0.5, 0.5])
    """
    if not len(hypothesis) or not len(reference):
        return [0.0] * len(COLUMNS)
    cosines = exact_dot_products(hypothesis, reference)
    values: list[float] = []
    for best in (cosines.max(axis=0), cosines.max(axis=1)):  # recall, precision
        values += best.mean(), best.std(), best.min(), (best > GOOD_COSINE).mean()
    places = (np.arange(len(reference)) + 1) / len(reference)
    matched = (cosines.argmax(axis=0) + 1) / len(hypothesis)
    return [*map(float, values), float(np.abs(matched - places).mean())]


def _by_layer(tokens: Float32Array, layers: int) -> list[Float32Array]:
    """Split vectors with all layers concatenated into unit vectors per layer."""
    stacked = tokens.reshape(len(tokens), layers, tokens.shape[1] // layers)
    sizes = np.linalg.norm(stacked, axis=2, keepdims=True)
    stacked = stacked / np.maximum(sizes, 1e-12)  # zero vectors: cosine 0
    return [np.ascontiguousarray(stacked[:, layer]) for layer in range(layers)]


SYNTAX = "syntax"
SYNTAX_WIDTH = 96  # of the token vectors of spaCy's small English pipeline
_REDUCED = re.compile(rf"(?P<encoder>.+~|{SYNTAX})(?P<width>\d+)")


class VectorName(NamedTuple):
    """A parsed vector name; `width` is 0 if the vectors are not reduced.

    >>> VectorName.parse("use~64"), VectorName.parse("syntax25").width
    (VectorName(encoder='use', width=64), 25)
    """

    encoder: str
    width: int

    @classmethod
    def parse(cls, text: str) -> VectorName:
        reduced = _REDUCED.fullmatch(text)
        if not text or (reduced and not int(reduced["width"])):
            raise UsageError(f"invalid vectors {text!r}: expected an encoder, or encoder~width")
        if not reduced:
            return cls(text, 0)
        return cls(reduced["encoder"].removesuffix("~"), int(reduced["width"]))


@dataclass(frozen=True, eq=False)
class Projection:
    """A projection to few dimensions: (v - mean) axes, with mean (d,) and axes (d, width)."""

    mean: Float32Array
    axes: Float32Array

    @classmethod
    def fit(cls, vectors: Float32Array, width: int) -> Projection:
        """Fit the principal axes of vectors (n, d)."""
        if width > min(vectors.shape):
            raise UsageError(
                f"cannot reduce {len(vectors)} vectors of {vectors.shape[1]} dimensions to "
                f"{width}: choose fewer dimensions, or give more texts"
            )
        mean = vectors.mean(axis=0)
        _, _, rows = np.linalg.svd(vectors - mean, full_matrices=False)
        axes = rows[:width].T
        # The sign of an axis is arbitrary: make its largest component positive.
        signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(width)])
        return cls(mean.astype(np.float32), (axes * signs).astype(np.float32))

    def __call__(self, vectors: Float32Array) -> Float32Array:
        return exact_dot_products(vectors - self.mean, self.axes.T).astype(self.axes.dtype)


def sentence_vectors(encoder: str, texts: Sequence[str]) -> Float32Array:
    """Compute sentence vectors with an encoder or `syntax`, once per distinct text, (n, d)."""
    if encoder == SYNTAX:
        return _syntax_vectors(texts)
    model = load_encoder(encoder)
    if not model.sentence_dim:
        raise UsageError(f"encoder {encoder} has no sentence vectors: choose another one")
    return embed_texts(model, texts, tokens=False).sentences


def _syntax_vectors(texts: Sequence[str]) -> Float32Array:
    from tertium.metrics.linguistics.dependency_parser import load_parser

    parser = load_parser()
    return cached_rows(
        f"{SYNTAX} {parser.name}",
        [(text,) for text in texts],
        SYNTAX_WIDTH,
        lambda places: parser.compute_syntax_vectors([texts[n] for n in places]),
    )


def joint_vectors(
    names: Sequence[VectorName], texts: Sequence[str], projections: Mapping[VectorName, Projection]
) -> Float32Array:
    """Concatenate several vectors of each text, (n, widths)."""
    parts = [np.zeros((len(texts), 0), dtype=np.float32)]
    for name in names:
        vectors = sentence_vectors(name.encoder, texts)
        parts.append(projections[name](vectors) if name.width else vectors)
    return np.hstack(parts)
