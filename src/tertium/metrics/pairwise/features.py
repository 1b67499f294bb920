"""Inputs of the pairwise network: feature columns and sentence vectors.

    features :=  4metrics | bleucomp | layers/ENCODER | source/ENCODER | the spec of a metric

`4metrics` is short for bleu, nist, ter and meteor. `bleucomp` are the sixteen components of BLEU
(Guzmán et al. 2015, section 6.1). `source/use` is the cosine of translation and source. NIST takes
n-gram counts from `information`, so the columns of a segment do not depend on other segments.

`layers/` matches tokens greedily, as BERTScore does, in every layer of an encoder. Each direction
has four columns: mean (recall, precision), standard deviation, minimum, and share of good matches.
A last column measures how far matched tokens are displaced.

Sentence vectors are

    vectors :=  ["source/"] (encoder | "syntax") ["~" width]

`glove` is the mean of the word vectors of a sentence (WIKI-GW in Guzmán et al. 2015), `syntax` the
mean of the parser's token vectors, and `minilm~32` a sentence encoder reduced to 32 dimensions. A
translation is compared with its reference, or with its source after `source/`, which requires an
encoder for both languages. `syntax25` is short for `syntax~25`.
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
from tertium.core.errors import MissingInputError, UsageError
from tertium.core.runtime import runtime
from tertium.core.segment import Segment
from tertium.core.store import cached_rows
from tertium.encoders.cached_encoding import Chunk, compare_pairs, embed_texts
from tertium.encoders.encoder import Encoder, load_encoder
from tertium.metrics.base.greedy_matching import cosine, find_best_matches
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

FOUR_METRICS = ("bleu", "nist", "ter", "meteor")
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
        """Groups with abbreviations expanded, without duplicates."""
        expanded = [FOUR_METRICS if g == "4metrics" else (g,) for g in self.groups]
        return tuple(dict.fromkeys(part for group in expanded for part in group))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for part in self.parts for name in _names(part))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Metrics among the parts."""
        return tuple(metric for part in self.parts if (metric := _metric(part)))

    @property
    def reads_source(self) -> bool:
        return any(map(_reads_source, self.parts))

    def __call__(self, segments: Sequence[Segment]) -> FloatArray:
        tables = [self._columns(part, segments) for part in self.parts]
        return np.hstack([np.zeros((len(segments), 0)), *tables])

    def _columns(self, part: str, segments: Sequence[Segment]) -> FloatArray:
        compute = _compute(part, self.information)
        with_source = _reads_source(part)
        keys = [
            (s.hypothesis, only_reference(s), *((s.source or "",) if with_source else ()))
            for s in segments
        ]
        rows = cached_rows(
            f"{part} {__version__} {self._fingerprint(part)}",
            keys,
            len(_names(part)),
            lambda places: compute([segments[n] for n in places]),
        )
        return rows.astype(np.float64)

    def _fingerprint(self, part: str) -> str:
        """Return what determines a part in addition to its name: counts, weights or signature."""
        if part == "nist":
            digest = hashlib.sha256(self.information.keys.tobytes())
            digest.update(self.information.counts.tobytes())
            return digest.hexdigest()[:12]
        if encoder := part_encoder(part):
            return load_encoder(encoder).weights_hash
        metric = _metric(part)
        return f"{format_signature(metric, ())} {part_model_ids(part)}" if metric else ""


def part_model_ids(part: str) -> str:
    """Return the model identifiers of a part that is a trained metric; empty for other parts.

    >>> part_model_ids("tertium-small")[:14], part_model_ids("chrf"), part_model_ids("bleucomp")
    ('tertium-small@', '', '')
    """
    metric = _metric(part)
    return "+".join(metric.model_ids) if metric else ""


def part_encoder(part: str) -> str:
    """Return the encoder named by a part; empty for parts that name none.

    >>> part_encoder("layers/minilm"), part_encoder("source/use"), part_encoder("chrf")
    ('minilm', 'use', '')
    """
    prefix = next((prefix for prefix in (LAYERS, SOURCE) if part.startswith(prefix)), "")
    return part.removeprefix(prefix) if prefix else ""


def _metric(part: str) -> Metric | None:
    if part in ("bleucomp", "nist") or part_encoder(part):
        return None
    return load_metric(part)


def _reads_source(part: str) -> bool:
    metric = _metric(part)
    return "source" in metric.required_inputs if metric else part.startswith(SOURCE)


def _names(part: str) -> tuple[str, ...]:
    if part == "bleucomp":
        return tuple(f"bleucomp.{name}" for name in BLEU_PARTS)
    if part.startswith(LAYERS):
        return LayerFeatures(part.removeprefix(LAYERS)).names
    return (part,)


def _compute(part: str, information: NgramInformation) -> Compute:
    if part == "bleucomp":
        return bleu_parts
    if part == "nist":
        return partial(_nist, information)
    if part.startswith(LAYERS):
        return LayerFeatures(part.removeprefix(LAYERS))
    if part.startswith(SOURCE):
        return partial(_source_cosine, part.removeprefix(SOURCE))
    metric = load_metric(part)
    if metric.reads_corpus:
        raise UsageError(
            f"{part} cannot be a feature of a ranker: its segment scores depend on the corpus"
        )
    return lambda segments: metric.score(segments).segments[:, None]


def bleu_parts(segments: Sequence[Segment]) -> FloatArray:
    """Compute precisions, matches, totals, lengths, ratio and penalty of BLEU, (n, 16)."""
    rows = load_metric("bleu").statistics(segments)
    hypothesis, reference = rows[:, 0], rows[:, 1]
    matched, totals = rows[:, 2:6], rows[:, 6:10]
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


def _source_cosine(encoder: str, segments: Sequence[Segment]) -> FloatArray:
    if any(segment.source is None for segment in segments):
        raise MissingInputError(f"feature source/{encoder} needs the source: give it with -s")
    left = sentence_vectors(encoder, [s.hypothesis for s in segments])
    right = sentence_vectors(encoder, [s.source or "" for s in segments])
    sizes = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    cosines = (left * right).sum(axis=1) / np.maximum(sizes, 1e-12)  # zero vectors: cosine 0
    column: FloatArray = cosines.astype(np.float64)[:, None]
    return column


@dataclass(frozen=True)
class LayerFeatures:
    """Nine columns per encoder layer, the cosine of sentence vectors, and two length columns.

    `length` is log((h + 1) / (r + 1)) of the numbers of tokens, `length-distance` its absolute
    value.

    >>> columns = LayerFeatures("toy")
    >>> row = columns([Segment("a cat", references=("a cat",))])[0]
    >>> dict(zip(columns.names, row.round(3)))["toy.0.recall"]
    np.float64(1.0)
    """

    encoder: str = "minilm"

    @property
    def names(self) -> tuple[str, ...]:
        layers = range(self._load().layers)
        by_layer = [f"{self.encoder}.{layer}.{name}" for layer in layers for name in COLUMNS]
        return (*by_layer, *(f"{self.encoder}.{name}" for name in SENTENCE_COLUMNS))

    def __call__(self, segments: Sequence[Segment]) -> FloatArray:
        encoder = self._load()
        # The states of all layers would fill the cache; only the columns are cached.
        with runtime(cache=False):
            return compare_pairs(
                encoder,
                [segment.hypothesis for segment in segments],
                [only_reference(segment) for segment in segments],
                lambda chunk: _compare(chunk, encoder.layers),
                sentences=True,
            ).reshape(len(segments), len(self.names))

    def _load(self) -> Encoder:
        contextual = self.encoder not in ("glove", "use", "toy")
        has_layer = not contextual or "@" in self.encoder
        return load_encoder(self.encoder if has_layer else f"{self.encoder}@all")


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
    matched = find_best_matches(exact_dot_products(hypothesis, reference))
    places = (np.arange(len(reference)) + 1) / len(reference)
    displacement = np.abs((matched.of_right + 1) / len(hypothesis) - places).mean()
    described = [
        value
        for cosines in (matched.recall, matched.precision)
        for value in (cosines.mean(), cosines.std(), cosines.min(), (cosines > GOOD_COSINE).mean())
    ]
    return [*map(float, described), float(displacement)]


def _by_layer(tokens: Float32Array, layers: int) -> list[Float32Array]:
    """Split vectors with all layers concatenated into unit vectors per layer."""
    stacked = tokens.reshape(len(tokens), layers, tokens.shape[1] // layers)
    sizes = np.linalg.norm(stacked, axis=2, keepdims=True)
    stacked = stacked / np.maximum(sizes, 1e-12)  # zero vectors: cosine 0
    return [np.ascontiguousarray(stacked[:, layer]) for layer in range(layers)]


SYNTAX = "syntax"
SYNTAX_WIDTH = 96  # of the token vectors of spaCy's small English pipeline
SOURCE = "source/"
_REDUCED = re.compile(r"(.+)~(\d+)")


class VectorName(NamedTuple):
    """A parsed vector name; `width` is 0 if the vectors are not reduced.

    >>> VectorName.parse("source/use~64"), VectorName.parse("syntax25").width
    (VectorName(encoder='use', width=64, of_source=True), 25)
    """

    encoder: str
    width: int
    of_source: bool

    @classmethod
    def parse(cls, text: str) -> VectorName:
        of_source = text.startswith(SOURCE)
        stem = text.removeprefix(SOURCE)
        if numbered := re.fullmatch(rf"{SYNTAX}(\d+)", stem):
            stem = f"{SYNTAX}~{numbered[1]}"
        reduced = _REDUCED.fullmatch(stem)
        encoder, width = (reduced[1], int(reduced[2])) if reduced else (stem, 0)
        if not encoder or (reduced and not width):
            raise UsageError(f"invalid vectors {text!r}: expected an encoder, or encoder~width")
        if of_source and encoder == SYNTAX:
            raise UsageError("source/syntax is not available: the parser supports English only")
        return cls(encoder, width, of_source)


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
    names: Sequence[VectorName],
    texts_of: Callable[[VectorName], Sequence[str]],
    projections: Mapping[VectorName, Projection],
    count: int,
) -> Float32Array:
    """Concatenate several vectors, each of the texts that `texts_of` returns, (count, widths)."""
    parts = [np.zeros((count, 0), dtype=np.float32)]
    for name in names:
        vectors = sentence_vectors(name.encoder, texts_of(name))
        parts.append(projections[name](vectors) if name.width else vectors)
    return np.hstack(parts)
