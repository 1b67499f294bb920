"""tertium-small: a small metric that learned from people, from a large teacher, and from damage.

Reference and hypothesis are encoded apart by a fine-tuned six-layer encoder and compared by
`late`; scores are calibrated against direct assessment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np

from tertium.arrays import Float32Array, FloatArray, IntArray
from tertium.encoders import Chunk, chunks
from tertium.encoders.body import run_or_halve
from tertium.encoders.encoder import EncoderName
from tertium.metrics.base.explanation import TextComparison
from tertium.metrics.base.matching import compare_pieces
from tertium.metrics.flagship.assessment import AssessmentSettings, EnglishAssessment
from tertium.metrics.flagship.packaged import Packaged
from tertium.metrics.flagship.scales import HumanScale, LengthCost
from tertium.metrics.flagship.surface import surface_features
from tertium.runtime import Precision, choose_device, current_runtime, runtime
from tertium.schema import POSITIVE, Sha256

if TYPE_CHECKING:
    from torch import Tensor

    from tertium.encoders.transformer import Transformer
    from tertium.metrics.flagship.late import LateInteraction, Tokens

MODEL = "tertium-small"
PAIRS_AT_ONCE = 64  # dealt to a thread
CHARACTERS = 4  # of a piece, about
BESIDE_ONE = 8  # pairs of one reference that stay together, so that it is read once for them
Length = Literal["costs", "free"]


@dataclass(frozen=True, kw_only=True)
class HeadShape:
    """The shape of the head: how many layers of which width it reads, and surface features."""

    layers: Annotated[int, POSITIVE]
    dim: Annotated[int, POSITIVE]
    surface: Annotated[int, POSITIVE]
    dropout: float = 0.0


@dataclass(frozen=True, kw_only=True)
class SmallSettings(AssessmentSettings):
    """What the `config.json` of such a model declares; `encoder_files` by their sha256.

    `length` is what longer references cost, `free` what raw scores mean without that.
    """

    layers: tuple[int, ...]
    head: HeadShape
    encoder_files: Mapping[str, Sha256]
    length: LengthCost
    free: HumanScale


@dataclass(frozen=True, kw_only=True, eq=False)
class TertiumSmall(EnglishAssessment):
    """Expected direct assessment of a translation into English, 0 to 1.

    The score is a monotone map of the network's output to the scale of standardised human scores,
    0 and 1 being the ends that people use; a hypothesis equal to its reference scores 1, and
    nothing else does. `references` takes the best or the mean over several. `uncertainty` tells
    how far people's scores lay from it on held-out judgments, `percentile` where a score stands
    among outputs of WMT systems.

    Longer references cost a little, as they do where experts add up the errors of a segment; the
    order of the translations of a segment is the same without (`length=free`). With `scale=mqm` the
    score is what such experts leave of a segment, and length counts in full.

    Needs English references: other languages are refused with advice. Relatives: `tertium-base` is
    larger, closer to people and slower; BERTScore reads the same kind of vectors without
    having learned from people; SentSim works without references.
    """

    name: ClassVar[str] = MODEL
    title: ClassVar[str] = "tertium-small"

    length: Length = "costs"

    @property
    def reader(self) -> Transformer:
        return _encoder(self.model, self.precision, current_runtime().device)

    @property
    def settings(self) -> SmallSettings:
        return self.model.settings(SmallSettings)

    @property
    def human_scale(self) -> HumanScale:
        free = self.scale == "da" and self.length == "free"
        return self.settings.free if free else super().human_scale

    @property
    def cost(self) -> LengthCost | None:
        return self.settings.length if self.scale == "da" and self.length == "costs" else None

    def judge(self, hypotheses: Sequence[str], references: Sequence[str]) -> FloatArray:
        settings, device = current_runtime(), choose_device(current_runtime().device)
        judge = LateJudge(_network(self.model, device), self.reader)
        if device != "cpu":
            return judge.together(hypotheses, references)
        kept = settings.cache or settings.memory
        return (judge.by_chunks if kept else judge.by_shares)(hypotheses, references)

    def compare(
        self, hypothesis: str, reference: str, values: Mapping[str, float]
    ) -> TextComparison:
        """Each piece with the piece of the other text that is nearest at the middle layer."""
        chunk, layers = next(chunks(self.reader, [hypothesis], [reference])), self.reader.layers
        rows = int(chunk.left[0]), int(chunk.right[0])
        left, right = (np.split(chunk.texts.tokens(n), layers, axis=1)[layers // 2] for n in rows)
        pieces = chunk.texts.pieces[rows[0]], chunk.texts.pieces[rows[1]]
        return compare_pieces(reference, values, pieces, (left, right))


@lru_cache(maxsize=4)
def _encoder(model: Packaged, precision: Precision, device: str) -> Transformer:
    """The encoder inside a packaged model, side by side at the layers that its head reads."""
    from tertium.encoders.transformer import of_weights

    settings = model.settings(SmallSettings)
    name = EncoderName(MODEL, layer="+".join(map(str, settings.layers)))
    weights = model.encoder_weights(settings.encoder_files)
    return of_weights(name, weights, precision=precision, device=device)


@lru_cache(maxsize=2)
def _network(model: Packaged, device: str) -> LateInteraction:
    """The head of a packaged model on a device."""
    from tertium.metrics.flagship.late import LateInteraction
    from tertium.models.checkpoint import load_into

    shape = asdict(model.settings(SmallSettings).head)
    weights = model.restore_tensors("head.")
    return load_into(lambda: LateInteraction(**shape), weights, model.folder).to(device)


@dataclass(frozen=True)
class LateJudge:
    """An encoder with the head that compares what it says of two texts: raw scores of pairs."""

    network: LateInteraction
    encoder: Transformer

    def by_shares(self, hypotheses: Sequence[str], references: Sequence[str]) -> FloatArray:
        """Raw scores of pairs, (m,), where no vector is kept.

        A thread reads some, judges and forgets: none waits for vectors of others, and no more of
        them are held than threads work on. What several systems made of one text goes together.
        """
        from tertium.encoders.apart import each_on_one_thread

        settings = asdict(replace(current_runtime(), threads=1))

        def run(rows: IntArray) -> FloatArray:
            with runtime(**settings):
                left, right = [hypotheses[n] for n in rows], [references[n] for n in rows]
                return self.by_chunks(left, right)

        groups = _group_by_reference(references)
        texts = ([references[rows[0]], *(hypotheses[n] for n in rows)] for rows in groups)
        sizes = [sum(map(len, some)) // CHARACTERS + 4 for some in texts]
        plan = self.encoder.body.network.plan(sizes)
        shares = [np.concatenate([groups[n] for n in some]) for some in plan]
        result = np.zeros(len(hypotheses))
        for rows, scores in zip(shares, each_on_one_thread(run, shares), strict=True):
            result[rows] = scores
        return result

    def by_chunks(self, hypotheses: Sequence[str], references: Sequence[str]) -> FloatArray:
        """Raw scores of pairs, (m,), from vectors that may be kept and found again."""
        result = np.zeros(len(hypotheses))
        for chunk in chunks(self.encoder, hypotheses, references):
            surface = surface_features(
                [hypotheses[n] for n in chunk.pairs], [references[n] for n in chunk.pairs]
            )
            result[chunk.pairs] = self._judge_chunk(chunk, surface)
            del chunk  # its vectors, before those of the next are computed
        return result

    def _judge_chunk(self, chunk: Chunk, surface: FloatArray) -> FloatArray:
        """Raw scores of a chunk's comparisons, (m,), each computed alone, on one thread."""
        import torch

        from tertium.encoders.apart import each_on_one_thread

        def run(rows: IntArray) -> FloatArray:
            with torch.inference_mode():
                scores = [
                    self.network(
                        self._tokens(chunk.texts.tokens(chunk.left[row])),
                        self._tokens(chunk.texts.tokens(chunk.right[row])),
                        torch.tensor(surface[row : row + 1]).float(),
                    )
                    for row in rows
                ]
                found: FloatArray = torch.cat(scores).numpy()
            return found

        shares = [
            np.arange(start, min(start + PAIRS_AT_ONCE, len(chunk)))
            for start in range(0, len(chunk), PAIRS_AT_ONCE)
        ]
        return np.concatenate([np.zeros(0), *each_on_one_thread(run, shares)])

    def _tokens(self, vectors: Float32Array) -> Tokens:
        """The states of one text; of an empty one a place that is masked."""
        import torch

        from tertium.metrics.flagship.late import Tokens

        layers, mask = self.encoder.layers, np.ones((1, max(1, len(vectors))), dtype=np.bool_)
        if not len(vectors):
            vectors, mask[:] = np.zeros((1, vectors.shape[1]), dtype=np.float32), False
        states = vectors.reshape(1, len(vectors), layers, -1).transpose(2, 0, 1, 3)
        return Tokens(torch.tensor(states), torch.from_numpy(mask))  # copied to aligned memory

    def together(self, hypotheses: Sequence[str], references: Sequence[str]) -> FloatArray:
        """Raw scores of pairs, (m,), many in a pass, as a GPU wants them.

        From pieces to scores everything stays on the device, and nothing waits for it before the
        end: words are compared here while vectors are computed there.
        """
        import torch

        from tertium.metrics.flagship.late import Tokens

        body, device = self.encoder.body, self.network.temperature.device
        texts = list(dict.fromkeys((*references, *hypotheses)))
        numbers = dict(zip(texts, body.number(texts), strict=True))

        def run(places: IntArray) -> Tensor:
            left, right = [hypotheses[n] for n in places], [references[n] for n in places]
            rows = {text: row for row, text in enumerate(dict.fromkeys((*right, *left)))}
            tokens = Tokens(*body.states([numbers[text] for text in rows], self.encoder.layer))
            surface = torch.tensor(surface_features(left, right)).float().to(device)
            sides = [torch.tensor([rows[t] for t in side]).to(device) for side in (left, right)]
            scores: Tensor = self.network(tokens.take(sides[0]), tokens.take(sides[1]), surface)
            return scores

        around, pairs = body.tokenizer.specials, zip(hypotheses, references, strict=True)
        sizes = [2 * (max(len(numbers[a]), len(numbers[b])) + around) for a, b in pairs]
        batches, result = body.network.plan(sizes), np.zeros(len(hypotheses))
        with torch.inference_mode():
            found = [scores for batch in batches for scores in run_or_halve(run, batch)]
            result[np.concatenate(batches)] = torch.cat(found).cpu().numpy()
        return result


def _group_by_reference(references: Sequence[str]) -> list[IntArray]:
    """Places of pairs that have one reference, a few at a time.

    >>> _group_by_reference(["a", "b", "a"])
    [array([0, 2]), array([1])]
    """
    places: dict[str, list[int]] = {}
    for place, reference in enumerate(references):
        places.setdefault(reference, []).append(place)
    return [
        np.array(rows[start : start + BESIDE_ONE])
        for rows in places.values()
        for start in range(0, len(rows), BESIDE_ONE)
    ]
