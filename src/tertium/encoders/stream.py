"""Each distinct text is encoded once, whatever the number of systems, sides, references or metrics.

`pairwise` takes the comparisons a metric has to make, groups them by their right text (a reference
with the hypotheses of all systems), cuts the groups into chunks of bounded size, and hands each
chunk with its vectors to the metric's formula; results come back in the order of the comparisons.

    scores = pairwise(encoder, hypotheses, references, lambda chunk: ...)     # (n,) or (n, k)

Vectors are looked for in memory, then on disk, and computed once for what is left (`gather`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tertium.arrays import FloatArray, IntArray
from tertium.cache.database import Part
from tertium.cache.memory import find_texts, recall, remember
from tertium.encoders.encoder import Embeddings, Encoder, Sharing, from_parts
from tertium.errors import LengthError
from tertium.runtime import MEGABYTE, current_runtime, task

CHUNK_BYTES = 96 * MEGABYTE
CHUNK_TEXTS = 8192  # at most: texts cost something beside their bytes
Held = dict[tuple[str, int], Part]
Need = tuple[Encoder, str]  # an encoder and the part, "tokens" or "sentences", wanted of it

_foreseen: ContextVar[tuple[Need, ...]] = ContextVar("foreseen", default=())


@dataclass(frozen=True, kw_only=True, eq=False)
class Chunk:
    """Some comparisons and the vectors of their texts.

    Comparison `pairs[j]` (its place in the caller's lists) is of the texts at rows `left[j]` and
    `right[j]` of `texts`; all three are (m,). Equal right texts stand next to each other.
    """

    pairs: IntArray
    left: IntArray
    right: IntArray
    texts: Embeddings

    def __len__(self) -> int:
        return len(self.pairs)

    def groups(self) -> Iterator[tuple[int, slice]]:
        """Each right text's row with the slice of the comparisons made with it."""
        edges = np.flatnonzero(np.diff(self.right)) + 1
        bounds = [0, *edges.tolist(), len(self)] if len(self) else []
        for start, stop in itertools.pairwise(bounds):
            yield int(self.right[start]), slice(start, stop)


Change = Callable[[Chunk, Sequence[str], Sequence[str]], Chunk]


def pairwise(
    encoder: Encoder,
    left: Sequence[str],
    right: Sequence[str],
    function: Callable[[Chunk], NDArray[np.floating]],
    *,
    tokens: bool = True,
    sentences: bool = False,
    change: Change | None = None,
) -> FloatArray:
    """Compare left[i] with right[i]: `function` maps a chunk of m comparisons to (m,) or (m, k).

    Equal comparisons are made once, so equal segments have equal scores to the last bit. `change`
    makes another chunk of each, given the m left and right texts.

    >>> from tertium.encoders.toy import ToyEncoder
    >>> def cosine(chunk):
    ...     v = chunk.texts.sentences
    ...     return (v[chunk.left] * v[chunk.right]).sum(axis=1)
    >>> pairwise(ToyEncoder(), ["a", "b", "a"], ["a", "a", "a"], cosine, sentences=True).round(3)
    array([1.   , 0.094, 1.   ])
    """
    _check_lengths(left, right)
    places: dict[tuple[str, str], int] = {}
    rows = [places.setdefault(pair, len(places)) for pair in zip(left, right, strict=True)]
    distinct_left = [pair[0] for pair in places]
    distinct_right = [pair[1] for pair in places]
    result: FloatArray = np.zeros(len(places))
    for number, chunk in enumerate(
        chunks(encoder, distinct_left, distinct_right, tokens=tokens, sentences=sentences)
    ):
        if change is not None:
            pairs = chunk.pairs.tolist()
            chunk = change(
                chunk, [distinct_left[i] for i in pairs], [distinct_right[i] for i in pairs]
            )
        values = np.asarray(function(chunk), dtype=np.float64)
        if number == 0:
            result = np.zeros((len(places), *values.shape[1:]))
        result[chunk.pairs] = values
    return result[np.array(rows, dtype=np.int64)]


def chunks(
    encoder: Encoder,
    left: Sequence[str],
    right: Sequence[str],
    *,
    tokens: bool = True,
    sentences: bool = False,
) -> Iterator[Chunk]:
    """The comparisons left[i], right[i] in chunks of bounded size, grouped by right text."""
    _check_lengths(left, right)
    ids: dict[str, int] = {}
    right_ids = np.array([ids.setdefault(t, len(ids)) for t in right], dtype=np.int64)
    left_ids = np.array([ids.setdefault(t, len(ids)) for t in left], dtype=np.int64)
    texts = list(ids)
    order = np.argsort(right_ids, kind="stable")
    plan = list(_cut(order, left_ids, right_ids, _sizes(encoder, texts, tokens)))
    uses = [np.unique(np.concatenate([left_ids[p], right_ids[p]])) for p in plan]
    gathered = gather(encoder, texts, uses, tokens, sentences)
    with task(f"comparing by {encoder.name}", total=len(left)) as advance:
        for pairs, used in zip(plan, uses, strict=True):
            yield Chunk(
                pairs=pairs,
                left=np.searchsorted(used, left_ids[pairs]),
                right=np.searchsorted(used, right_ids[pairs]),
                texts=next(gathered),  # in no variable: gone before the next one's are computed
            )
            advance(len(pairs))


def stream(
    encoder: Encoder, texts: Sequence[str], *, tokens: bool = True, sentences: bool = True
) -> Iterator[Embeddings]:
    """The vectors of texts in their order, in pieces of bounded size.

    >>> from tertium.encoders.toy import ToyEncoder
    >>> [e.pieces for e in stream(ToyEncoder(), ["a cat", "a dog"])]
    [(('a', 'cat'), ('a', 'dog'))]
    """
    ids: dict[str, int] = {}
    places = np.array([ids.setdefault(text, len(ids)) for text in texts], dtype=np.int64)
    distinct = list(ids)
    plan = list(_cut(np.arange(len(texts)), places, places, _sizes(encoder, distinct, tokens)))
    uses = [np.unique(places[p]) for p in plan]
    for span, used, found in zip(
        plan, uses, gather(encoder, distinct, uses, tokens, sentences), strict=True
    ):
        yield found.take(np.searchsorted(used, places[span]))


def embed(
    encoder: Encoder, texts: Sequence[str], *, tokens: bool = True, sentences: bool = True
) -> Embeddings:
    """The vectors of all texts at once; use `stream` or `pairwise` where they may not fit."""
    parts = list(stream(encoder, texts, tokens=tokens, sentences=sentences))
    if len(parts) == 1:
        return parts[0]
    return from_parts(
        [matrix for part in parts for matrix in part],
        [pieces for part in parts for pieces in part.pieces],
        np.concatenate([p.sentences for p in parts])
        if parts
        else np.zeros((0, encoder.sentence_dim * sentences), dtype=np.float32),
        [bool(flag) for part in parts for flag in part.truncated],
        encoder.dim,
    )


def _check_lengths(left: Sequence[str], right: Sequence[str]) -> None:
    if len(left) != len(right):
        raise LengthError(f"{len(left)} left texts for {len(right)} right texts")


def _sizes(encoder: Encoder, texts: Sequence[str], tokens: bool) -> list[int]:
    """Roughly the bytes of each text's vectors: four bytes of UTF-8 make a token, or fewer."""
    width = 4 * encoder.dim if tokens else 0
    floor = CHUNK_BYTES // CHUNK_TEXTS
    return [max(floor, width * (len(text.encode(errors="replace")) // 4 + 2)) for text in texts]


def _cut(
    order: IntArray, left: IntArray, right: IntArray, sizes: Sequence[int]
) -> Iterator[IntArray]:
    """Cut comparisons, in this order, where the distinct texts of a chunk grow past its bytes."""
    seen: set[int] = set()
    start = load = 0
    for place, pair in enumerate(order.tolist()):
        new = {int(left[pair]), int(right[pair])} - seen
        load += sum(sizes[text] for text in new)
        if load > CHUNK_BYTES and place > start:
            yield order[start:place]
            start, seen = place, set()
            new = {int(left[pair]), int(right[pair])}
            load = sum(sizes[text] for text in new)
        seen |= new
    if len(order):
        yield order[start:]


@contextmanager
def foresee(needs: Iterable[Need]) -> Iterator[None]:
    """Say what a run is going to ask, so that one pass computes it for all metrics.

    Without it a metric's first call computes what that metric reads, and a later metric that reads
    another layer or part of the same model has it computed in a pass of its own.
    """
    token = _foreseen.set(_foreseen.get() + tuple(needs))
    try:
        yield
    finally:
        _foreseen.reset(token)


def gather(
    encoder: Encoder,
    texts: Sequence[str],
    uses: Sequence[IntArray],
    tokens: bool,
    sentences: bool,
) -> Iterator[Embeddings]:
    """The embeddings of each chunk's texts, encoding none twice while memory lasts."""
    settings = current_runtime()
    wanted = [name for name, on in (("tokens", tokens), ("sentences", sentences)) if on]
    keeps = (settings.cache or settings.memory) and all(map(encoder.fingerprint, wanted))
    if not keeps:  # nothing was kept, and nothing will be
        for used in uses:
            yield encoder.encode([texts[i] for i in used], tokens=tokens, sentences=sentences)
        return
    last = np.full(len(texts), -1)
    for number, used in enumerate(uses):
        last[used] = number
    whole = encoder.with_special() if isinstance(encoder, Sharing) else encoder
    held: Held = {}
    for number, used in enumerate(uses):
        words = [texts[i] for i in used]
        found = {
            name: {texts[i]: held[name, i] for i in used.tolist() if (name, i) in held}
            for name in wanted
        }
        _fill(whole, words, found)
        columns = {name: [found[name][word] for word in words] for name in wanted}
        held = _keep(held, columns, used, last > number)
        if whole is not encoder and tokens:
            columns["tokens"] = [strip_special(part) for part in columns["tokens"]]
        yield _assemble(encoder, columns, len(words))


def _keep(
    held: Held, columns: Mapping[str, list[Part]], used: IntArray, needed: NDArray[np.bool_]
) -> Held:
    """What a later chunk needs again, as far as the memory of the runtime goes."""
    fresh = {
        (name, i): part
        for name, column in columns.items()
        for i, part in zip(used.tolist(), column, strict=True)
    }
    room = current_runtime().memory
    kept: Held = {}
    for key, part in {**held, **fresh}.items():
        if needed[key[1]] and room >= part.nbytes:
            room -= part.nbytes
            kept[key] = part
    return kept


def _fill(encoder: Encoder, texts: Sequence[str], found: dict[str, dict[str, Part]]) -> None:
    """Complete the parts of texts: from memory, from disk, and by encoding the rest."""
    for name, parts in found.items():
        missing = [text for text in texts if text not in parts]
        parts.update(recall(encoder.fingerprint(name), missing))
    own = [((encoder, name), set(texts) - set(parts)) for name, parts in found.items()]
    missing = [text for text in texts if any(text in absent for _, absent in own)]
    wanted = own + _foreseen_needs(encoder, found, missing)
    jobs: dict[tuple[int, ...], list[str]] = {}
    for text in missing:
        needs = tuple(n for n, (_, absent) in enumerate(wanted) if text in absent)
        jobs.setdefault(needs, []).append(text)
    for numbers, group in jobs.items():
        job = [wanted[n][0] for n in numbers]
        for (owner, name), result in zip(job, _compute(encoder, group, job), strict=True):
            fresh = dict(zip(group, _parts_of(result, name), strict=True))
            remember(owner.fingerprint(name), fresh)
            if owner is encoder and name in found:
                found[name].update(fresh)


def _foreseen_needs(
    encoder: Encoder, found: Mapping[str, object], texts: Sequence[str]
) -> list[tuple[Need, set[str]]]:
    """What else the run will ask of this encoder's body, and the texts it is missing for."""
    if not isinstance(encoder, Sharing) or not texts:
        return []
    have = {encoder.fingerprint(name) for name in found}
    others: list[tuple[Need, set[str]]] = []
    for other, part in _foreseen.get():
        if not isinstance(other, Sharing) or other.body != encoder.body:
            continue
        fingerprint = other.fingerprint(part)
        if fingerprint not in have:
            have.add(fingerprint)
            others.append(((other, part), set(texts) - find_texts(fingerprint, texts)))
    return others


def _compute(encoder: Encoder, texts: Sequence[str], needs: Sequence[Need]) -> list[Embeddings]:
    """The results of each need, from one pass."""
    if isinstance(encoder, Sharing):
        return encoder.encode_together(texts, [(o, n) for o, n in needs if isinstance(o, Sharing)])
    names = {name for _, name in needs}
    result = encoder.encode(texts, tokens="tokens" in names, sentences="sentences" in names)
    return [result] * len(needs)


def _parts_of(result: Embeddings, name: str) -> Iterator[Part]:
    """Each text's part, copied, so that keeping one does not keep its whole chunk alive."""
    for i in range(len(result)):
        cut = bool(result.truncated[i])
        if name == "tokens":
            yield Part(result.tokens(i).copy(), result.pieces[i], cut)
        else:
            yield Part(result.sentences[i].copy(), (), cut)


def strip_special(part: Part) -> Part:
    """A text's token vectors without those of special tokens, which stand around the others.

    >>> part = Part(np.eye(3, dtype=np.float32), ("", "cat", ""), False)
    >>> strip_special(part).matrix
    array([[0., 1., 0.]], dtype=float32)
    """
    real = [place for place, piece in enumerate(part.pieces) if piece]
    first, last = (real[0], real[-1] + 1) if real else (0, 0)
    return Part(part.matrix[first:last], part.pieces[first:last], part.truncated)


def _assemble(encoder: Encoder, columns: Mapping[str, list[Part]], n: int) -> Embeddings:
    empty = Part(np.zeros((0, encoder.dim), dtype=np.float32), (), False)
    tokens = columns.get("tokens", [empty] * n)
    sentences = columns.get("sentences", [])
    return from_parts(
        [part.matrix for part in tokens],
        [part.pieces for part in tokens],
        np.stack([p.matrix for p in sentences]) if sentences else np.zeros((n, 0), np.float32),
        [part.truncated for part in (tokens if "tokens" in columns else sentences or tokens)],
        encoder.dim,
    )
