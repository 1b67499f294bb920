"""Tar files are unpacked only inside the target folder."""

from __future__ import annotations

import io
import logging
import tarfile
from pathlib import Path

import pytest

from tertium.core.errors import DataError
from tertium.data.formats.metrics_task import UnpackedFolder


def pack(path: Path, members: dict[str, bytes], link: str = "") -> Path:
    with tarfile.open(path, "w:xz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        if link:
            info = tarfile.TarInfo(link)
            info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            tar.addfile(info)
    return path


def test_single_inner_folder_is_opened_and_deleted_with_the_object(tmp_path):
    folder = UnpackedFolder(
        pack(tmp_path / "a.tar.xz", {"task/x.txt": b"x", "task/sub/y.txt": b"y"})
    )
    unpacked = folder.path
    assert (unpacked / "sub" / "y.txt").read_text() == "y"
    assert unpacked.name == "task"
    del folder
    assert not unpacked.exists()


@pytest.mark.parametrize("name", ["../evil.txt", "/evil.txt", "a/../../evil.txt", "a\\..\\evil"])
def test_member_outside_the_folder_raises(tmp_path, name):
    with pytest.raises(DataError, match="would be written outside the folder"):
        UnpackedFolder(pack(tmp_path / "a.tar.xz", {name: b"x"}))
    assert not list(tmp_path.glob("**/evil*"))


def test_links_are_skipped_with_a_warning(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        folder = UnpackedFolder(
            pack(tmp_path / "a.tar.xz", {"x.txt": b"x", "y.txt": b"y"}, link="z.txt")
        )
    assert sorted(p.name for p in folder.path.iterdir()) == ["x.txt", "y.txt"]
    assert "z.txt" in caplog.text


def test_damaged_files_raise_one_line_with_their_name(tmp_path):
    file = pack(tmp_path / "a.tar.xz", {"x.txt": b"x" * 9999})
    for content in (file.read_bytes()[:60], b"anything" * 100):
        file.write_bytes(content)
        with pytest.raises(DataError, match=r"^[^\n]*a\.tar\.xz: cannot be unpacked[^\n]*$"):
            UnpackedFolder(file)
    with pytest.raises(DataError, match="expected a folder or a file"):
        UnpackedFolder(tmp_path / "nothing")
