"""References as hypotheses of tertium-multi: not held out, only compared, source-only."""

from __future__ import annotations

import io
import lzma
import tarfile
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from recipes.multi import references, samples
from recipes.multi.combine import detection_rates, unit_weights
from recipes.multi.readouts import READOUT_NAMES
from recipes.multi.store import ARCHIVE, Store

# hypothesis, source, reference by numbers of texts: two segments, the second without a reference
TEXTS = np.array([[10, 1, 2], [11, 1, 2], [2, 1, 2], [12, 1, 2], [13, 3, -1], [14, 4, 5]])
SCORES = np.array([0.9, -1.0, -2.0, 0.4, -3.0, -0.5], np.float32)
NONE = np.zeros(0, np.int64)


def test_references_are_paired_with_low_scoring_outputs() -> None:
    """Of rows 0, 1, 3, 5 (2 is its reference, 4 has none) the lowest third are 1 and 5."""
    better, rows = references.pair_with_references(TEXTS, SCORES, NONE)
    assert rows.tolist() == [1, 5]
    assert better.tolist() == [[2, 1, -1], [5, 4, -1]]
    targets = np.repeat(SCORES[:, None], 3, 1)[rows]
    table = references.compare(better, TEXTS[rows], targets)
    assert table.texts.tolist() == [[2, 1, -1], [11, 1, -1], [5, 4, -1], [14, 4, -1]]
    assert np.isnan(table.targets[::2]).all()  # no score of its own
    assert (table.targets[1::2] == targets).all()
    assert table.pairs[:, :3].tolist() == [[0, 1, pytest.approx(references.PREFERENCE_SHARE)]] * 2
    selected = table.take(np.array([1, 0]))
    assert selected.texts[:2].tolist() == [[5, 4, -1], [14, 4, -1]]
    assert len(selected.pairs) == 2


def test_held_out_references_are_excluded() -> None:
    better, rows = references.pair_with_references(TEXTS, SCORES, np.array([2]))
    assert rows.tolist() == [5]
    assert better[:, 0].tolist() == [5]
    human = np.array([True, False, False, False, False, False])
    assert references.pair_with_second_references(TEXTS, SCORES, human, NONE)[0][:, 0].tolist() == [
        10
    ]
    assert not len(references.pair_with_second_references(TEXTS, SCORES, human, np.array([10]))[1])


def test_write_leaks_compares_letters_in_every_part(tmp_path: Path) -> None:
    """FLORES texts can be references, system outputs cannot."""
    for part, text in (
        ("held-out", "The dog.\nA horse."),
        ("judgements", "“The DOG”\nA cat."),
        ("rankings", "a cat\na horse\nHorses"),
    ):
        (tmp_path / part).mkdir()
        (tmp_path / part / "texts.xz").write_bytes(lzma.compress(text.encode()))
    (tmp_path / "outputs").mkdir()
    with tarfile.open(tmp_path / "outputs" / ARCHIVE, "w:xz") as archive:
        for name in ("de", "de-en.system", "en"):
            lines = b"Ein Hund.\nNichts." if name == "de" else b"The dog!\nNothing."
            entry = tarfile.TarInfo(f"{name}.txt")
            entry.size = len(lines)
            archive.addfile(entry, io.BytesIO(lines))
    references.write_leaks(tmp_path)
    found = {
        name: np.load(tmp_path / f"derived/leaks-{name}.npy").tolist()
        for name in ("judgements", "rankings", "outputs")
    }
    assert found["judgements"] == [True, False]
    assert found["rankings"] == [False, True, False]
    assert found["outputs"] == [False, False, True, False, False, False]


def test_second_reference_must_score_higher() -> None:
    human = np.array([False, False, False, True, False, False])  # scores .4, row 1 has -1
    better, rows = references.pair_with_second_references(TEXTS, SCORES, human, NONE)
    assert rows.tolist() == [1]
    assert better.tolist() == [[12, 1, 2]]
    low = np.where(human, -0.8, SCORES)
    assert not len(references.pair_with_second_references(TEXTS, low, human, NONE)[1])


def test_sample_references_pairs_references_with_poor_outputs(tmp_path: Path) -> None:
    """Two of eight outputs are poor; human outputs and test sets are excluded."""
    score = np.array([0.1, -3, 0.2, -2, 0.3, 0.4, 0.5, 0.6, -9, -9])
    columns = {
        "hypothesis": np.arange(10),
        "source": np.full(10, 10),
        "reference": np.full(10, 11),
        "score": score,
        "set": np.array([0] * 9 + [1]),
        "human": np.array([0] * 8 + [1, 0]),
        "comparisons": np.zeros((0, 4), int),
    }
    store = Store(np.arange(12, dtype=np.int32), np.arange(13), columns, ["dev:a/x", "test:b/x"])
    lines = [f"text {n}" for n in range(12)]
    rows = samples.sample_references(store, lines, "dev:", 5)
    shown = [(int(t[0][0]), int(t[1][0]), t[2]) for t in rows.texts]  # type: ignore[index]
    assert shown == [(11, 10, None), (1, 10, None), (11, 10, None), (3, 10, None)]
    assert rows.strings[:2] == [("text 11", "text 10", None), ("text 1", "text 10", None)]
    predictions = np.array([0.5, 0.1, 0.2, 0.9])
    read, letters = np.zeros((4, len(READOUT_NAMES))), np.full((4, 2), 0.1)
    rows.save(
        tmp_path / "references.npz", said_source=predictions, read_source=read, letters=letters
    )
    assert detection_rates(tmp_path, "source", 2.0, unit_weights(0), "references") == {
        "dev:a/x": 0.5
    }
