"""Fine-tuning of tertium-multi: it starts from the shipped model, saves and loads, and measures."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch
from recipes.multi import evaluate, fine_tune, groups, sampling, strings

from tertium.metrics.bundled.row_scorer import piece_errors
from tertium.metrics.bundled.scales import error_probabilities
from tertium.metrics.bundled.tertium_multi import TertiumMulti
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
def data(tmp_path_factory: pytest.TempPathFactory) -> sampling.PackedRows:
    folder = tmp_path_factory.mktemp("packed")
    packed = groups.GroupedRows()
    with_reference = [{**row, "reference": "No train runs today."} for row in ROWS]
    packed.add("da/x/de-en", with_reference, [0.5, -1.0, 0.5], [0.5, -1.0, 0.5])
    packed.add("soft/de-en", ROWS, [1.0, -1.0, 0.0], [1.0, -1.0, 0.0])
    packed.write(folder)
    return sampling.PackedRows.open(folder, MODEL / "encoder/tokenizer.json", "cpu")


def test_training_starts_from_the_shipped_scores(data: sampling.PackedRows) -> None:
    network, rows = fine_tune.load_shipped(MODEL).eval(), np.arange(3)
    for mode in range(3):
        texts = [
            (
                row["hypothesis"],
                None if mode == 1 else row["source"],
                None if mode == 0 else "No train runs today.",
            )
            for row in ROWS
        ]
        outputs = TertiumMulti(precision="fp32").raw_outputs(texts)
        with torch.no_grad():
            batch = evaluate.forward(data, rows, np.full(3, mode))
            scores, tags, is_piece = network.score(*batch)
        np.testing.assert_allclose(scores, [output[0] for output in outputs], atol=5e-3)
        for output, logits, mask in zip(outputs, tags, is_piece, strict=True):
            probabilities = error_probabilities(logits[mask].numpy())
            np.testing.assert_allclose(piece_errors(output), probabilities, atol=5e-3)


def test_saved_networks_load_and_average(data: sampling.PackedRows, tmp_path: Path) -> None:
    network = fine_tune.load_shipped(MODEL)
    fine_tune.save(network, tmp_path / "first")
    fine_tune.save(network, tmp_path / "second")
    loaded = fine_tune.load_trained(MODEL, sorted(tmp_path.glob("*.safetensors")))
    before, after = (evaluate.predict(n.eval(), data, np.arange(6), 0) for n in (network, loaded))
    np.testing.assert_allclose(before, after, atol=0.05)


def test_english_sources_are_replaced_by_translations() -> None:
    """A pivot is the reference of another pair, or the output with the best soft score."""
    packed = groups.GroupedRows()
    row = {"group": 0, "source": "No train.", "system": "a"}
    german = [{**row, "hypothesis": "Kein Zug.", "reference": "Kein Zug fährt."}]
    packed.add("esa/x/en-de", german, [0.5], [0.5])
    czech = [{**row, "hypothesis": text} for text in ("Žádný vlak.", "Vlak.")]
    packed.add("soft/en-cs", czech, [1.0, -1.0], [1.0, -1.0])
    groups.add_pivots(packed)
    assert packed.names[2:] == ["pivot-soft/de-cs", "pivot/cs-de"]
    assert packed.rows[3:] == [
        ("Žádný vlak.", "Kein Zug fährt.", None),
        ("Vlak.", "Kein Zug fährt.", None),
        ("Kein Zug.", "Žádný vlak.", "Kein Zug fährt."),
    ]
    assert packed.columns["score"][3:] == [1.0, -1.0, 0.5]
    assert len(set(packed.columns["group"])) == 4  # a pivot is a group of its own


def test_groups_give_pairs_of_one_source(data: sampling.PackedRows) -> None:
    shares = {"da": (0.5, (0.0, 1.0, 0.0)), "soft": (0.5, (0.0, 1.0, 0.0))}
    step = next(sampling.iter_steps(data, shares, 2_000, seed=1))
    left, right = step.pairs.T
    group = data.columns["group"][step.rows]
    assert (group[left] == group[right]).all()
    has_reference = data.columns["reference"][step.rows] >= 0
    assert (step.mode == np.where(has_reference, 1, 0)).all()  # the source where it is alone


def test_accuracies_leave_out_human_ties() -> None:
    human, metric = np.array([1.0, 1.0, 0.0, 5.0]), np.array([3.0, 1.0, 2.0, 0.0])
    assert evaluate.pair_accuracy(human, metric, np.array([0, 0, 0, 1])) == 0.5


def test_wrong_strings_differ_from_right_ones() -> None:
    pairs = list(strings.command_pairs())
    assert len(pairs) > 3_000
    assert all(pair.right != pair.wrong and pair.source != pair.right for pair in pairs)
    table = tomllib.loads(strings.COMMANDS.read_text(encoding="utf-8"))
    assert len({len(concepts) for concepts in table.values()}) == 1
