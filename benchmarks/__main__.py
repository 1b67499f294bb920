"""All benchmarks one after the other (`make bench`), or some of them by name.

python -m benchmarks                              all
python -m benchmarks encoding transport           some
python -m benchmarks encoding speed --systems 2   one with its own arguments
python -m benchmarks --write docs/benchmarks.md   all, kept beside a page and shown on it
python -m benchmarks --write docs/benchmarks.md ter --every 10   one of them anew
"""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import sys
from pathlib import Path

import benchmarks

SHARED = frozenset({"__main__", "corpus", "measure", "ray_script", "record"})


def names() -> list[str]:
    """The benchmarks there are, each a module with a `main`."""
    return [m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name not in SHARED]


def main() -> None:
    known = names()
    given = sys.argv[1:]
    page: Path | None = None
    if given[:1] == ["--write"]:
        if len(given) < 2:
            sys.exit("--write needs a file, such as docs/benchmarks.md")
        page, given = Path(given[1]), given[2:]
    chosen = list(itertools.takewhile(known.__contains__, given))
    rest = given[len(chosen) :]
    if rest and len(chosen) != 1:
        sys.exit(f"unknown benchmark {rest[0]!r}: {', '.join(known)}")
    for name in chosen or known:
        run(name, rest, page)


def run(name: str, arguments: list[str], page: Path | None) -> None:
    """Run one benchmark; with a page, keep what it prints."""
    module = importlib.import_module(f"benchmarks.{name}")
    description = module.__doc__ or ""
    print(f"\n== {name}: {description.splitlines()[0]}", flush=True)
    sys.argv = [f"benchmarks.{name}", *arguments]
    if page is None:
        module.main()
        return
    from benchmarks.record import keep, record

    keep(page, record(name, description, arguments, module.main))


if __name__ == "__main__":
    main()
