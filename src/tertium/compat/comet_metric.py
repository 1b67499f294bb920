"""COMET: a published estimator (Rei et al. 2020, 2022), read from a folder of its checkpoint.

    FOLDER/hparams.yaml         COMET's own settings
    FOLDER/model.safetensors    its weights, converted once from checkpoints/model.ckpt
    FOLDER/encoder/             config.json and tokenizer of the encoder it was trained from

`unbabel-comet` loads a checkpoint as a pickle, which can run code, and asks for versions of numpy
and transformers that are years old. So it is not called: what its models compute is a page of
arithmetic (`comet_network`), and only weights are taken from a checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from tertium.arrays import FloatArray, IntArray
from tertium.cache.files import file_hash, hub_folder
from tertium.encoders.encoder import TRUNCATED
from tertium.encoders.settings import read_settings
from tertium.errors import MissingResourceError, ModelError
from tertium.extras import explain_missing
from tertium.metrics.base.metric import Over, SegmentMetric, compared_columns, over_references
from tertium.models.options import NEEDS
from tertium.runtime import Precision, current_runtime
from tertium.schema import read
from tertium.segment import Segment

if TYPE_CHECKING:
    from tertium.compat.comet_network import Estimator

Kind = Literal["regression_metric", "referenceless_regression_metric", "unified_metric"]
# what a checkpoint reads, and with it what a hypothesis is compared with
AGAINST: Mapping[tuple[str, ...], str] = {
    ("mt", "src", "ref"): "both",
    ("mt", "src"): "source",
    ("mt", "ref"): "reference",
}


@dataclass(frozen=True, kw_only=True)
class Hyperparameters:
    """What COMET's `hparams.yaml` says of how a score is computed; the rest is of training."""

    class_identifier: Kind
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
        """The texts that are read: mt, src and ref, or some of them."""
        if self.class_identifier == "referenceless_regression_metric":
            return ("mt", "src")
        return self.input_segments if self.unified else ("mt", "src", "ref")

    @property
    def unified(self) -> bool:
        """Whether texts are read together, as one row; else each by itself."""
        return self.class_identifier == "unified_metric"


@dataclass(frozen=True, kw_only=True)
class COMET(SegmentMetric):
    """What a COMET checkpoint predicts, on the scale that it learned; higher is better.

    Regression estimators (wmt20-comet-da, wmt22-comet-da), those without references
    (wmt20-comet-qe-da) and unified ones (wmt22-cometkiwi-da). With several references a segment
    has its `best` score or the `mean`. `model` is the folder, `precision` the encoder's.

    Relatives: `tertium-small` and `esim` learned from the same kind of judgments, and ship.
    """

    name: ClassVar[str] = "comet"
    title: ClassVar[str] = "COMET"
    citation: ClassVar[str] = """@inproceedings{rei-etal-2022-comet,
  title = {{COMET}-22: {U}nbabel-{IST} 2022 Submission for the Metrics Shared Task},
  author = {Rei, Ricardo and C. de Souza, Jos{\\'e} G. and Alves, Duarte and Zerva, Chrysoula and
            Farinha, Ana C and Glushkova, Taisiya and Lavie, Alon and Coheur, Luisa and
            Martins, Andr{\\'e} F. T.},
  booktitle = {Proceedings of the Seventh Conference on Machine Translation (WMT)},
  year = {2022},
  pages = {578--585},
}"""

    model: str = ""
    references: Over = "best"
    precision: Precision = "fp32"

    @property
    def needs(self) -> frozenset[str]:
        against = AGAINST[read_hyperparameters(self._folder).inputs] if self.model else "both"
        return NEEDS[against]

    @property
    def learned(self) -> tuple[str, ...]:
        weights = file_hash(weights_file(self._folder))
        return (f"comet@{weights[:8]}+{hash_settings(self._folder)}",)

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        name = self._folder.name.replace(":", "-").replace("|", "-")
        fields = {"weights": self.learned[0].replace("comet", name), "prec": self.precision}
        if "references" in self.needs and any(len(s.references) > 1 for s in segments):
            fields["refs"] = self.references
        return {**fields, "trunc": str(self._count_unread(segments).get(TRUNCATED, 0))}

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        owners, rows = self._rows(segments)
        return over_references(self._estimator.predict(rows), owners, self.references)

    def warnings(self, segments: Sequence[Segment]) -> dict[str, int]:
        return {**super().warnings(segments), **self._count_unread(segments)}

    def _count_unread(self, segments: Sequence[Segment]) -> dict[str, int]:
        return self._estimator.count_unread(self._rows(segments)[1])

    def _rows(self, segments: Sequence[Segment]) -> tuple[IntArray, list[tuple[str, ...]]]:
        """Which segment each row belongs to, and its texts in the order of the model's inputs."""
        against = AGAINST[read_hyperparameters(self._folder).inputs]
        owners, (hypotheses, *others) = compared_columns(segments, against)
        return owners, list(zip(hypotheses, *reversed(others), strict=True))  # the source first

    @property
    def _folder(self) -> Path:
        if not self.model:
            raise MissingResourceError(
                "comet has no model of its own: name the folder of a checkpoint with "
                "comet:model=FOLDER, whose hparams.yaml it reads"
            )
        return Path(self.model).expanduser()

    @property
    def _estimator(self) -> Estimator:
        return _estimator(self._folder, self.learned, self.precision, current_runtime().device)


@lru_cache(maxsize=2)
def _estimator(
    folder: Path, learned: tuple[str, ...], precision: Precision, device: str
) -> Estimator:
    """The network of a folder, loaded once a process as long as what it `learned` is the same."""
    with explain_missing(f"comet:model={folder}"):
        from tertium.compat.comet_network import Estimator

        told = read_hyperparameters(folder)
        return Estimator(
            told,
            weights_file(folder),
            encoder_folder(folder, told),
            precision=precision,
            device=device,
        )


def _refuse_repeated(root: Any) -> None:
    """Refuse settings of which one stands twice: the reader would keep the last in silence."""
    keys = [key.value for key, _ in root.value] if root and root.id == "mapping" else []
    repeated = next((str(key) for key in keys if keys.count(key) > 1), "")
    if repeated:
        raise ValueError(f"the key {repeated[:40]!r} stands twice")


def read_hyperparameters(folder: Path) -> Hyperparameters:
    """The settings of a folder; what decides a score and is not known here is refused."""
    with explain_missing("comet"):
        import yaml
    file = folder / "hparams.yaml"
    try:
        text = file.read_text(encoding="utf-8")
        _refuse_repeated(yaml.compose(text, yaml.SafeLoader))
        told: Any = yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        said = str(error).partition("\n")[0]
        raise ModelError(f"{file} cannot be read ({said}): not a checkpoint of COMET") from None
    if not isinstance(told, dict):
        raise ModelError(f"{file} holds no settings: not a checkpoint of COMET")
    known = {field.name for field in fields(Hyperparameters)}
    chosen = {key: value for key, value in told.items() if key in known and value is not None}
    chosen["layer"] = str(told.get("sent_layer", told.get("layer", "mix")))
    if told.get("class_identifier") == "unified_metric":
        chosen["pool"] = "cls"  # whatever the file says: a row's first state is judged
    found = read(Hyperparameters, chosen, file)
    if found.inputs not in AGAINST:
        given = "+".join(found.inputs)
        raise ModelError(f"{file}: input_segments are {given}, expected mt+src+ref, mt+src, mt+ref")
    if found.unified and not found.encoder_model.startswith("XLM-RoBERTa"):
        raise ModelError(f"{file}: unified metrics over {found.encoder_model} are not read here")
    return found


def hash_settings(folder: Path) -> str:
    """What stands for all that decides a score beside weights, in eight digits."""
    told = read_hyperparameters(folder)
    encoder = read_settings(encoder_folder(folder, told))
    return sha256(f"{told} {encoder.hash}".encode()).hexdigest()[:8]


def weights_file(folder: Path) -> Path:
    """The weights of a folder; a checkpoint that was not converted is refused with the way to."""
    for file in (folder / "model.safetensors", folder / "checkpoints" / "model.safetensors"):
        if file.is_file():
            return file
    if (folder / "checkpoints" / "model.ckpt").is_file():
        raise ModelError(
            f"{folder} has its weights only as checkpoints/model.ckpt, a pickle, which can run "
            "code when it is loaded: convert them to model.safetensors (docs/metrics/comet.md)"
        )
    raise MissingResourceError(f"{folder} holds no model.safetensors: no checkpoint of COMET")


def encoder_folder(folder: Path, told: Hyperparameters) -> Path:
    """Where settings and tokenizer of the encoder lie: in the folder, or in the hub's cache."""
    hub = hub_folder() / f"models--{told.pretrained_model.replace('/', '--')}" / "snapshots"
    for place in (folder / "encoder", *sorted(hub.glob("*"))):
        if (place / "config.json").is_file() and any(place.glob("tokenizer*")):
            return place
    raise MissingResourceError(
        f"{folder} was trained from {told.pretrained_model or 'an encoder it does not name'}: put "
        f"its config.json, tokenizer.json and tokenizer_config.json into {folder / 'encoder'}"
    )
