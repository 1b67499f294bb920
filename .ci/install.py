"""Install packages with uv where possible, else with pip: same packages, a third of the time.

uv ignores pip's configuration, so the index URLs are passed to it. Each package comes from one
index: the first that has it, the main index before the extra ones. All our requirements are public
packages of the main index, so that nobody can replace one by a higher version on another index.
pip cannot be told this: it is used only if uv fails and there is a single index. An environment
without pip gets pip and uv, fetched by the wheel bundled with Python, in the versions of
constraints.txt.

    .venv/bin/python .ci/install.py -c constraints.txt -e '.[dev]'
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
# Skip byte-compilation of all installed files; Python compiles a module on its first import.
PIP_INSTALL = [*PIP, "--quiet", "install", "--no-compile"]
BUNDLED_PIP = "ensurepip/_bundled/pip-*.whl"  # in the standard library
CONSTRAINTS = ["-c", str(Path(__file__).resolve().parent.parent / "constraints.txt")]
PUBLIC_INDEX = "https://pypi.org/simple"


def bootstrap_pip() -> None:
    """Install pip and uv with the pip wheel bundled with Python, else fall back on ensurepip."""
    library = Path(os.__file__).parent
    for wheel in library.glob(BUNDLED_PIP):
        command = [sys.executable, str(wheel / "pip"), *PIP_INSTALL[3:], *CONSTRAINTS, "pip", "uv"]
        if _succeeds(command):
            return
    if not _succeeds([sys.executable, "-m", "ensurepip", "--default-pip"]):
        sys.exit("pip is missing: install the Python module ensurepip (Debian: python3-venv)")


def read_pip_settings() -> dict[str, list[str]]:
    """Return the addresses of indexes and link pages in pip's configuration, by option."""
    config = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=True)
    return parse_pip_settings(config.stdout)


def parse_pip_settings(listing: str) -> dict[str, list[str]]:
    """Return the values of each option in the output of `pip config list`.

    >>> parse_pip_settings(":env:.index-url='https://a'\\nglobal.index-url='https://b'")
    {'index-url': ['https://a']}
    """
    settings: dict[str, list[str]] = {}
    for line in sorted(listing.splitlines(), key=lambda line: line.startswith(":env:")):
        key, _, value = line.partition("=")  # the environment comes last and takes precedence
        settings[key.rpartition(".")[2]] = " ".join(shlex.split(value)).split()
    return settings


def list_indexes(settings: Mapping[str, list[str]]) -> list[str]:
    """Return the indexes in the order in which they are searched: the main index first.

    >>> list_indexes({"extra-index-url": ["https://mirror/simple"]})
    ['https://pypi.org/simple', 'https://mirror/simple']
    """
    if settings.get("no-index", ["0"])[0].lower() in ("1", "true", "yes", "on"):
        return []
    main = settings.get("index-url") or [PUBLIC_INDEX]
    return list(dict.fromkeys([*main, *settings.get("extra-index-url", [])]))


def index_options(settings: Mapping[str, list[str]]) -> list[str]:
    """Return uv's options for the indexes; a package comes from the first index that has it.

    >>> index_options({"index-url": ["https://a"], "extra-index-url": ["https://b"]})[2:]
    ['--index', 'https://a', '--index', 'https://b', '--default-index', 'https://a']
    """
    indexes = list_indexes(settings)
    options = [("--index-strategy", "first-index"), *(("--index", url) for url in indexes)]
    options += [("--default-index", url) for url in indexes[:1]]  # instead of the public index
    options += [("--find-links", url) for url in settings.get("find-links", [])]
    return [*(() if indexes else ["--no-index"]), *(part for pair in options for part in pair)]


def install(arguments: list[str]) -> int:
    """Install with uv, or with an updated pip if uv is missing or fails; return the exit code."""
    if not find_spec("pip"):
        bootstrap_pip()
        invalidate_caches()
    settings = read_pip_settings()
    certificates = {"SSL_CERT_FILE": os.environ["PIP_CERT"]} if "PIP_CERT" in os.environ else {}
    if find_spec("uv") or _succeeds([*PIP_INSTALL, *CONSTRAINTS, "uv"]):
        uv = [sys.executable, "-m", "uv", "--quiet", "pip", "install", "--python", sys.executable]
        uv += [*index_options(settings), *arguments]
        if subprocess.run(uv, env={**certificates, **os.environ}).returncode == 0:
            return 0
    indexes = list_indexes(settings)
    if len(indexes) > 1:
        print(
            "uv is missing or failed, and pip would take each package from any of "
            f"{' '.join(indexes)}: set PIP_INDEX_URL to one index that has all packages, without "
            "extra indexes",
            file=sys.stderr,
        )
        return 1
    print("uv failed: trying pip", file=sys.stderr)
    # The pip bundled with Python 3.11 takes twice as long to resolve.
    subprocess.run([*PIP_INSTALL, *CONSTRAINTS, "--upgrade", "pip"])
    return subprocess.run([*PIP_INSTALL, *arguments]).returncode


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0


if __name__ == "__main__":
    sys.exit(install(sys.argv[1:]))
