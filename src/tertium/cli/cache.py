"""`tertium cache`: what the store of vectors holds, and emptying it."""

from __future__ import annotations

import argparse
import re

from tertium.cache.folders import cache_folder
from tertium.cache.store import FILE, Store, size_limit
from tertium.cli.output import FORMATS, print_records, print_table
from tertium.encoders.cards import CARDS
from tertium.encoders.weights import joined_hash
from tertium.reporting.tables.table import Table

EPILOG = """\
examples:
  tertium cache info
  tertium cache clear

TERTIUM_CACHE names the folder, TERTIUM_CACHE_SIZE the size (4G by default, 0 for none);
--no-cache of the scoring commands leaves it alone for one run.
"""


def add_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
) -> argparse.ArgumentParser:
    parser = subparsers.add_parser(
        "cache",
        help="show or clear the store of computed vectors",
        description="Show what the store of computed vectors holds, or clear it.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "action", nargs="?", choices=("info", "clear"), default="info", help="default: info"
    )
    parser.add_argument("-f", "--format", choices=FORMATS, default="text")
    return parser


def run(args: argparse.Namespace) -> int:
    store = Store(cache_folder() / FILE, size_limit())
    if args.action == "clear":
        print(f"{store.clear() / 1e6:.1f} MB freed in {store.path.parent}")
        return 0
    info = store.info()
    if args.format == "json":
        record = {"path": str(info.path), "bytes": info.bytes, "limit": info.limit}
        print_records([{**record, "texts": dict(info.texts)}])
        return 0
    rows = [[describe(fingerprint), str(count)] for fingerprint, count in info.texts.items()]
    used = f"{info.bytes / 1e6:.1f} of {info.limit / 1e6:.0f} MB in {info.path}"
    print_table(Table(["vectors of", "texts"], rows, notes=[used]), args.format)
    return 0


def describe(fingerprint: str) -> str:
    """A fingerprint in words: the model by its short name or a hash, the part, the layer.

    >>> describe("transformer-2:53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    ...     ":tokens:8f39e6d49e824bba:4:fp32:512:truncate")
    'minilm tokens 4 fp32 512 truncate'
    >>> describe("toy")
    'toy'
    """
    known = {joined_hash(card.files): card.name for card in CARDS.values()}
    kind, *words = fingerprint.split(":")
    shown = [
        known.get(word, f"{kind}@{word[:8]}" if re.fullmatch("[0-9a-f]{64}", word) else word)
        for word in words
    ]
    return " ".join(word for word in shown if not re.fullmatch("[0-9a-f]{16}", word)) or kind
