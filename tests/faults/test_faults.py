"""A short fault-injection run; `make faults` runs the long one."""

from __future__ import annotations

import json
import logging
import os
import random
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from tests.faults import archives, campaign, corpora, folders
from tests.tiny_models import save_model

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills need fork and signals")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Disable the warnings of the cache."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.xdist_group("kills")
@pytest.mark.parametrize("kills", [2, pytest.param(len(campaign.JOBS), marks=pytest.mark.slow)])
def test_kills_and_cache_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kills: int
) -> None:
    """Children are forked from a process without threads: this one, or a new one."""
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path / "cache"))
    if count_threads() == 1:  # a fresh fork in which nothing has run
        tally = campaign.run_short(tmp_path, kills)
    else:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            tally = pool.submit(campaign.run_short, tmp_path, kills).result()
    assert not tally.failures, "\n".join(tally.failures)
    jobs: tuple[Any, ...] = campaign.JOBS[:kills]
    assert {f"kill -9: {job.name}" for job in jobs} <= tally.counts.keys()


def count_threads() -> int:
    """Count the threads of this process; 0 if unknown."""
    tasks = Path("/proc/self/task")
    return len(list(tasks.iterdir())) if tasks.is_dir() else 0


def test_sample_of_hostile_model_folders(tmp_path: Path) -> None:
    tally = campaign.Tally(print)
    campaign.run_folders(tally, tmp_path, 0.01, random.Random(13))
    assert not tally.failures, "\n".join(tally.failures)
    assert tally.counts["model folder: config.json"]["refused"] > 5
    assert tally.counts["model folder: weights"]["refused"] > 1


@pytest.mark.parametrize("name", archives.ARCHIVES)
def test_hostile_archives(name: str, tmp_path: Path) -> None:
    archives.try_archive(archives.ARCHIVES[name], tmp_path / "around" / "in")


@pytest.mark.parametrize("name", archives.DAMAGES)
def test_damaged_judgments(name: str, tmp_path: Path) -> None:
    archives.try_judgments(name, tmp_path, random.Random(14))


@pytest.mark.parametrize("name", corpora.DAMAGES)
def test_damaged_corpus_runs(name: str, tmp_path: Path) -> None:
    rng = random.Random(15)
    corpora.try_damage(name, tmp_path / "run", rng)


def test_undamaged_folders_are_accepted(tmp_path: Path) -> None:
    """Errors in the other tests are caused by the faults."""
    archives.judgment_folder(tmp_path)
    from tertium.data.dataset_folder import DatasetFolder

    assert len(DatasetFolder.open(tmp_path).judgments("da/wmt17", "de-en")) == 30
    for original in folders.valid_folders(tmp_path / "valid"):
        assert folders.try_folder(original) == "scored"


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        ("hidden_size", 10**30),
        ("intermediate_size", 10**30),
        ("layer_norm_eps", float("nan")),
        ("num_attention_heads", -1),
    ],
)
def test_invalid_encoder_settings_raise_errors(key: str, wrong: float, tmp_path: Path) -> None:
    """Found by fault injection: errors of numpy and torch, and NaN scores."""
    encoder = tmp_path / "encoder"
    encoder.mkdir()
    save_model("bert", encoder)
    config = json.loads((encoder / "config.json").read_text())
    (encoder / "config.json").write_text(json.dumps({**config, key: wrong}))
    assert folders.try_folder(encoder) == "refused"
