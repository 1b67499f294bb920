"""`pip install`, done by uv where it can be had: the same packages in a third of the time.

uv reads none of pip's settings, so it is told where pip looks. Whatever goes wrong with it, pip
itself has the last word. Into an environment without pip comes the newest, fetched by the one that
Python carries; `venv` would unpack and compile that one first.

    .venv/bin/python .ci/install.py -c constraints.txt -e '.[dev]'
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
# Python compiles what it imports when it first does; compiling all that is installed takes longer.
PLAIN = [*PIP, "--quiet", "install", "--no-compile"]
BUNDLED = "ensurepip/_bundled/pip-*.whl"  # in the standard library
PLACES = ("index-url", "extra-index-url", "find-links")


def provide_pip() -> None:
    """pip and uv, by pip from the wheel that comes with Python; else pip as `venv` has it."""
    library = Path(os.__file__).parent
    for wheel in library.glob(BUNDLED):
        command = [sys.executable, str(wheel / "pip"), *PLAIN[3:], "pip", "uv"]
        if _succeeds(command):
            return
    if not _succeeds([sys.executable, "-m", "ensurepip", "--default-pip"]):
        sys.exit("Python is here without pip: install its module ensurepip (Debian: python3-venv)")


def places() -> list[str]:
    """Where pip looks for packages, from its files and the environment, as options of uv."""
    listed = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=True)
    found: dict[str, str] = {}  # the environment is listed first, and goes first
    for line in listed.stdout.splitlines():
        key, _, value = line.partition("=")
        found.setdefault(key.rpartition(".")[2], " ".join(shlex.split(value)))
    options = ((f"--{key}", place) for key in PLACES for place in found.get(key, "").split())
    return [part for option in options for part in option]


def install(arguments: list[str]) -> int:
    """uv, as if it were pip: the best version of all places; else pip, brought up to date."""
    if not find_spec("pip"):
        provide_pip()
        invalidate_caches()
    certificates = {"SSL_CERT_FILE": os.environ["PIP_CERT"]} if "PIP_CERT" in os.environ else {}
    if find_spec("uv") or _succeeds([*PLAIN, "uv"]):
        uv = [sys.executable, "-m", "uv", "--quiet", "pip", "install", "--python", sys.executable]
        uv += ["--index-strategy", "unsafe-best-match", *places(), *arguments]
        if subprocess.run(uv, env={**certificates, **os.environ}).returncode == 0:
            return 0
        print("uv could not install it: trying pip", file=sys.stderr)
    # the one that comes with Python 3.11 resolves in twice the time
    subprocess.run([*PLAIN, "--upgrade", "pip"])
    return subprocess.run([*PLAIN, *arguments]).returncode


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0


if __name__ == "__main__":
    sys.exit(install(sys.argv[1:]))
