"""The Universal Sentence Encoder, multilingual v3: one vector space for fifteen languages.

Sentence vectors are the model's own; token vectors are those of a layer. The weights come from an
installed package, the computation is our own, as batched matrix products:

    x   = LN(E W_p + b_p)                            # three parts of 256, one per window size n
    h_n = relu(conv_n(x_n)) + x_n                    # first layer
    c_n = relu(conv_n(h_n)) + h_n                    # second layer
    f   = LN([E ; c_2 ; c_3 ; c_5])                  # 1280 per token, contextual
    t   = f W + b                                    # 512 per token, its share of the sentence
    s   = tanh(feedforward(sum(t) / sqrt(n)))        # 512 per text, of length 1

E embeds tokens; convolution windows have n = 2, 3, 5 tokens. The first convolution sums terms that
depend on a single token; they are computed once per distinct token of a batch, which saves half of
the arithmetic. Products are exact (`arrays.round_to_grid`), so results are batch-invariant.
Reference: Yang et al. 2020, arXiv:1907.04307.

The tokenizer is a SentencePiece unigram model, read from its file and run by `tokenizers`. The file
is a protocol buffer. Its tokens (field 1, each with a text and a score) come first. The text
normalization table is field 2 of the settings in field 3.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tertium.core.arrays import Float32Array, FloatArray, IntArray, round_to_grid
from tertium.core.errors import UsageError
from tertium.core.extras import explain_missing, require_modules
from tertium.encoders.batching import split_by_size
from tertium.encoders.encoder import Embeddings, EncoderName, make_embeddings, offsets_from_lengths
from tertium.encoders.tokenizer import TokenizedText, certainly_has_known_token, find_longer
from tertium.encoders.weight_files import MODEL_CARDS, WeightFolder, locate_weights, missing_extras
from tertium.text.length_limits import MAX_ENCODED_TOKENS

UNKNOWN_ID = 0
SPACE = "\u2581"
# First bytes of a token, the settings and the table.
TOKEN = 0x0A
SETTINGS = 0x1A
TABLE = 0x12

_UNKNOWN_PARTS = re.compile("<unk>|.", re.DOTALL)


class SentencePieceTokenizer:
    """Splits texts into tokens of a SentencePiece unigram model; unknown characters are tokens.

    A blank text has no tokens.
    """

    def __init__(self, path: Path) -> None:
        with explain_missing("a SentencePiece model"):
            from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
        vocabulary, table = _read_model(path)
        steps: list[Any] = [
            normalizers.Precompiled(table),
            normalizers.Replace(Regex(" {2,}"), " "),
            normalizers.Strip(),
        ]
        metaspace = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always")
        self._tokenizer = Tokenizer(models.Unigram(vocabulary, UNKNOWN_ID, False))
        self._tokenizer.normalizer = normalizers.Sequence(steps)
        self._tokenizer.pre_tokenizer = metaspace

    def __call__(self, texts: Sequence[str]) -> list[TokenizedText]:
        valid = [text.encode(errors="replace").decode() for text in texts]
        encodings = self._tokenizer.encode_batch(valid, add_special_tokens=False)
        return [_split_unknown(encoding.ids, encoding.tokens) for encoding in encodings]


def _split_unknown(ids: Sequence[int], tokens: Sequence[str]) -> TokenizedText:
    """Split tokens that join several unknown characters."""
    if UNKNOWN_ID not in ids:
        return TokenizedText(tuple(tokens), tuple(ids))
    pairs = [
        (part, token_id)
        for token_id, token in zip(ids, tokens, strict=True)
        for part in (_UNKNOWN_PARTS.findall(token) if token_id == UNKNOWN_ID else [token])
    ]
    return TokenizedText(tuple(part for part, _ in pairs), tuple(number for _, number in pairs))


def _read_model(path: Path) -> tuple[list[tuple[str, float]], bytes]:
    """Read the (token, score) list of a SentencePiece file and its normalization table."""
    fields = list(_iter_fields(path.read_bytes()))
    vocabulary: list[tuple[str, float]] = []
    for tag, token in fields:
        if tag == TOKEN:  # 0x0A, size of the text, text, 0x15, score
            end = 2 + token[1]
            vocabulary.append((token[2:end].decode(), *struct.unpack_from("<f", token, end + 1)))
    return vocabulary, dict(_iter_fields(dict(fields)[SETTINGS]))[TABLE]


def _iter_fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the fields of a message up to the first number, by their first byte."""
    position = 0
    while position < len(data) and data[position] & 7 == 2:
        size = shift = 0
        tag = data[position]
        while True:
            position += 1
            size |= (data[position] & 0x7F) << shift
            shift += 7
            if data[position] < 0x80:
                break
        yield tag, data[position + 1 : position + 1 + size]
        position += 1 + size


WINDOWS = ((2, 0), (3, 1), (5, 2))  # (size, tokens to the left) of each convolution
REACH = 2  # tokens that the widest window covers on either side
WIDTH = 256  # channels of a convolution
EMBEDDING = 512
TABLE_PARTS = 17  # the embedding table is stored in interleaved parts with separate scales
BATCH_TOKENS = 32_768  # tokens that share one set of token tables
BLOCK_TOKENS = 1_024  # tokens convolved together: fits into a core's cache


class UniversalNetwork:
    """The weights and the forward pass: token ids in, vectors out."""

    def __init__(self, path: Path) -> None:
        with np.load(path, allow_pickle=False) as stored:
            first = stored["q1"]
            self.table = np.empty((TABLE_PARTS * len(first), EMBEDDING), dtype=np.uint8)
            for part in range(TABLE_PARTS):
                self.table[part::TABLE_PARTS] = stored[f"q{part + 1}"]
            self.weights = {key: stored[key] for key in stored.files if key[0] != "q"}
        w = self.weights
        sizes = [n for n, _ in WINDOWS]
        self.epsilon = float(w["eps"])

        def join(name: str) -> Float32Array:
            """Concatenate the weights of all windows."""
            return np.concatenate([w[f"{name}{n}"] for n in sizes], axis=-1)

        self.project = _columns_on_grid(join("proj"))
        self.first = {
            n: [_columns_on_grid(part) for part in w[f"w1_{n}"].reshape(n, WIDTH, WIDTH)]
            for n in sizes
        }
        names = "cnn_W p1 d0 d1 p3 d2 d3 w2_2 w2_3 w2_5".split()
        self.exact = {name: _columns_on_grid(w[name]) for name in names}
        self.bias = join("proj_b")
        self.gain = join("ln_g")
        self.shift = join("ln_b")

    def run(
        self, texts: Sequence[IntArray], tokens: bool, sentences: bool
    ) -> Iterator[tuple[list[Float32Array], Float32Array]]:
        """Yield the requested vectors of blocks of n texts: n x (tokens, 512), and (n, 512)."""
        for batch in split_by_size(texts, map(len, texts), BATCH_TOKENS):
            tables = TokenTables(self, np.unique(np.concatenate(batch)))
            for block in split_by_size(batch, map(len, batch), BLOCK_TOKENS):
                lengths = np.array([len(text) for text in block])
                starts = offsets_from_lengths(lengths)[:-1]
                features = self._compute_features(tables, block, lengths)
                shares = np.zeros((len(features), 0), dtype=np.float32)
                if tokens:
                    shares = _product(features, self.exact["cnn_W"]) + self.weights["cnn_b"]
                summary = np.zeros((len(block), 0), dtype=np.float32)
                if sentences:
                    summary = self._summarize(np.add.reduceat(features, starts), lengths)
                yield np.split(shares, starts[1:]), summary

    def _compute_features(
        self, tables: TokenTables, texts: Sequence[IntArray], lengths: IntArray
    ) -> Float32Array:
        """Compute the contextual vectors f of all tokens, (tokens, 1280)."""
        rows, codes = tables.arrange(texts, lengths)
        columns = [tables.embedded[codes[rows]]]
        for k, h in enumerate(tables.convolve_first(codes)):
            columns.append(self._convolve_second(k, h)[rows - REACH])
        features = np.concatenate(columns, axis=1)
        return self.normalize(features, self.weights["ln_g"], self.weights["ln_b"])

    def _convolve_second(self, k: int, h: Float32Array) -> Float32Array:
        """Apply the second layer of window k, (n, 256) -> (n - 2 REACH, 256)."""
        size, left = WINDOWS[k]
        inner = len(h) - 2 * REACH
        starts = [REACH - left + offset for offset in range(size)]
        windows = np.concatenate([h[start : start + inner] for start in starts], axis=1)
        c = _product(windows, self.exact[f"w2_{size}"])  # (inner, size * 256) @ (size * 256, 256)
        c += self.weights[f"b2_{size}"]
        np.maximum(c, 0, out=c)
        result: Float32Array = np.add(c, h[REACH : REACH + inner], out=c)
        return result

    def _summarize(self, totals: Float32Array, lengths: IntArray) -> Float32Array:
        w = self.exact
        size = lengths.astype(np.float32)[:, None]
        mean = (_product(totals, w["cnn_W"]) + size * self.weights["cnn_b"]) / np.sqrt(size)
        y = _relu(_product(mean, w["p1"]) + _product(_relu(_product(mean, w["d0"])), w["d1"]))
        z: Float32Array = np.tanh(
            _product(y, w["p3"]) + _product(_relu(_product(y, w["d2"])), w["d3"])
        )
        squares = np.einsum("ij,ij->i", z, z)
        z /= np.sqrt(np.maximum(squares, self.epsilon))[:, None]
        return z

    def embed(self, ids: IntArray) -> Float32Array:
        """Look up the embeddings of token ids, (n, 512), in the 8-bit table."""
        part = ids % TABLE_PARTS
        vectors = self.table[ids].astype(np.float32)
        vectors *= self.weights["scale"][part, None]
        vectors += self.weights["lo"][part, None]
        return vectors

    def normalize(self, x: Float32Array, gain: Float32Array, shift: Float32Array) -> Float32Array:
        """Apply layer normalization to each row, in place."""
        x -= x.mean(axis=1, keepdims=True)
        variance = np.einsum("ij,ij->i", x, x) / x.shape[1]
        x *= (1.0 / np.sqrt(variance + self.epsilon)).astype(np.float32)[:, None]
        x *= gain
        x += shift
        return x


class TokenTables:
    """The results that depend on a single token; the last row is zero, for gaps between texts."""

    def __init__(self, network: UniversalNetwork, ids: IntArray) -> None:
        self.ids = ids
        self.weights = network.weights
        self.embedded = network.embed(ids)  # (tokens, 512)
        x = network.normalize(
            _product(self.embedded, network.project) + network.bias, network.gain, network.shift
        )
        self.inputs: list[Float32Array] = []  # per window, (tokens + 1, 256)
        self.kernel_products: list[list[Float32Array]] = []  # also per position in the window
        for k, (size, _) in enumerate(WINDOWS):
            x_n = np.pad(x[:, k * WIDTH : (k + 1) * WIDTH], ((0, 1), (0, 0)))
            self.inputs.append(x_n)
            self.kernel_products.append([_product(x_n, kernel) for kernel in network.first[size]])

    def arrange(self, texts: Sequence[IntArray], lengths: IntArray) -> tuple[IntArray, IntArray]:
        """Concatenate texts with gaps; return the row of each token, and the code of each row."""
        n = int(lengths.sum())
        rows = np.arange(n) + np.repeat(REACH * np.arange(1, len(texts) + 1), lengths)
        codes = np.full(n + REACH * (len(texts) + 1), len(self.ids))
        codes[rows] = np.searchsorted(self.ids, np.concatenate(texts))
        return rows, codes

    def convolve_first(self, codes: IntArray) -> Iterator[Float32Array]:
        """Yield the first layer of each window, (len(codes), 256); gaps are zero."""
        inner = len(codes) - 2 * REACH
        gaps = np.flatnonzero(codes == len(self.ids))
        for k, (size, left) in enumerate(WINDOWS):
            h = np.zeros((len(codes), WIDTH), dtype=np.float32)
            core = h[REACH : REACH + inner]
            core += self.weights[f"b1_{size}"]
            for offset, product in enumerate(self.kernel_products[k]):
                start = REACH - left + offset
                core += product.take(codes[start : start + inner], axis=0)
            np.maximum(core, 0, out=core)
            core += self.inputs[k].take(codes[REACH : REACH + inner], axis=0)
            h[gaps] = 0
            yield h


def _columns_on_grid(weights: Float32Array) -> FloatArray:
    """Prepare weights (d, m) as the right side of an exact product."""
    return np.ascontiguousarray(round_to_grid(weights.T).T)


def _product(x: Float32Array, weights: FloatArray) -> Float32Array:
    """Compute x (n, d) @ weights (d, m) exactly, so that rows do not affect each other."""
    result: Float32Array = (round_to_grid(x) @ weights).astype(np.float32)
    return result


def _relu(x: Float32Array) -> Float32Array:
    return np.maximum(x, 0)


BEGIN = 1
END = 2
LAYER = "3"  # of the token vectors, after the embeddings and two convolutions


@dataclass(frozen=True, kw_only=True, eq=False)
class UniversalEncoder:
    """USE multilingual v3 (Arabic, Chinese, Dutch, English, French, German, Italian, Japanese,
    Korean, Polish, Portuguese, Russian, Spanish, Thai, Turkish).

    Token vectors are a token's share of its sentence. Texts in other languages get meaningless
    vectors. Computation is in numpy, always on the CPU.
    """

    weights: WeightFolder
    name: ClassVar[str] = f"use@{LAYER}"
    dim: ClassVar[int] = EMBEDDING
    languages: ClassVar[frozenset[str]] = MODEL_CARDS["use"].languages
    sentence_dim: ClassVar[int] = EMBEDDING
    layers: ClassVar[int] = 1
    max_length: ClassVar[int] = MAX_ENCODED_TOKENS

    @property
    def weights_hash(self) -> str:
        return self.weights.hash

    def encode(
        self, texts: Sequence[str], *, tokens: bool = True, sentences: bool = True
    ) -> Embeddings:
        complete = self._tokenizer(texts)
        read = [text.truncate(MAX_ENCODED_TOKENS) for text in complete]
        inputs = [np.array([BEGIN, *(text.ids or (UNKNOWN_ID,)), END]) for text in read]
        matrices: list[Float32Array] = []
        summaries = [np.zeros((0, EMBEDDING * sentences), dtype=np.float32)]
        for block, block_sentences in self._network.run(inputs, tokens, sentences):
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
        return {"model": f"use@{self.weights_hash[:8]}", "layer": LAYER, "prec": "fp32"}

    def fingerprint(self, part: str) -> str:
        layer = LAYER if part == "tokens" else "pooled"
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


def load(name: EncoderName, *, precision: str, special: bool, device: str) -> UniversalEncoder:
    """Load `use` or `use@LAYER`; special tokens are never token_vectors."""
    if name.layer not in ("", LAYER):
        raise UsageError(f"encoder {name}: use has no layer {name.layer}, only {LAYER}")
    require_modules("tokenizers", purpose=f"encoder {name}", also=missing_extras(name))
    return UniversalEncoder(weights=locate_weights(name))
