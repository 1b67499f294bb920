"""`python -m tertium` and the command `tertium` are the command line."""

import sys


def run() -> int:
    """Import and run the command line; Ctrl-C is no traceback, also during the import."""
    try:
        from tertium.cli import main

        return main()
    except KeyboardInterrupt:
        print("tertium: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(run())
