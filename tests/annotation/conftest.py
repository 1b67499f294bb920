"""Fixtures: small campaigns, and servers that run in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.annotation.running_server import RunningServer, make_campaign, run_server
from tests.output.conftest import browser, running_browser

from tertium.people.campaign import Campaign

__all__ = ["browser", "running_browser"]


@pytest.fixture
def campaign() -> Campaign:
    return make_campaign("esa")


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[Campaign], RunningServer]]:
    """Start servers that end with the test."""
    servers: list[RunningServer] = []

    def start(campaign: Campaign) -> RunningServer:
        servers.append(run_server(campaign, tmp_path / f"{len(servers)}.db"))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()
