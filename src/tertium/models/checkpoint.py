"""A trained model is a folder: `config.json` says what it is, `weights.safetensors` what it knows.

Both are written beside their place and moved there in one step, the configuration last and with the
sha256 of the weights it belongs to, so that a folder is whole or refused. What half precision can
hold is stored so and computed with in single; what needs more is as it was. A missing number is NaN
here and null in the file, for JSON knows no NaN. What is read is checked: settings against their
declaration (`tertium.schema`), numbers for being finite, and put into a network by one way
(`load_into`). Models that ship are such folders of a package of their own.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tertium.atomic import replace_content, write_text
from tertium.cache.files import hash_of
from tertium.data.formats import null_missing
from tertium.errors import DataError, MissingResourceError, ModelError
from tertium.schema import Sha256, read, read_json

if TYPE_CHECKING:
    from torch import Tensor, nn

Array = NDArray[Any]
KINDS = {"f": "floating point", "i": "whole numbers", "u": "whole numbers"}
CONFIG, WEIGHTS = "config.json", "weights.safetensors"
OLDER = ".older.weights.safetensors"  # the second name of weights that are being replaced
WEIGHTS_HASH = "weights_sha256"
PACKAGE = "tertium_models"  # what ships lies there
WEIGHTS_WANTED = "the package tertium-models (in a checkout: pip install ./weights)"
MISSING = Path("/nowhere") / PACKAGE  # where nothing is installed: no folder of it exists
T = TypeVar("T")
Module = TypeVar("Module", bound="nn.Module")


class Like(NamedTuple):
    """What an array must be: its `kind` as numpy's dtypes name it, and its shape.

    A size is a number, or a name that stands for the same number wherever it occurs.
    """

    kind: str
    shape: tuple[int | str, ...]


@lru_cache(maxsize=1)
def shipped_models() -> Path:
    """The folder that holds one folder for each model that ships, found without importing it."""
    spec = find_spec(PACKAGE)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else MISSING


def are_installed() -> bool:
    """Whether the models that ship are there at all."""
    return shipped_models().is_dir()


def find_shipped(name: str) -> Path:
    """The folder of a model that ships; what would bring it where it is not there."""
    if not are_installed():
        raise MissingResourceError(
            f"the weights of {name} are not installed: install {WEIGHTS_WANTED}"
        )
    if not (shipped_models() / name).is_dir():
        raise MissingResourceError(
            f"no weights ship for {name}: train them (`tertium train {name}`) and name "
            "their folder with model=FOLDER"
        )
    return shipped_models() / name


def write_arrays(
    file: Path, arrays: Mapping[str, Array], header: Mapping[str, str] | None = None
) -> str:
    """Replace a safetensors file; the sha256 of the new one."""
    from safetensors.numpy import save

    plain = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    content = save(plain, metadata=dict(header or {}))
    with replace_content(file, make_folder=True) as stream:
        stream.write(content)
    return hashlib.sha256(content).hexdigest()


def read_arrays(file: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """The arrays and the header of a safetensors file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="np") as opened:
            arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
            return arrays, dict(opened.metadata() or {})
    except FileNotFoundError:
        raise ModelError(f"{file}: no such file") from None
    except (SafetensorError, OSError, MemoryError) as error:
        raise ModelError(f"{file} is damaged or was cut short: {error}") from None
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelError(f"{file} holds numbers of a type numpy does not know: {error}") from None


def check_finite(arrays: Mapping[str, Array], where: object) -> None:
    """Refuse numbers that are NaN or infinite."""
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelError(f"{where}: {name} holds NaN or infinite numbers: train the model anew")


def check_arrays(
    arrays: Mapping[str, Array], wanted: Mapping[str, Like], where: object, **sizes: int
) -> dict[str, int]:
    """Refuse other names, types and shapes than those wanted; what the named sizes are.

    >>> check_arrays({"w": np.zeros((2, 3))}, {"w": Like("f", ("rows", 3))}, "weights")
    {'rows': 2}
    """
    check_names(arrays, wanted, where)
    for name, (kind, shape) in wanted.items():
        array = arrays[name]
        if array.dtype.kind != kind:
            raise ModelError(f"{where}: {name} is of type {array.dtype}, expected {KINDS[kind]}")
        known = len(array.shape) == len(shape) and all(
            found == (sizes.setdefault(size, found) if isinstance(size, str) else size)
            for found, size in zip(array.shape, shape, strict=True)
        )
        if not known:
            expected = ", ".join(str(sizes.get(str(size), size)) for size in shape)
            raise ModelError(f"{where}: {name} has shape {array.shape}, expected ({expected})")
    return sizes


def check_names(found: Iterable[str], wanted: Iterable[str], where: object) -> None:
    """Refuse weights that lack a name or have one too many."""
    there, expected = set(found), set(wanted)
    if missing := sorted(expected - there):
        raise ModelError(f"{where} has no {missing[0]} ({len(missing)} missing): it is incomplete")
    if unknown := sorted(there - expected):
        raise ModelError(f"{where} has {unknown[0][:60]!r}, which its config.json has no place for")


@dataclass(frozen=True, kw_only=True)
class Stored:
    """What the `config.json` of a trained metric or ranker declares."""

    metric: str | None = None
    ranker: str | None = None
    config: Mapping[str, Any]
    encoders: Mapping[str, Sha256]
    training: Mapping[str, Any] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)
    weights_sha256: Sha256 | None = None

    def __post_init__(self) -> None:
        if (self.metric is None) == (self.ranker is None):
            raise ModelError("it must name a metric or a ranker")


@dataclass(frozen=True, kw_only=True, eq=False)
class Checkpoint:
    """What is stored of a trained metric or ranker (`kind`).

    `name` is its registered name, `config` what rebuilds it; `encoders` maps the name of each
    encoder it was trained with to the sha256 of its weights; `arrays` are its weights (`halve`
    makes them small); `training` says what it was trained on and how, `fields` how it is used,
    where that is not the default: the same weights are read with others.
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


def halve(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Arrays of single precision rounded to half, as they are to be stored and computed with."""
    return {name: _round_to_half(array) for name, array in arrays.items()}


def _round_to_half(array: Array) -> Array:
    if array.dtype != np.float32:
        return array
    if not np.abs(array).max(initial=0) <= np.finfo(np.float16).max:  # nor is NaN
        raise ModelError("weights are too large for half precision: training has diverged")
    return array.astype(np.float16).astype(np.float32)


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint, single precision as half where that loses nothing."""
    arrays = {name: _compact(array) for name, array in checkpoint.arrays.items()}
    config = {
        checkpoint.kind: checkpoint.name,
        "config": dict(checkpoint.config),
        "encoders": dict(checkpoint.encoders),
        "training": null_missing(checkpoint.training),
        **({"fields": dict(checkpoint.fields)} if checkpoint.fields else {}),
    }
    write_folder(folder, config, arrays)


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read a checkpoint; an error says what is missing or damaged."""
    stored = read(Stored, read_config(folder), folder / CONFIG)
    return Checkpoint(
        name=stored.metric or stored.ranker or "",
        kind="ranker" if stored.ranker else "metric",
        config=stored.config,
        encoders=stored.encoders,
        training=_null_to_nan(stored.training),
        fields=stored.fields,
        arrays={
            name: array.astype(np.float32) if array.dtype == np.float16 else array
            for name, array in read_weights(folder, stored.weights_sha256).items()
        },
    )


def _compact(array: Array) -> Array:
    if array.dtype != np.float32:
        return array
    with np.errstate(over="ignore"):
        half = array.astype(np.float16)
    return half if (half == array).all() else array


def write_folder(folder: Path, config: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write both files, the configuration last; it names the weights it belongs to.

    Weights that lie there already keep a second name until the new configuration is in place, so
    that a process killed between the two files leaves the older model whole.
    """
    older = _keep_older(folder)
    try:
        digest = write_arrays(folder / WEIGHTS, arrays)
    except DataError:
        if older and older.samefile(folder / WEIGHTS):  # nothing was replaced
            older.unlink()
        raise
    text = json.dumps({**config, WEIGHTS_HASH: digest}, indent=1, allow_nan=False)
    write_text(folder / CONFIG, text + "\n")
    if older:
        older.unlink(missing_ok=True)


def _keep_older(folder: Path) -> Path | None:
    """A second name for the weights that a folder's configuration belongs to, if it is whole."""
    older, file = folder / OLDER, folder / WEIGHTS
    try:
        wanted = read_config(folder).get(WEIGHTS_HASH)
        if older.is_file() and hash_of(older) == wanted:
            return older  # an interrupted writing kept it, and the weights are not its own
        older.unlink(missing_ok=True)
        older.hardlink_to(file)
    except (ModelError, OSError):  # nothing to keep, or a disk without second names
        return None
    return older


def read_weights(folder: Path, wanted: str | None) -> dict[str, Array]:
    """The arrays of a folder; refused where other weights than those of a hash lie there."""
    file = folder / WEIGHTS
    older = folder / OLDER
    if wanted is not None and older.is_file() and hash_of(older) == wanted:
        file = older  # writing was interrupted: the configuration is still the older one's
    arrays, _ = read_arrays(file)
    if wanted is not None and (found := hash_of(file)) != wanted:
        raise ModelError(
            f"{file} is not the file that {CONFIG} was written for (its sha256 is {found[:12]}..., "
            f"not {wanted[:12]}...): it is damaged, or writing was interrupted; save or train "
            "the model again"
        )
    check_finite(arrays, file)
    return arrays


def read_config(folder: Path, kind: str = "metric") -> dict[str, Any]:
    """What `config.json` says; `kind` is what the folder was taken for."""
    file = folder / CONFIG
    try:
        return read_json(file)
    except FileNotFoundError:
        raise ModelError(f"{folder} has no {CONFIG}: not a trained {kind}") from None


def read_declared(kind: type[T], checkpoint: Checkpoint, where: str) -> T:
    """The settings of a checkpoint that lies `where`, as the dataclass that declares them."""
    return read(kind, checkpoint.config, Path(where) / CONFIG, "config")


def _null_to_nan(value: Any) -> Any:
    """The way back from `null_missing`: what a file has no number for is NaN.

    >>> _null_to_nan({"dev": [None, 1.5]})
    {'dev': [nan, 1.5]}
    """
    if isinstance(value, dict):
        return {key: _null_to_nan(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_null_to_nan(one) for one in value]
    return math.nan if value is None else value


def check_encoder(name: str, trained_with: str, found: str) -> None:
    """Refuse an encoder whose weights are not those a model was trained with."""
    if trained_with != found:
        raise ModelError(
            f"this model was trained with {name} of sha256 {trained_with[:12]}..., but the one "
            f"found here is {found[:12]}...: install that version, or train the model anew"
        )


def load_into(make: Callable[[], Module], tensors: Mapping[str, Tensor], where: object) -> Module:
    """The network that `make` constructs, holding these tensors, ready to score.

    It is made without memory first, so that settings which ask for a network of any size are
    refused by the shapes of the weights before anything is reserved for it.
    """
    import torch

    from tertium.encoders.blank import Uninitialised

    try:
        with torch.device("meta"), Uninitialised():
            shapes = make().state_dict()
    except (TypeError, ValueError, OverflowError, RuntimeError):  # sizes beyond 64 bits
        raise ModelError(f"the config.json of {where} asks for an impossible network") from None
    check_tensors(tensors, shapes, where)
    with Uninitialised():
        network = make()
    network.load_state_dict(dict(tensors))
    return network.eval().requires_grad_(False)


def check_tensors(
    tensors: Mapping[str, Tensor], wanted: Mapping[str, Tensor], where: object
) -> None:
    """Refuse tensors of other names, shapes or types, and numbers that are not finite."""
    check_names(tensors, wanted, where)
    for name, place in wanted.items():
        found = tensors[name]
        if found.shape != place.shape:
            raise ModelError(
                f"the weights in {where} do not fit its config.json: {name} has shape "
                f"{tuple(found.shape)}, expected {tuple(place.shape)}"
            )
        if found.is_floating_point() != place.is_floating_point():
            raise ModelError(f"{where}: {name} is of type {found.dtype}, expected {place.dtype}")
        if not bool(found.isfinite().all()):
            raise ModelError(f"{where}: {name} holds NaN or infinite numbers")
