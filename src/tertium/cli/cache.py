"""`tertium cache`: what is kept on disk, and limiting or emptying it."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

from tertium.cache.files import KINDS, VECTORS, cache_folder, drop_oldest, survey
from tertium.cache.store import EXPECTED_SIZE, FILE, Store, read_size, size_limit
from tertium.cli.output import FORMATS, print_records, print_table
from tertium.encoders.cards import CARDS
from tertium.encoders.weights import joined_hash
from tertium.errors import UnknownNameError, UsageError
from tertium.reporting.tables.table import Table

NAMED = 3  # files of others that a note names
HELP = "show, limit or clear what is kept on disk"
DESCRIPTION = "Show what is kept on disk, limit it, or clear it."
EPILOG = """\
examples:
  tertium cache info
  tertium cache clear
  tertium cache clear rows indexes
  tertium cache limit 500M

TERTIUM_CACHE names the folder, TERTIUM_CACHE_SIZE the size that vectors may take (4G by default, 0
for none); --no-cache of the scoring commands leaves it alone for one run. A limit is kept to once:
vectors that were used longest ago go first, then what was written longest ago. Files that are not
tertium's are never touched.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=("info", "clear", "limit"),
        default="info",
        help="default: info",
    )
    parser.add_argument(
        "what",
        nargs="*",
        metavar="KIND|SIZE",
        help=f"kinds to clear ({', '.join(KINDS)}; all unless named), or the size to limit to",
    )
    parser.add_argument("-f", "--format", choices=FORMATS, default="text")


def run(args: argparse.Namespace) -> int:
    if args.action == "info":
        if args.what:
            raise UsageError(f"to clear: tertium cache clear {' '.join(args.what)}")
        _show(args)
        return 0
    if args.format not in ("text", "json"):
        raise UsageError(f"-f {args.format} is for tertium cache info: {args.action} knows -f json")
    freed = _clear(args.what) if args.action == "clear" else _limit(args.what)
    if args.format == "json":
        print_records([{"path": str(cache_folder()), "freed": freed}])
    else:
        print(f"{freed / 1e6:.1f} MB freed in {cache_folder()}")
    return 0


def _clear(kinds: Sequence[str]) -> int:
    for kind in kinds:
        if kind not in KINDS:
            raise UnknownNameError("kind of what is kept", kind, KINDS)
    items, _ = survey()
    store = cache_folder() / FILE
    chosen = [item for item in items if item.kind.name in (kinds or KINDS) and item.path != store]
    for item in chosen:
        item.remove()
    # Last: it refuses a database that another program made under this name.
    vectors = Store(store, 0).clear() if VECTORS.name in (kinds or KINDS) else 0
    return sum(item.bytes for item in chosen) + vectors


def _limit(sizes: Sequence[str]) -> int:
    limit = read_size(sizes[0]) if len(sizes) == 1 else None
    if limit is None:
        raise UsageError(f"tertium cache limit {' '.join(sizes) or 'SIZE'}: {EXPECTED_SIZE}")
    items, _ = survey()
    store = cache_folder() / FILE
    others = [item for item in items if item.path != store]
    room = limit - sum(item.bytes for item in others)
    return Store(store, max(room, 0)).shrink() + drop_oldest(others, limit)


def _show(args: argparse.Namespace) -> None:
    items, foreign = survey()
    info = Store(cache_folder() / FILE, size_limit()).info()
    total = sum(item.bytes for item in items)
    kinds = {
        kind.name: [item.bytes for item in items if item.kind is kind] for kind in KINDS.values()
    }
    if args.format == "json":
        record = {"path": str(info.path), "bytes": total, "limit": info.limit}
        held = {name: {"files": len(sizes), "bytes": sum(sizes)} for name, sizes in kinds.items()}
        others = [str(file) for file in foreign]
        print_records([{**record, "texts": dict(info.texts), "kinds": held, "foreign": others}])
        return
    rows = [
        [name, KINDS[name].what, str(len(sizes)), f"{sum(sizes) / 1e6:.1f}"]
        for name, sizes in kinds.items()
    ]
    rows[1:1] = [  # below the vectors
        ["", f"{describe(key)}: {count:,} texts", "", ""] for key, count in info.texts.items()
    ]
    notes = [f"{total / 1e6:.1f} MB in {cache_folder()}"]
    notes.append(f"vectors may take {info.limit / 1e6:.0f} MB")
    if foreign:
        named = ", ".join(str(file) for file in foreign[:NAMED])
        more = f" and {len(foreign) - NAMED} more" if len(foreign) > NAMED else ""
        notes.append(f"not tertium's, left alone: {named}{more}")
    header = ["kind", "what", "files", "MB"]
    print_table(Table(header, rows, notes=notes, left=frozenset({0, 1})), args.format)


def describe(fingerprint: str) -> str:
    """A fingerprint in words: the model by its short name or a hash, the part, the layer.

    >>> describe("transformer-2:53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    ...     ":tokens:8f39e6d49e824bba:4:fp32:512:truncate")
    'minilm tokens 4 fp32 512 truncate'
    >>> describe(f"tertium-multi-3:{'1' * 64}+{'2' * 64}:fp32")
    'tertium-multi-3@11111111+22222222 fp32'
    >>> describe("toy")
    'toy'
    """
    known = {joined_hash(card.files): card.name for card in CARDS.values()}
    kind, *words = fingerprint.split(":")
    hashes = re.compile(r"[0-9a-f]{64}(\+[0-9a-f]{64})*")  # several, where a network has parts
    shown = [
        known.get(word, f"{kind}@{'+'.join(part[:8] for part in word.split('+'))}")
        if hashes.fullmatch(word)
        else word
        for word in words
    ]
    return " ".join(word for word in shown if not re.fullmatch("[0-9a-f]{16}", word)) or kind
