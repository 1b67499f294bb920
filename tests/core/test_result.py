"""Results: one declaration of a table gives text, HTML, records, frames and files."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import tertium
from tertium.core import result as result_module
from tertium.core.errors import UsageError
from tertium.core.result import (
    Cell,
    Column,
    Result,
    Table,
    Writer,
    bound_columns,
    count_column,
    percent_column,
)
from tertium.people.power import PowerPlan


@dataclass(frozen=True)
class Runner:
    name: str
    seconds: float
    laps: int
    share: float | None = None


RUNNERS = (Runner("Ada", 61.257, 1200, 0.254), Runner("Bo", float("nan"), 3))


@dataclass(frozen=True)
class Race(Result):
    runners: tuple[Runner, ...] = RUNNERS

    def tables(self) -> list[Table]:
        columns = [
            Column("name"),
            Column("time", "seconds", 1, mark=lambda r: "best" if r.laps > 3 else ""),
            *bound_columns("time", lambda r: (r.seconds - 1, r.seconds + 1)),
            count_column("laps"),
            percent_column("share"),
        ]
        notes = ["times in seconds"]
        return [
            Table(columns, self.runners, "Race", notes, footer=[[Cell("all")] + [Cell("")] * 3])
        ]


def test_text_has_rounded_values_and_files_have_full_values() -> None:
    [table] = Race().tables()
    assert table.header == ["name", "time", "laps", "share"]
    assert [cell.text for cell in table.cells()[0]] == ["Ada", "61.3", "1,200", "25 %"]
    assert [cell.text for cell in table.cells()[1]] == ["Bo", "–", "3", ""]
    assert table.cells()[0][1] == Cell("61.3", 61.257, "best")
    assert table.values()["time low"][0] == 60.257
    assert table.records()[0] == {
        "name": "Ada",
        "time": 61.257,
        "time low": 60.257,
        "time high": 62.257,
        "laps": 1200,
        "share": 0.254,
    }


def test_a_result_prints_its_tables() -> None:
    assert str(Race()).splitlines() == [
        "Race",
        "",
        " name   time    laps   share",
        " ───────────────────────────",
        " Ada    61.3   1,200    25 %",
        " Bo        –       3",
        " all",
        "",
        "times in seconds",
    ]


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".tsv", ".csv", ".parquet", ".xlsx"])
def test_files_of_tables_can_be_read_back(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"race{suffix}"
    Race().write(path)
    names, seconds = ["Ada", "Bo"], 61.257
    if suffix == ".json":
        records = json.loads(path.read_text("utf-8"))
    elif suffix == ".jsonl":
        records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    elif suffix in (".tsv", ".csv"):
        delimiter = "\t" if suffix == ".tsv" else ","
        records = [*csv.DictReader(path.open(encoding="utf-8"), delimiter=delimiter)]
    else:
        pandas = pytest.importorskip("pandas")
        if suffix == ".xlsx":
            pytest.importorskip("openpyxl")
        read = pandas.read_parquet if suffix == ".parquet" else pandas.read_excel
        records = read(path).to_dict(orient="records")
    assert [record["name"] for record in records] == names
    assert float(records[0]["time"]) == seconds
    assert records[1]["time"] in ("", None) or records[1]["time"] != records[1]["time"]


@pytest.mark.parametrize(("suffix", "expected"), [(".md", "| Ada | **61.3** |"), (".tex", "Ada &")])
def test_formats_for_papers_have_rounded_values(suffix: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / f"race{suffix}"
    Race().write(path)
    assert expected in path.read_text("utf-8")


def test_a_result_is_written_only_in_formats_that_it_has(tmp_path: Path) -> None:
    for suffix in (".sarif", ".svg", ".xml", ".doc", ""):
        path = tmp_path / f"race{suffix}"
        with pytest.raises(UsageError, match=r"expected a name that ends in \.json, .* or \.html"):
            Race().write(tmp_path / "race.json", path)
    assert not list(tmp_path.iterdir()), "names are checked before anything is written"


def test_a_new_writer_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    writers = {**result_module.WRITERS, ".names": Writer(f"{__name__}:write_names")}
    monkeypatch.setattr(result_module, "WRITERS", writers)
    Race().write(tmp_path / "race.names")
    assert (tmp_path / "race.names").read_text() == "Ada Bo"


def write_names(result: Result, path: Path) -> None:
    path.write_text(" ".join(result.tables()[0].values()["name"]))


def test_readers_choose_the_decimals_of_scores_only() -> None:
    score = Column("score", lambda row: row, 2, adjustable=True)
    p = Column("p", lambda row: row, 4)
    table = Table([score, p], [0.123456]).with_decimals(5)
    assert [cell.text for cell in table.cells()[0]] == ["0.12346", "0.1235"]
    assert Table([score], [1.0]).with_decimals(None).cells()[0][0].text == "1.00"


PUBLIC_RESULTS = (
    "Evaluation Comparison GateResult Ranking CheckReport WorstSegments Route RoutedTranslations"
    " Explanation AgreementStudy ChallengeStudy CorpusSummary RaterStudy Scores Report"
).split()


@pytest.mark.parametrize("cls", [*(getattr(tertium, name) for name in PUBLIC_RESULTS), PowerPlan])
def test_public_functions_return_results(cls: type[Any]) -> None:
    assert issubclass(cls, Result)
