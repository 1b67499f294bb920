"""The `Encoder` protocol, its result (`Embeddings`), and encoder names.

    name    :=  family ["/" path] ["@" layer]
    family  :=  minilm | mpnet | e5 | use | glove | hf | dir | file | toy | of a plugin
    layer   :=  N (one layer) | N+M+... (these layers, concatenated)
              | all (every layer, concatenated)

`minilm@4` is layer 4 of all-MiniLM-L6-v2 (0 is the embedding layer), `hf/xlm-roberta-base@9` a
model of the Hugging Face hub or cache, `dir/models/mine@6` a folder, `file/vectors.txt` word
vectors. The default layer is the one in `cards.json`, otherwise the last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, runtime_checkable

import numpy as np

from tertium.core.arrays import BoolArray, Float32Array, IntArray
from tertium.core.errors import PluginError, UsageError
from tertium.core.extras import explain_missing
from tertium.core.fields import check_types
from tertium.core.registry import NameTable, explain_plugin_failure, resolve
from tertium.core.runtime import Precision, current_runtime


@dataclass(frozen=True, kw_only=True, eq=False)
class Embeddings:
    """The vectors of n texts, without special tokens ([CLS], </s> ...) unless requested.

    `vectors` (total_tokens, dim) holds the token vectors of all texts; those of text i are rows
    `offsets[i]:offsets[i + 1]`. `tokens` are the tokens of each text, `sentences` (n, sentence_dim)
    the sentence vectors, `truncated` (n,) whether a text was truncated.

    Parts that were not requested are empty: no tokens, or `sentences` (n, 0). An empty text has no
    tokens, but may have a sentence vector.

    >>> e = Embeddings(
    ...     vectors=np.eye(3, dtype=np.float32), offsets=np.array([0, 2, 3]),
    ...     tokens=(("a", "cat"), ("dog",)), sentences=np.zeros((2, 4), dtype=np.float32),
    ...     truncated=np.array([False, False]),
    ... )
    >>> len(e), e.token_vectors(1), e.lengths
    (2, array([[0., 0., 1.]], dtype=float32), array([2, 1]))
    >>> e.take([1, 0]).tokens
    (('dog',), ('a', 'cat'))
    """

    vectors: Float32Array
    offsets: IntArray
    tokens: tuple[tuple[str, ...], ...]
    sentences: Float32Array
    truncated: BoolArray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Float32Array]:
        return (self.token_vectors(i) for i in range(len(self)))

    def token_vectors(self, i: int) -> Float32Array:
        """Return the token vectors of text i, a view (tokens, dim)."""
        return self.vectors[self.offsets[i] : self.offsets[i + 1]]

    @property
    def lengths(self) -> IntArray:
        """The number of tokens of each text, (n,)."""
        return np.diff(self.offsets)

    @property
    def text_indices(self) -> IntArray:
        """The text of each row of `vectors`, (total_tokens,)."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def take(self, indices: Sequence[int] | IntArray) -> Embeddings:
        """Return the embeddings of these texts; indices may repeat."""
        rows = [int(i) for i in indices]
        return make_embeddings(
            [self.token_vectors(i) for i in rows],
            [self.tokens[i] for i in rows],
            self.sentences[rows],
            self.truncated[rows],
            self.vectors.shape[1],
        )


def make_embeddings(
    matrices: list[Float32Array],
    tokens: Sequence[tuple[str, ...]],
    sentences: Float32Array,
    truncated: Sequence[bool] | BoolArray,
    dim: int,
) -> Embeddings:
    """Build embeddings from one matrix of token vectors (tokens, dim) per text."""
    empty = np.zeros((0, dim), dtype=np.float32)
    return Embeddings(
        vectors=np.concatenate(matrices or [empty], dtype=np.float32),
        offsets=offsets_from_lengths([len(matrix) for matrix in matrices]),
        tokens=tuple(tokens),
        sentences=sentences,
        truncated=np.asarray(truncated, dtype=np.bool_),
    )


def offsets_from_lengths(lengths: IntArray | Sequence[int]) -> IntArray:
    """Return the start of each text and the end of the last one.

    >>> offsets_from_lengths([2, 0, 3])
    array([0, 2, 2, 5])
    """
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def expand_ranges(starts: IntArray, stops: IntArray) -> IntArray:
    """Concatenate the integers of several ranges.

    >>> expand_ranges(np.array([0, 7]), np.array([2, 10]))
    array([0, 1, 7, 8, 9])
    """
    lengths = stops - starts
    ends = np.cumsum(lengths)
    shifts = np.repeat(starts - ends + lengths, lengths)
    rows: IntArray = np.arange(len(shifts)) + shifts
    return rows


ENCODERS = NameTable(
    "tertium.encoders",
    {
        **dict.fromkeys(
            ("minilm", "mpnet", "e5", "hf", "dir"),
            "tertium.encoders.transformer_encoder:load",
        ),
        "use": "tertium.encoders.use_encoder:load",
        "glove": "tertium.encoders.word_vectors:load",
        "file": "tertium.encoders.word_vectors:load",
        "toy": "tertium.encoders.toy_encoder:load",
    },
)

FP32_FAMILIES = "use glove file toy".split()  # computed in numpy
_LAYER = re.compile(r"@(all|\d+(?:\+\d+)*)$")


class TextReader(Protocol):
    """A model that tokenizes texts: an encoder or another network."""

    @property
    def max_length(self) -> int | None: ...

    def find_truncated(self, texts: Sequence[str]) -> set[str]:
        """Return the texts that are longer than the model reads."""
        ...

    def find_out_of_vocabulary(self, texts: Sequence[str]) -> set[str]:
        """Return the texts that are not blank but have no known token."""
        ...


@runtime_checkable
class Encoder(TextReader, Protocol):
    """Turns texts into vectors.

    `load_encoder(name)` loads the same encoder again. `dim` is the size of token vectors,
    `sentence_dim` that of sentence vectors (0 if there are none), `layers` the number of layers
    concatenated in a token vector. `languages` are those it was trained for (None: unknown),
    `max_length` the number of tokens it reads of a text (None: all), `weights_hash` the sha256 of
    its weights.
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
        """Compute the requested vectors of texts; metrics call `compare_pairs` instead."""
        ...

    def tokenize(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the tokens for which `encode` computes vectors."""
        ...

    def signature_fields(self) -> Mapping[str, str]:
        """Return model, layer, prec and maxlen for signatures, without pipes and colons."""
        ...

    def fingerprint(self, part: str) -> str:
        """Return a cache key for a part ("tokens" or "sentences") of the vectors; "" disables it.

        Equal fingerprints and texts must have equal vectors.
        """
        ...


@dataclass(frozen=True)
class EncoderName:
    """A parsed encoder name.

    >>> EncoderName.parse("hf/xlm-roberta-base@9")
    EncoderName(family='hf', path='xlm-roberta-base', layer='9')
    >>> str(EncoderName.parse("minilm@4"))
    'minilm@4'
    """

    family: str
    path: str = ""
    layer: str = ""

    @classmethod
    def parse(cls, text: str) -> EncoderName:
        layer = _LAYER.search(text)
        stem = text[: layer.start()] if layer else text
        family, _, path = stem.partition("/")
        if family in ("hf", "dir", "file") and not path:
            raise UsageError(f"encoder {text!r} names no model: expected {family}/NAME")
        return cls(family, path, layer.group(1) if layer else "")

    def __str__(self) -> str:
        stem = f"{self.family}/{self.path}" if self.path else self.family
        return f"{stem}@{self.layer}" if self.layer else stem


def load_encoder(
    name: str,
    *,
    precision: Precision = "fp32",
    special: bool = False,
) -> Encoder:
    """Load an encoder on the device of the current runtime, once per process.

    `precision` is that of matrix products: fp32, int8 (fast on a CPU; scores do not depend on the
    batch), bf16 (GPU, or CPU with AMX) or fp16 (GPU only). It changes scores, so it is a field of
    metrics and appears in signatures. `special` keeps the vectors of the special tokens around a
    text; their tokens are empty strings.
    """
    check_types(load_encoder, {"precision": precision})
    return _load(name, precision, special, current_runtime().device)


@lru_cache(maxsize=8)
def _load(name: str, precision: Precision, special: bool, device: str) -> Encoder:
    parsed = EncoderName.parse(name)
    loader = resolve(ENCODERS, parsed.family, "encoder")
    if parsed.family in FP32_FAMILIES and precision != "fp32":
        raise UsageError(f"encoder {name} supports only fp32, not {precision}")
    plugin = None if parsed.family in ENCODERS.builtin else ENCODERS.plugins.get(parsed.family)
    options = {"precision": precision, "special": special, "device": device}
    explain = explain_plugin_failure(plugin[0], "encoder") if plugin else None
    with explain or explain_missing(f"encoder {name}"):
        encoder: Encoder = loader(parsed, **options)
    members = [member for cls in Encoder.__mro__ for member in vars(cls) if member[0] != "_"]
    absent = [member for member in members if plugin and not hasattr(encoder, member)]
    if absent:
        raise PluginError(
            f"encoder {name} is a {type(encoder).__name__}, which has no {absent[0]}: an encoder "
            f"has {', '.join(members)} (tertium.encoders.Encoder)"
        )
    return encoder
