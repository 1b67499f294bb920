"""`python -m tertium` and the command `tertium` are the command line."""

import gc
import sys

GARBAGE_THRESHOLD = 100_000  # new objects between collections; imports of torch trigger hundreds


def run() -> int:
    """Import and run the command line; Ctrl-C is no traceback, also during the import."""
    try:
        gc.set_threshold(GARBAGE_THRESHOLD)
        from tertium.cli import main

        return main()
    except KeyboardInterrupt:
        print("tertium: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(run())
