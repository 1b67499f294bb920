"""Windows of 32 pieces: what tertium-multi does with a long text, at the price of a short one.

Its network reads a text of more than 510 pieces in windows, and of no text more than 2,048 pieces.
How texts are cut is tried at those lengths without a network (`metrics/flagship/test_windows.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tertium.cache.vector_cache import clear_memory
from tertium.execution import runtime
from tertium.metrics.flagship import row_scorer, text_windows

ROOM, MAX_JOINT_PIECES = 32, 96


@contextmanager
def short_windows() -> Iterator[None]:
    """Read long texts so, and keep nothing that is said of them: others read them otherwise."""
    with pytest.MonkeyPatch.context() as patch, runtime(cache=False):
        patch.setattr(row_scorer.RowScorer, "_room", ROOM)
        for module in (row_scorer, text_windows):
            patch.setattr(module, "JUDGED_PIECES", MAX_JOINT_PIECES)
        clear_memory()
        try:
            yield
        finally:
            clear_memory()
