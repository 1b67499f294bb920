"""A Ray cluster of this machine, started by the tests that need it and ended with them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[None]:
    """Ray with two CPUs, or the cluster that RAY_ADDRESS names; skipped where there is none."""
    ray = pytest.importorskip("ray", reason="needs tertium[ray]")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    own = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 100 << 20}
    try:
        ray.init(log_to_driver=False, **({} if os.environ.get("RAY_ADDRESS") else own))
    except Exception as error:  # a machine so busy that Ray's own processes miss their times
        pytest.skip(f"Ray does not start here: {error}")
    yield
    ray.shutdown()
