"""Run all benchmarks (`make bench`) or some of them by name.

python -m benchmarks                              all
python -m benchmarks encoding transport           some
python -m benchmarks encoding speed --systems 2   one with its own arguments
python -m benchmarks --write docs/benchmarks.md   all, and record them on a page
python -m benchmarks --write docs/benchmarks.md ter --every 10   record one of them again
"""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import sys
from pathlib import Path

import benchmarks

NON_BENCHMARKS = frozenset({"__main__", "corpus", "measure", "record"})


def list_benchmarks() -> list[str]:
    """Return the names of all benchmarks; each is a module with a `main`."""
    return [
        m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name not in NON_BENCHMARKS
    ]


def main() -> None:
    available = list_benchmarks()
    words = sys.argv[1:]
    page: Path | None = None
    if words[:1] == ["--write"]:
        if len(words) < 2:
            sys.exit("--write needs a file: for example docs/benchmarks.md")
        page, words = Path(words[1]), words[2:]
    chosen = list(itertools.takewhile(available.__contains__, words))
    remaining = words[len(chosen) :]
    if remaining and len(chosen) != 1:
        sys.exit(f"unknown benchmark {remaining[0]!r}; available: {', '.join(available)}")
    for name in chosen or available:
        run(name, remaining, page)


def run(name: str, arguments: list[str], page: Path | None) -> None:
    """Run one benchmark; with a page, record its output."""
    module = importlib.import_module(f"benchmarks.{name}")
    description = module.__doc__ or ""
    print(f"\n== {name}: {description.splitlines()[0]}", flush=True)
    sys.argv = [f"benchmarks.{name}", *arguments]
    if page is None:
        module.main()
        return
    from benchmarks.record import add_run, record_run

    add_run(page, record_run(name, description, arguments, module.main))


if __name__ == "__main__":
    main()
