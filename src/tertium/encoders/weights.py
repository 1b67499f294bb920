"""Where weights come from: the only place that knows.

A short name or `hf/NAME` is looked for, in this order, in the models folder, in an installed
package that carries it (found without importing it), in the Hugging Face cache, and on the Hugging
Face hub when it can be reached. `dir/PATH` is a folder and nothing else. Weights load from
safetensors or npz; a pickle can run code when it is loaded and is refused.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tertium.cache.files import file_hash, hub_folder, models_folder
from tertium.encoders.cards import CARDS, Card
from tertium.encoders.encoder import EncoderName
from tertium.errors import MissingResourceError, ModelError
from tertium.extras import EXTRA_OF, install_command
from tertium.schema import read, read_json

logger = logging.getLogger(__name__)

WANTED = ("*.json", "*.txt", "*.model", "*.safetensors")
UNWANTED = ("onnx/*", "openvino/*", "*.bin", "*.h5", "*.msgpack", "*.ot")
PROVENANCE = "card.json"  # in a folder that was installed: what it holds and whence it came
Tensors = Callable[[], Mapping[str, Any]]
# A table of this many numbers stays mapped from its file; to look at all of it would read it whole.
MAPPED = 1 << 26
PICKLES = ("pytorch_model*.bin", "*.pkl", "*.pickle", "*.pt", "*.pth", "*.ckpt")


@dataclass(frozen=True, kw_only=True)
class _Index:
    """Which file holds which tensor, where there are several."""

    weight_map: Mapping[str, str]
    metadata: Any = None


@dataclass(frozen=True, kw_only=True)
class WeightFolder:
    """A folder with weights that were checked: where it is, whence it came, and its hash.

    `tensors` gives the weights where they do not lie in the folder as they are used.
    """

    folder: Path
    origin: str
    hash: str
    card: Card | None = None
    tensors: Tensors | None = None


def locate(name: EncoderName) -> WeightFolder:
    """The checked weights of an encoder, e.g. of `EncoderName.parse("minilm@4")`.

    Raises `MissingResourceError` with the commands that would serve where there are none.
    """
    card = CARDS.get(name.family)
    if name.family == "dir":
        folder = Path(name.rest).expanduser()
        if not folder.is_dir():
            raise MissingResourceError(f"encoder {name}: there is no folder {folder}")
        return _check_folder(folder, "folder", None)
    for folder, origin in _places(name, card):
        if _is_model(folder, card):
            return _check_folder(folder, origin, card)
    hub = card.hub if card else name.rest
    agreed = card is None or not card.terms  # else it is fetched by who has read the terms alone
    if hub and agreed and (found := _download(hub)):
        return _check_folder(found, "hub", card)
    raise MissingResourceError(_advice(name, card))


def find(name: str) -> tuple[Path, str] | None:
    """Where a short name's files lie here, unchecked, and their origin; None where they do not."""
    card = CARDS[name]
    places = _places(EncoderName(name), card)
    return next(((folder, origin) for folder, origin in places if _is_model(folder, card)), None)


def missing_extras(name: EncoderName) -> list[str]:
    """The extra that would bring the weights of a short name; none where they are here."""
    card = CARDS.get(name.family)
    if card is None or card.module not in EXTRA_OF or find(card.name):
        return []
    return [EXTRA_OF[card.module]]


def in_hub_cache() -> list[str]:
    """The models of the Hugging Face cache that could be loaded, as hf/NAME takes them."""
    folders = sorted(hub_folder().glob("models--*")) if hub_folder().is_dir() else []
    names = [folder.name.removeprefix("models--").replace("--", "/") for folder in folders]
    found = [(name, _snapshot(name)) for name in names]
    return [name for name, folder in found if folder and any(folder.glob("*.safetensors"))]


def _places(name: EncoderName, card: Card | None) -> Iterator[tuple[Path, str]]:
    yield models_folder() / (card.name if card else name.rest.replace("/", "--")), "models folder"
    if card and card.module and (package := _package_folder(card.module)):
        yield package / card.inside, f"package {card.packages[0].partition('==')[0]}"
    hub = card.hub if card else name.rest
    if hub and (snapshot := _snapshot(hub)):
        yield snapshot, "Hugging Face cache"


def _package_folder(module: str) -> Path | None:
    spec = importlib.util.find_spec(module)
    return Path(spec.origin).parent if spec and spec.origin else None


def _snapshot(hub: str) -> Path | None:
    """The newest complete snapshot of a hub model in the Hugging Face cache."""
    base = hub_folder() / f"models--{hub.replace('/', '--')}"
    try:
        revision = (base / "refs" / "main").read_text().strip()
        candidates = [base / "snapshots" / revision]
    except OSError:
        candidates = []
    snapshots = base / "snapshots"
    if snapshots.is_dir():
        candidates += sorted(snapshots.iterdir(), key=lambda p: p.stat().st_mtime, reverse=True)
    return next((folder for folder in candidates if _is_model(folder, None)), None)


def _is_model(folder: Path, card: Card | None) -> bool:
    if card:
        return all((folder / file).is_file() for file in card.files)
    return (folder / "config.json").is_file() and any(
        any(folder.glob(pattern)) for pattern in ("*.safetensors", "*.npz", "pytorch_model*.bin")
    )


def _download(hub: str) -> Path | None:
    """Fetch a model from the hub; None where the hub cannot be reached or does not have it."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        return None
    try:
        return Path(
            snapshot_download(
                hub,
                cache_dir=hub_folder(),
                allow_patterns=list(WANTED),
                ignore_patterns=list(UNWANTED),
                etag_timeout=5,
            )
        )
    except Exception as error:  # the hub client raises a different type for each kind of failure
        logger.info("could not fetch %s from the Hugging Face hub: %s", hub, error)
        return None


def _check_folder(folder: Path, origin: str, card: Card | None) -> WeightFolder:
    """Refuse what is no weights, a pickle, or not what its card says; then hash."""
    files = weight_files(folder, card)
    hashes = {file.name: file_hash(file) for file in files}
    originals = card and card.originals and not (folder / PROVENANCE).is_file()
    for name, expected in card.files.items() if card and not originals else ():
        if hashes[name] != expected:
            raise ModelError(
                f"{folder / name} is not the {card.name if card else ''} file it should be: sha256 "
                f"{hashes[name][:16]}..., expected {expected[:16]}...; it is damaged or another "
                "version: remove it and install it again"
            )
    return WeightFolder(folder=folder, origin=origin, hash=joined_hash(hashes), card=card)


def joined_hash(hashes: Mapping[str, str]) -> str:
    """The hash of several files in the order of their names; a lone file's is its own."""
    if len(hashes) == 1:
        return next(iter(hashes.values()))
    return hashlib.sha256("".join(hashes[name] for name in sorted(hashes)).encode()).hexdigest()


def weight_files(folder: Path, card: Card | None = None) -> list[Path]:
    """The files of a folder that hold weights, sorted; an error where they cannot be loaded."""
    if card:
        return [folder / name for name in sorted(card.files)]
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        shards = sorted(set(read(_Index, read_json(index), index).weight_map.values()))
        outside = [shard for shard in shards if Path(shard).name != shard]
        if outside:
            raise ModelError(f"{index} names {outside[0]!r}, which is not a file of its folder")
        missing = [shard for shard in shards if not (folder / shard).is_file()]
        if missing:
            raise ModelError(f"{folder} is incomplete: {', '.join(missing)} missing")
        return [folder / shard for shard in shards]
    if (folder / "model.safetensors").is_file():
        return [folder / "model.safetensors"]
    pickles = sorted(p.name for pattern in PICKLES for p in folder.glob(pattern))
    if pickles:
        raise ModelError(
            f"{folder} has its weights only as {pickles[0]}, a pickle, which can run code when it "
            "is loaded: convert it to model.safetensors (for instance with AutoModel's "
            "save_pretrained on a machine that trusts the file) and point to the new folder"
        )
    raise ModelError(f"{folder} holds no model.safetensors: not a folder with weights")


def _advice(name: EncoderName, card: Card | None) -> str:
    if card is None:
        home = models_folder() / name.rest.replace("/", "--")
        return (
            f"encoder {name}: no weights of {name.rest} in the Hugging Face cache "
            f"({hub_folder()}), and the hub could not be reached or does not have it: copy the "
            f"model's folder to this machine and use dir/PATH, or put it at {home}"
        )
    ways = [f"`tertium models install {card.name}` ({card.size} MB)"]
    if card.module:
        packages = f"pip install {' '.join((*card.packages, *card.extras))}"
        extra = EXTRA_OF.get(card.module)
        ways.append(f"`{install_command(extra) if extra else packages}`")
    ways.append(f"the model's files in {models_folder() / card.name}")
    listing = ", or ".join(ways)
    return f"encoder {name}: the weights are not installed; one of these serves: {listing}"
