"""Files are written atomically, through links, pipes and devices."""

from __future__ import annotations

import gzip
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tertium.core.atomic import check_writable, lock_file, open_atomic, write_text
from tertium.core.errors import WriteError

ONLY_UNIX = pytest.mark.skipif(sys.platform == "win32", reason="links, pipes and modes of Unix")
NOT_ROOT = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere"
)


def only_file(folder: Path) -> Path:
    """Return the only file of a folder: no temporary file is left."""
    (file,) = folder.iterdir()
    return file


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("old")

    def pieces() -> Iterator[str]:
        yield "new"
        raise KeyError("broken")

    with pytest.raises(KeyError):
        write_text(file, pieces())
    assert only_file(tmp_path).read_text() == "old"


def test_the_file_is_the_old_one_until_the_block_ends(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("old")
    with open_atomic(file) as stream:
        stream.write(b"new")
        stream.flush()
        assert file.read_text() == "old"
    assert only_file(tmp_path).read_text() == "new"


def test_texts_round_trip_and_are_compressed_to_equal_files(tmp_path):
    longest = tmp_path / ("a" * 255)
    write_text(longest, ["grüß ", "dich\n"])
    assert only_file(tmp_path).read_bytes() == "grüß dich\n".encode()
    write_text(tmp_path / "a.gz", "text\n")
    write_text(tmp_path / "b.gz", ["te", "xt\n"])
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"text\n"


@ONLY_UNIX
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_the_file_mode_is_preserved(tmp_path, mode):
    file = tmp_path / "a.txt"
    file.touch()
    file.chmod(mode)
    write_text(file, "new")
    assert stat.S_IMODE(file.stat().st_mode) == mode


@ONLY_UNIX
def test_a_new_private_file_can_only_be_read_by_its_owner(tmp_path):
    file = tmp_path / "a"
    write_text(file, "x", private=True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o640)  # an existing file keeps its mode
    write_text(file, "y", private=True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert file.read_text() == "y"


@ONLY_UNIX
@pytest.mark.parametrize("there", [True, False])
def test_links_are_followed(tmp_path, there):
    goal = tmp_path / "folder" / "goal.txt"
    goal.parent.mkdir()
    if there:
        goal.write_text("old")
    first, second = tmp_path / "first", tmp_path / "second"
    first.symlink_to("second")
    second.symlink_to(Path("folder") / "goal.txt")
    write_text(first, "new")
    assert first.is_symlink()
    assert second.is_symlink()
    assert only_file(goal.parent).read_text() == "new"


@ONLY_UNIX
def test_a_pipe_is_written_directly(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_text(pipe, "through")
    reader.join()
    assert read == ["through"]
    assert stat.S_ISFIFO(only_file(tmp_path).stat().st_mode)


@ONLY_UNIX
def test_a_device_is_written_directly(tmp_path):
    link = tmp_path / "null"
    link.symlink_to("/dev/null")
    for name in (link, Path("/dev/null")):
        write_text(name, "gone")
        assert stat.S_ISCHR(name.stat().st_mode)
    assert only_file(tmp_path).is_symlink()


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="no /dev/stdout")
def test_redirected_output_keeps_earlier_output(tmp_path):
    code = (
        "from tertium.core.atomic import write_text; print('before', flush=True); "
        "write_text('/dev/stdout', 'written\\n'); print('after')"
    )
    file = tmp_path / "printed"
    with file.open("w") as stream:
        subprocess.run([sys.executable, "-c", code], stdout=stream, check=True)
    assert only_file(tmp_path).read_text() == "before\nwritten\nafter\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_raises_a_one_line_error():
    with pytest.raises(WriteError, match=r"/dev/full: cannot be written \(No space left"):
        write_text("/dev/full", "x" * 100_000)


def test_invalid_paths_raise_one_line_errors(tmp_path):
    (tmp_path / "file").touch()
    cases = {
        tmp_path: "is a directory; expected a file name",
        tmp_path / "none" / "a": "the folder .*none does not exist",
        tmp_path / "file" / "a": r"cannot be written \(Not a directory\)",
        tmp_path / ("a" * 300): "the file name is too long .300 bytes",
        tmp_path / ("ä" * 150): "the file name is too long .300 bytes",
    }
    for path, message in cases.items():
        for attempt in (check_writable, lambda path: write_text(path, "x")):
            with pytest.raises(WriteError, match=message):
                attempt(path)
    assert only_file(tmp_path).read_bytes() == b""
    if sys.platform != "win32":
        (tmp_path / "a").symlink_to("b")
        (tmp_path / "b").symlink_to("a")
        with pytest.raises(WriteError, match=r"a: cannot be written \(Too many levels"):
            write_text(tmp_path / "a", "x")


@NOT_ROOT
def test_read_only_files_raise_errors(tmp_path):
    file = tmp_path / "a"
    file.write_text("old")
    file.chmod(0o444)
    with pytest.raises(WriteError, match="no permission to write to it"):
        write_text(file, "new")
    assert file.read_text() == "old"


def test_errors_leave_no_file(tmp_path):
    with pytest.raises(WriteError, match=r"U\+D800 is not a character"):
        write_text(tmp_path / "a", "x\ud800")
    assert not list(tmp_path.iterdir())
    with pytest.raises(gzip.BadGzipFile), open_atomic(tmp_path / "a"):
        raise gzip.BadGzipFile("what is read is damaged")
    assert not list(tmp_path.iterdir())


HOLD = """
import sys, time
from pathlib import Path
from tertium.core.atomic import lock_file

with lock_file(Path(sys.argv[1])) as is_ours:
    print(is_ours, flush=True)
    time.sleep(600)
"""


def test_a_lock_has_one_holder_and_ends_with_its_process(tmp_path):
    lock = tmp_path / "new" / "_lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lock)], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "True\n"
        with lock_file(lock) as is_ours:
            assert not is_ours
        assert only_file(lock.parent) == lock
        other.kill()
        other.wait()
    with lock_file(lock) as is_ours:
        assert is_ours
    assert not [*lock.parent.iterdir()]


def test_without_file_locks_every_process_continues(tmp_path):
    (tmp_path / "file").write_text("")
    with lock_file(tmp_path / "file" / "_lock") as is_ours:
        assert is_ours
