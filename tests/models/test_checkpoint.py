"""Checkpoints: complete or refused, with messages that name the problem."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from tertium.core.errors import DataError, ModelError
from tertium.models.checkpoint import (
    Checkpoint,
    check_encoder,
    read_checkpoint,
    round_to_half,
    write_checkpoint,
)


def checkpoint(**changes: object) -> Checkpoint:
    parts: dict[str, object] = {
        "name": "esim",
        "config": {"encoder": "toy", "hidden": 2},
        "encoders": {"toy": "ab" * 32},
        "arrays": round_to_half(
            {
                "w": np.array([[0.1, 0.2], [0.3, 1 / 3]], dtype=np.float32),
                "b": np.array(0.7, dtype=np.float32),
                "exact": np.array([1 / 3]),
            }
        ),
    }
    return Checkpoint(**{**parts, **changes})  # type: ignore[arg-type]


def test_checkpoint_round_trip(tmp_path: Path) -> None:
    written = checkpoint(training={"note": "x"})
    write_checkpoint(tmp_path / "m", written)
    loaded = read_checkpoint(tmp_path / "m")
    assert loaded.hash == written.hash
    assert loaded.training == {"note": "x"}
    for name, array in written.arrays.items():
        assert loaded.arrays[name].shape == array.shape
        assert loaded.arrays[name].dtype == array.dtype
        assert (loaded.arrays[name] == array).all()
    assert loaded.arrays["exact"][0] == 1 / 3
    stored = (tmp_path / "m" / "weights.safetensors").stat().st_size
    assert stored < 400  # half precision: 10 + 8 bytes of numbers and a header


def test_the_hash_changes_with_weights_settings_and_encoder() -> None:
    hashes = {
        checkpoint().hash,
        checkpoint(config={"encoder": "toy", "hidden": 3}).hash,
        checkpoint(encoders={"toy": "cd" * 32}).hash,
        checkpoint(arrays={"w": np.zeros((2, 2), np.float32)}).hash,
        checkpoint(name="bilstm").hash,
    }
    assert len(hashes) == 5
    assert checkpoint().hash == checkpoint(training={"any": "thing"}).hash


def test_truncated_file_is_refused(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, checkpoint())
    file = tmp_path / "weights.safetensors"
    file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(ModelError, match=r"weights.safetensors is damaged or incomplete"):
        read_checkpoint(tmp_path)


def test_missing_files_and_keys_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no config\.json"):
        read_checkpoint(tmp_path)
    write_checkpoint(tmp_path, checkpoint())
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({k: config[k] for k in ("metric", "config")}))
    with pytest.raises(ModelError, match="'encoders'"):
        read_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(ModelError, match="expected an object"):
        read_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ModelError, match="cannot be read"):
        read_checkpoint(tmp_path)


def test_diverged_weights_are_refused() -> None:
    with pytest.raises(ModelError, match="diverged"):
        round_to_half({"w": np.array([1e6], dtype=np.float32)})


def test_arrays_beyond_half_precision_are_stored_in_single(tmp_path: Path) -> None:
    arrays = {"w": np.array([1 / 3, 1e6], np.float32), "b": np.array([0.5], np.float32)}
    write_checkpoint(tmp_path, checkpoint(kind="ranker", arrays=arrays))
    loaded = read_checkpoint(tmp_path)
    assert loaded.kind == "ranker"
    for name, array in arrays.items():
        assert loaded.arrays[name].dtype == np.float32
        assert (loaded.arrays[name] == array).all()


def test_full_disk_keeps_the_previous_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_checkpoint(tmp_path, checkpoint())
    before = read_checkpoint(tmp_path).hash

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(DataError, match="No space left"):
        write_checkpoint(tmp_path, checkpoint(arrays={"w": np.zeros(3, np.float32)}))
    assert read_checkpoint(tmp_path).hash == before
    assert sorted(f.name for f in tmp_path.iterdir()) == ["config.json", "weights.safetensors"]


def test_weights_of_another_run_are_refused(tmp_path: Path) -> None:
    for name, size in (("one", 2), ("other", 3)):
        write_checkpoint(tmp_path / name, checkpoint(arrays={"w": np.zeros(size, np.float32)}))
    (tmp_path / "other/weights.safetensors").replace(tmp_path / "one/weights.safetensors")
    with pytest.raises(ModelError, match=r"does not belong to its config\.json"):
        read_checkpoint(tmp_path / "one")


def test_a_folder_without_the_hash_of_its_weights_is_read(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, checkpoint())
    config = json.loads((tmp_path / "config.json").read_text())
    assert len(config.pop("weights_sha256")) == 64
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert read_checkpoint(tmp_path).hash == checkpoint().hash


def test_missing_number_is_null_in_the_file(tmp_path: Path) -> None:
    epochs = [{"loss": 0.5, "dev": math.nan}, {"loss": 0.4, "dev": 0.1}]
    write_checkpoint(
        tmp_path, checkpoint(config={"input_dropout": None}, training={"epochs": epochs})
    )

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    text = (tmp_path / "config.json").read_text()
    assert json.loads(text, parse_constant=refuse)["training"]["epochs"][0]["dev"] is None
    loaded = read_checkpoint(tmp_path)
    assert loaded.training["epochs"] == [{"loss": 0.5, "dev": None}, epochs[1]]
    assert loaded.config == {"input_dropout": None}


def test_different_encoder_weights_are_refused() -> None:
    check_encoder("minilm@all", "a" * 64, "a" * 64)
    with pytest.raises(ModelError, match="trained with minilm@all of sha256 aaaaaaaaaaaa"):
        check_encoder("minilm@all", "a" * 64, "b" * 64)


def test_kill_between_the_two_files_keeps_the_previous_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older, newer = checkpoint(), checkpoint(arrays={"w": np.ones((2, 2), np.float32)})
    write_checkpoint(tmp_path, older)
    for _ in range(2):  # the second time after an interruption
        with monkeypatch.context() as patched:
            patched.setattr("tertium.models.checkpoint.write_text", interrupt)
            with pytest.raises(KeyboardInterrupt):
                write_checkpoint(tmp_path, newer)
        assert read_checkpoint(tmp_path).hash == older.hash
    write_checkpoint(tmp_path, newer)
    assert read_checkpoint(tmp_path).hash == newer.hash
    assert sorted(p.name for p in tmp_path.iterdir()) == ["config.json", "weights.safetensors"]


def test_weights_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of one file must not be accepted for the hash of another that replaced it."""
    write_checkpoint(tmp_path, checkpoint())
    weights = tmp_path / "weights.safetensors"
    read, reads = Path.read_bytes, list[Path]()

    def read_bytes(file: Path) -> bytes:
        reads.append(file)
        return read(file)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    read_checkpoint(tmp_path)
    assert reads.count(weights) == 1


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt
