"""The Universal Sentence Encoder, multilingual v3: one vector space for fifteen languages.

Sentence vectors are the model's own; token vectors are those of a layer. The weights come from an
installed package, the computation is our own (`network`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np

from tertium.core.arrays import IntArray
from tertium.core.errors import UnknownNameError, UsageError
from tertium.core.extras import require_modules
from tertium.encoders.encoder import Embeddings, EncoderName, expand_ranges, offsets_from_lengths
from tertium.encoders.model_cards import MODEL_CARDS
from tertium.encoders.tokenizer import certainly_fits, certainly_has_known_token
from tertium.encoders.use.sentencepiece import UNKNOWN_ID, SentencePieceTokenizer
from tertium.encoders.use.use_network import EMBEDDING, LAYERS, UniversalNetwork
from tertium.encoders.weight_files import WeightFolder, locate_weights, missing_extras
from tertium.text.length_limits import MAX_ENCODED_TOKENS

BEGIN, END = 1, 2


@dataclass(frozen=True, kw_only=True, eq=False)
class UniversalEncoder:
    """USE multilingual v3 (Arabic, Chinese, Dutch, English, French, German, Italian, Japanese,
    Korean, Polish, Portuguese, Russian, Spanish, Thai, Turkish).

    `layer` 0 embeds tokens without context (512), 1 and 2 are the convolutions (768 and 1280), 3
    (the default, best on da/wmt15 and da/wmt16) is a token's share of its sentence (512). Texts in
    other languages get meaningless vectors. Computation is in numpy, always on the CPU.
    """

    weights: WeightFolder
    layer: int
    languages: ClassVar[frozenset[str]] = MODEL_CARDS["use"].languages
    sentence_dim: ClassVar[int] = EMBEDDING
    layers: ClassVar[int] = 1
    max_length: ClassVar[int] = MAX_ENCODED_TOKENS

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
        rows: dict[str, int] = {}
        order = [rows.setdefault(text, len(rows)) for text in texts]
        distinct = self._encode_distinct(list(rows), tokens, sentences)
        return distinct if len(rows) == len(texts) else distinct.take(order)

    def tokenize(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        return [tokens[:MAX_ENCODED_TOKENS] for _, tokens in self._tokenizer.encode(texts)]

    def find_truncated(self, texts: Sequence[str]) -> set[str]:
        candidates = [text for text in texts if not certainly_fits(text, MAX_ENCODED_TOKENS)]
        encoded = zip(candidates, self._tokenizer.encode(candidates), strict=True)
        return {text for text, (ids, _) in encoded if len(ids) > MAX_ENCODED_TOKENS}

    def find_out_of_vocabulary(self, texts: Sequence[str]) -> set[str]:
        candidates = [text for text in texts if not certainly_has_known_token(text)]
        encoded = zip(candidates, self._tokenizer.encode(candidates), strict=True)
        return {text for text, (ids, _) in encoded if {*ids} == {UNKNOWN_ID}}

    def signature_fields(self) -> Mapping[str, str]:
        return {"model": f"use@{self.weights_hash[:8]}", "layer": str(self.layer), "prec": "fp32"}

    def fingerprint(self, part: str) -> str:
        layer = str(self.layer) if part == "tokens" else "pooled"
        return f"universal-3:{self.weights_hash}:{part}:{layer}"

    @property
    def _tokenizer(self) -> SentencePieceTokenizer:
        return _load_model(self.weights.folder)[0]

    @property
    def _network(self) -> UniversalNetwork:
        return _load_model(self.weights.folder)[1]

    def _encode_distinct(self, texts: Sequence[str], tokens: bool, sentences: bool) -> Embeddings:
        complete = self._tokenizer.encode(texts)
        read = [(ids[:MAX_ENCODED_TOKENS], names[:MAX_ENCODED_TOKENS]) for ids, names in complete]
        lengths = np.array([len(ids) if tokens else 0 for ids, _ in read], dtype=np.int64)
        is_truncated = [len(ids) > MAX_ENCODED_TOKENS for ids, _ in complete]
        result = Embeddings(
            vectors=np.zeros((int(lengths.sum()), self.dim * tokens), dtype=np.float32),
            offsets=offsets_from_lengths(lengths),
            tokens=tuple(names if tokens else () for _, names in read),
            sentences=np.zeros((len(texts), EMBEDDING * sentences), dtype=np.float32),
            truncated=np.array(is_truncated, dtype=np.bool_),
        )
        if tokens or sentences:
            self._fill(result, [ids for ids, _ in read], tokens, sentences)
        return result

    def _fill(
        self, result: Embeddings, ids: Sequence[Sequence[int]], tokens: bool, sentences: bool
    ) -> None:
        """Write the vectors of texts into the result, without those of BEGIN and END."""
        inputs = [_add_special_tokens(text_ids) for text_ids in ids]
        text = row = 0
        for vectors, sentence_vectors in self._network.run(
            inputs, self.layer if tokens else None, sentences
        ):
            count = len(sentence_vectors)
            if sentences:
                result.sentences[text : text + count] = sentence_vectors
            if tokens:
                token_vectors = vectors[_token_rows(ids[text : text + count])]
                result.vectors[row : row + len(token_vectors)] = token_vectors
                row += len(token_vectors)
            text += count


def _add_special_tokens(ids: Sequence[int]) -> IntArray:
    """Return the network's input; an empty text is one unknown token."""
    return np.array([BEGIN, *(ids or [UNKNOWN_ID]), END], dtype=np.int64)


def _token_rows(ids: Sequence[Sequence[int]]) -> IntArray:
    """Return the rows of the network's output that belong to tokens of the texts."""
    starts = offsets_from_lengths([max(len(text_ids), 1) + 2 for text_ids in ids])[:-1] + 1
    return expand_ranges(starts, starts + np.array([len(text_ids) for text_ids in ids]))


@lru_cache(maxsize=1)
def _load_model(folder: Path) -> tuple[SentencePieceTokenizer, UniversalNetwork]:
    return SentencePieceTokenizer(folder / "sp.model"), UniversalNetwork(folder / "weights.npz")


def load(
    name: EncoderName, *, precision: str, long: str, special: bool, device: str
) -> UniversalEncoder:
    """Load `use` or `use@LAYER`; special tokens are never token_vectors."""
    if precision != "fp32":
        raise UsageError(f"encoder use supports only fp32, not {precision}")
    layer = name.layer or str(MODEL_CARDS["use"].layer)
    if layer not in map(str, LAYERS):
        raise UnknownNameError("layer of use", layer, map(str, LAYERS))
    require_modules("tokenizers", purpose=f"encoder {name}", also=missing_extras(name))
    return UniversalEncoder(weights=locate_weights(name), layer=int(layer))
