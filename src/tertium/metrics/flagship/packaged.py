"""Models that ship inside the package: found, checked, and used from where they lie.

A packaged model is a folder with `config.json` (settings, calibration, hashes), compact weights and
what its tokenizer needs. Weights are restored in memory, so that there is no second copy on disk
that could be damaged, cut short or out of date; whatever is read is checked against its hash.

Compact are matrices as int8 rows, or as low-rank differences, and half precision for the rest. A
row w is round(w / s) with s = max|w| / 127, so that an element is off by at most s / 2. A
difference to public weights is two thin matrices, the best of their rank in the least-squares sense
(truncated singular value decomposition), their rows int8 as well: twice the rank for the bytes of
half precision. `recipes.flagship.package` makes both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np

from tertium.arrays import BoolArray, FloatArray
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
from tertium.schema import NOT_NEGATIVE, POSITIVE, Rule, Sha256, read

if TYPE_CHECKING:
    from torch import Tensor

ENCODER, ENCODER_PREFIX = "encoder", "encoder.backbone."
SCALE, LEFT, RIGHT = ".row_scale", ".left", ".right"  # what names of parts of a matrix end with
STORED = ("int8", "uint8", "float16", "float32")  # what compact weights are made of

Increasing = Annotated[
    tuple[float, ...],
    Rule(lambda v: len(v) > 1 and all(a < b for a, b in pairwise(v)), "numbers that increase"),
]
FileName = Annotated[str, Rule(lambda name: Path(name).name == name, "the name of a file")]
INSIDE = Rule(lambda v: all(0 < x < 1 for x in v), "numbers between 0 and 1")
ALL = 8.0  # a sum of errors of which hardly anything is left
BEND = 0.2  # of raw score, around the best, where the rate of errors turns towards none
S = TypeVar("S", bound="PackagedSettings")


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The monotone map from raw scores to 0..1, by its knots."""

    raw: Increasing
    score: Annotated[Increasing, INSIDE]

    def __post_init__(self) -> None:
        _check_lengths(self.raw, self.score)


@dataclass(frozen=True, kw_only=True)
class Uncertainty:
    """The standard deviation of people's scores around a score."""

    score: Increasing
    deviation: tuple[Annotated[float, POSITIVE], ...]

    def __post_init__(self) -> None:
        _check_lengths(self.score, self.deviation)


@dataclass(frozen=True, kw_only=True)
class Percentiles:
    """The scores below which so many percent of `segments` system outputs lie."""

    score: Increasing
    percent: Increasing
    segments: int

    def __post_init__(self) -> None:
        _check_lengths(self.score, self.percent)


@dataclass(frozen=True, kw_only=True)
class LengthCost:
    """What longer references cost: experts add up a segment's errors, and networks do not know it.

    `cost` of raw score for each time a reference is e times as long, from `least` to `most` words:
    shorter and longer ones are taken as these.
    """

    cost: Annotated[float, NOT_NEGATIVE]
    least: Annotated[int, POSITIVE]
    most: Annotated[int, POSITIVE]

    def shift(self, references: Sequence[str]) -> FloatArray:
        """What to add to the raw score beside each reference.

        >>> LengthCost(cost=0.5, least=2, most=8).shift(["a b c d", "b " * 8, "c " * 99]).round(3)
        array([-0.693, -1.04 , -1.04 ])
        """
        words = [min(max(len(text.split()), self.least), self.most) for text in references]
        return np.array([-self.cost * log(count) for count in words])

    def __str__(self) -> str:
        return f"length{self.cost:g}"


@dataclass(frozen=True, kw_only=True)
class ErrorSum:
    """How errors add up: the worse a text is, the more there are on its way, and the longer, too.

        sum = rate (length / whole)^power      rate = (d + sqrt(d^2 + .04)) / 2      d = best - raw

    The rate falls along a line, and near the `best` raw score it turns towards none. The sum is
    about the share of what experts count at most; where the rate is one, a text of the length
    `whole` has no more to lose.
    """

    best: float
    power: Annotated[float, POSITIVE]
    whole: Annotated[float, POSITIVE]

    def __call__(self, raw: FloatArray, lengths: FloatArray, lost: BoolArray) -> FloatArray:
        """Less the sum, so that higher is better, of raw scores and of lengths, (n,) each.

        What is `lost`, because it is no translation at all, has all errors it can have.

        >>> add_up = ErrorSum(best=1.0, power=0.5, whole=40)
        >>> lost = np.array([False, False, False, True])
        >>> add_up(np.array([0.0, 0.0, -1.0, 0.0]), np.array([40, 160, 40, 40]), lost).round(2)
        array([-1.01, -2.02, -2.  , -8.  ])
        """
        short = self.best - raw
        rate = (short + np.hypot(short, BEND)) / 2
        total: FloatArray = -rate * (lengths / self.whole) ** self.power
        return np.where(lost, np.minimum(total, -ALL), total)


@dataclass(frozen=True, kw_only=True)
class HumanScale:
    """What raw scores mean: their place on people's scale, people's spread, what others score."""

    calibration: Calibration
    uncertainty: Uncertainty
    percentiles: Percentiles

    def calibrate(self, raw: FloatArray) -> FloatArray:
        """Raw scores on the scale of human scores, strictly increasing, inside 0 to 1."""
        knots = self.calibration
        inner = np.interp(raw, knots.raw, knots.score)
        low, high = knots.raw[0], knots.raw[-1]
        below = knots.score[0] * np.exp(np.minimum(raw - low, 0.0))
        above = 1 - (1 - knots.score[-1]) * np.exp(-np.maximum(raw - high, 0.0))
        mapped: FloatArray = np.where(raw < low, below, np.where(raw > high, above, inner))
        return mapped

    def deviation(self, scores: FloatArray) -> FloatArray:
        """The standard deviation of people's scores around a score, on held-out judgements."""
        found: FloatArray = np.interp(scores, self.uncertainty.score, self.uncertainty.deviation)
        return found

    def percent(self, scores: FloatArray) -> FloatArray:
        """The share, in percent, of system outputs that score lower; its card says of which."""
        found: FloatArray = np.interp(scores, self.percentiles.score, self.percentiles.percent)
        return found


@dataclass(frozen=True, kw_only=True)
class ExpertScale(HumanScale):
    """What sums of errors mean to experts: 1 is none of them, 0 as many as they count."""

    errors: ErrorSum


@dataclass(frozen=True, kw_only=True)
class PackagedSettings:
    """What the `config.json` of every packaged model declares.

    `parts` are files of further weights by their sha256: what was learned on top of a network
    later. What they hold takes the place of weights of the same name.
    """

    architecture: str
    weights_sha256: Sha256
    parts: Mapping[FileName, Sha256] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AssessmentSettings(PackagedSettings, HumanScale):
    """The same of a model whose scores have one scale for crowds and one for experts."""

    experts: ExpertScale


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


def _check_lengths(left: tuple[float, ...], right: tuple[float, ...]) -> None:
    if len(left) != len(right):
        raise ModelError(f"{len(left)} and {len(right)} numbers that should be side by side")


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
