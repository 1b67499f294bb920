"""Models that ship inside the package: found, checked, and unpacked into the cache once.

A packaged model is a folder with `config.json` (settings, calibration, hashes), compact weights and
what its tokenizer needs. The encoder inside is unpacked as a plain model folder, so that it runs,
batches and caches like any other; a damaged or half-written copy is made again.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tertium.cache.folders import cache_folder
from tertium.encoders.weights import hash_of
from tertium.errors import ModelError
from tertium.models.shipped import shipped_models

if TYPE_CHECKING:
    from torch import Tensor

ENCODER_PREFIX = "encoder.backbone."
COMPLETE = "complete"  # the last file that is written


@dataclass(frozen=True)
class Packaged:
    """A model folder of the package."""

    folder: Path

    @cached_property
    def config(self) -> dict[str, Any]:
        try:
            loaded: dict[str, Any] = json.loads((self.folder / "config.json").read_text("utf-8"))
        except (OSError, json.JSONDecodeError) as error:
            raise ModelError(f"{self.folder}: config.json cannot be read ({error})") from None
        return loaded

    @cached_property
    def hash(self) -> str:
        """The sha256 of the weights, checked against the one the settings name."""
        found = hash_of(self.folder / "weights.safetensors")
        if found != self.config["weights_sha256"]:
            raise ModelError(
                f"{self.folder}: weights.safetensors is damaged (its hash is {found[:8]}, not "
                f"{self.config['weights_sha256'][:8]}); install tertium again"
            )
        return found

    @cached_property
    def weights(self) -> dict[str, Tensor]:
        """Compact weights as stored."""
        _ = self.hash  # damaged weights are refused here
        from safetensors.torch import load_file

        return load_file(self.folder / "weights.safetensors")

    @cached_property
    def encoder_folder(self) -> Path:
        """The encoder as a plain model folder in the cache, unpacked if it is not there yet."""
        target = cache_folder() / "packaged" / f"{self.folder.name}-{self.hash[:16]}"
        return target if (target / COMPLETE).is_file() else self._unpack(target)

    def _unpack(self, target: Path) -> Path:
        """Write the model folder beside its place and move it there; returns where it is."""
        from safetensors.torch import save_file

        from tertium.metrics.flagship.compact import restore

        weights = {
            name.removeprefix(ENCODER_PREFIX): value
            for name, value in restore(self.weights).items()
            if name.startswith(ENCODER_PREFIX)
        }
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            part = _fresh_beside(target)
        except OSError:
            # no writable cache: a temporary folder, which the system clears
            target = Path(tempfile.mkdtemp(prefix="tertium-")) / target.name
            part = _fresh_beside(target)
        try:
            for name in self.config["encoder_files"]:
                shutil.copy(self.folder / name, part / name.removeprefix("encoder-"))
            save_file(weights, part / "model.safetensors")
            (part / COMPLETE).touch()
            _settle(part, target)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return target


def _fresh_beside(target: Path) -> Path:
    """An empty folder beside a target, hidden."""
    return Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))


def _settle(part: Path, target: Path) -> None:
    """Move a finished folder to its place; where another process was first, its folder stays."""
    for again in (True, False):
        try:
            part.replace(target)
            return
        except OSError as error:
            if (target / COMPLETE).is_file():
                return
            if not again:
                raise ModelError(
                    f"{target} is damaged and cannot be replaced ({error.strerror}): remove it"
                ) from None
        broken = _fresh_beside(target)
        with suppress(OSError):  # another process may have been first here, too
            target.rename(broken / target.name)
        shutil.rmtree(broken, ignore_errors=True)


@lru_cache(maxsize=4)
def packaged(name: str) -> Packaged:
    """The model of a name that ships with tertium."""
    return Packaged(shipped_models() / name)
