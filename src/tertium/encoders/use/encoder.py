"""The Universal Sentence Encoder, multilingual v3: one space for fifteen languages, offline.

Sentence vectors are the model's own; token vectors are those of its contextual layer. Both come
from the weights of an installed package through `network`, not from the package's code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np

from tertium.arrays import IntArray
from tertium.encoders.cards import CARDS
from tertium.encoders.encoder import Embeddings, EncoderName, offsets_of, rows_of
from tertium.encoders.pieces import surely_fits, surely_known
from tertium.encoders.use.network import EMBEDDING, LAYERS, UniversalNetwork
from tertium.encoders.use.sentencepiece import UNKNOWN, PieceTokenizer
from tertium.encoders.weights import WeightFolder, locate, missing_extras
from tertium.errors import UnknownNameError, UsageError
from tertium.extras import require
from tertium.text.bounds import ENCODED_PIECES

BEGIN, END = 1, 2


@dataclass(frozen=True, kw_only=True, eq=False)
class UniversalEncoder:
    """USE multilingual v3 (Arabic, Chinese, Dutch, English, French, German, Italian, Japanese,
    Korean, Polish, Portuguese, Russian, Spanish, Thai, Turkish).

    `layer` 0 embeds pieces without context (512), 1 and 2 are the convolutions (768 and 1280), 3
    (the default, best on da/wmt15 and da/wmt16) a piece's share of its sentence (512). A text in
    any other language gets vectors too, at chance: see `languages`. `ENCODED_PIECES` of a text
    are read, though the network knows no limit; computed in numpy, on the CPU, whatever the device.
    """

    weights: WeightFolder
    layer: int
    languages: ClassVar[frozenset[str]] = CARDS["use"].languages
    sentence_dim: ClassVar[int] = EMBEDDING
    layers: ClassVar[int] = 1
    max_length: ClassVar[int] = ENCODED_PIECES

    @property
    def name(self) -> str:
        return f"use@{self.layer}"

    @property
    def dim(self) -> int:
        return LAYERS[self.layer]

    @property
    def weights_hash(self) -> str:
        return self.weights.hash

    def encode(
        self, texts: Sequence[str], *, tokens: bool = True, sentences: bool = True
    ) -> Embeddings:
        places: dict[str, int] = {}
        order = [places.setdefault(text, len(places)) for text in texts]
        result = self._encode_distinct(list(places), tokens, sentences)
        return result if len(places) == len(texts) else result.take(order)

    def pieces(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        return [pieces[:ENCODED_PIECES] for _, pieces in self._tokenizer.encode(texts)]

    def count_truncated(self, texts: Sequence[str]) -> int:
        doubtful = [text for text in texts if not surely_fits(text, ENCODED_PIECES)]
        return sum(len(ids) > ENCODED_PIECES for ids, _ in self._tokenizer.encode(doubtful))

    def count_opaque(self, texts: Sequence[str]) -> int:
        doubtful = [text for text in texts if not surely_known(text)]
        return sum({*ids} == {UNKNOWN} for ids, _ in self._tokenizer.encode(doubtful))

    def signature_fields(self) -> Mapping[str, str]:
        return {"model": f"use@{self.weights_hash[:8]}", "layer": str(self.layer), "prec": "fp32"}

    def fingerprint(self, part: str) -> str:
        layer = str(self.layer) if part == "tokens" else "pooled"
        return f"universal-3:{self.weights_hash}:{part}:{layer}"

    @property
    def _tokenizer(self) -> PieceTokenizer:
        return _load_parts(self.weights.folder)[0]

    @property
    def _network(self) -> UniversalNetwork:
        return _load_parts(self.weights.folder)[1]

    def _encode_distinct(self, texts: Sequence[str], tokens: bool, sentences: bool) -> Embeddings:
        whole = self._tokenizer.encode(texts)
        found = [(ids[:ENCODED_PIECES], pieces[:ENCODED_PIECES]) for ids, pieces in whole]
        lengths = np.array([len(ids) if tokens else 0 for ids, _ in found], dtype=np.int64)
        result = Embeddings(
            vectors=np.zeros((int(lengths.sum()), self.dim * tokens), dtype=np.float32),
            offsets=offsets_of(lengths),
            pieces=tuple(pieces if tokens else () for _, pieces in found),
            sentences=np.zeros((len(texts), EMBEDDING * sentences), dtype=np.float32),
            truncated=np.array([len(ids) > ENCODED_PIECES for ids, _ in whole], dtype=np.bool_),
        )
        if tokens or sentences:
            self._fill(result, [ids for ids, _ in found], tokens, sentences)
        return result

    def _fill(
        self, result: Embeddings, ids: Sequence[Sequence[int]], tokens: bool, sentences: bool
    ) -> None:
        """Write the vectors of texts into the result, without those of BEGIN and END."""
        whole = [_frame(numbers) for numbers in ids]
        text = row = 0
        for vectors, summaries in self._network.run(
            whole, self.layer if tokens else None, sentences
        ):
            if sentences:
                result.sentences[text : text + len(summaries)] = summaries
            if tokens:
                kept = vectors[_inner(ids[text : text + len(summaries)])]
                result.vectors[row : row + len(kept)] = kept
                row += len(kept)
            text += len(summaries)


def _frame(numbers: Sequence[int]) -> IntArray:
    """A text's pieces as the network reads them; an empty text is one unknown piece."""
    return np.array([BEGIN, *(numbers or [UNKNOWN]), END], dtype=np.int64)


def _inner(ids: Sequence[Sequence[int]]) -> IntArray:
    """The rows of framed texts that are pieces of the texts."""
    starts = offsets_of([max(len(numbers), 1) + 2 for numbers in ids])[:-1] + 1
    return rows_of(starts, starts + np.array([len(numbers) for numbers in ids]))


@lru_cache(maxsize=1)
def _load_parts(folder: Path) -> tuple[PieceTokenizer, UniversalNetwork]:
    """What all layers share."""
    return PieceTokenizer(folder / "sp.model"), UniversalNetwork(folder / "weights.npz")


def load(
    name: EncoderName, *, precision: str, long: str, special: bool, device: str
) -> UniversalEncoder:
    """The encoder of `use` or `use@LAYER`; special tokens are never kept."""
    if precision != "fp32":
        raise UsageError(f"encoder use computes in fp32 only, not {precision}")
    layer = name.layer or str(CARDS["use"].layer)
    if layer not in map(str, LAYERS):
        raise UnknownNameError("layer of use", layer, map(str, LAYERS))
    require("tokenizers", purpose=f"encoder {name}", also=missing_extras(name))
    return UniversalEncoder(weights=locate(name), layer=int(layer))
