"""`python -m tests.faults`: the campaign of faults, as long as FAULTS_KILLS asks for.

FAULTS_KILLS (200) kills, FAULTS_SEED (1), FAULTS_TIMES (10) of each fault of a cache or a file, and
FAULTS_SHARE (1) of all hostile model folders. Ends with 1 where anything was found.
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
    asked = {
        name: os.environ.get(f"FAULTS_{name}", "") for name in ("KILLS", "TIMES", "SHARE", "SEED")
    }
    with tempfile.TemporaryDirectory(prefix="tertium-faults-") as home:
        os.environ["TERTIUM_CACHE"] = str(Path(home) / "cache")
        tally = run(
            Path(home),
            kills=int(asked["KILLS"] or 200),
            times=int(asked["TIMES"] or 10),
            share=float(asked["SHARE"] or 1),
            seed=int(asked["SEED"] or 1),
            say=lambda line: print(line, file=sys.stderr, flush=True),
        )
    print(tally.table())
    return int(bool(tally.failures))


if __name__ == "__main__":
    sys.exit(main())
