"""Windows of 32 pieces, to test long texts of tertium-multi with short ones.

Its network reads texts of more than 510 pieces in windows, and at most 2,048 pieces of a text. How
texts are split at those lengths is tested in `metrics/flagship/test_text_windows.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tertium.core.runtime import runtime
from tertium.encoders.vector_cache import clear_memory
from tertium.metrics.bundled import input_rows, row_scorer

MAX_PIECES, MAX_JOINT_PIECES = 32, 96


@contextmanager
def short_windows() -> Iterator[None]:
    """Split texts into short windows, without caching: other tests use full windows."""
    with pytest.MonkeyPatch.context() as patch, runtime(cache=False):
        patch.setattr(row_scorer.RowScorer, "window_size", MAX_PIECES)
        for module in (row_scorer, input_rows):
            patch.setattr(module, "MAX_JOINT_PIECES", MAX_JOINT_PIECES)
        clear_memory()
        try:
            yield
        finally:
            clear_memory()
