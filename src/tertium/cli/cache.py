"""`tertium cache`: show, limit or clear the cache on disk."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any

from tertium.cache.cached_files import CACHE_KINDS, VECTORS, cache_folder, list_cache, remove_oldest
from tertium.cache.store import Store
from tertium.cache.vector_cache import EXPECTED_SIZE, FILE, parse_size, store_size_limit
from tertium.cli.output import add_format, show
from tertium.cli.parser import CommandParser
from tertium.core.result import Column, Table
from tertium.encoders.model_cards import MODEL_CARDS
from tertium.encoders.weight_files import combine_hashes
from tertium.errors import UnknownNameError, UsageError

MAX_NAMED_FILES = 3  # unknown files that a note names
DESCRIPTION = "Show, limit or clear the cache on disk."
EPILOG = """\
examples:
  tertium cache info
  tertium cache clear
  tertium cache clear rows indexes
  tertium cache limit 500M

TERTIUM_CACHE sets the folder, TERTIUM_CACHE_SIZE the maximum size of cached vectors (default: 4G; 0
disables the cache). `limit` shrinks the cache once: it removes the least recently used vectors
first, then the oldest files. Files that tertium did not write are never removed.
"""


def add_arguments(parser: CommandParser) -> None:
    group = parser.groups["Input"]
    group.add_argument(
        "action",
        nargs="?",
        choices=("info", "clear", "limit"),
        default="info",
        help="what to do (default: info)",
    )
    group.add_argument(
        "arguments",
        nargs="*",
        metavar="KIND|SIZE",
        help=f"the size limit, or kinds to clear: {', '.join(CACHE_KINDS)} (default: all)",
    )
    add_format(parser)


def run(args: argparse.Namespace) -> int:
    if args.action == "info":
        if args.arguments:
            raise UsageError(f"to clear, use `tertium cache clear {' '.join(args.arguments)}`")
        _show_info(args)
        return 0
    if args.format not in ("text", "json"):
        raise UsageError(f"-f {args.format} is for `cache info`: {args.action} supports -f json")
    freed = _clear(args.arguments) if args.action == "clear" else _limit(args.arguments)
    text = f"{freed / 1e6:.1f} MB freed in {cache_folder()}"
    show(args, text, records=[{"path": str(cache_folder()), "freed": freed}])
    return 0


def _clear(kinds: Sequence[str]) -> int:
    """Remove cached files of some kinds, or of all, and return the bytes freed."""
    for kind in kinds:
        if kind not in CACHE_KINDS:
            raise UnknownNameError("kind of cached file", kind, CACHE_KINDS)
    items, _ = list_cache()
    store = cache_folder() / FILE
    removed = [i for i in items if i.kind.name in (kinds or CACHE_KINDS) and i.path != store]
    for item in removed:
        item.remove()
    # The store comes last: a database of another program under this name raises an error.
    vectors = Store(store, 0).clear() if VECTORS.name in (kinds or CACHE_KINDS) else 0
    return sum(item.bytes for item in removed) + vectors


def _limit(sizes: Sequence[str]) -> int:
    """Shrink the cache to a size and return the bytes freed."""
    limit = parse_size(sizes[0]) if len(sizes) == 1 else None
    if limit is None:
        raise UsageError(f"tertium cache limit {' '.join(sizes) or 'SIZE'}: {EXPECTED_SIZE}")
    items, _ = list_cache()
    store = cache_folder() / FILE
    files = [item for item in items if item.path != store]
    store_limit = max(limit - sum(item.bytes for item in files), 0)
    return Store(store, store_limit).shrink() + remove_oldest(files, limit)


def _show_info(args: argparse.Namespace) -> None:
    items, unknown_files = list_cache()
    limit = store_size_limit()
    texts = Store(cache_folder() / FILE, limit).count()
    total = sum(item.bytes for item in items)
    kinds = {}
    rows: list[dict[str, Any]] = []
    for name, kind in CACHE_KINDS.items():
        sizes = [item.bytes for item in items if item.kind is kind]
        kinds[name] = {"files": len(sizes), "bytes": sum(sizes)}
        rows.append({"kind": name, "content": kind.description, **kinds[name]})
        if kind is VECTORS:
            for key, count in texts.items():
                content = f"{describe_fingerprint(key)}: {count:,} texts"
                rows.append({"kind": "", "content": content, "files": None, "bytes": None})
    notes = [f"{total / 1e6:.1f} MB in {cache_folder()}"]
    notes.append(f"size limit of vectors: {limit / 1e6:.0f} MB")
    foreign = [str(file) for file in unknown_files]
    if foreign:
        more = len(foreign) - MAX_NAMED_FILES
        names = ", ".join(foreign[:MAX_NAMED_FILES]) + (f" and {more} more" if more > 0 else "")
        notes.append(f"not written by tertium, ignored: {names}")
    columns = [
        Column("kind"),
        Column("content"),
        Column("files", decimals=0),
        Column("MB", lambda row: row["bytes"] and row["bytes"] / 1e6, 1),
    ]
    record = {"path": str(cache_folder() / FILE), "bytes": total, "limit": limit}
    record |= {"texts": texts, "kinds": kinds, "foreign": foreign}
    show(args, Table(columns, rows, notes=notes), records=[record])


def describe_fingerprint(fingerprint: str) -> str:
    """Describe a cache fingerprint: model (short name or hash), output, layer.

    >>> describe_fingerprint(
    ...     "transformer-2:53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    ...     ":tokens:8f39e6d49e824bba:4:fp32:512:truncate"
    ... )
    'minilm tokens 4 fp32 512 truncate'
    >>> describe_fingerprint(f"tertium-multi-3:{'1' * 64}+{'2' * 64}:fp32")
    'tertium-multi-3@11111111+22222222 fp32'
    >>> describe_fingerprint("toy")
    'toy'
    """
    names = {combine_hashes(card.files): card.name for card in MODEL_CARDS.values()}
    kind, *words = fingerprint.split(":")
    hashes = re.compile(r"[0-9a-f]{64}(\+[0-9a-f]{64})*")  # one hash per part of a network
    described = [
        names.get(word, f"{kind}@{'+'.join(part[:8] for part in word.split('+'))}")
        if hashes.fullmatch(word)
        else word
        for word in words
    ]
    return " ".join(word for word in described if not re.fullmatch("[0-9a-f]{16}", word)) or kind
