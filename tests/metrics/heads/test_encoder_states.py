"""States for training heads are stored in half precision."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tertium.core.errors import DataError
from tertium.encoders.toy_encoder import ToyEncoder
from tertium.metrics.heads.head_training import store_states

TEXTS = ["the cat sat on the mat", "a dog", "", "he went home and slept for a long time"]


def test_stored_states_are_the_encoders(tmp_path: Path) -> None:
    states = store_states(ToyEncoder(), TEXTS, tmp_path / "states", "cpu")
    assert states.lengths.tolist() == [6, 2, 0, 9]
    result = states(np.array([3, 0]))
    assert result.values.shape == (2, 9, 1, 16)
    assert result.lengths.tolist() == [9, 6]
    expected = ToyEncoder().encode([TEXTS[0]]).vectors
    np.testing.assert_allclose(result.values[1, :6, 0], expected, atol=1e-3)  # fp16
    assert (result.values[1, 6:] == 0).all()


def test_full_disk_error_names_the_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def write(self, _):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "open", lambda *_: Full())
    with pytest.raises(DataError, match=r"No space left on device.*need about .* GB"):
        store_states(ToyEncoder(), TEXTS, tmp_path / "states", "cpu")
