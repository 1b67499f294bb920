"""Training data of the metrics that are trained for one row of a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from papers.trained_metrics import ASSESSMENTS, AssessmentHead

from tertium.data.dataset_folder import DatasetFolder


@pytest.mark.parametrize(("raters", "texts"), [(None, ["one", "two"]), (1, ["one"]), (2, ["two"])])
def test_direct_assessments_by_number_of_raters(
    tmp_path: Path, raters: int | None, texts: list[str]
) -> None:
    for name in ASSESSMENTS:
        folder = tmp_path / "modern" / "train" / "da" / name
        folder.mkdir(parents=True)
        rows = [
            {"hypothesis": "one", "reference": "r", "raters": 1},
            {"hypothesis": "two", "reference": "r", "raters": 2},
            {"hypothesis": "no reference", "raters": 1},
        ]
        more = {"lp": "ru-en", "segment": "1", "doc": "d", "system": "A", "source": "s", "score": 1}
        text = "".join(json.dumps({**more, **row}) + "\n" for row in rows)
        for lp in ("ru-en", "en-ru"):
            (folder / f"{lp}.jsonl").write_text(text)
    sets = AssessmentHead(metric="esim", raters=raters).read_scores(DatasetFolder(tmp_path))
    assert [(one.name, one.lp) for one in sets] == [
        (f"modern/train/da/{name}", "ru-en") for name in ASSESSMENTS
    ]
    assert [[j.segment.hypothesis for j in one.judgments] for one in sets] == [texts] * 3
