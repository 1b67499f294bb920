"""Sentence vectors that the pairwise network reads.

    vectors :=  ["source/"] (encoder | "syntax") ["~" width]

`glove` is the mean of the word vectors of a sentence (WIKI-GW in Guzmán et al. 2015), `syntax` the
mean of the parser's token vectors, and `minilm~32` a sentence encoder reduced to 32 dimensions. A
translation is compared with its reference, or with its source after `source/`, which requires an
encoder for both languages. `syntax25` is short for `syntax~25`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tertium.core.arrays import Float32Array, exact_dot_products
from tertium.core.errors import UsageError
from tertium.core.store import cached_rows
from tertium.encoders.cached_encoding import embed_texts
from tertium.encoders.encoder import load_encoder

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
