"""Judge the example with a language model on this machine: `make judge-demo`.

The first run downloads 491 MB. The model has half a billion parameters and was trained for code: it
is a weak judge, and its scores say nothing about the systems. The demo proves that server, JSON
schema, cache, spans and reasons work together.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from recipes.judge.local_server import MODEL, run_local_server
from tertium.cli import main as tertium

EXAMPLES = Path(__file__).parents[2] / "examples"
SYSTEMS = ("good", "fair", "poor")
JUDGE = f"judge:model={MODEL},protocol={{protocol}},lp=de-en,max_tokens=400,retries=1"


def copy_lines(name: str, count: int, folder: Path) -> str:
    """Copy the first lines of an example file; return the new path."""
    lines = (EXAMPLES / name).read_text(encoding="utf-8").splitlines(keepends=True)
    target = folder / name
    target.write_text("".join(lines[:count]), encoding="utf-8")
    return str(target)


def judge_examples(url: str, count: int, protocol: str, folder: Path) -> int:
    """Score and explain the first segments of the example; return the exit code."""
    judge = ["-m", JUDGE.format(protocol=protocol)]
    source = ["-s", copy_lines("source.de.txt", count, folder)]
    paths = [copy_lines(f"system-{system}.en.txt", count, folder) for system in SYSTEMS]
    server = ["--judge-url", url, "--concurrency", "1", "--request-timeout", "600"]
    systems = ["-t", *paths, "--names", *SYSTEMS]
    code = tertium(["score", *source, *systems, *judge, *server])
    if code:
        return code
    print(f"\nReasons for one segment of the system {SYSTEMS[-1]}:")
    return tertium(["explain", *source, "-t", paths[-1], "--segment", "1", *judge, *server])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--segments", type=int, default=3, help="of each system (default: 3)")
    parser.add_argument("--protocol", choices=("esa", "da", "mqm"), default="esa")
    parser.add_argument("--threads", type=int, help="of the server (default: half of the cores)")
    parser.add_argument("--serve", action="store_true", help="only run the server, until Ctrl-C")
    args = parser.parse_args()
    os.environ.pop("OPENAI_API_KEY", None)  # not for this server
    print(f"starting a server with {MODEL} (the first time: a download of 491 MB) ...", flush=True)
    with run_local_server(args.threads) as url, tempfile.TemporaryDirectory() as folder:
        if args.serve:
            print(f"model {MODEL} at {url}; use it with --judge-url {url}; Ctrl-C stops it")
            wait_for_interrupt()
            return 0
        print(f"server at {url}; an answer takes several seconds on a CPU ...", flush=True)
        code = judge_examples(url, args.segments, args.protocol, Path(folder))
    print(
        f"\n{MODEL} is a weak judge: this shows that everything works, not which system is better."
    )
    return code


def wait_for_interrupt() -> None:
    import threading

    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        print()


if __name__ == "__main__":
    raise SystemExit(main())
