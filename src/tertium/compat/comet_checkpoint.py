"""Read the settings of a COMET checkpoint folder and find its files.

FOLDER/hparams.yaml         COMET's own settings
FOLDER/model.safetensors    its weights, converted once from checkpoints/model.ckpt
FOLDER/encoder/             config.json and tokenizer of the encoder it was trained from
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from tertium.core.errors import MissingResourceError, ModelError
from tertium.core.extras import explain_missing
from tertium.core.fields import read_dataclass
from tertium.core.store import hub_folder
from tertium.encoders.model_settings import read_settings

ModelClass = Literal["regression_metric", "referenceless_regression_metric", "unified_metric"]
# The inputs of a checkpoint, and the texts that a hypothesis is compared with.
AGAINST: Mapping[tuple[str, ...], str] = {
    ("mt", "src", "ref"): "both",
    ("mt", "src"): "source",
    ("mt", "ref"): "reference",
}


@dataclass(frozen=True, kw_only=True)
class Hyperparameters:
    """The settings of COMET's `hparams.yaml` that affect a score (not those of training)."""

    class_identifier: ModelClass
    encoder_model: str = "XLM-RoBERTa"
    pretrained_model: str = ""
    pool: Literal["avg", "cls", "max"] = "avg"
    layer: str = "mix"
    layer_transformation: Literal["softmax", "sparsemax", "sparsemax_patch"] = "softmax"
    layer_norm: bool = True
    hidden_sizes: tuple[int, ...] = (3072, 1024)
    activations: str = "Tanh"
    final_activation: str | None = None
    input_segments: tuple[str, ...] = ("mt", "src", "ref")

    @property
    def inputs(self) -> tuple[str, ...]:
        """The input texts: mt, src and ref, or a subset."""
        if self.class_identifier == "referenceless_regression_metric":
            return ("mt", "src")
        return self.input_segments if self.is_unified else ("mt", "src", "ref")

    @property
    def is_unified(self) -> bool:
        """Whether the texts are concatenated into one input; otherwise each is encoded alone."""
        return self.class_identifier == "unified_metric"


def read_hyperparameters(folder: Path) -> Hyperparameters:
    """Read the settings of a folder; settings that affect a score must be supported."""
    with explain_missing("comet"):
        import yaml
    file = folder / "hparams.yaml"
    try:
        text = file.read_text(encoding="utf-8")
        settings: Any = yaml.safe_load(text)
        if isinstance(settings, dict) and len(yaml.compose(text).value) > len(settings):
            raise ValueError("a key appears twice")  # the last one would count
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        raise ModelError(f"{file} cannot be read ({reason}): not a COMET checkpoint") from None
    if not isinstance(settings, dict):
        raise ModelError(f"{file} contains no settings: not a COMET checkpoint")
    names = {field.name for field in fields(Hyperparameters)}
    values = {key: value for key, value in settings.items() if key in names and value is not None}
    values["layer"] = str(settings.get("sent_layer", settings.get("layer", "mix")))
    if settings.get("class_identifier") == "unified_metric":
        values["pool"] = "cls"  # COMET ignores `pool` here and uses the first state
    hparams = read_dataclass(Hyperparameters, values, file)
    if hparams.inputs not in AGAINST:
        inputs = "+".join(hparams.inputs)
        raise ModelError(
            f"{file}: input_segments are {inputs}, expected mt+src+ref, mt+src or mt+ref"
        )
    if hparams.is_unified and not hparams.encoder_model.startswith("XLM-RoBERTa"):
        raise ModelError(
            f"{file}: unified metrics with {hparams.encoder_model} are not supported, expected "
            "XLM-RoBERTa"
        )
    return hparams


def hash_settings(folder: Path) -> str:
    """Return eight hex digits that identify everything but the weights that affects a score."""
    hparams = read_hyperparameters(folder)
    encoder = read_settings(encoder_folder(folder, hparams))
    return sha256(f"{hparams} {encoder.hash}".encode()).hexdigest()[:8]


def weights_file(folder: Path) -> Path:
    """Return the weights file of a folder; an unconverted checkpoint is an error."""
    for file in (folder / "model.safetensors", folder / "checkpoints" / "model.safetensors"):
        if file.is_file():
            return file
    if (folder / "checkpoints" / "model.ckpt").is_file():
        raise ModelError(
            f"{folder} has its weights only as checkpoints/model.ckpt, a pickle file, which can "
            "run code when loaded: convert it to model.safetensors (docs/metrics/comet.md)"
        )
    raise MissingResourceError(f"{folder} has no model.safetensors: not a COMET checkpoint")


def encoder_folder(folder: Path, hparams: Hyperparameters) -> Path:
    """Find config and tokenizer of the encoder, in the folder or in the Hugging Face cache."""
    hub = hub_folder() / f"models--{hparams.pretrained_model.replace('/', '--')}" / "snapshots"
    for candidate in (folder / "encoder", *sorted(hub.glob("*"))):
        if (candidate / "config.json").is_file() and any(candidate.glob("tokenizer*")):
            return candidate
    raise MissingResourceError(
        f"{folder} was trained from {hparams.pretrained_model or 'an unnamed encoder'}: put "
        f"its config.json, tokenizer.json and tokenizer_config.json into {folder / 'encoder'}"
    )
