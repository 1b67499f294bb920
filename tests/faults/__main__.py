"""`python -m tests.faults`: the full fault-injection run.

Environment variables: FAULTS_KILLS (200) kills, FAULTS_SEED (1), FAULTS_TIMES (10) repetitions of
each cache or file fault, FAULTS_SHARE (1) of all hostile model folders. Exits with 1 on failure.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def main() -> int:
    import logging

    from tests.faults.campaign import run

    logging.disable(logging.CRITICAL)
    options = {
        name: os.environ.get(f"FAULTS_{name}", "") for name in ("KILLS", "TIMES", "SHARE", "SEED")
    }
    with tempfile.TemporaryDirectory(prefix="tertium-faults-") as home:
        os.environ["TERTIUM_CACHE"] = str(Path(home) / "cache")
        tally = run(
            Path(home),
            kills=int(options["KILLS"] or 200),
            times=int(options["TIMES"] or 10),
            share=float(options["SHARE"] or 1),
            seed=int(options["SEED"] or 1),
            log=lambda line: print(line, file=sys.stderr, flush=True),
        )
    print(tally.table())
    return int(bool(tally.failures))


if __name__ == "__main__":
    sys.exit(main())
