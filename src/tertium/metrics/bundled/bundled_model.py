"""Models bundled with the package: locate them, verify their hashes, restore their weights.

A bundled model is a folder with `config.json` (settings, scales, hashes), compressed weights and
tokenizer files. Weights are restored in memory, so no second copy on disk can be damaged or
outdated. Every file is verified against its hash.

Matrices are stored as int8 rows or as low-rank deltas, all other weights in half precision. A row w
is stored as round(w / s) with s = max|w| / 127; the error of an element is at most s / 2. A delta
to public weights is the product of two thin int8 matrices: its truncated singular value
decomposition. `recipes.flagship.package` writes both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tertium.core.errors import ModelError
from tertium.core.fields import Sha256, read_dataclass
from tertium.core.store import hash_file
from tertium.encoders.model_settings import ROW_SCALE
from tertium.encoders.weight_files import WeightFolder
from tertium.models import checkpoint

if TYPE_CHECKING:
    from torch import Tensor, nn

ENCODER = "encoder"
ENCODER_PREFIX = "encoder.backbone."
LEFT, RIGHT = ".left", ".right"  # suffixes of the factors of a matrix

S = TypeVar("S", bound="BundledModelSettings")
Network = TypeVar("Network", bound="nn.Module")


@dataclass(frozen=True, kw_only=True)
class BundledModelSettings:
    """Fields that the `config.json` of every bundled model has."""

    architecture: str
    weights_sha256: Sha256


@dataclass(frozen=True)
class BundledModel:
    """A model folder: settings, verified hashes and weights."""

    folder: Path

    @cached_property
    def config(self) -> dict[str, Any]:
        """The content of `config.json`."""
        return checkpoint.read_config(self.folder, "model")

    def settings(self, kind: type[S]) -> S:
        """Return `config.json` parsed as this dataclass, cached."""
        if kind not in self._settings:
            self._settings[kind] = read_dataclass(
                kind, self.config, self.folder / checkpoint.CONFIG
            )
        parsed: S = self._settings[kind]
        return parsed

    @cached_property
    def _settings(self) -> dict[type[Any], Any]:
        return {}

    @cached_property
    def hash(self) -> str:
        """The verified sha256 of the weights."""
        self._verify(checkpoint.WEIGHTS, self.config.get("weights_sha256"))
        return str(self.config["weights_sha256"])

    @cached_property
    def weights(self) -> dict[str, Tensor]:
        """The compressed weights, after verification."""
        import torch

        _ = self.hash  # verifies the file
        arrays, _ = checkpoint.read_arrays(self.folder / checkpoint.WEIGHTS)
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def stored_tensors(self, prefix: str) -> dict[str, Tensor]:
        """Return the compressed weights whose names start with a prefix, without the prefix."""
        return {k.removeprefix(prefix): v for k, v in self.weights.items() if k.startswith(prefix)}

    def restore_network(
        self,
        make: Callable[[], Network],
        prefix: str,
        *,
        int8_parts: tuple[str, ...] = (),
        fine_parts: tuple[str, ...] = (),
        unprefixed: tuple[str, ...] = (),
    ) -> Network:
        """Build a network and load the weights whose names start with a prefix.

        Weights become float32, except matrices in `int8_parts`, which stay as they are stored.
        Layers in `fine_parts` have activations of 15 bits. Weights that start with `unprefixed` are
        loaded as well, with their full names.
        """
        from tertium.encoders.encoder_network import build_network
        from tertium.encoders.int8_linear import allocate_int8_layers

        stored = self.stored_tensors(prefix)
        suffix = f".weight{ROW_SCALE}"
        weights = {name: w for name, w in self.weights.items() if name.startswith(unprefixed)}
        scaled = [name.removesuffix(suffix) for name in stored if name.endswith(suffix)]
        int8_layers = [name for name in scaled if name.startswith(int8_parts)]
        for name in int8_layers:
            weights[f"{name}.scale"] = stored.pop(f"{name}{suffix}")
            weights[f"{name}.weight"] = stored.pop(f"{name}.weight")

        def allocate() -> Network:
            network = make()
            allocate_int8_layers(
                network, int8_layers.__contains__, fine=lambda name: name.startswith(fine_parts)
            )
            return network

        return build_network(allocate, {**dequantize(stored), **weights}, self.folder)

    def encoder_weights(self, files: Mapping[str, str]) -> WeightFolder:
        """Return the encoder of the model; `files` maps its files to their sha256."""
        for name, digest in files.items():
            self._verify(name, digest)
        return WeightFolder(
            folder=self.folder / ENCODER,
            hash=self.hash,
            load_tensors=partial(self.stored_tensors, ENCODER_PREFIX),
        )

    def _verify(self, name: str, expected: object) -> None:
        try:
            digest = hash_file(self.folder / name)
        except OSError as error:
            raise ModelError(
                f"{self.folder / name} cannot be read ({error.strerror}); reinstall tertium"
            ) from None
        if digest != expected:
            raise ModelError(
                f"{self.folder}: {name} is damaged: its hash is {digest[:8]}, expected "
                f"{str(expected)[:8]}; reinstall tertium"
            )


def dequantize(compact: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert compressed weights to float32."""
    weights: dict[str, Tensor] = {}
    for name, value in compact.items():
        if name.endswith(ROW_SCALE):
            continue
        scale = compact.get(name + ROW_SCALE)
        weights[name] = value.float() if scale is None else value.float() * scale[:, None]
    return weights


def apply_weight_delta(
    public: Mapping[str, Tensor], compact: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Add a compressed delta to public weights."""
    import torch

    weights = {name: value.float() for name, value in public.items()}
    changes = dequantize(compact)
    for name, value in changes.items():
        if name.endswith(LEFT):
            stem = name.removesuffix(LEFT)
            weights[stem] = torch.addmm(weights[stem], value.T, changes[stem + RIGHT])
        elif not name.endswith(RIGHT):
            weights[name] = weights[name] + value if name in weights else value
    return weights


@lru_cache(maxsize=4)
def load_bundled_model(name: str) -> BundledModel:
    return BundledModel(checkpoint.find_bundled_model(name))
