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

from tertium.core.arrays import Float32Array
from tertium.core.errors import UnknownNameError, UsageError
from tertium.core.extras import require_modules
from tertium.encoders.encoder import Embeddings, EncoderName, make_embeddings
from tertium.encoders.model_cards import MODEL_CARDS
from tertium.encoders.tokenizer import certainly_has_known_token, find_longer
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
        complete = self._tokenizer(texts)
        read = [text.truncate(MAX_ENCODED_TOKENS) for text in complete]
        inputs = [np.array([BEGIN, *(text.ids or (UNKNOWN_ID,)), END]) for text in read]
        layer = self.layer if tokens else None
        matrices: list[Float32Array] = []
        summaries = [np.zeros((0, EMBEDDING * sentences), dtype=np.float32)]
        for block, block_sentences in self._network.run(inputs, layer, sentences):
            matrices += block
            summaries.append(block_sentences)
        return make_embeddings(
            [m[1 : 1 + len(text) * tokens] for m, text in zip(matrices, read, strict=True)],
            [text.tokens if tokens else () for text in read],
            np.concatenate(summaries),
            [len(text) > MAX_ENCODED_TOKENS for text in complete],
            self.dim,
        )

    def tokenize(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        return [text.truncate(MAX_ENCODED_TOKENS).tokens for text in self._tokenizer(texts)]

    def find_truncated(self, texts: Sequence[str]) -> set[str]:
        return find_longer(texts, MAX_ENCODED_TOKENS, self._tokenizer)

    def find_out_of_vocabulary(self, texts: Sequence[str]) -> set[str]:
        candidates = [text for text in texts if not certainly_has_known_token(text)]
        tokenized = zip(candidates, self._tokenizer(candidates), strict=True)
        return {text for text, pieces in tokenized if {*pieces.ids} == {UNKNOWN_ID}}

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
