"""Environments with tertium and some of its extras, made in a second from what is installed here.

A real virtual environment whose packages are links to those of this one: exactly what tertium's own
list of requirements asks for, and what that asks for in turn. Nothing else can be imported there.

    python -m tests.extras.environments all      every combination of extras
    python -m tests.extras.environments neural models      one of them
    python -m tests.extras.environments installed PYTHON neural      one that is there already
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = tuple(name for name in PROJECT["optional-dependencies"] if name not in ("all", "dev"))


def make_environment(folder: Path, extras: Iterable[str], *, models: bool = True) -> Path:
    """Make an environment with this tree's tertium and some of its extras; its Python.

    `models` says whether the models that ship in a distribution of their own are there.
    """
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    found = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    site = Path(found.stdout.strip())
    for entry in {entry for dist in requirements(extras) for entry in _entries(dist)}:
        if not (site / entry.name).exists():
            (site / entry.name).symlink_to(entry)
    (site / "tertium").symlink_to(ROOT / "src" / "tertium")
    if models:
        (site / "tertium_models").symlink_to(ROOT / "weights" / "tertium_models")
    return python


def requirements(extras: Iterable[str]) -> list[Distribution]:
    """The packages that tertium needs with some extras, and all that these need."""
    chosen = [*PROJECT["dependencies"]]
    for extra in extras:
        chosen += PROJECT["optional-dependencies"][extra]
    left = [Requirement(text) for text in chosen]
    known: dict[tuple[str, str], Distribution] = {}
    while left:
        requirement = left.pop()
        for extra in ("", *sorted(requirement.extras)):
            key = canonicalize_name(requirement.name), extra
            if key not in known:
                known[key] = distribution(requirement.name)
                left += _required(known[key], extra)
    return list({str(dist._path): dist for dist in known.values()}.values())  # type: ignore[attr-defined]


def _required(dist: Distribution, extra: str) -> Iterator[Requirement]:
    for text in dist.requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            try:
                distribution(requirement.name)
            except PackageNotFoundError:
                continue  # its marker names a platform that packaging reads otherwise
            yield requirement


def _entries(dist: Distribution) -> set[Path]:
    """The files and folders of a package that lie beside each other in site-packages."""
    names = {file.parts[0] for file in dist.files or () if file.parts[0] not in ("..", "/")}
    found = {Path(str(dist.locate_file(name))) for name in names - {"__pycache__"}}
    return {path for path in found if path.exists()}


def run_smoke(python: Path, extras: Iterable[str], workspace: Path) -> subprocess.CompletedProcess:
    """Run the smoke test in an environment, with folders for models and caches that are empty."""
    settings = {
        "TERTIUM_CACHE": str(workspace / "cache"),
        "TERTIUM_MODELS": str(workspace / "models"),
        "HF_HOME": str(workspace / "hub"),
        "HF_HUB_OFFLINE": "1",
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(workspace),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    }
    smoke = Path(__file__).with_name("smoke.py")
    return subprocess.run(
        [python, "-I", smoke, *extras],
        cwd=workspace,
        env=settings,
        text=True,
        check=False,
        capture_output=True,
    )


def combinations() -> Iterator[tuple[str, ...]]:
    """Every set of extras, the small ones first."""
    for size in range(len(EXTRAS) + 1):
        yield from itertools.combinations(EXTRAS, size)


def is_sound(extras: Iterable[str], python: Path | None = None) -> bool:
    """Try one environment, made for it unless its Python is given, and print what came out."""
    with tempfile.TemporaryDirectory(prefix="tertium-extras-") as folder:
        chosen = python or make_environment(Path(folder) / "venv", extras)
        done = run_smoke(chosen, extras, Path(folder))
    print(f"{'+'.join(extras) or 'no extra'}: {done.stdout.strip() or 'failed'}", flush=True)
    if done.returncode:
        print(done.stderr, flush=True)
    return done.returncode == 0


def main(arguments: list[str]) -> int:
    """Try the environments that were asked for; 1 where one of them fails."""
    if arguments[:1] == ["installed"]:
        return int(not is_sound(arguments[2:], Path(arguments[1]).absolute()))
    asked = list(combinations()) if arguments == ["all"] else [tuple(arguments)]
    failed = [extras for extras in asked if not is_sound(extras)]
    print(f"{len(failed)} of {len(asked)} environments failed")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
