"""`python -m papers` lists papers and prints published next to measured figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from papers.command import main
from tests.builders import write_jsonl


def test_papers_are_listed_without_data(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TERTIUM_DATA", raising=False)
    assert main(["--list", "-f", "md"]) == 0
    assert "| mathur2019 | 1 |" in capsys.readouterr().out


def test_no_paper_or_an_unknown_one_exits_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([]) == 2
    assert "which paper?" in capsys.readouterr().err
    assert main(["mathur", "--data", str(tmp_path)]) == 2
    assert "did you mean 'mathur2019'" in capsys.readouterr().err


@pytest.fixture
def wmt17(tmp_path: Path) -> Path:
    """A set of the right name and layout, with five made-up judgments."""
    scores = (0.1, 0.2, 0.3, 0.15, 0.9)
    rows = [
        {"system": "A", "segment": str(n), "mt": f"one two three {n}", "score": score}
        | {"ref": "one two three 4"}
        for n, score in enumerate(scores)
    ]
    for lp in ("en-ru", "en-zh"):
        write_jsonl(tmp_path / "da" / "wmt17" / f"{lp}.jsonl", rows)
    return tmp_path


@pytest.mark.parametrize("style", ["text", "md"])
def test_a_table_is_printed(wmt17: Path, style: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["mathur2019", "--table", "2", "--data", str(wmt17), "-f", style]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "/ 0.605" in out


def test_rows_can_be_selected_without_a_page(
    wmt17: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["mathur2019", "--table", "2", "--data", str(wmt17), "-f", "md"]
    assert main([*command, "--rows", "chrF"]) == 0
    out = capsys.readouterr().out
    assert "| chrF |" in out
    assert "MEANT" not in out
    assert main([*command, "--rows", "chrFF"]) == 2
    assert "did you mean 'chrF'" in capsys.readouterr().err
    assert main([*command, "--kept"]) == 2
    assert "-o DIR" in capsys.readouterr().err


def test_list_shows_the_requested_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mathur2019", "--list", "--table", "2"]) == 0
    assert "WMT17 from English, segments" in capsys.readouterr().out
    lists = []
    for papers in ([], ["all"]):
        assert main([*papers, "--list"]) == 0
        lists.append(capsys.readouterr().out)
    assert lists[0] == lists[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--list", "-o", "{page}"], "--output cannot be used with --list"),
        (["--list", "--rows", "chrF"], "--rows cannot be used with --list"),
        (["--kept", "--again", "-o", "{page}"], "--again cannot be used with --kept"),
        (["--kept", "--table", "2", "-o", "{page}"], "--table cannot be used with --kept"),
        (["--kept", "-f", "md", "-o", "{page}"], "remove -f md"),
    ],
)
def test_options_that_would_be_ignored_are_refused(
    options: list[str], message: str, wmt17: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = wmt17 / "pages"
    arguments = [word.format(page=page, data=wmt17) for word in options]
    assert main(["mathur2019", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not page.exists()
