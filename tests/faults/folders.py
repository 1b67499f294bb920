"""Hostile model folders: invalid values in config.json, and damaged or inconsistent weights.

Each folder is loaded and scores one segment. The result is a finite score if the change does not
matter, else a one-line error of tertium.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import random
import shutil
import struct
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file
from tests.faults.children import check_line
from tests.faults.kills import texts
from tests.tiny_models import save_model

from tertium.core.errors import TertiumError
from tertium.core.segment import Judgment, Segment
from tertium.encoders import load_encoder
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.ranker import load_ranker
from tertium.metrics.bundled.bundled_model import ENCODER_PREFIX
from tertium.metrics.bundled.row_alignment import CrossHead
from tertium.metrics.bundled.tertium_base import TertiumBase
from tertium.metrics.heads.config import HeadOptions
from tertium.metrics.heads.head_metric import ESIM
from tertium.metrics.regression.svr import SVR, SVROptions
from tertium.models.checkpoint import bundled_models_folder
from tertium.models.trained_model import load_checkpoint

SEGMENT = Segment("a cat sat on the mat", None, ("the cat sat on a mat",))
INVALID_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1.5,
    10**30,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x",
    "../x",
    "\udcff",
    [],
    ["x"],
    [1],
    [[]],
    {},
    {"x": 1},
)
Change = Callable[[Path], None]
NUMBERS = itertools.count()


def score_with(folder: Path) -> float:
    """Load a folder and score one segment."""
    load_checkpoint.cache_clear()
    if "encoder" in folder.name:
        vectors = load_encoder(f"dir/{folder}").encode([SEGMENT.hypothesis])
        return float(vectors.sentences.sum() + vectors.vectors.sum())
    if "ranker" in folder.name:
        ranker = load_ranker(str(folder))
        return float(ranker.prefer([SEGMENT], [Segment("no", None, SEGMENT.references)])[0])
    if "base" in folder.name:
        metric = TertiumBase(folder=str(folder))
        # settings before weights
        score, model = metric.human_scale().calibrate(np.array([0.1])), metric.model
        model.stored_tensors(ENCODER_PREFIX)
        model.restore_network(lambda: CrossHead(768, dropout=0.0), "head.")
        return float(score[0])
    return load_metric(str(folder)).score([SEGMENT]).system


def try_folder(folder: Path) -> str:
    """Use a hostile folder: "scored" or "refused"; anything else is a failure."""
    try:
        score = score_with(folder)
    except TertiumError as error:
        check_line(str(error))
        return "refused"
    assert np.isfinite(score), f"a score of {score}"
    return "scored"


@cache
def valid_folders(home: Path) -> tuple[Path, ...]:
    """Create one valid folder of each kind."""
    rows = [Judgment(s, float(len(s.hypothesis) % 7), lp="x-y") for s in texts(24, 3)]
    options = HeadOptions(epochs=1, patience=0, batch_size=8)
    ESIM.train(rows, options=options, encoder="toy", hidden=3, dropout=0.0).save(home / "esim")
    search = SVROptions(c=(1.0,), epsilon=(0.1,), gamma=(0.1,), folds=3)
    SVR.train(rows, encoders=["toy"], options=search).save(home / "svr")
    for name, bundled in {
        "bleu-r": "bleu-r",
        "nist-r": "nist-r",
        "ranker": "pairwise",
        "base": "tertium-base",
    }.items():
        if not (home / name).exists():
            shutil.copytree(bundled_models_folder() / bundled, home / name)
    (home / "encoder").mkdir(exist_ok=True)
    save_model("bert", home / "encoder")
    names = ("esim", "svr", "bleu-r", "nist-r", "ranker", "base", "encoder")
    return tuple(home / name for name in names)


def paths(value: Any, depth: int = 0) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every part of a JSON value; a few items of each list."""
    yield ()
    if isinstance(value, dict):
        for key, item in value.items():
            deeper = [()] if key == "training" or depth > 3 else paths(item, depth + 1)
            yield from ((key, *rest) for rest in deeper)
    elif isinstance(value, list):
        for number in range(min(2, len(value))):
            yield from ((number, *rest) for rest in paths(value[number], depth + 1))


def replace_at(value: Any, key_path: tuple[Any, ...], new: Any) -> Any:
    """Copy a JSON value and replace the value at a path."""
    if not key_path:
        return new
    result = copy.deepcopy(value)
    inside = result
    for key in key_path[:-1]:
        inside = inside[key]
    inside[key_path[-1]] = new
    return result


def config_cases(folder: Path) -> Iterator[tuple[str, Change]]:
    """Yield config.json with each key invalid or missing, and with an unknown key."""
    config = json.loads((folder / "config.json").read_text("utf-8"))
    for key_path in paths(config):
        for wrong in INVALID_VALUES:
            yield (
                f"{folder.name} {key_path} {wrong!r}",
                _write_config(replace_at(config, key_path, wrong)),
            )
        if key_path and isinstance(key_path[-1], str):
            without = copy.deepcopy(config)
            inside = without
            for key in key_path[:-1]:
                inside = inside[key]
            del inside[key_path[-1]]
            yield f"{folder.name} {key_path} missing", _write_config(without)
    yield f"{folder.name} unknown key", _write_config({**config, "unknown": 1})
    for text in (
        "",
        "{",
        "[" * 100_000,
        "\x00",
        '{"metric": 1e999}',
        '{"metric": "no-such-metric"}',
    ):
        yield f"{folder.name} text {text[:20]!r}", _write_text(text)


def weight_cases(folder: Path, rng: random.Random) -> Iterator[tuple[str, Change]]:
    """Yield weights that are truncated, inconsistent with their header, or not finite."""
    file = weights_file(folder)
    data, arrays = file.read_bytes(), load_file(file)
    for _ in range(4):
        cut = rng.randrange(len(data))
        yield f"{folder.name} cut at {cut}", _write_weights(data[:cut])
    for size in (0, 7, 10**6, 2**63, 2**64 - 1):
        yield f"{folder.name} header of {size}", _write_weights(struct.pack("<Q", size) + data[8:])
    for name in rng.sample(sorted(arrays), min(4, len(arrays))):
        wrong_headers: tuple[dict[str, Any], ...] = (
            {"shape": [10**18]},
            {"shape": [2**40, 2**40]},
            {"shape": []},
            {"shape": [0, 10**18], "data_offsets": [0, 0]},
            {"shape": [-1]},
            {"dtype": "F8_E4M3"},
            {"dtype": "BF16"},
            {"dtype": "pickle"},
            {"data_offsets": [0, 10**18]},
            {"data_offsets": [5, 1]},
        )
        for fields in wrong_headers:
            yield (
                f"{folder.name} {name} {fields}",
                _write_weights(_change_header(data, name, fields)),
            )
        array = arrays[name]
        for kind, other in {
            "NaN": np.full_like(array, np.nan) if array.dtype.kind == "f" else array[:0],
            "infinity": np.full_like(array, np.inf) if array.dtype.kind == "f" else array[:0],
            "extra axis": np.ascontiguousarray(array[..., None]),
            "longer": np.concatenate([array.ravel(), array.ravel()]),
            "integers": array.astype(np.int8),
            "empty": array.ravel()[:0],
        }.items():
            yield f"{folder.name} {name} {kind}", _write_arrays({**arrays, name: other})
        remaining = {key: value for key, value in arrays.items() if key != name}
        yield f"{folder.name} {name} missing", _write_arrays(remaining)
    yield (
        f"{folder.name} unknown tensor",
        _write_arrays({**arrays, "unknown": np.ones(3, np.float32)}),
    )


def weights_file(folder: Path) -> Path:
    """Return the weights file of a folder."""
    return folder / ("model.safetensors" if "encoder" in folder.name else "weights.safetensors")


def _change_header(data: bytes, name: str, fields: dict[str, Any]) -> bytes:
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    header[name] |= fields
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + size :]


def _write_config(config: Any) -> Change:
    return _write_text(json.dumps(config))


def _write_text(text: str) -> Change:
    def write(folder: Path) -> None:
        (folder / "config.json").write_text(text, "utf-8")

    return write


def _write_weights(data: bytes) -> Change:
    """Write weights and their hash in the settings."""

    def change(folder: Path) -> None:
        weights_file(folder).unlink()  # a link to the valid file
        weights_file(folder).write_bytes(data)
        if "encoder" in folder.name:
            return
        config = json.loads((folder / "config.json").read_text("utf-8"))
        config["weights_sha256"] = hashlib.sha256(data).hexdigest()
        (folder / "config.json").write_text(json.dumps(config), "utf-8")

    return change


def _write_arrays(arrays: dict[str, Any]) -> Change:
    def change(folder: Path) -> None:
        save_file(arrays, folder / "new")
        _write_weights((folder / "new").read_bytes())(folder)

    return change


def try_case(original: Path, change: Change, home: Path) -> str:
    """Copy a folder, change it, use it, and remove it."""
    folder = (
        home / f"hostile-{original.name}-{next(NUMBERS)}"
    )  # a new name, since networks are cached
    folder.mkdir(parents=True)
    for file in original.iterdir():
        if file.suffix == ".json":
            shutil.copy(file, folder / file.name)
        else:
            (folder / file.name).symlink_to(file)
    change(folder)
    try:
        return try_folder(folder)
    finally:
        shutil.rmtree(folder)
