"""Windows of an eighth: what tertium-multi does with a long text, at the price of a short one.

Its network reads a text of more than 510 pieces in windows, and of no text more than 2,048 pieces.
How texts are cut is tried at those lengths without a network (`metrics/flagship/test_windows.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

import pytest

from tertium.cache.store import forget
from tertium.metrics.flagship import rows

ROOM, JUDGED_PIECES = 62, 256


@contextmanager
def short_windows() -> Iterator[None]:
    """Read long texts so; what is said of them is kept apart, since others read them otherwise."""
    with (
        TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(rows.RowJudge, "_room", ROOM)
        patch.setattr(rows, "JUDGED_PIECES", JUDGED_PIECES)
        patch.setenv("TERTIUM_CACHE", folder)
        forget()
        try:
            yield
        finally:
            forget()
