"""The common experiments, on small datasets with hand-computed results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from papers.experiments import Comparisons, Segments, Systems
from papers.trained_metrics import SeededSegments, SeededSystems
from tests.builders import write_tsv
from tests.papers.length_metric import Length
from tests.papers.small_sets import write_assessments, write_rankings

from tertium.core.arrays import FloatArray
from tertium.core.segment import Segment
from tertium.data.dataset_folder import DatasetFolder


@dataclass(frozen=True, kw_only=True)
class Shortness(Length):
    """The length, where lower is better."""

    higher_is_better: ClassVar[bool] = False


class Longer:
    """A ranker that prefers the longer translation."""

    def prefer(self, left: Sequence[Segment], right: Sequence[Segment]) -> FloatArray:
        longer = [len(a.hypothesis) > len(b.hypothesis) for a, b in zip(left, right, strict=True)]
        return np.where(longer, 0.9, 0.1)


@pytest.fixture
def datasets(tmp_path: Path) -> DatasetFolder:
    write_assessments(tmp_path, "mine", [1.0, 3.0, 2.0, 4.0])
    outputs = {"A": "xxxx", "B": "xx", "C": "x", "unjudged": "xxxxxxxx"}
    folder = write_rankings(tmp_path, outputs, ["A B a", "B C b", "C A b", "A C tie"])
    systems = [("A", 3), ("B", 1), ("C", 2), ("gone", 9)]
    write_tsv(folder / "cs-en.systems.tsv", "system score", systems)
    return DatasetFolder(tmp_path)


def test_segments_correlate(datasets: DatasetFolder) -> None:
    experiment = Segments(set="da/mine", columns=("cs-en",))
    figure = experiment.measure(datasets, Length(), "cs-en")
    assert figure.value == pytest.approx(0.8)  # r of 1 2 3 4 with 1 3 2 4
    assert figure.count == 4
    assert figure.signature.startswith("Length|nrefs:1|")
    negated = experiment.measure(datasets, Shortness(), "cs-en")
    assert negated.value == pytest.approx(-0.8)


def test_comparisons_count_concordant_and_discordant(datasets: DatasetFolder) -> None:
    experiment = Comparisons(set="rankings/mine", columns=("cs-en",))
    figure = experiment.measure(datasets, Length(), "cs-en")
    assert figure.value == pytest.approx(100 * (2 - 1) / 3)
    assert figure.count == 3
    ranker = experiment.measure(datasets, Longer(), "cs-en")
    assert ranker.value == pytest.approx(100 * (2 - 1) / 3)


def test_systems_without_output_are_counted(datasets: DatasetFolder) -> None:
    experiment = Systems(set="rankings/mine", columns=("cs-en",))
    figure = experiment.measure(datasets, Length(), "cs-en")
    expected = np.corrcoef([3, 1, 2], [4, 2, 1])[0, 1]
    assert figure.value == pytest.approx(expected)
    assert (figure.count, figure.excluded_counts) == (3, {"no output": 1})
    mean = Systems(set="rankings/mine", columns=("cs-en",), aggregate="mean")
    assert mean.measure(datasets, Length(), "cs-en").value == pytest.approx(expected)


def test_seeds_are_averaged_and_the_first_gives_the_scores(datasets: DatasetFolder) -> None:
    seeds = [Length(), Shortness(), Length()]
    systems = SeededSystems(set="rankings/mine", columns=("cs-en",))
    figure = systems.measure(datasets, seeds, "cs-en")
    single = np.corrcoef([3, 1, 2], [4, 2, 1])[0, 1]
    assert figure.value == pytest.approx(single / 3)
    assert figure.deviation == pytest.approx(np.std([single, -single, single], ddof=1))
    assert (figure.seeds, figure.count, figure.excluded_counts) == (3, 3, {"no output": 1})
    human, first, *_ = systems.read_scores(datasets, seeds, "cs-en")
    assert (human.tolist(), first.tolist()) == ([3, 1, 2], [4, 2, 1])
    segments = SeededSegments(set="da/mine", columns=("cs-en",))
    human, first, *_ = segments.read_scores(datasets, seeds, "cs-en")
    assert (human.tolist(), first.tolist()) == ([1, 3, 2, 4], [1, 2, 3, 4])


def test_systems_are_scored_on_a_sample_of_segments(datasets: DatasetFolder) -> None:
    folder = datasets.root / "rankings" / "mine"
    second = {"segment": "2", "source": "s", "reference": "r"}
    with (folder / "cs-en.texts.jsonl").open("a") as file:
        file.write(json.dumps({**second, "outputs": {"A": "x", "B": "xxxxxxxx", "C": "x"}}) + "\n")
    with (folder / "cs-en.judgements.tsv").open("a") as file:
        file.write("2\tj\tA\tB\ta\n2\tj\tB\tC\ta\n")
    every, sample = (Systems(set="rankings/mine", columns=("cs-en",), step=n) for n in (1, 2))
    assert every.data == "rankings/mine, all segments of every system"
    assert sample.data == "rankings/mine, 1 of 2 segments of every system"
    expected = np.corrcoef([3, 1, 2], [4, 2, 1])[0, 1]
    assert sample.measure(datasets, Length(), "cs-en").value == pytest.approx(expected)
    assert every.measure(datasets, Length(), "cs-en").value != pytest.approx(expected)
