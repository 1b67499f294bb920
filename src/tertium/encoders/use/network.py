"""The forward pass of the Universal Sentence Encoder, multilingual v3, as batched matrix products.

    x   = LN(E W_p + b_p)                            # three parts of 256, one for each window n
    h_n = relu(conv_n(x_n)) + x_n                    # first layer
    c_n = relu(conv_n(h_n)) + h_n                    # second layer
    f   = LN([E ; c_2 ; c_3 ; c_5])                  # 1280, one for each piece, in context
    t   = f W + b                                    # 512, the piece's share of its sentence
    s   = tanh(feedforward(sum(t) / sqrt(n)))        # 512, of length 1

E embeds pieces; n = 2, 3, 5 pieces is a window of convolution. Up to the first convolution a
piece's share depends on the piece alone, so it is computed once for each distinct piece of a batch
and only added up in the windows: half of the arithmetic is saved. Products are exact (`arrays`), so
that a text's vectors do not depend on the others of its batch. (Yang et al. 2020,
arXiv:1907.04307.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tertium.arrays import Float32Array, FloatArray, IntArray, on_grid
from tertium.encoders.encoder import deal, offsets_of

WINDOWS = ((2, 0), (3, 1), (5, 2))  # (pieces, of them to the left) of each convolution
REACH = 2  # how far the widest window looks to either side
WIDTH = 256  # channels of a convolution
EMBEDDING = 512
CHUNKS = 17  # the embedding table is stored in as many interleaved, separately scaled parts
BATCH_TOKENS = 32_768  # pieces whose distinct ones are embedded together
BLOCK_TOKENS = 1_024  # pieces convolved together: what stays in a core's cache

LAYERS = {0: EMBEDDING, 1: 3 * WIDTH, 2: EMBEDDING + 3 * WIDTH, 3: EMBEDDING}


class UniversalNetwork:
    """The weights and the forward pass; numbers of pieces in, vectors out."""

    def __init__(self, path: Path) -> None:
        with np.load(path, allow_pickle=False) as stored:
            first = stored["q1"]
            self.table = np.empty((CHUNKS * len(first), EMBEDDING), dtype=np.uint8)
            for chunk in range(CHUNKS):
                self.table[chunk::CHUNKS] = stored[f"q{chunk + 1}"]
            self.weights = {key: stored[key] for key in stored.files if key[0] != "q"}
        w, sizes = self.weights, [n for n, _ in WINDOWS]
        self.epsilon = float(w["eps"])
        self.project = _columns_on_grid(np.concatenate([w[f"proj{n}"] for n in sizes], axis=1))
        self.first = {
            n: [_columns_on_grid(part) for part in w[f"w1_{n}"].reshape(n, WIDTH, WIDTH)]
            for n in sizes
        }
        multiplied = ["cnn_W", "p1", "d0", "d1", "p3", "d2", "d3", *(f"w2_{n}" for n in sizes)]
        self.exact = {name: _columns_on_grid(w[name]) for name in multiplied}
        self.bias = np.concatenate([w[f"proj_b{n}"] for n in sizes])
        self.gain = np.concatenate([w[f"ln_g{n}"] for n in sizes])
        self.shift = np.concatenate([w[f"ln_b{n}"] for n in sizes])

    def run(
        self, texts: Sequence[IntArray], layer: int | None, sentences: bool
    ) -> Iterator[tuple[Float32Array, Float32Array]]:
        """For each block of texts its token vectors (tokens, dim) and sentence vectors (n, 512).

        What is not asked for has a width of zero.
        """
        for batch in deal(texts, map(len, texts), BATCH_TOKENS):
            pieces = DistinctPieces(self, np.unique(np.concatenate(batch)))
            for block in deal(batch, map(len, batch), BLOCK_TOKENS):
                yield self._block(pieces, block, layer, sentences)

    def _block(
        self, pieces: DistinctPieces, texts: Sequence[IntArray], layer: int | None, sentences: bool
    ) -> tuple[Float32Array, Float32Array]:
        lengths = np.array([len(text) for text in texts])
        rows, codes = pieces.lay_out(texts, lengths)
        tokens = np.zeros((len(rows), 0), dtype=np.float32)
        summary = np.zeros((len(texts), 0), dtype=np.float32)
        if layer == 0:
            tokens = pieces.embedded[codes[rows]]
        elif layer == 1:
            tokens = np.concatenate([h[rows] for h in pieces.convolve_once(codes)], axis=1)
        if layer in (2, 3) or sentences:
            features = self._features(pieces, rows, codes)
            if layer == 2:
                tokens = features
            elif layer == 3:
                tokens = _product(features, self.exact["cnn_W"]) + self.weights["cnn_b"]
            if sentences:
                totals = np.add.reduceat(features, offsets_of(lengths)[:-1])
                summary = self._summarize(totals, lengths)
        return tokens, summary

    def _features(self, pieces: DistinctPieces, rows: IntArray, codes: IntArray) -> Float32Array:
        """Pieces in context, (tokens, 1280)."""
        features = np.empty((len(rows), LAYERS[2]), dtype=np.float32)
        features[:, :EMBEDDING] = pieces.embedded.take(codes[rows], axis=0)
        for k, h in enumerate(pieces.convolve_once(codes)):
            start = EMBEDDING + k * WIDTH
            features[:, start : start + WIDTH] = self._convolve_again(k, h).take(
                rows - REACH, axis=0
            )
        return self.normalise(features, self.weights["ln_g"], self.weights["ln_b"])

    def _convolve_again(self, k: int, h: Float32Array) -> Float32Array:
        """The second layer of window k over the first, (n, 256) -> (n - 2 REACH, 256)."""
        size, left = WINDOWS[k]
        inner = len(h) - 2 * REACH
        starts = [REACH - left + place for place in range(size)]
        windows = np.concatenate([h[start : start + inner] for start in starts], axis=1)
        c = _product(windows, self.exact[f"w2_{size}"])  # (inner, size * 256) @ (.., 256)
        c += self.weights[f"b2_{size}"]
        np.maximum(c, 0, out=c)
        result: Float32Array = np.add(c, h[REACH : REACH + inner], out=c)
        return result

    def _summarize(self, totals: Float32Array, lengths: IntArray) -> Float32Array:
        """Sums of features (n, 1280) over texts of these lengths to sentence vectors (n, 512)."""
        w, size = self.exact, lengths.astype(np.float32)[:, None]
        mean = (_product(totals, w["cnn_W"]) + size * self.weights["cnn_b"]) / np.sqrt(size)
        y = _relu(_product(mean, w["p1"]) + _product(_relu(_product(mean, w["d0"])), w["d1"]))
        z: Float32Array = np.tanh(
            _product(y, w["p3"]) + _product(_relu(_product(y, w["d2"])), w["d3"])
        )
        squares = np.einsum("ij,ij->i", z, z)
        z /= np.sqrt(np.maximum(squares, self.epsilon))[:, None]
        return z

    def embed(self, numbers: IntArray) -> Float32Array:
        """The embeddings of pieces, (n, 512), from their eight-bit table."""
        chunk = numbers % CHUNKS
        vectors = self.table[numbers].astype(np.float32)
        vectors *= self.weights["scale"][chunk, None]
        vectors += self.weights["lo"][chunk, None]
        return vectors

    def normalise(self, x: Float32Array, gain: Float32Array, shift: Float32Array) -> Float32Array:
        """Layer normalisation of each row, in place."""
        x -= x.mean(axis=1, keepdims=True)
        variance = np.einsum("ij,ij->i", x, x) / x.shape[1]
        x *= (1.0 / np.sqrt(variance + self.epsilon)).astype(np.float32)[:, None]
        x *= gain
        x += shift
        return x


class DistinctPieces:
    """What of the network depends on a piece alone, for the distinct pieces of a batch.

    The last row of each table is the zero piece, which fills the gaps between texts.
    """

    def __init__(self, network: UniversalNetwork, numbers: IntArray) -> None:
        self.numbers = numbers
        self.weights = network.weights
        self.embedded = network.embed(numbers)  # (pieces, 512)
        x = network.normalise(
            _product(self.embedded, network.project) + network.bias, network.gain, network.shift
        )
        self.inputs: list[Float32Array] = []  # for each window (pieces + 1, 256)
        self.shares: list[list[Float32Array]] = []  # and for each place in it, the same shape
        for k, (size, _) in enumerate(WINDOWS):
            own = np.pad(x[:, k * WIDTH : (k + 1) * WIDTH], ((0, 1), (0, 0)))
            self.inputs.append(own)
            self.shares.append([_product(own, kernel) for kernel in network.first[size]])

    def lay_out(self, texts: Sequence[IntArray], lengths: IntArray) -> tuple[IntArray, IntArray]:
        """Texts in one row with gaps around them: the places of their pieces, the piece at each."""
        n = int(lengths.sum())
        rows = np.arange(n) + np.repeat(REACH * np.arange(1, len(texts) + 1), lengths)
        codes = np.full(n + REACH * (len(texts) + 1), len(self.numbers))
        codes[rows] = np.searchsorted(self.numbers, np.concatenate(texts))
        return rows, codes

    def convolve_once(self, codes: IntArray) -> Iterator[Float32Array]:
        """The first layer of each window over a row of pieces, (len(codes), 256); gaps are zero."""
        inner = len(codes) - 2 * REACH
        gaps = np.flatnonzero(codes == len(self.numbers))
        for k, (size, left) in enumerate(WINDOWS):
            h = np.zeros((len(codes), WIDTH), dtype=np.float32)
            core = h[REACH : REACH + inner]
            core += self.weights[f"b1_{size}"]
            for place, share in enumerate(self.shares[k]):
                start = REACH - left + place
                core += share.take(codes[start : start + inner], axis=0)
            np.maximum(core, 0, out=core)
            core += self.inputs[k].take(codes[REACH : REACH + inner], axis=0)
            h[gaps] = 0
            yield h


def _columns_on_grid(weights: Float32Array) -> FloatArray:
    """Weights (d, m) as the right side of an exact product."""
    return np.ascontiguousarray(on_grid(weights.T).T)


def _product(x: Float32Array, weights: FloatArray) -> Float32Array:
    """x (n, d) @ weights (d, m), each row as if it stood alone."""
    result: Float32Array = (on_grid(x) @ weights).astype(np.float32)
    return result


def _relu(x: Float32Array) -> Float32Array:
    return np.maximum(x, 0)
