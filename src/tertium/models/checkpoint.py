"""Read and write trained models: folders with `config.json` and `weights.safetensors`.

The configuration contains the sha256 of its weights, which get their final name after it, so a
folder has the previous or the new model, or is refused. Arrays that fit half precision are
stored in half and computed in single precision. A missing number is null in JSON. Settings are
checked against their dataclass (`tertium.core.fields`) and weights for finite numbers. Bundled
models are such folders in the package `tertium_models`.

A saved model has a card (`README.md`): settings, training data, licenses. A card without the marker
line was written by hand and is not overwritten.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from tertium.core.atomic import open_atomic, write_text
from tertium.core.errors import MissingResourceError, ModelError
from tertium.core.fields import Sha256, read_dataclass, read_json_object
from tertium.core.store import hash_file
from tertium.data.tables import missing_to_null
from tertium.encoders.weight_files import explain_damage

CONFIG = "config.json"
WEIGHTS = "weights.safetensors"
NEXT_WEIGHTS = ".next.weights.safetensors"  # name of weights until their configuration is written
WEIGHTS_HASH = "weights_sha256"
PACKAGE = "tertium_models"  # contains the bundled models
HOW_TO_INSTALL = "the package tertium-models (in a checkout: pip install ./weights)"
MISSING = Path("/nowhere") / PACKAGE  # used if the package is not installed
T = TypeVar("T")


@lru_cache(maxsize=1)
def bundled_models_folder() -> Path:
    """Return the folder of bundled models, found without importing the package."""
    spec = find_spec(PACKAGE)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else MISSING


def has_bundled_models() -> bool:
    """Whether the package with bundled models is installed."""
    return bundled_models_folder().is_dir()


def find_bundled_model(name: str) -> Path:
    """Return the folder of a bundled model; raise with instructions if it is missing."""
    if not has_bundled_models():
        raise MissingResourceError(
            f"the weights of {name} are not installed: install {HOW_TO_INSTALL}"
        )
    if not (bundled_models_folder() / name).is_dir():
        raise MissingResourceError(
            f"there is no bundled model for {name}: train one (`tertium train {name}`) and pass "
            "its folder with model=FOLDER"
        )
    return bundled_models_folder() / name


def write_arrays(
    file: Path, arrays: Mapping[str, Array], header: Mapping[str, str] | None = None
) -> str:
    """Replace a safetensors file; return the sha256 of its content."""
    from safetensors.numpy import save

    plain = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    content = save(plain, metadata=dict(header or {}))
    with open_atomic(file, make_folder=True) as stream:
        stream.write(content)
    return hashlib.sha256(content).hexdigest()


def read_arrays(file: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """Read the arrays and the header of a safetensors file."""
    from safetensors import safe_open

    with explain_damage(file), safe_open(file, framework="np") as opened:
        arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        return arrays, dict(opened.metadata() or {})


@dataclass(frozen=True, kw_only=True)
class StoredConfig:
    """Content of the `config.json` of a trained metric or ranker."""

    metric: str | None = None
    ranker: str | None = None
    config: Mapping[str, Any]
    encoders: Mapping[str, Sha256]
    training: Mapping[str, Any] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)
    weights_sha256: Sha256 | None = None

    def __post_init__(self) -> None:
        if (self.metric is None) == (self.ranker is None):
            raise ModelError("expected either a metric or a ranker entry")


@dataclass(frozen=True, kw_only=True, eq=False)
class Checkpoint:
    """The stored state of a trained metric or ranker (`kind`).

    `name` is the registered name and `config` the settings that rebuild it. `encoders` maps each
    encoder used in training to the sha256 of its weights. `arrays` are the weights. `training`
    describes data and options, and `fields` the non-default fields chosen after training.
    """

    name: str
    config: Mapping[str, Any]
    encoders: Mapping[str, str]
    arrays: Mapping[str, Array]
    training: Mapping[str, Any] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)
    kind: Literal["metric", "ranker"] = "metric"

    @cached_property
    def hash(self) -> str:
        """The sha256 of configuration and weights."""
        parts = {"metric": self.name, "config": self.config, "encoders": self.encoders}
        digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
        for name in sorted(self.arrays):
            array = self.arrays[name]
            digest.update(f"{name} {array.shape} {array.dtype}".encode())
            digest.update(array.tobytes())
        return digest.hexdigest()


def round_to_half(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Round single-precision arrays to half precision, as they are stored."""
    rounded = dict(arrays)
    for name, array in arrays.items():
        if array.dtype == np.float32:
            if not np.abs(array).max(initial=0) <= np.finfo(np.float16).max:  # true for NaN, too
                raise ModelError("weights are too large for half precision: training diverged")
            rounded[name] = array.astype(np.float16).astype(np.float32)
    return rounded


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint; single precision is stored as half if that loses nothing.

    The configuration contains the hash of the weights, so that an interrupted write leaves the
    previous model or the new one.
    """
    arrays = {name: _compact(array) for name, array in checkpoint.arrays.items()}
    config = {
        checkpoint.kind: checkpoint.name,
        "config": dict(checkpoint.config),
        "encoders": dict(checkpoint.encoders),
        "training": missing_to_null(checkpoint.training),
        **({"fields": dict(checkpoint.fields)} if checkpoint.fields else {}),
    }
    digest = write_arrays(folder / NEXT_WEIGHTS, arrays)
    text = json.dumps({**config, WEIGHTS_HASH: digest}, indent=1, allow_nan=False)
    write_text(folder / CONFIG, text + "\n")
    with suppress(FileNotFoundError):  # renamed by another process that saves here
        (folder / NEXT_WEIGHTS).replace(folder / WEIGHTS)


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read a checkpoint; raise `ModelError` if it is incomplete or damaged."""
    stored = read_dataclass(StoredConfig, read_config(folder), folder / CONFIG)
    return Checkpoint(
        name=stored.metric or stored.ranker or "",
        kind="ranker" if stored.ranker else "metric",
        config=stored.config,
        encoders=stored.encoders,
        training=stored.training,
        fields=stored.fields,
        arrays={
            name: array.astype(np.float32) if array.dtype == np.float16 else array
            for name, array in _read_weights(folder, stored.weights_sha256).items()
        },
    )


def _compact(array: Array) -> Array:
    if array.dtype != np.float32:
        return array
    with np.errstate(over="ignore"):
        half = array.astype(np.float16)
    return half if (half == array).all() else array


def _read_weights(folder: Path, expected: str | None) -> dict[str, Array]:
    """Read the arrays of a folder; raise unless their file has the expected hash.

    The file is read once: arrays of one file must not be accepted for the hash of another.
    """
    from safetensors.numpy import load

    file = folder / WEIGHTS
    with suppress(OSError):  # an interrupted write: the new weights do not have their name yet
        if hash_file(folder / NEXT_WEIGHTS) == expected:
            file = folder / NEXT_WEIGHTS
    with explain_damage(file):
        content = file.read_bytes()
        arrays: dict[str, Array] = load(content)
    if expected is not None and (actual := hashlib.sha256(content).hexdigest()) != expected:
        raise ModelError(
            f"{file} does not belong to its {CONFIG} (sha256 {actual[:12]}..., expected "
            f"{expected[:12]}...): it is damaged or writing was interrupted; save or train the "
            "model again"
        )
    check_finite(arrays, file)
    return arrays


def read_config(folder: Path, kind: str = "metric") -> dict[str, Any]:
    """Read `config.json`; `kind` is what the folder was expected to hold."""
    file = folder / CONFIG
    try:
        return read_json_object(file)
    except FileNotFoundError:
        raise ModelError(f"{folder} has no {CONFIG}: not a trained {kind}") from None


def parse_config(kind: type[T], checkpoint: Checkpoint, where: str) -> T:
    """Parse the settings of a checkpoint into the dataclass that declares them."""
    return read_dataclass(kind, checkpoint.config, Path(where) / CONFIG, "config")


def check_encoder(name: str, trained_with: str, installed: str) -> None:
    """Raise unless an encoder has the weights that the model was trained with."""
    if trained_with != installed:
        raise ModelError(
            f"this model was trained with {name} of sha256 {trained_with[:12]}..., but the "
            f"installed one has {installed[:12]}...: install that version, or train the model again"
        )


def cache_by_checkpoint(function: Callable[..., T]) -> Callable[..., T]:
    """Cache the results of a function of a checkpoint, without keeping the checkpoint alive.

    The first argument of the function is the checkpoint; its results are dropped with it. Results
    and other arguments must not refer to the checkpoint.
    """
    results: WeakKeyDictionary[Checkpoint, dict[Any, T]] = WeakKeyDictionary()

    @wraps(function)
    def cached(checkpoint: Checkpoint, *arguments: Any) -> T:
        by_arguments = results.setdefault(checkpoint, {})
        if arguments not in by_arguments:
            by_arguments[arguments] = function(checkpoint, *arguments)
        return by_arguments[arguments]

    return cached


Array = NDArray[Any]
DTYPE_LABELS = {"f": "floating point", "i": "integers", "u": "integers"}


class ArraySpec(NamedTuple):
    """Expected dtype kind and shape; a name in a shape always stands for the same size."""

    kind: str
    shape: tuple[int | str, ...]


def check_finite(arrays: Mapping[str, Array], where: object) -> None:
    """Raise if an array contains NaN or infinite numbers."""
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelError(f"{where}: {name} has NaN or infinite numbers: train the model again")


def check_arrays(
    arrays: Mapping[str, Array], wanted: Mapping[str, ArraySpec], where: object, **sizes: int
) -> dict[str, int]:
    """Raise unless names, types and shapes are as expected; return the named sizes.

    >>> check_arrays({"w": np.zeros((2, 3))}, {"w": ArraySpec("f", ("rows", 3))}, "weights")
    {'rows': 2}
    """
    if missing := sorted(wanted.keys() - arrays.keys()):
        raise ModelError(f"{where} is incomplete: no {missing[0]} ({len(missing)} missing)")
    if unknown := sorted(arrays.keys() - wanted.keys()):
        raise ModelError(f"{where}: unexpected {unknown[0][:60]!r} for its config.json")
    for name, (kind, shape) in wanted.items():
        array = arrays[name]
        if array.dtype.kind != kind:
            raise ModelError(
                f"{where}: {name} is of type {array.dtype}, expected {DTYPE_LABELS[kind]}"
            )
        fits = len(array.shape) == len(shape) and all(
            length == (sizes.setdefault(size, length) if isinstance(size, str) else size)
            for length, size in zip(array.shape, shape, strict=True)
        )
        if not fits:
            expected = ", ".join(str(sizes.get(str(size), size)) for size in shape)
            raise ModelError(f"{where}: {name} has shape {array.shape}, expected ({expected})")
    return sizes


CARD = "README.md"
MARKER = "<!-- generated when the model was saved; delete this line to keep your own edits -->"
MAX_SETTING_CHARACTERS = 200
TOO_LONG = "see config.json"

CARD_TEXT = """\
{mark}
# {title}

A trained {kind} of tertium, `{name}`. Use it with the path of this folder:
`tertium {command} -m FOLDER`, or `tertium.load_{kind}("FOLDER")` in Python.

## Settings
{settings}

## Training data
{data}

## License
The weights in `weights.safetensors` were learned from the data above. If you distribute them, the
licenses of these data and of the encoders apply.{encoders}
"""


def card_text(title: str, checkpoint: Checkpoint) -> str:
    """Format the card of a model."""
    encoders = [f"- `{name}`, sha256 {sha}" for name, sha in checkpoint.encoders.items()]
    required = ["\n\nRequired encoders (not included):", *encoders] if encoders else []
    return CARD_TEXT.format(
        mark=MARKER,
        title=title,
        kind=checkpoint.kind,
        name=checkpoint.name,
        command="rank" if checkpoint.kind == "ranker" else "score",
        settings=_bullets({**checkpoint.config, **checkpoint.fields}),
        data=_bullets(checkpoint.training),
        encoders="\n".join(required),
    )


def write_card(folder: Path, title: str, checkpoint: Checkpoint) -> None:
    """Write the card of a folder, unless it was written by hand."""
    file = folder / CARD
    if not file.is_file() or file.read_text(encoding="utf-8").startswith(MARKER):
        write_text(file, card_text(title, checkpoint))


def _bullets(values: Mapping[str, Any]) -> str:
    """Format settings as a list; empty values are left out, long ones refer to `config.json`.

    >>> print(_bullets({"hidden": 300, "data": {"mine": 12}, "settings": {}}))
    - hidden: 300
    - data: mine 12
    """
    rows = []
    for key, value in values.items():
        if text := _format(value):
            rows.append(f"- {key}: {text if len(text) <= MAX_SETTING_CHARACTERS else TOO_LONG}")
    return "\n".join(rows) or "- none"


def _format(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_format(entry)}" for key, entry in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_format, value))
    return str(value)
