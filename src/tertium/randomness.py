"""Random numbers from a seed that was checked, so that a bad one is an error with a reason."""

from __future__ import annotations

import numpy as np

from tertium.errors import UsageError


def generator(seed: int, *parts: int) -> np.random.Generator:
    """The generator of a seed; `parts` tell apart what draws under the same seed.

    >>> generator(12345).integers(10, size=3).tolist()
    [6, 2, 7]
    """
    if seed < 0:
        raise UsageError(f"a seed is a whole number from 0 on, not {seed}")
    return np.random.default_rng([seed, *parts] if parts else seed)
