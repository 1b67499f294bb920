"""Columns of numbers that a pairwise network reads, by name.

    columns :=  4metrics | bleucomp | layers/ENCODER | source/ENCODER | the spec of a metric

`4metrics` is short for bleu, nist, ter and meteor; `bleucomp` the sixteen numbers BLEU is made of
(Guzmán et al. 2015, section 6.1); `source/use` the cosine of translation and source. NIST learns
what n-grams tell from `information`, so that a segment's columns depend on that segment alone.

`layers/` matches each token of one text with its most similar token of the other, as BERTScore
does, in every layer; the similarities found are described by four numbers a direction: their mean
(recall, precision), their deviation, the least of them, and the share of good ones. A last column
says how far matched tokens are from each other's place. One pass serves all layers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from tertium.arrays import Float32Array, FloatArray, products
from tertium.cache.files import rows_by_key
from tertium.encoders.encoder import Encoder, load_encoder
from tertium.encoders.stream import Chunk, pairwise
from tertium.errors import NeedsError, UsageError
from tertium.metrics.base.components import Information, brevity_penalty, nist_components, tokens
from tertium.metrics.base.featurizer import reference_of
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.matching import cosine, find_partners
from tertium.metrics.base.metric import Metric
from tertium.metrics.pairwise.vectors import SOURCE, sentence_vectors
from tertium.runtime import runtime
from tertium.segment import Segment
from tertium.version import __version__

FOUR = ("bleu", "nist", "ter", "meteor")
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
NIST_ORDER = 5  # of the published score (Doddington 2002)

Compute = Callable[[Sequence[Segment]], FloatArray]
GOOD = 0.7  # a cosine from which on a match counts as good
DIRECTIONS = ("recall", "precision")
MATCHES = ("", "-deviation", "-least", "-good")
COLUMNS = (*(f"{d}{m}" for d in DIRECTIONS for m in MATCHES), "displacement")
WHOLE = ("cosine", "length", "length-distance")


@dataclass(frozen=True)
class Columns:
    """A featurizer: the columns of several names, each computed once and kept on disk.

    >>> columns = Columns(("bleucomp", "chrf"))
    >>> row = columns([Segment("the cat sat", references=("the cat sat down",))])[0]
    >>> dict(zip(columns.names, row.round(3)))["bleucomp.penalty"]
    np.float64(0.717)
    """

    groups: tuple[str, ...]
    information: Information = field(default_factory=Information.nothing)

    @property
    def parts(self) -> tuple[str, ...]:
        """The groups with short names written out, each once."""
        written = [FOUR if group == "4metrics" else (group,) for group in self.groups]
        return tuple(dict.fromkeys(part for group in written for part in group))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for part in self.parts for name in _names(part))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics among its parts."""
        return tuple(metric for part in self.parts if (metric := _metric(part)))

    @property
    def reads_source(self) -> bool:
        """Whether a column compares with the source."""
        return any(map(_reads_source, self.parts))

    def __call__(self, segments: Sequence[Segment]) -> FloatArray:
        tables = [self._columns(part, segments) for part in self.parts]
        return np.hstack([np.zeros((len(segments), 0)), *tables])

    def _columns(self, part: str, segments: Sequence[Segment]) -> FloatArray:
        compute = _compute(part, self.information)
        sourced = _reads_source(part)
        keys = [
            (s.hypothesis, reference_of(s), *((s.source or "",) if sourced else ()))
            for s in segments
        ]
        rows = rows_by_key(
            f"{part} {__version__} {self._decides(part)}",
            keys,
            len(_names(part)),
            lambda places: compute([segments[n] for n in places]),
        )
        return rows.astype(np.float64)

    def _decides(self, part: str) -> str:
        """What decides a part beside its name: information, weights, what a metric signs with."""
        if part == "nist":
            digest = hashlib.sha256(self.information.keys.tobytes())
            digest.update(self.information.counts.tobytes())
            return digest.hexdigest()[:12]
        if encoder := encoder_behind(part):
            return load_encoder(encoder).weights_hash
        metric = _metric(part)
        return f"{metric.signature(())} {learned_model(part)}" if metric else ""


def learned_model(part: str) -> str:
    """The models behind a part that is a learned metric, with their hashes; else nothing.

    >>> learned_model("tertium-small")[:14], learned_model("chrf"), learned_model("bleucomp")
    ('tertium-small@', '', '')
    """
    metric = _metric(part)
    return "+".join(metric.learned) if metric else ""


def encoder_behind(part: str) -> str:
    """The encoder of a part that names one itself; of any other nothing.

    >>> encoder_behind("layers/minilm"), encoder_behind("source/use"), encoder_behind("chrf")
    ('minilm', 'use', '')
    """
    prefix = next((prefix for prefix in (LAYERS, SOURCE) if part.startswith(prefix)), "")
    return part.removeprefix(prefix) if prefix else ""


def _metric(part: str) -> Metric | None:
    """The metric of a part that is the spec of one."""
    if part in ("bleucomp", "nist") or encoder_behind(part):
        return None
    return load_metric(part)


def _reads_source(part: str) -> bool:
    metric = _metric(part)
    return "source" in metric.needs if metric else part.startswith(SOURCE)


def _names(part: str) -> tuple[str, ...]:
    if part == "bleucomp":
        return tuple(f"bleucomp.{name}" for name in BLEU_PARTS)
    if part.startswith(LAYERS):
        return LayerFeatures(part.removeprefix(LAYERS)).names
    return (part,)


def _compute(part: str, information: Information) -> Compute:
    """What makes the columns of a part."""
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
            f"{part} scores a segment by its neighbors, so it cannot be a column of a ranker"
        )
    return lambda segments: metric.score(segments).segments[:, None]


def bleu_parts(segments: Sequence[Segment]) -> FloatArray:
    """BLEU taken apart: precisions, matches, totals, lengths, their ratio, the penalty, (n, 16)."""
    rows = load_metric("bleu").statistics(segments)
    hypothesis, reference = rows[:, 0], rows[:, 1]
    matched, totals = rows[:, 2:6], rows[:, 6:10]
    precisions = np.divide(matched, totals, out=np.zeros_like(matched), where=totals > 0)
    ratio = hypothesis / np.maximum(reference, 1.0)
    lengths = [hypothesis, reference, ratio, brevity_penalty(rows)]
    return np.hstack([precisions, matched, totals, np.column_stack(lengths)])


def _nist(information: Information, segments: Sequence[Segment]) -> FloatArray:
    values = [
        nist_components(tokens(s.hypothesis), tokens(reference_of(s)), information)[NIST_ORDER - 1]
        for s in segments
    ]
    return np.array(values)[:, None]


def _source_cosine(encoder: str, segments: Sequence[Segment]) -> FloatArray:
    if any(segment.source is None for segment in segments):
        raise NeedsError(f"the column source/{encoder} needs the source: give it with -s")
    left = sentence_vectors(encoder, [s.hypothesis for s in segments])
    right = sentence_vectors(encoder, [s.source or "" for s in segments])
    sizes = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    cosines = (left * right).sum(axis=1) / np.maximum(sizes, 1e-12)  # zeros: cosine 0
    column: FloatArray = cosines.astype(np.float64)[:, None]
    return column


@dataclass(frozen=True)
class LayerFeatures:
    """Nine columns a layer of an encoder, the cosine of sentence vectors, and the lengths.

    `length` is log((h + 1) / (r + 1)) of the numbers of pieces, `length-distance` its size.

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
        return (*by_layer, *(f"{self.encoder}.{name}" for name in WHOLE))

    def __call__(self, segments: Sequence[Segment]) -> FloatArray:
        encoder = self._load()
        # The states of all layers would fill the store; the columns are what is worth keeping.
        with runtime(cache=False):
            return pairwise(
                encoder,
                [segment.hypothesis for segment in segments],
                [reference_of(segment) for segment in segments],
                lambda chunk: _compare(chunk, encoder.layers),
                sentences=True,
            ).reshape(len(segments), len(self.names))

    def _load(self) -> Encoder:
        contextual = self.encoder not in ("glove", "use", "toy")
        has_layer = not contextual or "@" in self.encoder
        return load_encoder(self.encoder if has_layer else f"{self.encoder}@all")


def _compare(chunk: Chunk, layers: int) -> FloatArray:
    rows = np.zeros((len(chunk), len(COLUMNS) * layers + len(WHOLE)))
    units: dict[int, list[Float32Array]] = {}
    pairs = zip(chunk.left.tolist(), chunk.right.tolist(), strict=True)
    for row, (left, right) in enumerate(pairs):
        for text in (left, right):
            if text not in units:
                units[text] = _by_layer(chunk.texts.tokens(text), layers)
        rows[row, : len(COLUMNS) * layers] = [
            value for h, r in zip(units[left], units[right], strict=True) for value in matches(h, r)
        ]
        ratio = np.log((len(units[left][0]) + 1) / (len(units[right][0]) + 1))
        alike = cosine(chunk.texts.sentences[left], chunk.texts.sentences[right])
        rows[row, -len(WHOLE) :] = alike, ratio, abs(ratio)
    return rows


def matches(hypothesis: Float32Array, reference: Float32Array) -> list[float]:
    """The nine columns of two lists of unit vectors; zeros where a text has none.

    >>> np.round(matches(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32)[:1]), 2)
    array([1. , 0. , 1. , 1. , 0.5, 0.5, 0. , 0.5, 0.5])
    """
    if not len(hypothesis) or not len(reference):
        return [0.0] * len(COLUMNS)
    partners = find_partners(products(hypothesis, reference))
    places = (np.arange(len(reference)) + 1) / len(reference)
    apart = np.abs((partners.of_right + 1) / len(hypothesis) - places).mean()
    described = [
        value
        for found in (partners.recall, partners.precision)
        for value in (found.mean(), found.std(), found.min(), (found > GOOD).mean())
    ]
    return [*map(float, described), float(apart)]


def _by_layer(tokens: Float32Array, layers: int) -> list[Float32Array]:
    """Unit vectors of each layer from vectors that hold all layers side by side."""
    stacked = tokens.reshape(len(tokens), layers, tokens.shape[1] // layers)
    sizes = np.linalg.norm(stacked, axis=2, keepdims=True)
    stacked = stacked / np.maximum(sizes, 1e-12)  # zeros have no direction: cosine 0
    return [np.ascontiguousarray(stacked[:, layer]) for layer in range(layers)]
