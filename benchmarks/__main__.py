"""All benchmarks one after the other (`make bench`), or some of them by name.

python -m benchmarks                              all
python -m benchmarks encoding transport           some
python -m benchmarks encoding speed --systems 2   one with its own arguments
"""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import sys

import benchmarks

SHARED = frozenset({"__main__", "corpus", "measure"})


def names() -> list[str]:
    """The benchmarks there are, each a module with a `main`."""
    return [m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name not in SHARED]


def main() -> None:
    known = names()
    given = sys.argv[1:]
    chosen = list(itertools.takewhile(known.__contains__, given))
    rest = given[len(chosen) :]
    if rest and len(chosen) != 1:
        sys.exit(f"unknown benchmark {rest[0]!r}: {', '.join(known)}")
    for name in chosen or known:
        module = importlib.import_module(f"benchmarks.{name}")
        print(f"\n== {name}: {(module.__doc__ or '').splitlines()[0]}", flush=True)
        sys.argv = [f"benchmarks.{name}", *rest]
        module.main()


if __name__ == "__main__":
    main()
