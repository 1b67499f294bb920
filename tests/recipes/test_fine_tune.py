"""Fine-tuning of tertium-multi: it starts as the shipped model, saves and loads, and measures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from recipes.multi import fine_tune, groups, strings

from tertium.metrics.flagship.tertium_multi import TertiumMulti
from tertium.models.checkpoint import bundled_models_folder

MODEL = bundled_models_folder() / TertiumMulti.name
ROWS = [
    {"group": 0, "source": "Der Zug fährt heute nicht.", "hypothesis": text, "system": system}
    for system, text in (
        ("a", "The train does not run today."),
        ("b", "The train leaves today."),
        ("c", "There is no train today."),
    )
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> fine_tune.PackedRows:
    folder = tmp_path_factory.mktemp("packed")
    packed = groups.GroupedRows()
    with_reference = [{**row, "reference": "No train runs today."} for row in ROWS]
    packed.add("da/x/de-en", with_reference, [0.5, -1.0, 0.5], [0.5, -1.0, 0.5])
    packed.add("soft/de-en", ROWS, [1.0, -1.0, 0.0], [1.0, -1.0, 0.0])
    packed.write(folder)
    return fine_tune.PackedRows.open(folder, MODEL / "encoder/tokenizer.json", "cpu")


def test_training_starts_from_the_shipped_scores(data: fine_tune.PackedRows) -> None:
    """The head leaves out the small hidden layer of the readout and the bound of the score."""
    network, _ = fine_tune.load_shipped(MODEL)
    teacher, rows = fine_tune.Teacher(MODEL, "cpu"), np.arange(3)
    for mode in range(3):
        texts = [
            (
                row["hypothesis"],
                None if mode == 1 else row["source"],
                None if mode == 0 else "No train runs today.",
            )
            for row in ROWS
        ]
        shipped = TertiumMulti(precision="fp32").raw_scores(texts)
        taught = fine_tune.predict(teacher, data, rows, mode)
        np.testing.assert_allclose(taught, shipped, atol=5e-3)
        started = fine_tune.predict(network.eval(), data, rows, mode)
        assert np.abs(started - shipped).max() < 0.3


def test_saved_networks_load_and_average(data: fine_tune.PackedRows, tmp_path: Path) -> None:
    network, _ = fine_tune.load_shipped(MODEL)
    fine_tune.save(network, tmp_path / "first")
    fine_tune.save(network, tmp_path / "second")
    loaded = fine_tune.load_trained(MODEL, sorted(tmp_path.glob("*.safetensors")))
    before, after = (fine_tune.predict(n.eval(), data, np.arange(6), 0) for n in (network, loaded))
    np.testing.assert_allclose(before, after, atol=0.05)


def test_groups_give_pairs_of_one_source(data: fine_tune.PackedRows) -> None:
    shares = {"da": (0.5, (0.0, 1.0, 0.0)), "soft": (0.5, (0.0, 1.0, 0.0))}
    step = next(fine_tune.iter_steps(data, shares, 2_000, seed=1))
    left, right = step.pairs.T
    group = data.columns["group"][step.rows]
    assert (group[left] == group[right]).all()
    has_reference = data.columns["reference"][step.rows] >= 0
    assert (step.mode == np.where(has_reference, 1, 0)).all()  # the source where it is alone


def test_accuracies_leave_out_human_ties() -> None:
    human, metric = np.array([1.0, 1.0, 0.0, 5.0]), np.array([3.0, 1.0, 2.0, 0.0])
    assert fine_tune.pair_accuracy(human, metric, np.array([0, 0, 0, 1])) == 0.5


def test_wrong_strings_differ_from_right_ones() -> None:
    pairs = list(strings.command_pairs())
    assert len(pairs) > 3_000
    assert all(pair.right != pair.wrong and pair.source != pair.right for pair in pairs)
    assert len({len(table.split("; ")) for table in strings.COMMANDS.values()}) == 1
