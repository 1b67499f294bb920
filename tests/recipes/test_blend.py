"""The recipe of blends, on small sets with the layout of the published data."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from recipes import blend
from tertium.core.errors import DataError
from tertium.data.dataset_folder import DatasetFolder

WORDS = "the cat sat on a red mat under some big old tree".split()


def write_set(root: Path, name: str, lp: str, seed: int, *, judges: bool = False) -> None:
    """Write a set with four systems and a human reference, with scores of judges on request."""
    rng = np.random.default_rng(seed)
    lines = []
    for n in range(12):
        reference = [*rng.permutation(WORDS)[:8], str(n)]
        for system in ("A", "B", "C", "D", "refA"):
            wrong = int(rng.integers(0, 6)) if system != "refA" else 0
            score = 90 - 10 * wrong + float(rng.normal(0, 8))
            row: dict[str, object] = {
                "lp": lp, "doc": f"doc{n // 2}", "segment": str(n % 2), "system": system,
                "source": f"x {lp} {n}", "reference": " ".join(reference),
                "hypothesis": " ".join(["bad"] * wrong + reference[wrong:]), "score": score,
            }  # fmt: skip
            if judges and system != "refA":
                row["scores"] = {key: score + float(rng.normal()) for key in blend.JUDGES.values()}
            lines.append(json.dumps(row))
    file = root / "modern/dev" / name / f"{lp}.jsonl.gz"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress("\n".join(lines).encode()))


@pytest.fixture
def data(tmp_path: Path) -> DatasetFolder:
    for seed, name in enumerate(blend.SETS):
        write_set(tmp_path, name, "de-en", seed)
    return DatasetFolder.open(tmp_path)


def test_scores_are_stored_and_weights_fitted(data: DatasetFolder, tmp_path: Path) -> None:
    specs, file = ["chrf", "bleu"], tmp_path / "scores.jsonl"
    sets = blend.add_scores(blend.read_sets(data, 1000), specs, file)
    assert [one.name for one in sets] == [*blend.SETS]
    assert {j.system for one in sets for j in one.judgments} == {*"ABCD"}
    stored = file.read_text()
    again = blend.add_scores(blend.read_sets(data, 1000), specs, file)
    assert file.read_text() == stored
    assert again[0].judgments[0].metric_scores == sets[0].judgments[0].metric_scores
    centered = blend.center(sets, specs)
    assert all(abs(one.scores.mean()) < 1e-9 for one in centered)
    assert sum(blend.fit_weights(centered, specs).weights) > 0.5


@pytest.mark.slow
def test_the_report_leaves_out_one_set_at_a_time(data: DatasetFolder, tmp_path: Path) -> None:
    specs = ["chrf", "bleu"]
    sets = blend.add_scores(blend.read_sets(data, 1000), specs, tmp_path / "scores.jsonl")
    assert blend.compare(blend.center(sets, specs), specs, resamples=5) in (True, False)


def test_blends_with_judges_are_fitted_if_there_are_scores(
    data: DatasetFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    specs, file = ["chrf", "bleu"], tmp_path / "scores.jsonl"
    blend.report_judges(data, specs, file, resamples=5)
    assert "is not in the data" in capsys.readouterr().out
    for seed, lp in enumerate(("cs-uk", "en-is")):
        write_set(data.root, blend.JUDGED_SET, lp, 10 + seed, judges=True)
    blend.report_judges(DatasetFolder.open(data.root), specs, file, resamples=5)
    assert len(file.read_text().splitlines()) == 4  # scored once for both judges
    out = capsys.readouterr().out
    for text in ("strong judge (gemba_gpt41): {'judge:model=strong'", "weak judge", "p-values"):
        assert text in out


def test_cross_validation_leaks_neither_documents_nor_systems() -> None:
    """Random human scores of systems and documents cannot be predicted."""
    rng = np.random.default_rng(3)
    documents, systems = np.repeat(np.arange(40), 10), np.tile(np.arange(10), 40)
    targets = 5 * rng.normal(size=10)[systems] + 5 * rng.normal(size=40)[documents]
    values = rng.normal(size=(400, 2))
    predicted = blend.cross_validate(("a", "b"), values, targets, documents, systems)
    assert abs(np.corrcoef(predicted, targets)[0, 1]) < 0.15
    values[:, 0] = targets
    predicted = blend.cross_validate(("a", "b"), values, targets, documents, systems)
    assert np.corrcoef(predicted, targets)[0, 1] > 0.99
    with pytest.raises(DataError, match="at least two documents"):
        blend.cross_validate(("a", "b"), values, targets, documents * 0, systems)
