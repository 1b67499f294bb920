"""Ranking CSV files with five or two systems per row."""

from __future__ import annotations

from pathlib import Path

import pytest

from tertium.core.errors import DataError
from tertium.data.human_data_files import read_human_data
from tertium.data.rankings import RankingSet

HEADER = "srclang,trglang,srcIndex,documentId,segmentId,judgeId," + ",".join(
    f"system{n}Number,system{n}Id,system{n}rank" for n in range(1, 6)
)


def write(tmp_path: Path, *rows: str, header: str = HEADER) -> Path:
    file = tmp_path / "wmt99.csv"
    file.write_text("\n".join([header, *rows]) + "\n")
    return file


def row(*ranks: int, item: str = "7", judge: str = "ann") -> str:
    fields = zip("ABCDE", ranks, strict=True)
    systems = ",".join(f"{n},newstest.{s}.cs-en,{r}" for n, (s, r) in enumerate(fields))
    return f"Czech,English,{item},doc,{item},{judge},{systems}"


def read_rankings(file: Path) -> dict[str, RankingSet]:
    return {rankings.lp: rankings for rankings in read_human_data(file)}


def compared_systems(result: RankingSet) -> list[tuple[str, str]]:
    systems = [result.systems[n] for n in result.system_indices]
    return [(systems[a], systems[b]) for a, b in zip(result.left, result.right, strict=True)]


def test_five_systems_make_ten_pairs(tmp_path):
    result = read_rankings(write(tmp_path, row(1, 2, 2, 4, 5)))["cs-en"]
    assert len(result) == 10
    verdicts = dict(zip(compared_systems(result), result.verdicts.tolist(), strict=True))
    assert verdicts["A", "B"] == 1.0
    assert verdicts["B", "C"] == 0.5
    result = read_rankings(write(tmp_path, row(5, 4, 3, 2, 1)))["cs-en"]
    assert set(result.verdicts.tolist()) == {0.0}
    result = read_rankings(write(tmp_path, row(1, -1, 3, 4, -1)))["cs-en"]
    assert len(result) == 3
    assert result.excluded_counts == {"rank missing": 2}


def test_language_pairs(tmp_path):
    systems = "system1Id,system1rank,system2Id,system2rank"
    header = f"srclang,trglang,srcIndex,segmentId,judgeID,{systems},rankingID"
    one = "eng,cze,1,1,j6,it-test2016.A.1.en-cs,2,it-test2016.B.2.en-cs,1,8"
    result = read_rankings(write(tmp_path, one, "rus,eng,1,1,j6,A,1,B,1,9", header=header))
    assert set(result) == {"en-cs", "ru-en"}
    assert result["en-cs"].systems == ("A.1", "B.2")
    assert result["en-cs"].verdicts.tolist() == [0.0]
    assert result["ru-en"].verdicts.tolist() == [0.5]


@pytest.mark.parametrize(("line", "message"), [
    (row(1, 2, 3, 4, 5).replace(",5", ",best"), "line 2: the rank of '.*' is 'best'"),
    (row(1, 2, 3, 4, 5) + ",more", "line 2: 22 fields, but the header has 21"),
    (row(1, 2, 3, 4, 5).replace("Czech", ""), "line 2: no srclang"),
    (row(1, 2, 3, 4, 5, item=""), "line 2: expected the segment number in srcIndex or segmentId"),
])  # fmt: skip
def test_invalid_row_raises_with_file_and_line(tmp_path, line, message):
    with pytest.raises(DataError, match=message):
        read_rankings(write(tmp_path, line))
