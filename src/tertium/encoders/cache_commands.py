"""The commands `setup cache`, `setup cache clear` and `setup cache limit`: the cache on disk."""

from __future__ import annotations

import re
from typing import Annotated, Any

from tertium.core.cached_files import CACHE_KINDS, VECTORS, cache_folder, list_cache, remove_oldest
from tertium.core.errors import UnknownNameError, UsageError
from tertium.core.options import Option
from tertium.core.result import Column, Listing, Table, View
from tertium.core.store import Store
from tertium.encoders.model_cards import MODEL_CARDS
from tertium.encoders.vector_cache import EXPECTED_SIZE, FILE, parse_size, store_size_limit
from tertium.encoders.weight_files import combine_hashes

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
    texts = Store(cache_folder() / FILE, limit).count()
    kinds: dict[str, dict[str, int]] = {}
    rows: list[dict[str, Any]] = []
    for name, kind in CACHE_KINDS.items():
        sizes = [item.bytes for item in items if item.kind is kind]
        kinds[name] = {"files": len(sizes), "bytes": sum(sizes)}
        rows.append({"kind": name, "content": kind.description, **kinds[name]})
        if kind is VECTORS:
            for key, count in texts.items():
                content = f"{describe_fingerprint(key)}: {count:,} texts"
                rows.append({"kind": "", "content": content, "files": None, "bytes": None})
    total = sum(item.bytes for item in items)
    notes = [f"{total / 1e6:.1f} MB in {cache_folder()}"]
    notes.append(f"size limit of vectors: {limit / 1e6:.0f} MB")
    foreign = [str(file) for file in unknown_files]
    if foreign:
        listed = [*foreign[:MAX_NAMED_FILES], *["..."] * (len(foreign) > MAX_NAMED_FILES)]
        notes.append(f"not written by tertium, ignored: {', '.join(listed)}")
    columns = [
        Column("kind"),
        Column("content"),
        Column("files", decimals=0),
        Column("MB", lambda row: row["bytes"] and row["bytes"] / 1e6, 1),
    ]
    record = {"path": str(cache_folder() / FILE), "bytes": total, "limit": limit}
    record |= {"texts": texts, "kinds": kinds, "foreign": foreign}
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
    chosen = kinds or (*CACHE_KINDS,)
    freed = 0
    store = cache_folder() / FILE
    for item in list_cache()[0]:
        if item.kind.name in chosen and item.path != store:
            item.remove()
            freed += item.bytes
    # The store comes last: a database of another program under this name raises an error.
    return _report_freed(freed + (Store(store, 0).clear() if VECTORS.name in chosen else 0))


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
    table = Table([Column("path"), Column("freed", decimals=0)], [record])
    text = f"{freed / 1e6:.1f} MB freed in {cache_folder()}"
    return View(result=Listing(table=table, json=record), printed=[text])


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
