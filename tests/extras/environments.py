"""Virtual environments with tertium and some of its extras, made of links to installed packages.

An environment contains exactly the requirements of tertium and their own requirements. Nothing else
can be imported there.

    python -m tests.extras.environments all      every combination of extras
    python -m tests.extras.environments neural models      one of them
    python -m tests.extras.environments installed PYTHON neural      an existing one
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
    """Create an environment with tertium and some of its extras; return its Python.

    `models` adds the separate package of bundled models.
    """
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    result = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    site = Path(result.stdout.strip())
    for entry in {entry for dist in requirements(extras) for entry in _entries(dist)}:
        if not (site / entry.name).exists():
            (site / entry.name).symlink_to(entry)
    (site / "tertium").symlink_to(ROOT / "src" / "tertium")
    if models:
        (site / "tertium_models").symlink_to(ROOT / "weights" / "tertium_models")
    return python


def requirements(extras: Iterable[str]) -> list[Distribution]:
    """Return the packages that tertium needs with some extras, with their requirements."""
    texts = [*PROJECT["dependencies"]]
    for extra in extras:
        texts += PROJECT["optional-dependencies"][extra]
    pending = [Requirement(text) for text in texts]
    installed: dict[tuple[str, str], Distribution] = {}
    while pending:
        requirement = pending.pop()
        for extra in ("", *sorted(requirement.extras)):
            key = canonicalize_name(requirement.name), extra
            if key not in installed:
                installed[key] = distribution(requirement.name)
                pending += _required(installed[key], extra)
    return list({str(dist._path): dist for dist in installed.values()}.values())  # type: ignore[attr-defined]


def _required(dist: Distribution, extra: str) -> Iterator[Requirement]:
    for text in dist.requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            try:
                distribution(requirement.name)
            except PackageNotFoundError:
                continue  # not needed on this platform
            yield requirement


def _entries(dist: Distribution) -> set[Path]:
    """Return the top-level files and folders of a package in site-packages."""
    names = {file.parts[0] for file in dist.files or () if file.parts[0] not in ("..", "/")}
    paths = {Path(str(dist.locate_file(name))) for name in names - {"__pycache__"}}
    return {path for path in paths if path.exists()}


def run_smoke(python: Path, extras: Iterable[str], workspace: Path) -> subprocess.CompletedProcess:
    """Run the smoke test in an environment, with empty folders for models and caches."""
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
    """Yield all sets of extras, small ones first."""
    for size in range(len(EXTRAS) + 1):
        yield from itertools.combinations(EXTRAS, size)


def passes_smoke_test(extras: Iterable[str], python: Path | None = None) -> bool:
    """Test one environment, created unless its Python is given, and print the result."""
    with tempfile.TemporaryDirectory(prefix="tertium-extras-") as folder:
        interpreter = python or make_environment(Path(folder) / "venv", extras)
        result = run_smoke(interpreter, extras, Path(folder))
    print(f"{'+'.join(extras) or 'no extra'}: {result.stdout.strip() or 'failed'}", flush=True)
    if result.returncode:
        print(result.stderr, flush=True)
    return result.returncode == 0


def main(arguments: list[str]) -> int:
    """Test the requested environments; return 1 if one fails."""
    if arguments[:1] == ["installed"]:
        return int(not passes_smoke_test(arguments[2:], Path(arguments[1]).absolute()))
    requested = list(combinations()) if arguments == ["all"] else [tuple(arguments)]
    failed = [extras for extras in requested if not passes_smoke_test(extras)]
    print(f"{len(failed)} of {len(requested)} environments failed")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
