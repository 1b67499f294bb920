"""Models that ship inside the package: found, checked, and used from where they lie.

A packaged model is a folder with `config.json` (settings, scales, hashes), compact weights and
what its tokenizer needs. Weights are restored in memory, so that there is no second copy on disk
that could be damaged, cut short or out of date; whatever is read is checked against its hash.

Compact are matrices as int8 rows, or as low-rank differences, and half precision for the rest. A
row w is round(w / s) with s = max|w| / 127, so that an element is off by at most s / 2. A
difference to public weights is two thin matrices, the best of their rank in the least-squares sense
(truncated singular value decomposition), their rows int8 as well: twice the rank for the bytes of
half precision. `recipes.flagship.package` makes both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from tertium.cache.files import hash_of
from tertium.encoders.weights import WeightFolder
from tertium.errors import ModelError
from tertium.models.checkpoint import (
    CONFIG,
    WEIGHTS,
    check_finite,
    find_shipped,
    read_arrays,
    read_config,
)
from tertium.schema import Rule, Sha256, read

if TYPE_CHECKING:
    from torch import Tensor

ENCODER, ENCODER_PREFIX = "encoder", "encoder.backbone."
SCALE, LEFT, RIGHT = ".row_scale", ".left", ".right"  # what names of parts of a matrix end with
STORED = ("int8", "uint8", "float16", "float32")  # what compact weights are made of

FileName = Annotated[str, Rule(lambda name: Path(name).name == name, "the name of a file")]
S = TypeVar("S", bound="PackagedSettings")


@dataclass(frozen=True, kw_only=True)
class PackagedSettings:
    """What the `config.json` of every packaged model declares.

    `parts` are files of further weights by their sha256: what was learned on top of a network
    later. What they hold takes the place of weights of the same name.
    """

    architecture: str
    weights_sha256: Sha256
    parts: Mapping[FileName, Sha256] = field(default_factory=dict)


@dataclass(frozen=True)
class Packaged:
    """A model folder of the package."""

    folder: Path

    @cached_property
    def config(self) -> dict[str, Any]:
        """The settings as they stand in the file."""
        return read_config(self.folder, "model")

    def settings(self, kind: type[S]) -> S:
        """The settings as declared by a metric, read once: a score asks for them a dozen times."""
        if kind not in self._settings:
            self._settings[kind] = read(kind, self.config, self.folder / CONFIG)
        found: S = self._settings[kind]
        return found

    @cached_property
    def _settings(self) -> dict[type[Any], Any]:
        return {}

    @cached_property
    def hash(self) -> str:
        """The sha256 of the weights, checked against the one the settings name."""
        self._check(WEIGHTS, self.config.get("weights_sha256"))
        return str(self.config["weights_sha256"])

    @cached_property
    def fingerprint(self) -> str:
        """The hash of everything the network says, beside its score too."""
        return "+".join([self.hash, *map(str, self._parts.values())])

    @property
    def _parts(self) -> dict[str, object]:
        return dict(self.config.get("parts") or {})

    @cached_property
    def weights(self) -> dict[str, Tensor]:
        """Compact weights as stored; damaged ones are refused."""
        import torch

        found: dict[str, Tensor] = {}
        _ = self.hash  # checks the weights; their parts have hashes of their own
        for file, digest in self._parts.items():
            self._check(file, digest)
        for file in (WEIGHTS, *self._parts):
            arrays, _ = read_arrays(self.folder / file)
            for name, array in arrays.items():
                if str(array.dtype) not in STORED:
                    raise ModelError(
                        f"{self.folder / file}: {name} is of type {array.dtype}, not of a compact "
                        "one"
                    )
            check_finite(arrays, self.folder / file)
            found |= {name: torch.from_numpy(array) for name, array in arrays.items()}
        return found

    def restore_tensors(self, prefix: str) -> dict[str, Tensor]:
        """The weights under a prefix in single precision, by what follows it."""
        part = {k.removeprefix(prefix): v for k, v in self.weights.items() if k.startswith(prefix)}
        try:
            return restore(part)
        except ModelError as error:
            raise ModelError(f"{self.folder / WEIGHTS}: {error}") from None

    def encoder_tensors(self) -> dict[str, Tensor]:
        """The encoder's weights, restored when a network is made of them."""
        return self.restore_tensors(ENCODER_PREFIX)

    def encoder_weights(self, files: Mapping[str, str]) -> WeightFolder:
        """The encoder inside: a folder of settings, checked by hash, and weights in memory."""
        for name, digest in files.items():
            self._check(name, digest)
        return WeightFolder(
            folder=self.folder / ENCODER,
            origin="package tertium",
            hash=self.hash,
            tensors=self.encoder_tensors,
        )

    def _check(self, name: str, expected: object) -> None:
        """Refuse a file that is missing or has another hash."""
        try:
            found = hash_of(self.folder / name)
        except OSError as error:
            raise ModelError(
                f"{self.folder / name} cannot be read ({error.strerror}); install tertium again"
            ) from None
        if found != expected:
            raise ModelError(
                f"{self.folder}: {name} is damaged (its hash is {found[:8]}, not "
                f"{str(expected)[:8]}); install tertium again"
            )


def restore(compact: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Float32 weights of compact ones."""
    weights: dict[str, Tensor] = {}
    for name, value in compact.items():
        if name.endswith(SCALE):
            continue
        scale = compact.get(name + SCALE)
        if scale is not None and (value.ndim != 2 or scale.shape != value.shape[:1]):
            raise ModelError(f"{name} has {tuple(scale.shape)} scales for {tuple(value.shape)}")
        weights[name] = value.float() if scale is None else value.float() * scale[:, None]
    return weights


def apply_difference(
    public: Mapping[str, Tensor], compact: Mapping[str, Tensor], where: object = "the difference"
) -> dict[str, Tensor]:
    """Tuned weights from public ones and their compact difference, which lies `where`."""
    import torch

    weights = {name: value.float() for name, value in public.items()}
    changes = restore(compact)
    for name, value in changes.items():
        try:
            if name.endswith(LEFT):
                stem = name.removesuffix(LEFT)
                weights[stem] = torch.addmm(weights[stem], value.T, changes[stem + RIGHT])
            elif not name.endswith(RIGHT):
                weights[name] = weights[name] + value if name in weights else value
        except (KeyError, RuntimeError):
            raise ModelError(f"{where}: {name} does not fit the encoder it changes") from None
    return weights


@lru_cache(maxsize=4)
def load_packaged(name: str) -> Packaged:
    """The model of a name that ships with tertium."""
    return Packaged(find_shipped(name))
