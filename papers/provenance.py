"""The version of the code that measured a figure."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from tertium.version import __version__


@cache
def code_version() -> str:
    """Return `tertium 0.1.0`, with the commit if this file is tracked by git.

    "with changes" marks uncommitted changes: such a figure cannot be traced to a commit. Changes of
    the pages and of stored figures do not count, since a measurement writes them itself.
    """
    try:
        here = Path(__file__).resolve()
        _git("ls-files", "--error-unmatch", here.name)
        commit = _git("rev-parse", "--short=12", "HEAD")
        paths = (str(here.parents[1]), ":(exclude,top)docs")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", *paths)
    except (OSError, subprocess.SubprocessError):
        return f"tertium {__version__}"
    return f"tertium {__version__}, commit {commit}{' with changes' if changed else ''}"


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(Path(__file__).resolve().parent), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()
