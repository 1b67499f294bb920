"""The embedding cache: an in-memory LRU cache in front of the store on disk.

Encoders and joint networks look up texts with `get_entries` before computing anything, and add new
results with `put_entries`. Very wide vectors stay in memory only. An entry on disk is

    header (flags, rows, columns, bytes of tokens, crc32)  vectors  tokens

Vectors are stored in two bytes per number if they were computed in bf16, else in four. Cached
scores therefore equal computed ones bit by bit. A killed process loses at most the chunk that it
writes. The checksum also covers fingerprint and text, so that a damaged file never gives the
vectors of another text.

The commands `setup cache`, `setup cache clear` and `setup cache limit` show, clear and limit all
files of the cache.
"""

from __future__ import annotations

import json
import logging
import os
import re
import struct
import zlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from tertium.core.arrays import Float32Array
from tertium.core.errors import UnknownNameError, UsageError
from tertium.core.options import Option
from tertium.core.result import Column, Listing, Table, View
from tertium.core.runtime import current_runtime
from tertium.core.store import (
    CACHE_KINDS,
    VECTORS,
    Store,
    cache_folder,
    list_cache,
    open_store,
    remove_oldest,
)
from tertium.encoders.weight_files import MODEL_CARDS, combine_hashes

LAYOUT = "2"  # of the file; another layout uses another file
FILE = VECTORS.place.format(LAYOUT)
DEFAULT_SIZE = 4 << 30
EXPECTED_SIZE = "expected bytes, or a number with K, M, G or T"
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
MAX_STORED_WIDTH = 2048  # all layers of a model together would displace everything else on disk
SIZES = struct.Struct("<iiii")
CHECKSUM = struct.Struct("<I")
HALF = 1  # a flag, as the next ones
TRUNCATED = 2
SENTENCE = 4

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class CacheEntry:
    """Token vectors (tokens, dim) of a text with its tokens, or its sentence vector (dim,)."""

    matrix: Float32Array
    tokens: tuple[str, ...]
    truncated: bool

    @property
    def nbytes(self) -> int:
        return self.matrix.nbytes + 64 * len(self.tokens) + 256


class MemoryCache:
    """An LRU cache of entries by fingerprint and text, limited by the memory of the runtime."""

    def __init__(self) -> None:
        self._entries: OrderedDict[tuple[str, str], CacheEntry] = OrderedDict()
        self._bytes = 0

    def get(self, fingerprint: str, texts: Sequence[str]) -> dict[str, CacheEntry]:
        hits = {}
        for text in texts:
            if (fingerprint, text) in self._entries:
                hits[text] = self._entries[fingerprint, text]
                self._entries.move_to_end((fingerprint, text))
        return hits

    def put(self, fingerprint: str, entries: Mapping[str, CacheEntry]) -> None:
        limit = current_runtime().memory
        for text, entry in entries.items():
            old = self._entries.pop((fingerprint, text), None)
            self._bytes += entry.nbytes - (old.nbytes if old else 0)
            self._entries[fingerprint, text] = entry
            while self._bytes > limit and self._entries:
                _, evicted = self._entries.popitem(last=False)
                self._bytes -= evicted.nbytes

    def clear(self) -> None:
        self._entries.clear()
        self._bytes = 0


_memory = MemoryCache()


def get_entries(fingerprint: str, texts: Sequence[str]) -> dict[str, CacheEntry]:
    """Look up the entries of distinct texts in memory and on disk."""
    entries = _memory.get(fingerprint, texts)
    store = open_vector_store()
    missing = [text for text in texts if text not in entries]
    if store is None or not missing:
        return entries
    values = store.read(fingerprint, missing)
    decoded = {text: decode_entry(value, f"{fingerprint} {text}") for text, value in values.items()}
    stored = {text: entry for text, entry in decoded.items() if entry is not None}
    if damaged := len(decoded) - len(stored):
        logger.warning("%d damaged entries in the cache %s are computed again", damaged, store.path)
    _memory.put(fingerprint, stored)
    return entries | stored


def find_cached_texts(fingerprint: str, texts: Sequence[str]) -> set[str]:
    """Return the texts that have an entry, without reading vectors from disk."""
    store = open_vector_store()
    stored = store.contains(fingerprint, texts) if store is not None else set()
    return {*_memory.get(fingerprint, texts)} | stored


def put_entries(fingerprint: str, entries: Mapping[str, CacheEntry]) -> None:
    """Add entries to memory and, unless too wide, to the store on disk."""
    _memory.put(fingerprint, entries)
    store = open_vector_store()
    if store is not None:
        values = {
            text: encode_entry(entry, f"{fingerprint} {text}")
            for text, entry in entries.items()
            if entry.matrix.shape[-1] <= MAX_STORED_WIDTH
        }
        store.write(fingerprint, values)


def clear_memory() -> None:
    """Empty the cache in memory; the store on disk is unchanged."""
    _memory.clear()


def encode_entry(entry: CacheEntry, owner: str) -> bytes:
    """Encode an entry as bytes; `owner` identifies fingerprint and text.

    >>> entry = CacheEntry(np.ones((1, 2), dtype=np.float32), ("cat",), False)
    >>> decode_entry(encode_entry(entry, "a cat"), "a cat").tokens
    ('cat',)
    """
    matrix = np.ascontiguousarray(entry.matrix)
    rows, columns = matrix.shape if matrix.ndim == 2 else (1, len(matrix))
    bits = matrix.view(np.uint32)
    is_half = not (bits.flat[:8] & 0xFFFF).any() and not (bits & 0xFFFF).any()
    vectors = (bits >> 16).astype("<u2") if is_half else matrix
    tokens = json.dumps(entry.tokens).encode()
    flags = HALF * is_half + TRUNCATED * entry.truncated + SENTENCE * (matrix.ndim == 1)
    body = SIZES.pack(flags, rows, columns, len(tokens)) + vectors.tobytes() + tokens
    return CHECKSUM.pack(_checksum(body, owner)) + body


def decode_entry(data: bytes, owner: str) -> CacheEntry | None:
    """Decode an entry; return None if the data is damaged or has another owner.

    >>> decode_entry(b"damaged", "a cat") is None
    True
    """
    body = memoryview(data)[CHECKSUM.size :]
    if data[: CHECKSUM.size] != CHECKSUM.pack(_checksum(body, owner)):
        return None
    flags, rows, columns, length = SIZES.unpack_from(body)
    stored = body[SIZES.size : len(body) - length]
    tokens = body[len(body) - length :]
    if flags & HALF:
        matrix = (np.frombuffer(stored, "<u2").astype(np.uint32) << 16).view(np.float32)
    else:
        matrix = np.frombuffer(stored, "<f4")
    if not flags & SENTENCE:
        matrix = matrix.reshape(rows, columns)
    return CacheEntry(matrix, tuple(json.loads(bytes(tokens))), bool(flags & TRUNCATED))


def _checksum(body: bytes | memoryview, owner: str) -> int:
    return zlib.crc32(body, zlib.crc32(owner.encode("utf-8", "surrogatepass")))


def open_vector_store() -> Store | None:
    """Return the store of this process, None if caching is disabled or the folder is read-only."""
    limit = store_size_limit()
    folder = cache_folder()
    if not current_runtime().cache or not limit or not _is_writable(folder):
        return None
    return open_store(folder / FILE, limit)


def store_size_limit() -> int:
    """Return the maximum size in bytes: `TERTIUM_CACHE_SIZE`, such as 500M or 8G, else 4G."""
    text = os.environ.get("TERTIUM_CACHE_SIZE", "")
    if not text.strip():
        return DEFAULT_SIZE
    size = parse_size(text)
    if size is None:
        raise UsageError(
            f"TERTIUM_CACHE_SIZE={text} is not a size: {EXPECTED_SIZE}; 0 turns the cache off"
        )
    return size


def parse_size(text: str) -> int | None:
    """Parse a number of bytes; return None for invalid text.

    >>> parse_size("500M"), parse_size("1.5 kb"), parse_size("-3"), parse_size("much")
    (524288000, 1536, None, None)
    """
    number = text.strip().upper().removesuffix("B")
    unit = number[-1:] if number[-1:] in UNITS else ""
    try:
        size = int(float(number.removesuffix(unit)) * UNITS[unit])
    except (ValueError, OverflowError):
        return None
    return size if size >= 0 else None


def _is_writable(folder: Path) -> bool:
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if existing.is_dir() and os.access(existing, os.W_OK):
        return True
    logger.info("no cache: %s is not writable", folder)
    return False


MAX_NAMED_FILES = 3  # unknown files that a note names


def show_cache() -> Listing:
    """Show what the cache on disk holds, by kind.

    Examples
    --------
    tertium setup cache
    tertium setup cache clear rows indexes
    tertium setup cache limit 500M

    Notes
    -----
    TERTIUM_CACHE sets the folder, TERTIUM_CACHE_SIZE the maximum size of cached vectors (default:
    4G; 0 disables the cache).
    """
    items, unknown_files = list_cache()
    limit = store_size_limit()
    path = cache_folder() / FILE
    texts = Store(path, limit).count()
    rows: list[dict[str, Any]] = []
    for name, kind in CACHE_KINDS.items():
        sizes = [item.bytes for item in items if item.kind is kind]
        row = {"kind": name, "content": kind.description, "files": len(sizes), "bytes": sum(sizes)}
        rows.append(row)
    total = sum(row["bytes"] for row in rows)
    foreign = [*map(str, unknown_files)]
    record = {"path": str(path), "bytes": total, "limit": limit, "texts": texts}
    record |= {"kinds": {row["kind"]: row for row in rows}, "foreign": foreign}
    notes = [f"{describe_fingerprint(key)}: {count:,} texts" for key, count in texts.items()]
    notes.append(f"{total / 1e6:.1f} MB in {cache_folder()}; limit of vectors: {limit / 1e6:.0f}")
    if foreign:
        notes.append(f"not written by tertium, ignored: {', '.join(foreign[:MAX_NAMED_FILES])}")
    columns = [
        Column("kind"),
        Column("content"),
        Column("files", decimals=0),
        Column("MB", lambda row: row["bytes"] / 1e6, 1),
    ]
    return Listing(table=Table(columns, rows, notes=notes), json=record)


def clear_cache(kinds: Annotated[tuple[str, ...], Option(metavar="KIND")] = (), /) -> View:
    """Remove cached files of some kinds, or all.

    Parameters
    ----------
    kinds
        Kinds to remove: vectors, analyses, answers, rows, indexes, word-vectors, hashes, trained,
        remains (default: all).

    Examples
    --------
    tertium setup cache clear
    tertium setup cache clear rows indexes

    Notes
    -----
    Files that tertium did not write are never removed.
    """
    for kind in kinds:
        if kind not in CACHE_KINDS:
            raise UnknownNameError("kind of cached file", kind, CACHE_KINDS)
    store = cache_folder() / FILE
    items = [item for item in list_cache()[0] if item.path != store]
    freed = remove_oldest([item for item in items if item.kind.name in (kinds or CACHE_KINDS)], 0)
    if not kinds or VECTORS.name in kinds:
        # The store comes last: a database of another program under this name raises an error.
        freed += Store(store, 0).clear()
    return _report_freed(freed)


def limit_cache(size: str, /) -> View:
    """Shrink the cache once: the least recently used vectors go first, then the oldest files.

    Parameters
    ----------
    size
        The largest size, such as 500M or 2G.

    Examples
    --------
    tertium setup cache limit 500M
    """
    limit = parse_size(size)
    if limit is None:
        raise UsageError(f"tertium setup cache limit {size}: {EXPECTED_SIZE}")
    items, _ = list_cache()
    store = cache_folder() / FILE
    files = [item for item in items if item.path != store]
    store_limit = max(limit - sum(item.bytes for item in files), 0)
    return _report_freed(Store(store, store_limit).shrink() + remove_oldest(files, limit))


def _report_freed(freed: int) -> View:
    record = {"path": str(cache_folder()), "freed": freed}
    listing = Listing(table=Table([Column("path"), Column("freed")], [record]), json=record)
    return View(result=listing, printed=[f"{freed / 1e6:.1f} MB freed in {cache_folder()}"])


def describe_fingerprint(fingerprint: str) -> str:
    """Write the name of an encoder, or the first 8 digits, instead of each hash of weights.

    >>> describe_fingerprint(
    ...     "transformer-2:53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    ...     ":tokens:8f39e6d49e824bba:4:fp32:512:truncate"
    ... )
    'transformer-2:minilm:tokens:8f39e6d49e824bba:4:fp32:512:truncate'
    """
    names = {combine_hashes(card.files): card.name for card in MODEL_CARDS.values()}
    return re.sub("[0-9a-f]{64}", lambda hash: names.get(hash[0], hash[0][:8]), fingerprint)
