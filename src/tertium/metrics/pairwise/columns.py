"""Columns by name: any registered metric, the parts of BLEU, matches in the layers of an encoder.

    name  :=  4metrics | bleucomp | layers/ENCODER | source/ENCODER | the spec of a metric

`4metrics` is short for bleu, nist, ter and meteor; `bleucomp` the sixteen numbers BLEU is made of
(Guzmán et al. 2015, section 6.1); `source/use` the cosine of translation and source. NIST learns
what n-grams tell from `information`, so that a segment's columns depend on that segment alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from tertium.arrays import FloatArray
from tertium.cache.rows import rows_by_key
from tertium.encoders.encoder import load_encoder
from tertium.errors import NeedsError, UsageError
from tertium.metrics.base.components import brevity_penalty, nist_components, tokens
from tertium.metrics.base.featurizer import reference_of
from tertium.metrics.base.information import Information
from tertium.metrics.base.metric import Metric, load_metric
from tertium.metrics.pairwise.layers import LayerFeatures
from tertium.metrics.pairwise.vectors import sentence_vectors
from tertium.segment import Segment
from tertium.version import __version__

FOUR = ("bleu", "nist", "ter", "meteor")
LAYERS, SOURCE = "layers/", "source/"
ORDERS = range(1, 5)
BLEU_PARTS = (
    *(f"precision-{n}" for n in ORDERS),
    *(f"matches-{n}" for n in ORDERS),
    *(f"totals-{n}" for n in ORDERS),
    "hypothesis-length",
    "reference-length",
    "ratio",
    "penalty",
)
NIST_ORDER = 5

Compute = Callable[[Sequence[Segment]], FloatArray]


@dataclass(frozen=True)
class Columns:
    """A featurizer: the columns of several names, each computed once and kept on disk.

    >>> columns = Columns(("bleucomp", "chrf"))
    >>> row = columns([Segment("the cat sat", references=("the cat sat down",))])[0]
    >>> dict(zip(columns.names, row.round(3)))["bleucomp.penalty"]
    np.float64(0.717)
    """

    groups: tuple[str, ...]
    information: Information = field(default_factory=Information.nothing)

    @property
    def parts(self) -> tuple[str, ...]:
        """The groups with short names written out, each once."""
        written = [FOUR if group == "4metrics" else (group,) for group in self.groups]
        return tuple(dict.fromkeys(part for group in written for part in group))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for part in self.parts for name in _names(part))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics among its parts."""
        return tuple(metric for part in self.parts if (metric := _metric(part)))

    @property
    def reads_source(self) -> bool:
        """Whether a column compares with the source."""
        return any(map(_reads_source, self.parts))

    def __call__(self, segments: Sequence[Segment]) -> FloatArray:
        tables = [self._columns(part, segments) for part in self.parts]
        return np.hstack([np.zeros((len(segments), 0)), *tables])

    def _columns(self, part: str, segments: Sequence[Segment]) -> FloatArray:
        compute = _compute(part, self.information)
        sourced = _reads_source(part)
        keys = [
            (s.hypothesis, reference_of(s), *((s.source or "",) if sourced else ()))
            for s in segments
        ]
        rows = rows_by_key(
            f"{part} {__version__} {self._decides(part)}",
            keys,
            len(_names(part)),
            lambda places: compute([segments[n] for n in places]),
        )
        return rows.astype(np.float64)

    def _decides(self, part: str) -> str:
        """What decides a part beside its name: information, weights, what a metric signs with."""
        if part == "nist":
            digest = hashlib.sha256(self.information.keys.tobytes())
            digest.update(self.information.counts.tobytes())
            return digest.hexdigest()[:12]
        if encoder := encoder_behind(part):
            return load_encoder(encoder).weights_hash
        metric = _metric(part)
        return f"{metric.signature(())} {learned_model(part)}" if metric else ""


def learned_model(part: str) -> str:
    """The models behind a part that is a learned metric, with their hashes; else nothing.

    >>> learned_model("tertium-small")[:14], learned_model("chrf"), learned_model("bleucomp")
    ('tertium-small@', '', '')
    """
    metric = _metric(part)
    return "+".join(metric.learned) if metric else ""


def encoder_behind(part: str) -> str:
    """The encoder of a part that names one itself; of any other nothing.

    >>> encoder_behind("layers/minilm"), encoder_behind("source/use"), encoder_behind("chrf")
    ('minilm', 'use', '')
    """
    prefix = next((prefix for prefix in (LAYERS, SOURCE) if part.startswith(prefix)), "")
    return part.removeprefix(prefix) if prefix else ""


def _metric(part: str) -> Metric | None:
    """The metric of a part that is the spec of one."""
    if part in ("bleucomp", "nist") or encoder_behind(part):
        return None
    return load_metric(part)


def _reads_source(part: str) -> bool:
    metric = _metric(part)
    return "source" in metric.needs if metric else part.startswith(SOURCE)


def _names(part: str) -> tuple[str, ...]:
    if part == "bleucomp":
        return tuple(f"bleucomp.{name}" for name in BLEU_PARTS)
    if part.startswith(LAYERS):
        return LayerFeatures(part.removeprefix(LAYERS)).names
    return (part,)


def _compute(part: str, information: Information) -> Compute:
    """What makes the columns of a part."""
    if part == "bleucomp":
        return bleu_parts
    if part == "nist":
        return partial(_nist, information)
    if part.startswith(LAYERS):
        return LayerFeatures(part.removeprefix(LAYERS))
    if part.startswith(SOURCE):
        return partial(_source_cosine, part.removeprefix(SOURCE))
    metric = load_metric(part)
    if metric.reads_corpus:
        raise UsageError(
            f"{part} scores a segment by its neighbours, so it cannot be a column of a ranker"
        )
    return lambda segments: metric.score(segments).segments[:, None]


def bleu_parts(segments: Sequence[Segment]) -> FloatArray:
    """BLEU taken apart: precisions, matches, totals, lengths, their ratio, the penalty, (n, 16)."""
    rows = load_metric("bleu").statistics(segments)
    hypothesis, reference = rows[:, 0], rows[:, 1]
    matched, totals = rows[:, 2:6], rows[:, 6:10]
    precisions = np.divide(matched, totals, out=np.zeros_like(matched), where=totals > 0)
    ratio = hypothesis / np.maximum(reference, 1.0)
    lengths = [hypothesis, reference, ratio, brevity_penalty(rows)]
    return np.hstack([precisions, matched, totals, np.column_stack(lengths)])


def _nist(information: Information, segments: Sequence[Segment]) -> FloatArray:
    values = [
        nist_components(tokens(s.hypothesis), tokens(reference_of(s)), information)[NIST_ORDER - 1]
        for s in segments
    ]
    return np.array(values)[:, None]


def _source_cosine(encoder: str, segments: Sequence[Segment]) -> FloatArray:
    if any(segment.source is None for segment in segments):
        raise NeedsError(f"the column source/{encoder} needs the source: give it with -s")
    left = sentence_vectors(encoder, [s.hypothesis for s in segments])
    right = sentence_vectors(encoder, [s.source or "" for s in segments])
    sizes = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    cosines = (left * right).sum(axis=1) / np.maximum(sizes, 1e-12)  # zeros: cosine 0
    column: FloatArray = cosines.astype(np.float64)[:, None]
    return column
