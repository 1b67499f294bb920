"""A local Ray cluster, started for the tests that need it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[None]:
    """Ray with two CPUs, or the cluster at RAY_ADDRESS; skipped if Ray is not installed.

    It takes two GPUs for granted and deals them out, whether or not they are there.
    """
    ray = pytest.importorskip("ray", reason="needs tertium[ray]")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    own = {"num_cpus": 2, "num_gpus": 2, "include_dashboard": False}
    own |= {"object_store_memory": 100 << 20}
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
            ray.init(log_to_driver=False, **({} if os.environ.get("RAY_ADDRESS") else own))
    except Exception as error:  # Ray timed out on a busy machine
        pytest.skip(f"Ray does not start here: {error}")
    yield
    ray.shutdown()
