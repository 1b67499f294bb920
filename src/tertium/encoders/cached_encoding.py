"""Encode each distinct text once, in bounded memory, and reuse cached vectors.

`compare_pairs` takes all text pairs of a metric, groups them by their right text (a reference with
the hypotheses of all systems), splits the groups into chunks of bounded size, and applies the
metric's formula to each chunk and its vectors:

    scores = compare_pairs(encoder, hypotheses, references, lambda chunk: ...)  # (n,) or (n, k)

Vectors are read from memory, then from disk; only the missing ones are computed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tertium.core.arrays import FloatArray, IntArray
from tertium.core.errors import LengthError
from tertium.core.runtime import MEGABYTE, current_runtime, progress_task
from tertium.encoders.encoder import BackboneEncoder, Embeddings, Encoder, make_embeddings
from tertium.encoders.vector_cache import CacheEntry, find_cached_texts, get_entries, put_entries

CHUNK_BYTES = 96 * MEGABYTE
MAX_CHUNK_TEXTS = 8192  # a text has a cost besides the bytes of its vectors
PartEntries = dict[tuple[str, int], CacheEntry]  # by part and number of the text
Request = tuple[Encoder, str]  # an encoder and a part, "tokens" or "sentences"

_shared_requests: ContextVar[tuple[Request, ...]] = ContextVar("shared_requests", default=())


@dataclass(frozen=True, kw_only=True, eq=False)
class Chunk:
    """Some text pairs and the vectors of their texts.

    Pair `pairs[j]` of the caller is rows `left[j]` and `right[j]` of `embeddings`, (m,) each.
    """

    pairs: IntArray
    left: IntArray
    right: IntArray
    embeddings: Embeddings

    def __len__(self) -> int:
        return len(self.pairs)

    def groups(self) -> Iterator[tuple[int, slice]]:
        """Yield each right text's row and the slice of the pairs that contain it."""
        edges = np.flatnonzero(np.diff(self.right)) + 1
        bounds = [0, *edges.tolist(), len(self)] if len(self) else []
        for start, stop in itertools.pairwise(bounds):
            yield int(self.right[start]), slice(start, stop)


ChunkTransform = Callable[[Chunk, Sequence[str], Sequence[str]], Chunk]


def compare_pairs(
    encoder: Encoder,
    left: Sequence[str],
    right: Sequence[str],
    function: Callable[[Chunk], NDArray[np.floating]],
    *,
    tokens: bool = True,
    sentences: bool = False,
    transform: ChunkTransform | None = None,
) -> FloatArray:
    """Compare left[i] with right[i]: `function` maps a chunk of m pairs to (m,) or (m, k).

    Equal pairs are computed once, so they have exactly equal scores. `transform` changes a chunk
    before `function`, given its m left and right texts.

    >>> from tertium.encoders.toy_encoder import ToyEncoder
    >>> def cosine(chunk):
    ...     v = chunk.embeddings.sentences
    ...     return (v[chunk.left] * v[chunk.right]).sum(axis=1)
    >>> texts = ["a", "b", "a"], ["a", "a", "a"]
    >>> compare_pairs(ToyEncoder(), *texts, cosine, sentences=True).round(3)
    array([1.   , 0.094, 1.   ])
    """
    _check_lengths(left, right)
    numbers: dict[tuple[str, str], int] = {}
    rows = [numbers.setdefault(pair, len(numbers)) for pair in zip(left, right, strict=True)]
    distinct_left = [pair[0] for pair in numbers]
    distinct_right = [pair[1] for pair in numbers]
    result: FloatArray = np.zeros(len(numbers))
    for number, chunk in enumerate(
        iter_chunks(encoder, distinct_left, distinct_right, tokens=tokens, sentences=sentences)
    ):
        if transform is not None:
            pairs = chunk.pairs.tolist()
            chunk = transform(
                chunk, [distinct_left[i] for i in pairs], [distinct_right[i] for i in pairs]
            )
        values = np.asarray(function(chunk), dtype=np.float64)
        if number == 0:
            result = np.zeros((len(numbers), *values.shape[1:]))
        result[chunk.pairs] = values
    return result[np.array(rows, dtype=np.int64)]


def iter_chunks(
    encoder: Encoder,
    left: Sequence[str],
    right: Sequence[str],
    *,
    tokens: bool = True,
    sentences: bool = False,
) -> Iterator[Chunk]:
    """Yield the pairs left[i], right[i] in chunks of bounded size, grouped by right text."""
    _check_lengths(left, right)
    ids: dict[str, int] = {}
    right_ids = np.array([ids.setdefault(t, len(ids)) for t in right], dtype=np.int64)
    left_ids = np.array([ids.setdefault(t, len(ids)) for t in left], dtype=np.int64)
    texts = list(ids)
    order = np.argsort(right_ids, kind="stable")
    plan = list(_split_chunks(order, left_ids, right_ids, _estimate_bytes(encoder, texts, tokens)))
    text_sets = [np.unique(np.concatenate([left_ids[p], right_ids[p]])) for p in plan]
    embeddings = _iter_embeddings(encoder, texts, text_sets, tokens, sentences)
    with progress_task(f"comparing by {encoder.name}", total=len(left)) as advance:
        for pairs, text_set in zip(plan, text_sets, strict=True):
            yield Chunk(
                pairs=pairs,
                left=np.searchsorted(text_set, left_ids[pairs]),
                right=np.searchsorted(text_set, right_ids[pairs]),
                embeddings=next(embeddings),  # no variable: freed before the next chunk
            )
            advance(len(pairs))


def stream_embeddings(
    encoder: Encoder, texts: Sequence[str], *, tokens: bool = True, sentences: bool = True
) -> Iterator[Embeddings]:
    """Yield the vectors of texts in order, in parts of bounded size.

    >>> from tertium.encoders.toy_encoder import ToyEncoder
    >>> [e.tokens for e in stream_embeddings(ToyEncoder(), ["a cat", "a dog"])]
    [(('a', 'cat'), ('a', 'dog'))]
    """
    numbers: dict[str, int] = {}
    ids = np.array([numbers.setdefault(text, len(numbers)) for text in texts], dtype=np.int64)
    distinct = list(numbers)
    sizes = _estimate_bytes(encoder, distinct, tokens)
    plan = list(_split_chunks(np.arange(len(texts)), ids, ids, sizes))
    text_sets = [np.unique(ids[rows]) for rows in plan]
    parts = _iter_embeddings(encoder, distinct, text_sets, tokens, sentences)
    for rows, text_set, part in zip(plan, text_sets, parts, strict=True):
        yield part.take(np.searchsorted(text_set, ids[rows]))


def embed_texts(
    encoder: Encoder, texts: Sequence[str], *, tokens: bool = True, sentences: bool = True
) -> Embeddings:
    """Return the vectors of all texts at once; `stream_embeddings` needs less memory."""
    parts = list(stream_embeddings(encoder, texts, tokens=tokens, sentences=sentences))
    if len(parts) == 1:
        return parts[0]
    return make_embeddings(
        [matrix for part in parts for matrix in part],
        [text_tokens for part in parts for text_tokens in part.tokens],
        np.concatenate([p.sentences for p in parts])
        if parts
        else np.zeros((0, encoder.sentence_dim * sentences), dtype=np.float32),
        [bool(flag) for part in parts for flag in part.truncated],
        encoder.dim,
    )


def _check_lengths(left: Sequence[str], right: Sequence[str]) -> None:
    if len(left) != len(right):
        raise LengthError(f"{len(left)} left texts for {len(right)} right texts")


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
        new = {int(left[pair]), int(right[pair])} - seen
        total += sum(sizes[text] for text in new)
        if total > CHUNK_BYTES and position > start:
            yield order[start:position]
            start, seen = position, set()
            new = {int(left[pair]), int(right[pair])}
            total = sum(sizes[text] for text in new)
        seen |= new
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


def _iter_embeddings(
    encoder: Encoder,
    texts: Sequence[str],
    text_sets: Sequence[IntArray],
    tokens: bool,
    sentences: bool,
) -> Iterator[Embeddings]:
    """Yield the embeddings of each set of texts, encoding no text twice while memory allows."""
    runtime = current_runtime()
    parts = [part for part, on in (("tokens", tokens), ("sentences", sentences)) if on]
    is_cached = (runtime.cache or runtime.memory) and all(map(encoder.fingerprint, parts))
    if not is_cached:
        for text_set in text_sets:
            yield encoder.encode([texts[i] for i in text_set], tokens=tokens, sentences=sentences)
        return
    last_use = np.full(len(texts), -1)
    for number, text_set in enumerate(text_sets):
        last_use[text_set] = number
    cached_encoder = encoder
    if isinstance(encoder, BackboneEncoder):
        cached_encoder = encoder.with_special_tokens()
    retained: PartEntries = {}
    for number, text_set in enumerate(text_sets):
        chunk_texts = [texts[i] for i in text_set]
        entries = {
            part: {texts[i]: retained[part, i] for i in text_set.tolist() if (part, i) in retained}
            for part in parts
        }
        _complete_entries(cached_encoder, chunk_texts, entries)
        columns = {part: [entries[part][text] for text in chunk_texts] for part in parts}
        retained = _keep_entries(retained, columns, text_set, last_use > number)
        if cached_encoder is not encoder and tokens:
            columns["tokens"] = [strip_special_tokens(entry) for entry in columns["tokens"]]
        yield _entries_to_embeddings(encoder, columns, len(chunk_texts))


def _keep_entries(
    retained: PartEntries,
    columns: Mapping[str, list[CacheEntry]],
    text_set: IntArray,
    is_needed: NDArray[np.bool_],
) -> PartEntries:
    """Return the entries that a later chunk needs, within the memory of the runtime."""
    new = {
        (part, i): entry
        for part, column in columns.items()
        for i, entry in zip(text_set.tolist(), column, strict=True)
    }
    free_bytes = current_runtime().memory
    result: PartEntries = {}
    for key, entry in {**retained, **new}.items():
        if is_needed[key[1]] and free_bytes >= entry.nbytes:
            free_bytes -= entry.nbytes
            result[key] = entry
    return result


def _complete_entries(
    encoder: Encoder, texts: Sequence[str], entries: dict[str, dict[str, CacheEntry]]
) -> None:
    """Add the missing entries of texts: from memory, from disk, and by encoding."""
    for part, present in entries.items():
        missing = [text for text in texts if text not in present]
        present.update(get_entries(encoder.fingerprint(part), missing))
    own = [((encoder, part), set(texts) - set(present)) for part, present in entries.items()]
    missing = [text for text in texts if any(text in absent for _, absent in own)]
    requests = own + _find_shared_requests(encoder, entries, missing)
    texts_by_requests: dict[tuple[int, ...], list[str]] = {}
    for text in missing:
        key = tuple(n for n, (_, absent) in enumerate(requests) if text in absent)
        texts_by_requests.setdefault(key, []).append(text)
    for key, group in texts_by_requests.items():
        job = [requests[n][0] for n in key]
        for (owner, part), result in zip(job, _run_requests(encoder, group, job), strict=True):
            new = dict(zip(group, _make_entries(result, part), strict=True))
            put_entries(owner.fingerprint(part), new)
            if owner is encoder and part in entries:
                entries[part].update(new)


def _find_shared_requests(
    encoder: Encoder, entries: Mapping[str, object], texts: Sequence[str]
) -> list[tuple[Request, set[str]]]:
    """Return the announced requests for this encoder's backbone, and their missing texts."""
    if not isinstance(encoder, BackboneEncoder) or not texts:
        return []
    fingerprints = {encoder.fingerprint(part) for part in entries}
    requests: list[tuple[Request, set[str]]] = []
    for other, part in _shared_requests.get():
        if not isinstance(other, BackboneEncoder) or other.backbone != encoder.backbone:
            continue
        fingerprint = other.fingerprint(part)
        if fingerprint not in fingerprints:
            fingerprints.add(fingerprint)
            missing = set(texts) - find_cached_texts(fingerprint, texts)
            requests.append(((other, part), missing))
    return requests


def _run_requests(
    encoder: Encoder, texts: Sequence[str], requests: Sequence[Request]
) -> list[Embeddings]:
    if isinstance(encoder, BackboneEncoder):
        return encoder.encode_requests(
            texts, [(owner, part) for owner, part in requests if isinstance(owner, BackboneEncoder)]
        )
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


def strip_special_tokens(entry: CacheEntry) -> CacheEntry:
    """Remove the special tokens, whose names are empty, at both ends of a text.

    >>> entry = CacheEntry(np.eye(3, dtype=np.float32), ("", "cat", ""), False)
    >>> strip_special_tokens(entry).matrix
    array([[0., 1., 0.]], dtype=float32)
    """
    rows = [row for row, token in enumerate(entry.tokens) if token]
    first, last = (rows[0], rows[-1] + 1) if rows else (0, 0)
    return CacheEntry(entry.matrix[first:last], entry.tokens[first:last], entry.truncated)


def _entries_to_embeddings(
    encoder: Encoder, columns: Mapping[str, list[CacheEntry]], n: int
) -> Embeddings:
    empty = CacheEntry(np.zeros((0, encoder.dim), dtype=np.float32), (), False)
    tokens = columns.get("tokens", [empty] * n)
    sentences = columns.get("sentences", [])
    return make_embeddings(
        [entry.matrix for entry in tokens],
        [entry.tokens for entry in tokens],
        np.stack([e.matrix for e in sentences]) if sentences else np.zeros((n, 0), np.float32),
        [e.truncated for e in (tokens if "tokens" in columns else sentences or tokens)],
        encoder.dim,
    )
