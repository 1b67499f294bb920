"""What an encoder is, what it returns (`Embeddings`), and how a name becomes one.

    name    :=  family ["/" rest] ["@" layer]
    family  :=  minilm | mpnet | e5 | gemma | use | glove | hf | dir | file | toy | one of a plugin
    layer   :=  N (one layer) | N-M (the mean of layers N to M)
              | N+M+... (these layers, side by side) | all (every layer, side by side)

`minilm@4` is layer 4 of all-MiniLM-L6-v2 (0 is the embedding layer), `hf/xlm-roberta-base@9` a
model of the Hugging Face hub or cache, `dir/models/mine@6` a folder,
`file/vectors.txt` word vectors. Without a layer, a model takes the one its entry in `cards.py`
recommends, else its last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from inspect import getattr_static
from itertools import pairwise
from typing import Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from tertium.arrays import BoolArray, Float32Array, IntArray
from tertium.errors import DataError, PluginError, UsageError
from tertium.extras import explain_missing
from tertium.registry import Names, explain_failure, resolve
from tertium.runtime import Long, Precision, current_runtime

T = TypeVar("T")
TRUNCATED = "truncated text"  # the warning of texts that are not read whole


@dataclass(frozen=True, kw_only=True, eq=False)
class Embeddings:
    """The vectors of n texts, without special tokens ([CLS], </s> ...) unless they were asked for.

    `vectors` (total_tokens, dim) holds the token vectors of all texts one after the other, text i
    at rows `offsets[i]:offsets[i + 1]`; `offsets` (n + 1,); `pieces` the tokens themselves;
    `sentences` (n, sentence_dim) one vector a text; `truncated` (n,) whether a text was cut.
    What was not asked of the encoder is empty: no token and no piece, or `sentences` (n, 0). An
    empty text has no token either; its sentence vector is whatever the encoder makes of it.

    >>> e = Embeddings(
    ...     vectors=np.eye(3, dtype=np.float32), offsets=np.array([0, 2, 3]),
    ...     pieces=(("a", "cat"), ("dog",)), sentences=np.zeros((2, 4), dtype=np.float32),
    ...     truncated=np.array([False, False]),
    ... )
    >>> len(e), e.tokens(1), e.lengths
    (2, array([[0., 0., 1.]], dtype=float32), array([2, 1]))
    >>> e.take([1, 0]).pieces
    (('dog',), ('a', 'cat'))
    """

    vectors: Float32Array
    offsets: IntArray
    pieces: tuple[tuple[str, ...], ...]
    sentences: Float32Array
    truncated: BoolArray

    def __post_init__(self) -> None:
        n = len(self.offsets) - 1
        sizes = (len(self.pieces), len(self.sentences), len(self.truncated))
        if sizes != (n, n, n) or self.offsets[0] != 0 or self.offsets[-1] != len(self.vectors):
            raise DataError(
                f"embeddings do not fit together: {n} offsets for {len(self.vectors)} vectors, "
                f"{sizes[0]} piece lists, {sizes[1]} sentence vectors, {sizes[2]} flags"
            )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Float32Array]:
        return (self.tokens(i) for i in range(len(self)))

    def tokens(self, i: int) -> Float32Array:
        """The token vectors of text i, a view (tokens, dim)."""
        return self.vectors[self.offsets[i] : self.offsets[i + 1]]

    @property
    def lengths(self) -> IntArray:
        """The number of tokens of each text, (n,)."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> IntArray:
        """The text each row of `vectors` belongs to, (total_tokens,)."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def take(self, order: Sequence[int] | IntArray) -> Embeddings:
        """The embeddings of the texts at these places, which may repeat."""
        chosen = [int(i) for i in order]
        return Embeddings(
            vectors=_stack([self.tokens(i) for i in chosen], self.vectors.shape[1]),
            offsets=offsets_of(self.lengths[chosen]),
            pieces=tuple(self.pieces[i] for i in chosen),
            sentences=self.sentences[chosen],
            truncated=self.truncated[chosen],
        )


def offsets_of(lengths: IntArray | Sequence[int]) -> IntArray:
    """Where each text begins, and one past the end of the last.

    >>> offsets_of([2, 0, 3])
    array([0, 2, 2, 5])
    """
    result = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=result[1:])
    return result


def rows_of(starts: IntArray, stops: IntArray) -> IntArray:
    """The rows of several spans one after the other.

    >>> rows_of(np.array([0, 7]), np.array([2, 10]))
    array([0, 1, 7, 8, 9])
    """
    lengths = stops - starts
    ends = np.cumsum(lengths)
    shifts = np.repeat(starts - ends + lengths, lengths)
    rows: IntArray = np.arange(len(shifts)) + shifts
    return rows


def deal(items: Iterable[T], sizes: Iterable[int], most: int) -> list[list[T]]:
    """Items in their order, dealt out so that each share has at most so much, or one item.

    >>> deal("abcd", [2, 2, 3, 9], most=4)
    [['a', 'b'], ['c'], ['d']]
    """
    shares: list[list[T]] = []
    held = most
    for item, size in zip(items, sizes, strict=True):
        if held + size > most or not shares:
            shares.append([])
            held = 0
        shares[-1].append(item)
        held += size
    return shares


def deal_evenly(items: Sequence[T], sizes: Sequence[int], count: int) -> list[Sequence[T]]:
    """Items in their order in at most so many shares of about one size, none of them empty.

    >>> deal_evenly("abcdef", [1, 2, 1, 1, 2, 1], 2)
    ['abc', 'def']
    >>> deal_evenly("abc", [1, 9, 1], 3)
    ['a', 'b', 'c']
    """
    ends = np.cumsum(sizes)
    shares = ((ends - np.asarray(sizes) / 2) * count / ends[-1:]).astype(np.int64)
    cuts = [0, *(np.flatnonzero(np.diff(shares)) + 1).tolist(), len(items)]
    return [items[start:stop] for start, stop in pairwise(cuts) if start < stop]


def from_parts(
    tokens: Sequence[Float32Array],
    pieces: Sequence[tuple[str, ...]],
    sentences: Float32Array,
    truncated: Sequence[bool] | BoolArray,
    dim: int,
) -> Embeddings:
    """Embeddings from one token matrix (tokens, dim) a text."""
    return Embeddings(
        vectors=_stack(tokens, dim),
        offsets=offsets_of([len(matrix) for matrix in tokens]),
        pieces=tuple(pieces),
        sentences=sentences,
        truncated=np.asarray(truncated, dtype=np.bool_),
    )


def _stack(matrices: Sequence[Float32Array], dim: int) -> Float32Array:
    if not matrices:
        return np.zeros((0, dim), dtype=np.float32)
    return np.concatenate(matrices, axis=0, dtype=np.float32)


ENCODERS = Names(
    "tertium.encoders",
    {
        "minilm": "tertium.encoders.transformer:load",
        "mpnet": "tertium.encoders.transformer:load",
        "e5": "tertium.encoders.transformer:load",
        "gemma": "tertium.encoders.transformer:load",
        "hf": "tertium.encoders.transformer:load",
        "dir": "tertium.encoders.transformer:load",
        "use": "tertium.encoders.use.encoder:load",
        "glove": "tertium.encoders.static:load",
        "file": "tertium.encoders.static:load",
        "toy": "tertium.encoders.toy:load",
    },
)

_LAYER = re.compile(r"@(all|\d+(?:-\d+|(?:\+\d+)+)?)$")


class Reader(Protocol):
    """What reads texts as pieces: an encoder, or a network that is none."""

    @property
    def max_length(self) -> int | None: ...

    def count_truncated(self, texts: Sequence[str]) -> int:
        """How many of these texts are longer than it sees."""
        ...

    def count_opaque(self, texts: Sequence[str]) -> int:
        """How many of these texts are not blank and yet have no piece that it knows."""
        ...


def count_unread(readers: Sequence[Reader], texts: Sequence[str]) -> dict[str, int]:
    """How many texts are not read, or not whole; of several readers, by the one that counts most.

    Only counts above zero, by the words of a warning.
    """
    counts = {
        TRUNCATED: max((r.count_truncated(texts) for r in readers), default=0),
        "text of unknown pieces only": max((r.count_opaque(texts) for r in readers), default=0),
    }
    return {kind: count for kind, count in counts.items() if count}


@runtime_checkable
class Encoder(Reader, Protocol):
    """Turns texts into vectors.

    `name` rebuilds it; `dim` is the width of token vectors, `sentence_dim` of sentence vectors
    (0 where there are none); `layers` is how many layers lie side by side in a token vector (1
    unless `@all`); `languages` what it was made for (None: not known); `max_length` how many pieces
    of a text it sees (None: all); `weights_hash` the sha256 of what was loaded.
    """

    @property
    def name(self) -> str: ...
    @property
    def dim(self) -> int: ...
    @property
    def sentence_dim(self) -> int: ...
    @property
    def layers(self) -> int: ...
    @property
    def languages(self) -> frozenset[str] | None: ...
    @property
    def weights_hash(self) -> str: ...

    def encode(
        self, texts: Sequence[str], *, tokens: bool = True, sentences: bool = True
    ) -> Embeddings:
        """The vectors of these texts, in their order; computes no more than is asked for.

        Each distinct text is computed once. `stream.pairwise` and its siblings call this with the
        texts that neither memory nor disk holds; metrics call those.
        """
        ...

    def pieces(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """The tokens of texts, those `encode` has vectors for, without computing any vector."""
        ...

    def signature_fields(self) -> Mapping[str, str]:
        """model, layer, prec and maxlen for signatures; no value contains a pipe or colon."""
        ...

    def fingerprint(self, part: str) -> str:
        """What decides the vectors of a part ("tokens" or "sentences") apart from the text.

        Vectors of equal fingerprints and texts are equal. Empty where computing is as cheap as
        reading from disk, so that nothing is stored.
        """
        ...


@runtime_checkable
class Sharing(Encoder, Protocol):
    """An encoder whose passes serve several uses: other layers, sentence vectors, special tokens.

    Encoders of equal `body` share a pass. What is computed is kept in memory and on disk with the
    special tokens, as rows whose pieces are empty; who does not want them has them cut off.
    """

    @property
    def body(self) -> object: ...

    def with_special(self) -> Self: ...

    def encode_together(
        self, texts: Sequence[str], needs: Sequence[tuple[Self, str]]
    ) -> list[Embeddings]:
        """What encoders of this body need of distinct texts: one result for each need, a part."""
        ...


@dataclass(frozen=True)
class EncoderName:
    """An encoder's name taken apart.

    >>> EncoderName.parse("hf/xlm-roberta-base@9")
    EncoderName(family='hf', rest='xlm-roberta-base', layer='9')
    >>> str(EncoderName.parse("minilm@4"))
    'minilm@4'
    """

    family: str
    rest: str = ""
    layer: str = ""

    @classmethod
    def parse(cls, text: str) -> EncoderName:
        layer = _LAYER.search(text)
        stem = text[: layer.start()] if layer else text
        family, _, rest = stem.partition("/")
        if family in ("hf", "dir", "file") and not rest:
            raise UsageError(f"encoder {text!r} names no model: expected {family}/NAME")
        return cls(family, rest, layer.group(1) if layer else "")

    def __str__(self) -> str:
        stem = f"{self.family}/{self.rest}" if self.rest else self.family
        return f"{stem}@{self.layer}" if self.layer else stem


def load_encoder(
    name: str, *, precision: Precision = "fp32", long: Long = "truncate", special: bool = False
) -> Encoder:
    """The encoder of a name, on the device of the current runtime; loaded once a process.

    `precision` is what the forward pass computes in: fp32 (exact), bf16 (CPU or GPU), fp16 (GPU
    only). `long="window"` slides over a text that is too long instead of cutting it. Both change
    scores, so they are fields of metrics and stand in signatures. `special` keeps the vectors of
    the special tokens around a text that is not empty; their pieces are empty strings.
    """
    if precision not in ("fp32", "bf16", "fp16"):
        raise UsageError(f"unknown precision {precision!r}: expected fp32, bf16 or fp16")
    if long not in ("truncate", "window"):
        raise UsageError(f"unknown long={long!r}: expected truncate or window")
    return _load(name, precision, long, special, current_runtime().device)


@lru_cache(maxsize=8)
def _load(name: str, precision: Precision, long: Long, special: bool, device: str) -> Encoder:
    parsed = EncoderName.parse(name)
    loader = resolve(ENCODERS, parsed.family, "encoder")
    foreign = ENCODERS.plugins.get(parsed.family)
    with explain_failure(foreign[0], "encoder") if foreign else explain_missing(f"encoder {name}"):
        encoder: Encoder = loader(
            parsed, precision=precision, long=long, special=special, device=device
        )
    _check_parts(encoder, name)
    return encoder


def _check_parts(encoder: object, name: str) -> None:
    """Refuse what another package gives for an encoder and lacks a part of one."""
    parts = [part for cls in Encoder.__mro__ for part in vars(cls) if not part.startswith("_")]
    nothing = object()
    for part in parts:  # looked at, not asked: a hash of weights takes time
        if getattr_static(encoder, part, nothing) is nothing and not hasattr(encoder, part):
            raise PluginError(
                f"encoder {name} is a {type(encoder).__name__}, which has no {part}: an encoder "
                f"has {', '.join(parts)} (tertium.encoders.Encoder)"
            )
