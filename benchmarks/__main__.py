"""All benchmarks one after the other: `make bench`, or some of them by name."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks

SHARED = frozenset({"__main__", "corpus", "measure"})


def names() -> list[str]:
    """The benchmarks there are, each a module with a `main`."""
    return [m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name not in SHARED]


def main() -> None:
    known = names()
    chosen = sys.argv[1:] or known
    for name in chosen:
        if name not in known:
            sys.exit(f"unknown benchmark {name!r}: {', '.join(known)}")
    for name in chosen:
        module = importlib.import_module(f"benchmarks.{name}")
        print(f"\n== {name}: {(module.__doc__ or '').splitlines()[0]}", flush=True)
        sys.argv = [f"benchmarks.{name}"]
        module.main()


if __name__ == "__main__":
    main()
