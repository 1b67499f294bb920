"""Encode each distinct text once, in bounded memory, and reuse cached vectors.

`compare_pairs` takes all text pairs of a metric, groups them by their right text (a reference with
the hypotheses of all systems), splits the groups into chunks of bounded size, and applies the
metric's formula to each chunk and its vectors:

    scores = compare_pairs(encoder, hypotheses, references, lambda chunk: ...)  # (n,) or (n, k)

Vectors are read from memory, then from disk; only the missing ones are computed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tertium.core.arrays import FloatArray, IntArray
from tertium.core.runtime import MEGABYTE, current_runtime, progress_task
from tertium.encoders.encoder import Embeddings, Encoder, make_embeddings
from tertium.encoders.transformer_encoder import TransformerEncoder
from tertium.encoders.vector_cache import CacheEntry, find_cached_texts, get_entries, put_entries

CHUNK_BYTES = 96 * MEGABYTE
MAX_CHUNK_TEXTS = 8192  # a text has a cost besides the bytes of its vectors
Request = tuple[Encoder, str]  # an encoder and a part, "tokens" or "sentences"

_shared_requests: ContextVar[tuple[Request, ...]] = ContextVar("shared_requests", default=())


@dataclass(frozen=True, kw_only=True, eq=False)
class Chunk:
    """Some text pairs, their texts and the vectors of these.

    Pair `pairs[j]` of the caller is rows `left[j]` and `right[j]` of `texts` and `embeddings`.
    """

    pairs: IntArray
    left: IntArray
    right: IntArray
    embeddings: Embeddings
    texts: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.pairs)

    def groups(self) -> Iterator[tuple[int, slice]]:
        """Yield each right text's row and the slice of the pairs that contain it."""
        edges = np.flatnonzero(np.diff(self.right)) + 1
        bounds = [0, *edges.tolist(), len(self)] if len(self) else []
        for start, stop in itertools.pairwise(bounds):
            yield int(self.right[start]), slice(start, stop)


def compare_pairs(
    encoder: Encoder,
    left: Sequence[str],
    right: Sequence[str],
    function: Callable[[Chunk], NDArray[np.floating]],
    *,
    tokens: bool = True,
    sentences: bool = False,
) -> FloatArray:
    """Compare left[i] with right[i]: `function` maps a chunk of m pairs to (m,) or (m, k).

    Equal pairs are computed once, so they have exactly equal scores.

    >>> from tertium.encoders.toy_encoder import ToyEncoder
    >>> def cosine(chunk):
    ...     v = chunk.embeddings.sentences
    ...     return (v[chunk.left] * v[chunk.right]).sum(axis=1)
    >>> texts = ["a", "b", "a"], ["a", "a", "a"]
    >>> compare_pairs(ToyEncoder(), *texts, cosine, sentences=True).round(3)
    array([1.   , 0.094, 1.   ])
    """
    numbers: dict[tuple[str, str], int] = {}
    rows = [numbers.setdefault(pair, len(numbers)) for pair in zip(left, right, strict=True)]
    distinct = [pair[0] for pair in numbers], [pair[1] for pair in numbers]
    values: list[FloatArray] = []
    pairs: list[IntArray] = []
    for chunk in iter_chunks(encoder, *distinct, tokens=tokens, sentences=sentences):
        values.append(np.asarray(function(chunk), dtype=np.float64))
        pairs.append(chunk.pairs)
    if not pairs:
        return np.zeros(0)
    return np.concatenate(values)[np.argsort(np.concatenate(pairs))[rows]]


def iter_chunks(
    encoder: Encoder,
    left: Sequence[str],
    right: Sequence[str],
    *,
    tokens: bool = True,
    sentences: bool = False,
) -> Iterator[Chunk]:
    """Yield the pairs left[i], right[i] in chunks of bounded size, grouped by right text."""
    ids: dict[str, int] = {}
    right_ids = np.array([ids.setdefault(t, len(ids)) for t in right], dtype=np.int64)
    left_ids = np.array([ids.setdefault(t, len(ids)) for t in left], dtype=np.int64)
    texts = list(ids)
    order = np.argsort(right_ids, kind="stable")
    sizes = _estimate_bytes(encoder, texts, tokens)
    with progress_task(f"comparing by {encoder.name}", total=len(left)) as advance:
        for pairs in _split_chunks(order, left_ids, right_ids, sizes):
            rows = np.unique(np.concatenate([left_ids[pairs], right_ids[pairs]]))
            chunk_texts = [texts[row] for row in rows]
            yield Chunk(
                pairs=pairs,
                left=np.searchsorted(rows, left_ids[pairs]),
                right=np.searchsorted(rows, right_ids[pairs]),
                embeddings=_embed_chunk(encoder, chunk_texts, tokens, sentences),
                texts=chunk_texts,
            )
            advance(len(pairs))


def stream_embeddings(
    encoder: Encoder, texts: Sequence[str], *, tokens: bool = True, sentences: bool = True
) -> Iterator[Embeddings]:
    """Yield the vectors of distinct texts in order, in parts of bounded size.

    >>> from tertium.encoders.toy_encoder import ToyEncoder
    >>> [e.tokens for e in stream_embeddings(ToyEncoder(), ["a cat", "a dog"])]
    [(('a', 'cat'), ('a', 'dog'))]
    """
    for chunk in iter_chunks(encoder, texts, texts, tokens=tokens, sentences=sentences):
        yield chunk.embeddings


def embed_texts(
    encoder: Encoder, texts: Sequence[str], *, tokens: bool = True, sentences: bool = True
) -> Embeddings:
    """Return the vectors of all texts at once; `stream_embeddings` needs less memory."""
    numbers: dict[str, int] = {}
    rows = [numbers.setdefault(text, len(numbers)) for text in texts]
    if not texts:
        return encoder.encode(texts, tokens=tokens, sentences=sentences)
    parts = list(stream_embeddings(encoder, list(numbers), tokens=tokens, sentences=sentences))
    return make_embeddings(
        [matrix for part in parts for matrix in part],
        [text_tokens for part in parts for text_tokens in part.tokens],
        np.concatenate([part.sentences for part in parts]),
        np.concatenate([part.truncated for part in parts]),
        encoder.dim,
    ).take(rows)


def _estimate_bytes(encoder: Encoder, texts: Sequence[str], tokens: bool) -> list[int]:
    """Estimate the bytes of each text's vectors, with one token per four bytes of UTF-8."""
    width = 4 * encoder.dim if tokens else 0
    minimum = CHUNK_BYTES // MAX_CHUNK_TEXTS
    return [max(minimum, width * (len(text.encode(errors="replace")) // 4 + 2)) for text in texts]


def _split_chunks(
    order: IntArray, left: IntArray, right: IntArray, sizes: Sequence[int]
) -> Iterator[IntArray]:
    """Split pairs, in this order, where the distinct texts of a chunk exceed `CHUNK_BYTES`."""
    seen: set[int] = set()
    start = total = 0
    for position, pair in enumerate(order.tolist()):
        texts = {int(left[pair]), int(right[pair])}
        total += sum(sizes[text] for text in texts - seen)
        if total > CHUNK_BYTES and position > start:
            yield order[start:position]
            start = position
            seen = set()
            total = sum(sizes[text] for text in texts)
        seen |= texts
    if len(order):
        yield order[start:]


@contextmanager
def share_encoding(requests: Iterable[Request]) -> Iterator[None]:
    """Announce the requests of a run, so that one pass serves all metrics of a backbone."""
    token = _shared_requests.set(_shared_requests.get() + tuple(requests))
    try:
        yield
    finally:
        _shared_requests.reset(token)


def _embed_chunk(
    encoder: Encoder, texts: Sequence[str], tokens: bool, sentences: bool
) -> Embeddings:
    """Return the vectors of distinct texts: from memory, from disk, or computed."""
    runtime = current_runtime()
    parts = [part for part, on in (("tokens", tokens), ("sentences", sentences)) if on]
    if not (runtime.cache or runtime.memory) or not all(map(encoder.fingerprint, parts)):
        return encoder.encode(texts, tokens=tokens, sentences=sentences)
    entries = {part: get_entries(encoder.fingerprint(part), texts) for part in parts}
    missing = [text for text in texts if any(text not in cached for cached in entries.values())]
    if missing:
        _compute_entries(encoder, missing, entries)
    empty = CacheEntry(np.zeros((0, encoder.dim), dtype=np.float32), (), False)
    columns = {part: [cached[text] for text in texts] for part, cached in entries.items()}
    token_entries = columns.get("tokens", [empty] * len(texts))
    vectors = [entry.matrix for entry in columns.get("sentences", ())]
    return make_embeddings(
        [entry.matrix for entry in token_entries],
        [entry.tokens for entry in token_entries],
        np.stack(vectors) if vectors else np.zeros((len(texts), 0), dtype=np.float32),
        [entry.truncated for entry in next(iter(columns.values()), token_entries)],
        encoder.dim,
    )


def _compute_entries(
    encoder: Encoder, texts: Sequence[str], entries: dict[str, dict[str, CacheEntry]]
) -> None:
    """Encode texts and add their entries here and to the cache, also those of announced requests.

    `entries` has the cached entries by part; a part that all texts have is not computed.
    """
    requests: list[tuple[Request, Collection[str]]] = [
        ((encoder, part), cached) for part, cached in entries.items()
    ]
    requests += _find_shared_requests(encoder, entries, texts)
    requests = [(request, cached) for request, cached in requests if not {*texts} <= {*cached}]
    results = _run_requests(encoder, texts, [request for request, _ in requests])
    for ((owner, part), cached), result in zip(requests, results, strict=True):
        computed = zip(texts, _make_entries(result, part), strict=True)
        new = {text: entry for text, entry in computed if text not in cached}
        put_entries(owner.fingerprint(part), new)
        if owner is encoder and part in entries:
            entries[part].update(new)


def _find_shared_requests(
    encoder: Encoder, parts: Iterable[str], texts: Sequence[str]
) -> Iterator[tuple[Request, Collection[str]]]:
    """Yield the announced requests for this encoder's backbone, and their cached texts."""
    if not isinstance(encoder, TransformerEncoder):
        return
    fingerprints = {encoder.fingerprint(part) for part in parts}
    for other, part in _shared_requests.get():
        if isinstance(other, TransformerEncoder) and other.backbone == encoder.backbone:
            fingerprint = other.fingerprint(part)
            if fingerprint not in fingerprints:
                fingerprints.add(fingerprint)
                yield (other, part), find_cached_texts(fingerprint, texts)


def _run_requests(
    encoder: Encoder, texts: Sequence[str], requests: Sequence[Request]
) -> list[Embeddings]:
    if isinstance(encoder, TransformerEncoder):
        return encoder.encode_requests(texts, requests)
    parts = {part for _, part in requests}
    result = encoder.encode(texts, tokens="tokens" in parts, sentences="sentences" in parts)
    return [result] * len(requests)


def _make_entries(result: Embeddings, part: str) -> Iterator[CacheEntry]:
    """Yield a copy of each text's vectors: a view would keep the whole result."""
    for i in range(len(result)):
        is_truncated = bool(result.truncated[i])
        if part == "tokens":
            yield CacheEntry(result.token_vectors(i).copy(), result.tokens[i], is_truncated)
        else:
            yield CacheEntry(result.sentences[i].copy(), (), is_truncated)
