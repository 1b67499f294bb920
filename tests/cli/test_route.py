"""`tertium route`: fit and apply on the command line; transcripts have its formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.builders import write_jsonl
from tests.cli.conftest import Run
from tests.decisions.judged_files import make_rows


def test_fit_and_apply(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl("judged.jsonl", make_rows(300))
    options = "--ignore wrong-language --target-precision 0.8"
    table = run(f"route fit --human judged.jsonl -m chrf {options} -o route.json").out
    assert "promise: at least 80 % of the published translations are good, with 95 %" in table
    assert "good: human score of at least 80; bad: below 50" in table
    new = [{k: v for k, v in row.items() if k != "score"} for row in make_rows(40, seed=5)]
    write_jsonl("new.jsonl", new)
    assert "publish" in run("route apply route.json -t new.jsonl -o labeled.jsonl").out
    records = [json.loads(line) for line in Path("labeled.jsonl").read_text().splitlines()]
    assert {record["outcome"] for record in records} == {"publish", "post-edit", "retranslate"}
    published = next(record for record in records if record["outcome"] == "publish")
    assert published["reason"].startswith("chrf >= ")
    assert published["mt"]
