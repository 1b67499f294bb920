"""How well two texts match in every layer of an encoder, as columns: not the mean match alone.

Each token of one text is matched with its most similar token of the other, as BERTScore does, and
the similarities found are described by four numbers a direction: their mean (recall, precision),
their deviation, the least of them, and the share of good ones. A last column says how far matched
tokens are from each other's place. One pass through the encoder serves all layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tertium.arrays import Float32Array, FloatArray
from tertium.encoders.encoder import Encoder, load_encoder
from tertium.encoders.grid import products
from tertium.encoders.stream import Chunk, pairwise
from tertium.metrics.base.featurizer import reference_of
from tertium.metrics.base.matching import cosine
from tertium.runtime import runtime
from tertium.segment import Segment

GOOD = 0.7  # a cosine from which on a match counts as good
DIRECTIONS = ("recall", "precision")
MATCHES = ("", "-deviation", "-least", "-good")
COLUMNS = (*(f"{d}{m}" for d in DIRECTIONS for m in MATCHES), "displacement")
WHOLE = ("cosine", "length", "length-distance")


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
    similar = products(hypothesis, reference)  # (hypothesis tokens, reference tokens)
    chosen = similar.argmax(axis=0)
    recall, precision = similar[chosen, np.arange(len(reference))], similar.max(axis=1)
    places = (np.arange(len(reference)) + 1) / len(reference)
    apart = np.abs((chosen + 1) / len(hypothesis) - places).mean()
    described = [
        value
        for found in (recall, precision)
        for value in (found.mean(), found.std(), found.min(), (found > GOOD).mean())
    ]
    return [*map(float, described), float(apart)]


def _by_layer(tokens: Float32Array, layers: int) -> list[Float32Array]:
    """Unit vectors of each layer from vectors that hold all layers side by side."""
    stacked = tokens.reshape(len(tokens), layers, tokens.shape[1] // layers)
    sizes = np.linalg.norm(stacked, axis=2, keepdims=True)
    stacked = stacked / np.maximum(sizes, 1e-12)  # zeros have no direction: cosine 0
    return [np.ascontiguousarray(stacked[:, layer]) for layer in range(layers)]
