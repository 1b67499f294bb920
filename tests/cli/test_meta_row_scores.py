"""`tertium meta` on metric scores in the rows of the judgments, as in WMT25's ESA data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.builders import write_jsonl
from tests.cli.conftest import Run

import tertium
from tertium.data.judgments import read_judgments

QUALITY = {"Alpha": 85.0, "Beta": 70.0, "Gamma": 55.0, "refA": 90.0}
METRICS = ("gemba_gpt41", "cometkiwi_xl", "metricx24xl")
WORDS = "the cat sat on a red mat under some big old tree".split()


def make_row(lp: str, segment: int, system: str, rng: np.random.Generator) -> dict[str, Any]:
    """Return a row like those of modern/dev/esa/wmt25; human references have no metric scores."""
    score = float(np.clip(QUALITY[system] + rng.normal(0, 12), 0, 100).round())
    words = [w if rng.random() * 100 < score else "wrong" for w in WORDS]
    row = {
        "lp": lp, "doc": f"news_{segment // 2}", "segment": str(segment), "system": system,
        "source": "eine Katze", "hypothesis": " ".join(words), "reference": " ".join(WORDS),
        "score": score,
        "spans": [{"start": 0, "end": 3, "side": "hypothesis", "severity": "minor"}],
    }  # fmt: skip
    if system != "refA":
        row["scores"] = {
            "gemba_gpt41": None if segment == 0 else score,
            "cometkiwi_xl": round((score + rng.normal(0, 20)) / 100, 4),
            "metricx24xl": -score,  # as an error score: lower is better
        }
    return row


@pytest.fixture
def human(tmp_path: Path) -> list[str]:
    """Two language pairs with six paragraphs each."""
    rng = np.random.default_rng(25)
    return [
        write_jsonl(
            tmp_path / f"{lp}.jsonl",
            [make_row(lp, n, system, rng) for n in range(6) for system in QUALITY],
        )
        for lp in ("cs-uk", "en-is")
    ]


def test_judgments_have_the_scores_of_their_row(human: list[str]) -> None:
    scores = read_judgments(human[0]).metric_scores()
    assert list(scores) == ["cometkiwi_xl", "metricx24xl", "gemba_gpt41"]
    assert np.isnan(scores["gemba_gpt41"]).sum() == 6 + 3  # references, and missing answers
    assert np.isnan(scores["metricx24xl"]).sum() == 6


def test_rows_without_other_metrics_are_evaluated(human: list[str]) -> None:
    study = tertium.meta_evaluate(human, statistic=["pearson", "acc_eq", "SPA"], resamples=50)
    assert {*study.sets[0].metrics} == {*METRICS}
    values = study.sets[0].scores[study.sets[0].metrics.index("gemba_gpt41")]
    known = ~np.isnan(values)
    np.testing.assert_array_equal(values[known], study.sets[0].human[known])


def test_rows_are_shown_with_our_metrics_on_request(human: list[str], run: Run) -> None:
    command = f"meta --human {' '.join(human)} -m chrf --statistic pearson acc_eq SPA"
    printed = run(f"{command} --scores-from-rows --confidence --resamples 50").out
    for name in (*METRICS, "chrf", "[", "SPA"):
        assert name in printed
    assert "gemba_gpt41" not in run(f"{command} --resamples 0").out
    printed = run(f"meta --human {human[0]} --resamples 0").out
    assert "judged system without a metric score" in printed


def test_named_rows_and_lower_is_better(human: list[str], run: Run) -> None:
    command = f"meta --human {human[0]} --scores-from-rows gemba_gpt41 metricx24xl"
    records = run(f"{command} --lower-better metricx24xl --resamples 50 -f json").json
    values = {record["metric"]: record["value"] for record in records["tasks"]}
    assert values == {"gemba_gpt41": pytest.approx(1), "metricx24xl": pytest.approx(1)}
