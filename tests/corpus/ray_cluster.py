"""A Ray cluster of this machine, started by the tests that need it and ended with them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[None]:
    """Ray with two CPUs, or the cluster that RAY_ADDRESS names; skipped where there is none.

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
    except Exception as error:  # a machine so busy that Ray's own processes miss their times
        pytest.skip(f"Ray does not start here: {error}")
    yield
    ray.shutdown()
