"""Experiments on the claims of Song et al. (2021), on small datasets, and its source-only rows."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest
from papers.departures import DEPARTURES
from papers.experiments import Segments
from papers.song2021 import AverageOverPairs, ByLength
from tests.papers.length_metric import Length

from papers import find_table
from tertium.data.dataset_folder import DatasetFolder

BERTSCORE_F1, CENTERED_SOURCES = DEPARTURES["bertscore-f1"], DEPARTURES["centered-sources"]
# Hypotheses of 1 to 4 letters; the reference has two words, then three.
SCORES = {"cs-en": (1.0, 2.0, 4.0, 3.0), "de-en": (2.0, 1.0, 3.0, 4.0)}


@pytest.fixture
def datasets(tmp_path: Path) -> DatasetFolder:
    folder = tmp_path / "da" / "mine"
    folder.mkdir(parents=True)
    for lp, scores in SCORES.items():
        rows = [
            {
                "system": "A",
                "segment": str(n),
                "hypothesis": "x" * n,
                "reference": "a b" if n < 3 else "a b c",
                "score": score,
            }
            for n, score in enumerate(scores, start=1)
        ]
        (folder / f"{lp}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return DatasetFolder(tmp_path)


def test_correlation_by_length_is_averaged_over_language_pairs(datasets: DatasetFolder) -> None:
    experiment = ByLength(
        set="da/mine", pairs=("cs-en", "de-en"), ranges=(("short", 0, 2), ("long", 3, inf))
    )
    cs_only = replace(experiment, pairs=("cs-en",))
    assert experiment.columns == ("short", "long")
    assert experiment.measure(datasets, Length(), "short").value == pytest.approx(0.0)  # 1 and -1
    assert experiment.measure(datasets, Length(), "long").value == pytest.approx(0.0)  # -1 and 1
    assert cs_only.measure(datasets, Length(), "short").value == pytest.approx(1.0)
    assert experiment.measure(datasets, Length(), "short").count == 4


def test_mean_and_deviation_over_language_pairs(datasets: DatasetFolder) -> None:
    segments = Segments(set="da/mine", columns=("cs-en", "de-en"))
    means = AverageOverPairs(settings=(("mine", segments),))
    deviations = replace(means, reduce="standard deviation")
    correlations = [np.corrcoef([1, 2, 3, 4], scores)[0, 1] for scores in SCORES.values()]
    mean, deviation = (e.measure(datasets, Length(), "mine") for e in (means, deviations))
    assert mean.value == pytest.approx(np.mean(correlations))
    assert deviation.value == pytest.approx(np.std(correlations, ddof=1), abs=1e-9)
    assert mean.count == 8


@pytest.mark.parametrize("number", ["2-source", "3", "5", "6-source", "8", "10"])
def test_source_only_rows_exist_with_and_without_our_corrections(number: str) -> None:
    table = find_table("song2021", number)
    assert CENTERED_SOURCES in table.departures
    rows = {row.label: row for row in table.rows if row.model is not None}
    plain = [label for label in rows if label.endswith(", not centered")]
    assert len(rows) == 2 * len(plain)
    for label in plain:
        row, corrected = rows[label], rows[label.removesuffix(", not centered")]
        assert row.model == f"{corrected.model},centre=none,wrong_language_penalty=0"
        assert not row.column_specs  # no language pair
        assert row.published == corrected.published
        assert not CENTERED_SOURCES.applies_to(row)
        assert CENTERED_SOURCES.applies_to(corrected)


def test_recall_of_bertscore_is_not_a_departure() -> None:
    labels = {r.label: r for r in find_table("song2021", "equation 5").rows}
    assert BERTSCORE_F1.applies_to(labels["SSS + BERTScore, F1"])
    assert not BERTSCORE_F1.applies_to(labels["SSS + BERTScore, recall"])
