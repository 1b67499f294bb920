"""tertium-small: a small metric that learned from people, from a large teacher, and from damage.

Reference and hypothesis are encoded apart by a fine-tuned six-layer encoder and compared by
`learning.late`; scores are calibrated against direct assessment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from tertium.encoders import Chunk, Encoder, chunks, load_encoder
from tertium.encoders.runtime import Precision
from tertium.errors import UsageError
from tertium.features.surface import surface_features
from tertium.metrics.embedding import comparisons
from tertium.metrics.links import Alignment, Comparison, Link, rounded
from tertium.metrics.metric import SegmentMetric
from tertium.metrics.packaged import Packaged, packaged
from tertium.scores import FloatArray
from tertium.segment import Segment
from tertium.text.english import looks_english

if TYPE_CHECKING:
    from tertium.learning.late import LateInteraction

MODEL = "tertium-small"
PAIRS_AT_ONCE = 64


@dataclass(frozen=True, kw_only=True)
class TertiumSmall(SegmentMetric):
    """Expected direct assessment of a translation into English, 0 to 1.

    The score is a monotone map of the network's output to the scale of standardised human scores,
    0 and 1 being the ends that people use; a hypothesis equal to its reference scores 1, and
    nothing else does. `references` takes the best or the mean over several. `uncertainty` tells
    how far people's scores lay from it on held-out judgements, `percentile` where a score stands
    among outputs of WMT systems.

    Needs English references: other languages are refused with advice. Relatives: BERTScore reads
    the same kind of vectors without having learned from people; SentSim works without references.
    """

    name: ClassVar[str] = MODEL
    title: ClassVar[str] = "tertium-small"
    citation: ClassVar[str] = """\
@software{tertium,
    title = "tertium: a toolkit that judges machine translation",
    author = "{The tertium developers}", year = "2026"
}"""

    references: Literal["best", "mean"] = "best"
    precision: Precision = "fp32"

    @property
    def model(self) -> Packaged:
        return packaged(MODEL)

    @property
    def encoder(self) -> Encoder:
        layers = "+".join(str(layer) for layer in self.model.config["layers"])
        return load_encoder(f"dir/{self.model.encoder_folder}@{layers}", precision=self.precision)

    def check(self, segments: Sequence[Segment]) -> None:
        super().check(segments)
        if not looks_english([s.references[0] for s in segments]):
            raise UsageError(
                f"{self.name} judges translations into English, and these references are not: "
                "use chrf for any language, or sentsim / bertscore with encoder=use"
            )

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        owners, left, right = comparisons(segments, "reference")
        scores = self.calibrate(self.raw_scores(left, right))
        same = np.array([a == b for a, b in zip(left, right, strict=True)])
        scores = np.where(same, 1.0, scores)
        if self.references == "mean":
            totals = np.bincount(owners, weights=scores, minlength=len(segments))
            return totals / np.bincount(owners, minlength=len(segments))
        best: FloatArray = np.maximum.reduceat(scores, np.flatnonzero(np.diff(owners, prepend=-1)))
        return best

    def raw_scores(self, hypotheses: Sequence[str], references: Sequence[str]) -> FloatArray:
        """What the network says of each pair, before calibration; each distinct pair once."""
        places: dict[tuple[str, str], int] = {}
        rows = [
            places.setdefault(pair, len(places))
            for pair in zip(hypotheses, references, strict=True)
        ]
        left, right = [pair[0] for pair in places], [pair[1] for pair in places]
        network, result = _network(MODEL), np.zeros(len(places))
        for chunk in chunks(self.encoder, left, right):
            surface = surface_features(
                [left[n] for n in chunk.pairs], [right[n] for n in chunk.pairs]
            )
            result[chunk.pairs] = judge_chunk(network, chunk, surface, self.encoder.layers)
        return result[rows]

    def calibrate(self, raw: FloatArray) -> FloatArray:
        """Raw scores on the scale of human scores, strictly increasing, inside 0 to 1."""
        knots = self.model.config["calibration"]
        inner = np.interp(raw, knots["raw"], knots["score"])
        low, high = knots["raw"][0], knots["raw"][-1]
        below = knots["score"][0] * np.exp(np.minimum(raw - low, 0.0))
        above = 1 - (1 - knots["score"][-1]) * np.exp(-np.maximum(raw - high, 0.0))
        mapped: FloatArray = np.where(raw < low, below, np.where(raw > high, above, inner))
        return mapped

    def uncertainty(self, scores: FloatArray) -> FloatArray:
        """The standard deviation of people's scores around a score, on held-out judgements."""
        table = self.model.config["uncertainty"]
        deviations: FloatArray = np.interp(scores, table["score"], table["deviation"])
        return deviations

    def percentile(self, scores: FloatArray) -> FloatArray:
        """The share, in percent, of WMT18 system outputs that score lower."""
        table = self.model.config["percentiles"]
        percentages: FloatArray = np.interp(scores, table["score"], table["percent"])
        return percentages

    def explain(self, segment: Segment) -> Alignment:
        """The score, its uncertainty, and each piece's best partner in the other text."""
        self.check([segment])
        found = []
        for reference in segment.references:
            chunk = next(iter(chunks(self.encoder, [segment.hypothesis], [reference])))
            score = float(self.segment_scores([Segment(segment.hypothesis, None, (reference,))])[0])
            values = {
                "score": score,
                "uncertainty": float(self.uncertainty(np.array([score]))[0]),
                "percentile": float(self.percentile(np.array([score]))[0]),
            }
            found.append(_comparison(chunk, reference, values, self.encoder.layers))
        score = float(self.segment_scores([segment])[0])
        return Alignment(metric=self.spec, score=score, comparisons=tuple(found))

    def warnings(self, segments: Sequence[Segment]) -> dict[str, int]:
        counts = super().warnings(segments)
        cut = self._truncated(segments)
        return {**counts, "truncated text": cut} if cut else counts

    def _truncated(self, segments: Sequence[Segment]) -> int:
        texts = dict.fromkeys(t for s in segments for t in (s.hypothesis, *s.references))
        return self.encoder.truncated(list(texts))

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        fields = {"model": f"{MODEL}@{self.model.hash[:8]}", "prec": self.precision,
                  "maxlen": str(self.encoder.max_length),
                  "trunc": str(self._truncated(segments))}  # fmt: skip
        several = any(len(s.references) > 1 for s in segments)
        return {**fields, "refs": self.references} if several else fields


@lru_cache(maxsize=2)
def _network(name: str) -> LateInteraction:
    """The head of a packaged model."""
    from tertium.learning.compact import restore
    from tertium.learning.late import LateInteraction

    model = packaged(name)
    shape = model.config["head"]
    network = LateInteraction(**shape)
    prefix = "head."
    network.load_state_dict(
        {k.removeprefix(prefix): v for k, v in restore(model.weights).items()
         if k.startswith(prefix)}
    )  # fmt: skip
    return network.eval().requires_grad_(False)


def judge_chunk(
    network: LateInteraction, chunk: Chunk, surface: FloatArray, layers: int
) -> FloatArray:
    """Raw scores of a chunk's comparisons, (m,), in batches of similar length."""
    import torch

    lengths = chunk.texts.lengths
    longest = np.maximum(lengths[chunk.left], lengths[chunk.right])
    order = np.argsort(longest, kind="stable")
    result = np.zeros(len(chunk))
    with torch.inference_mode():
        for start in range(0, len(order), PAIRS_AT_ONCE):
            rows = order[start : start + PAIRS_AT_ONCE]
            scores = network(
                _tokens(chunk, chunk.left[rows], layers),
                _tokens(chunk, chunk.right[rows], layers),
                torch.from_numpy(surface[rows]).float(),
            )
            result[rows] = scores.numpy()
    return result


def _tokens(chunk: Chunk, texts: np.ndarray, layers: int):  # type: ignore[no-untyped-def]
    import torch

    from tertium.learning.late import Tokens

    lengths = chunk.texts.lengths[texts]
    width = max(1, int(lengths.max()))
    place = np.arange(width)[None]
    mask = place < lengths[:, None]  # (texts, width)
    where = np.minimum(chunk.texts.offsets[texts][:, None] + place, len(chunk.texts.vectors) - 1)
    if len(chunk.texts.vectors):
        flat = chunk.texts.vectors[np.maximum(where, 0)]  # (texts, width, layers * dim)
    else:
        flat = np.zeros((len(texts), width, chunk.texts.vectors.shape[1]), dtype=np.float32)
    states = flat.reshape(len(texts), width, layers, -1).transpose(2, 0, 1, 3)
    return Tokens(torch.from_numpy(np.ascontiguousarray(states)), torch.from_numpy(mask))


def _comparison(
    chunk: Chunk, reference: str, values: Mapping[str, float], layers: int
) -> Comparison:
    """Each piece with the piece of the other text that is nearest at the middle layer."""
    left, right = int(chunk.left[0]), int(chunk.right[0])
    pieces = chunk.texts.pieces[left], chunk.texts.pieces[right]
    links: list[Link] = []
    table: tuple[tuple[float, ...], ...] = ()
    if all(pieces):
        middle = layers // 2
        h, r = (
            _unit(chunk.texts.tokens(t).reshape(len(p), layers, -1)[:, middle])
            for t, p in zip((left, right), pieces, strict=True)
        )
        cosines = h @ r.T  # (hypothesis pieces, reference pieces)
        table = rounded(cosines)
        links += [
            Link(hypothesis=i, other=int(cosines[i].argmax()), similarity=float(cosines[i].max()),
                 weight=1 / len(h), direction="precision")
            for i in range(len(h))
        ]  # fmt: skip
        links += [
            Link(hypothesis=int(cosines[:, j].argmax()), other=j, weight=1 / len(r),
                 similarity=float(cosines[:, j].max()), direction="recall")
            for j in range(len(r))
        ]  # fmt: skip
    return Comparison(side="reference", text=reference, values=dict(values),
                      hypothesis_pieces=pieces[0], other_pieces=pieces[1],
                      links=tuple(links), cosines=table)  # fmt: skip


def _unit(vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: np.ndarray = vectors / np.maximum(lengths, 1e-12)
    return unit
