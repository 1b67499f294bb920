"""Vectors are looked for in memory, then on disk, and computed once for what is left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from numpy.typing import NDArray

from tertium.arrays import IntArray
from tertium.cache.memory import find_texts, recall, remember
from tertium.cache.record import Part
from tertium.encoders.embeddings import Embeddings, from_parts
from tertium.encoders.encoder import Encoder, Sharing
from tertium.runtime import current_runtime

Held = dict[tuple[str, int], Part]
Need = tuple[Encoder, str]  # an encoder and the part, "tokens" or "sentences", wanted of it

_foreseen: ContextVar[tuple[Need, ...]] = ContextVar("foreseen", default=())


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
    last = np.full(len(texts), -1)
    for number, used in enumerate(uses):
        last[used] = number
    whole = encoder.with_special() if isinstance(encoder, Sharing) else encoder
    wanted = [name for name, on in (("tokens", tokens), ("sentences", sentences)) if on]
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
