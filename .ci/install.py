"""Install packages with uv where possible, else with pip: same packages, a third of the time.

uv ignores pip's configuration, so the index URLs are passed to it. If uv fails for any reason, pip
is used. An environment without pip gets the newest pip, fetched by the wheel bundled with Python.

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
# Skip byte-compilation of all installed files; Python compiles a module on its first import.
PIP_INSTALL = [*PIP, "--quiet", "install", "--no-compile"]
BUNDLED_PIP = "ensurepip/_bundled/pip-*.whl"  # in the standard library
INDEX_OPTIONS = ("index-url", "extra-index-url", "find-links")


def bootstrap_pip() -> None:
    """Install pip and uv with the pip wheel bundled with Python, else fall back on ensurepip."""
    library = Path(os.__file__).parent
    for wheel in library.glob(BUNDLED_PIP):
        command = [sys.executable, str(wheel / "pip"), *PIP_INSTALL[3:], "pip", "uv"]
        if _succeeds(command):
            return
    if not _succeeds([sys.executable, "-m", "ensurepip", "--default-pip"]):
        sys.exit("pip is missing: install the Python module ensurepip (Debian: python3-venv)")


def index_options() -> list[str]:
    """Return pip's configured package indexes as uv options."""
    config = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=True)
    settings: dict[str, str] = {}  # the environment is listed first and takes precedence
    for line in config.stdout.splitlines():
        key, _, value = line.partition("=")
        settings.setdefault(key.rpartition(".")[2], " ".join(shlex.split(value)))
    options = ((f"--{key}", url) for key in INDEX_OPTIONS for url in settings.get(key, "").split())
    return [part for option in options for part in option]


def install(arguments: list[str]) -> int:
    """Install with uv, or with an updated pip if uv is missing or fails; return the exit code."""
    if not find_spec("pip"):
        bootstrap_pip()
        invalidate_caches()
    certificates = {"SSL_CERT_FILE": os.environ["PIP_CERT"]} if "PIP_CERT" in os.environ else {}
    if find_spec("uv") or _succeeds([*PIP_INSTALL, "uv"]):
        uv = [sys.executable, "-m", "uv", "--quiet", "pip", "install", "--python", sys.executable]
        uv += ["--index-strategy", "unsafe-best-match", *index_options(), *arguments]
        if subprocess.run(uv, env={**certificates, **os.environ}).returncode == 0:
            return 0
        print("uv failed: trying pip", file=sys.stderr)
    # The pip bundled with Python 3.11 takes twice as long to resolve.
    subprocess.run([*PIP_INSTALL, "--upgrade", "pip"])
    return subprocess.run([*PIP_INSTALL, *arguments]).returncode


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0


if __name__ == "__main__":
    sys.exit(install(sys.argv[1:]))
