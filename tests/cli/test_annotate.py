"""`tertium annotate`: links, and one clear line for each mistake."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from tests.annotation.running_server import make_campaign, submit_score
from tests.builders import read_cases
from tests.cli.conftest import Run

from tertium.core.errors import DataError, TertiumError, UsageError
from tertium.data.human_data_files import read_human_data
from tertium.data.judgments import JudgmentSet
from tertium.people.annotation_store import MANAGER, Event
from tertium.people.campaign import write_campaign
from tertium.people.state import (
    AnnotationSession,
    bind_socket,
    default_database,
    is_loopback,
    make_link,
    open_session,
)


@pytest.fixture
def campaign_file(tmp_path: Path) -> Path:
    write_campaign(make_campaign("da"), tmp_path / "campaign.json")
    return tmp_path / "campaign.json"


def serve_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tertium.people.server.serve", lambda session, listener: None)


def test_the_first_start_prints_all_links(
    campaign_file: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    serve_nothing(monkeypatch)
    links = campaign_file.with_name("links.tsv")
    command = f"annotate {campaign_file} --listen 127.0.0.1:0"
    rows = [line.split() for line in run(f"{command} -o {links}").out.splitlines()]
    assert [name for name, _ in rows] == ["manager", "anna", "ben", "chloé"]
    assert rows == [line.split("\t") for line in links.read_text("utf-8").splitlines()]
    assert os.name != "posix" or links.stat().st_mode & 0o077 == 0
    assert "/manager#" in rows[0][1]
    assert all(link.startswith("http://127.0.0.1:") for _, link in rows)
    before = links.read_bytes()
    second = run(f"{command} -o {links}")
    assert links.read_bytes() == before
    assert second.out == ""
    assert "links printed earlier stay valid (--new-links replaces them)" in second.err
    again = [line.split() for line in run(f"{command} --new-links").out.splitlines()]
    assert [name for name, _ in again] == [name for name, _ in rows]
    assert not {link for _, link in again} & {link for _, link in rows}


def test_judgments_are_written_and_read_by_the_other_commands(
    campaign_file: Path, run: Run
) -> None:
    judgments = campaign_file.with_name("judgments.jsonl")
    command = f"agree {campaign_file} -o {judgments}"
    assert "give the answers of its raters" in run(command, code=2).err
    session = AnnotationSession(make_campaign("da"), default_database(campaign_file))
    assert "no complete answers to the campaign" in run(command, code=2).err
    for n, score in enumerate((80, 20)):
        event = submit_score(n, score)
        session.store.append([Event(event["id"], "anna", event["body"])])
    run(command)  # while it is open
    session.close()
    rows = [json.loads(line) for line in judgments.read_text("utf-8").splitlines()]
    assert [(row["system"], row["score"]) for row in rows] == [("alpha", 80), ("alpha", 20)]
    [read] = read_human_data(judgments)
    assert isinstance(read, JudgmentSet)
    assert list(read.scores) == [80, 20]


ERRORS = """
--listen 127.0.0.1:70000 => expected HOST:PORT with a port from 0 to 65535
--listen 256.1.1.1 => cannot listen on 256.1.1.1
--listen 127.0.0.1:0 --answers other.db => holds the answers of another campaign
--listen 127.0.0.1:0 --answers text.db => not a usable database
--listen 127.0.0.1:0 --answers no/such/folder.db => the folder no/such does not exist
--listen 127.0.0.1:0 -o no/such/links.tsv => the folder no/such does not exist
-o judgments.jsonl => judgments.jsonl: expected a name that ends in .tsv
"""


@pytest.mark.parametrize(("options", "message"), read_cases(ERRORS))
def test_mistakes_get_one_line(
    campaign_file: Path, monkeypatch: pytest.MonkeyPatch, run: Run, options: str, message: str
) -> None:
    serve_nothing(monkeypatch)
    monkeypatch.chdir(campaign_file.parent)
    AnnotationSession(make_campaign("esa"), "other.db").close()
    Path("text.db").write_text("this is not a database\n" * 50)
    errors = run(f"annotate campaign.json {options}", code=2).err
    assert message in errors
    assert errors.count("\n") == 1


def check_second_server_is_refused(first: Path, second: Path, message: str) -> None:
    campaign = make_campaign("da")
    with (
        open_session(campaign, first),
        pytest.raises(TertiumError, match=message),
        open_session(campaign, second),
    ):
        pass


def test_a_second_server_on_one_database_is_refused(campaign_file: Path) -> None:
    database = default_database(campaign_file)
    check_second_server_is_refused(database, database, "in use by another server")
    with open_session(make_campaign("da"), database):
        pass


@pytest.mark.skipif(os.name != "posix", reason="needs links")
def test_a_second_server_on_a_link_to_the_database_is_refused(campaign_file: Path) -> None:
    database = default_database(campaign_file)
    folder, link = campaign_file.with_name("elsewhere"), campaign_file.with_name("link.db")
    folder.symlink_to(campaign_file.parent)
    link.symlink_to(database)
    pairs = [(database, link), (database, folder / database.name), (link, database)]
    for first, second in pairs:
        check_second_server_is_refused(first, second, "in use by another server")
    names = {path.name for path in campaign_file.parent.iterdir()}
    assert names == {database.name, campaign_file.name, "elsewhere", "link.db"}


@pytest.mark.skipif(os.name != "posix", reason="needs links")
def test_a_database_with_a_hard_link_is_refused(campaign_file: Path) -> None:
    campaign, database = make_campaign("da"), default_database(campaign_file)
    other = campaign_file.with_name("other.db")
    with open_session(campaign, database):
        other.hardlink_to(database)
        with (
            pytest.raises(DataError, match=r"other\.db has 2 names \(hard links\)"),
            open_session(campaign, other),
        ):
            pass
    other.unlink()
    with open_session(campaign, database):
        pass


@pytest.mark.skipif(os.name != "posix", reason="needs file modes")
def test_files_with_answers_can_only_be_read_by_their_owner(campaign_file: Path, run: Run) -> None:
    folder, database = campaign_file.parent, default_database(campaign_file)
    folder_mode = folder.stat().st_mode
    before = {*folder.iterdir()}
    event = submit_score(0, 80)
    umask = os.umask(0o022)
    try:
        with open_session(make_campaign("da"), database) as session:
            session.store.append([Event(event["id"], "anna", event["body"])])
            run(f"agree {campaign_file} -o {campaign_file.with_name('judgments.jsonl')} -q")
            modes = {
                path.name: stat.S_IMODE(path.stat().st_mode)
                for path in folder.iterdir()
                if path not in before
            }
    finally:
        os.umask(umask)
    suffixes = ("", "-shm", "-wal", ".lock")
    names = {f"{database.name}{suffix}" for suffix in suffixes} | {"judgments.jsonl"}
    assert modes == dict.fromkeys(names, 0o600)
    assert folder.stat().st_mode == folder_mode


def test_a_port_in_use_is_one_line() -> None:
    with bind_socket("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1, port {port}"):
            bind_socket("127.0.0.1", port)


def test_hosts_and_links() -> None:
    assert is_loopback("127.0.0.1")
    assert is_loopback("::1")
    assert is_loopback("localhost")
    assert not is_loopback("0.0.0.0")
    assert make_link("::1", 80, MANAGER, "t") == "http://[::1]:80/manager#t"
