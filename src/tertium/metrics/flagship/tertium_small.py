"""tertium-small: fast calibrated metric for translations into English.

Trained on human scores, on scores of a larger teacher and on synthetic errors. A fine-tuned
six-layer encoder encodes hypothesis and reference separately; `late_interaction` compares them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np

from tertium.arrays import FloatArray, IntArray
from tertium.encoders import Chunk, iter_chunks
from tertium.encoders.batching import run_or_split, split_by_size
from tertium.encoders.encoder import EncoderName
from tertium.execution import Precision, current_runtime, resolve_device, runtime
from tertium.metrics.base.explanation import TextComparison
from tertium.metrics.base.greedy_matching import compare_pieces
from tertium.metrics.flagship.bundled_model import BundledModel
from tertium.metrics.flagship.calibrated_metric import EnglishCalibratedMetric, EnglishModelSettings
from tertium.metrics.flagship.scales import HumanScale, LengthPenalty
from tertium.metrics.flagship.surface_features import surface_features
from tertium.schema import POSITIVE, Sha256

if TYPE_CHECKING:
    from torch import Tensor

    from tertium.encoders.transformer_encoder import TransformerEncoder
    from tertium.metrics.flagship.late_interaction import LateInteraction

MODEL = "tertium-small"
TOKENS_PER_BATCH = 512  # of the head, about, so that its activations fit into the processor cache
CHARACTERS_PER_PIECE = 4  # about
HEAD_VERSION = 2  # increase when the same weights give other outputs
INT8_LAYERS = ("compare.0", "head.1")  # of the head, with fine activations
PAIRS_PER_REFERENCE = 8  # pairs of one reference in a batch, so that it is encoded once for them
Length = Literal["costs", "free"]


@dataclass(frozen=True, kw_only=True)
class HeadShape:
    """Sizes of the head: encoder layers, their width and the number of surface features."""

    layers: Annotated[int, POSITIVE]
    dim: Annotated[int, POSITIVE]
    surface: Annotated[int, POSITIVE]
    dropout: float = 0.0


@dataclass(frozen=True, kw_only=True)
class SmallSettings(EnglishModelSettings):
    """The `config.json` of tertium-small; `free` is the scale of raw scores without `length`."""

    layers: tuple[int, ...]
    head: HeadShape
    encoder_files: Mapping[str, Sha256]
    length: LengthPenalty
    free: HumanScale


@dataclass(frozen=True, kw_only=True, eq=False)
class TertiumSmall(EnglishCalibratedMetric):
    """Expected human score of a translation into English, 0 to 1.

        score = calibrate(network(hypothesis, reference) + length_penalty(reference))

    `calibrate` is a monotone map to standardized human scores. Only a hypothesis equal to its
    reference scores exactly 1. `uncertainty` is the standard deviation of held-out human scores
    around a score, `percentile` the percentage of WMT system outputs that score lower.

    Inputs: English references. References in other languages raise an error with alternatives.

    Settings:

    - `references`: `best` or `mean` score over several references.
    - `scale`: `da` for direct assessment, `mqm` for 1 - penalty / 25 under MQM.
    - `length`: `costs` penalizes longer references slightly, as MQM annotators find more errors in
      longer segments; `free` does not. The ranking of translations of one segment is the same.

    See also: `tertium-base` is larger, slower and agrees better with humans; BERTScore needs no
    training data; SentSim needs no references.

    >>> TertiumSmall().sentence_score("The train is late.", ["The train is late."])
    1.0
    """

    name: ClassVar[str] = MODEL
    title: ClassVar[str] = "tertium-small"

    length: Length = "costs"

    @property
    def reader(self) -> TransformerEncoder:
        return _load_encoder(self.model, self.precision, current_runtime().device)

    @property
    def fingerprint(self) -> str:
        return f"{super().fingerprint}:{HEAD_VERSION}"

    @property
    def settings(self) -> SmallSettings:
        return self.model.settings(SmallSettings)

    @property
    def human_scale(self) -> HumanScale:
        free = self.scale == "da" and self.length == "free"
        return self.settings.free if free else super().human_scale

    @property
    def length_penalty(self) -> LengthPenalty | None:
        return self.settings.length if self.scale == "da" and self.length == "costs" else None

    def run_network(self, hypotheses: Sequence[str], references: Sequence[str]) -> FloatArray:
        settings, device = current_runtime(), resolve_device(current_runtime().device)
        scorer = LateScorer(_load_head(self.model, self.precision, device), self.reader)
        if device != "cpu":
            return scorer.score_on_gpu(hypotheses, references)
        caches_vectors = settings.cache or settings.memory
        score = scorer.score_in_chunks if caches_vectors else scorer.score_in_batches
        return score(hypotheses, references)

    def compare(
        self, hypothesis: str, reference: str, values: Mapping[str, float]
    ) -> TextComparison:
        """Match each piece with the nearest piece of the other text at the middle layer."""
        chunk = next(iter_chunks(self.reader, [hypothesis], [reference]))
        layers = self.reader.layers
        rows = int(chunk.left[0]), int(chunk.right[0])
        left, right = (
            np.split(chunk.embeddings.token_vectors(n), layers, axis=1)[layers // 2] for n in rows
        )
        pieces = chunk.embeddings.tokens[rows[0]], chunk.embeddings.tokens[rows[1]]
        return compare_pieces(reference, values, pieces, (left, right))


@lru_cache(maxsize=4)
def _load_encoder(model: BundledModel, precision: Precision, device: str) -> TransformerEncoder:
    """Return the encoder of a bundled model; vectors are those of all layers of the head."""
    from tertium.encoders.transformer_encoder import build_encoder

    settings = model.settings(SmallSettings)
    name = EncoderName(MODEL, layer="+".join(map(str, settings.layers)))
    weights = model.encoder_weights(settings.encoder_files)
    return build_encoder(name, weights, precision=precision, device=device)


@lru_cache(maxsize=2)
def _load_head(model: BundledModel, precision: Precision, device: str) -> LateInteraction:
    from tertium.encoders.int8_linear import allocate_int8_layers
    from tertium.metrics.flagship.late_interaction import LateInteraction
    from tertium.models.checkpoint import build_network

    shape = asdict(model.settings(SmallSettings).head)
    int8_layers = INT8_LAYERS if precision == "int8" else ()

    def make() -> LateInteraction:
        head = LateInteraction(**shape)
        allocate_int8_layers(head, int8_layers.__contains__, fine=int8_layers.__contains__)
        return head

    return build_network(make, model.restore_tensors("head.", int8_layers), model.folder).to(device)


@dataclass(frozen=True)
class LateScorer:
    """An encoder and the head that compares two encoded texts."""

    network: LateInteraction
    encoder: TransformerEncoder

    def score_in_batches(self, hypotheses: Sequence[str], references: Sequence[str]) -> FloatArray:
        """Compute raw scores of pairs, (m,), in batches by thread, without caching vectors."""
        from tertium.encoders.parallel import map_on_threads

        settings = asdict(replace(current_runtime(), threads=1))

        def run(rows: IntArray) -> FloatArray:
            with runtime(**settings):
                left, right = [hypotheses[n] for n in rows], [references[n] for n in rows]
                return self.score_in_chunks(left, right)

        groups = _group_by_reference(references)
        texts = ([references[rows[0]], *(hypotheses[n] for n in rows)] for rows in groups)
        sizes = [sum(map(len, group)) // CHARACTERS_PER_PIECE + 4 for group in texts]
        plan = self.encoder.network.plan_batches(sizes)
        batches = [np.concatenate([groups[n] for n in numbers]) for numbers in plan]
        result = np.zeros(len(hypotheses))
        for rows, scores in zip(batches, map_on_threads(run, batches), strict=True):
            result[rows] = scores
        return result

    def score_in_chunks(self, hypotheses: Sequence[str], references: Sequence[str]) -> FloatArray:
        """Compute raw scores of pairs, (m,), from vectors that may be cached."""
        result = np.zeros(len(hypotheses))
        for chunk in iter_chunks(self.encoder, hypotheses, references):
            surface = surface_features(
                [hypotheses[n] for n in chunk.pairs], [references[n] for n in chunk.pairs]
            )
            result[chunk.pairs] = self._score_chunk(chunk, surface)
            del chunk  # frees its vectors before the next ones are computed
        return result

    def _score_chunk(self, chunk: Chunk, surface: FloatArray) -> FloatArray:
        """Compute raw scores of the pairs of a chunk, (m,), each batch on one thread."""
        import torch

        from tertium.encoders.parallel import map_on_threads

        lengths = chunk.embeddings.lengths[[chunk.left, chunk.right]]  # (2, m)
        is_empty = lengths.min(axis=0) == 0
        full, sizes = np.flatnonzero(~is_empty).tolist(), lengths.sum(axis=0)[~is_empty].tolist()
        batches = split_by_size(full, sizes, TOKENS_PER_BATCH)
        batches += [[row] for row in np.flatnonzero(is_empty).tolist()]
        features = torch.tensor(surface).float()

        def run(rows: list[int]) -> FloatArray:
            score = self._score_empty if is_empty[rows[0]] else self._score_pairs
            with torch.inference_mode():
                scores = score(chunk, rows, features[rows])
            result: FloatArray = scores.numpy()
            return result

        result = np.zeros(len(chunk))
        for rows, scores in zip(batches, map_on_threads(run, batches), strict=True):
            result[rows] = scores
        return result

    def _score_pairs(self, chunk: Chunk, rows: list[int], surface: Tensor) -> Tensor:
        """Score pairs whose texts have tokens, (m,)."""
        import torch

        sides = chunk.left[rows], chunk.right[rows]
        texts, places = np.unique(np.concatenate(sides), return_inverse=True)
        part = chunk.embeddings.take(texts)
        states = torch.from_numpy(part.vectors)
        states = states.view(len(states), self.encoder.layers, -1)
        ends = part.offsets.tolist()
        slices = [slice(ends[n], ends[n + 1]) for n in places.tolist()]
        pairs = list(zip(slices[: len(rows)], slices[len(rows) :], strict=True))
        return self.network.score_concatenated(states.transpose(0, 1).contiguous(), pairs, surface)

    def _score_empty(self, chunk: Chunk, rows: list[int], surface: Tensor) -> Tensor:
        """Score one pair with an empty text, which gets one masked token, (1,)."""
        import torch

        from tertium.metrics.flagship.late_interaction import Tokens

        def tokens(text: int) -> Tokens:
            vectors = torch.from_numpy(chunk.embeddings.token_vectors(text))
            mask = torch.full((1, max(1, len(vectors))), len(vectors) > 0)
            states = vectors if len(vectors) else vectors.new_zeros(1, vectors.shape[1])
            shape = len(states), 1, self.encoder.layers, -1  # to (layers, 1, tokens, dim)
            return Tokens(states.view(shape).permute(2, 1, 0, 3).contiguous(), mask)

        [row] = rows
        scores: Tensor = self.network(tokens(chunk.left[row]), tokens(chunk.right[row]), surface)
        return scores

    def score_on_gpu(self, hypotheses: Sequence[str], references: Sequence[str]) -> FloatArray:
        """Compute raw scores of pairs, (m,), in padded batches that stay on the device."""
        import torch

        from tertium.metrics.flagship.late_interaction import Tokens

        encoder, device = self.encoder, self.network.temperature.device
        texts = list(dict.fromkeys((*references, *hypotheses)))
        ids_by_text = dict(zip(texts, encoder.encode_ids(texts), strict=True))

        def run(pairs: IntArray) -> Tensor:
            left, right = [hypotheses[n] for n in pairs], [references[n] for n in pairs]
            rows = {text: row for row, text in enumerate(dict.fromkeys((*right, *left)))}
            tokens = Tokens(
                *encoder.hidden_states([ids_by_text[text] for text in rows], encoder.layer)
            )
            surface = torch.tensor(surface_features(left, right)).float().to(device)
            sides = [torch.tensor([rows[t] for t in side]).to(device) for side in (left, right)]
            scores: Tensor = self.network(tokens.take(sides[0]), tokens.take(sides[1]), surface)
            return scores

        around, pairs = encoder.tokenizer.special_count, zip(hypotheses, references, strict=True)
        sizes = [2 * (max(len(ids_by_text[a]), len(ids_by_text[b])) + around) for a, b in pairs]
        batches, result = encoder.network.plan_batches(sizes), np.zeros(len(hypotheses))
        with torch.inference_mode():
            scores = [part for batch in batches for part in run_or_split(run, batch)]
            result[np.concatenate(batches)] = torch.cat(scores).cpu().numpy()
        return result


def _group_by_reference(references: Sequence[str]) -> list[IntArray]:
    """Group the indices of pairs with the same reference, a few at a time.

    >>> _group_by_reference(["a", "b", "a"])
    [array([0, 2]), array([1])]
    """
    groups: dict[str, list[int]] = {}
    for number, reference in enumerate(references):
        groups.setdefault(reference, []).append(number)
    return [
        np.array(rows[start : start + PAIRS_PER_REFERENCE])
        for rows in groups.values()
        for start in range(0, len(rows), PAIRS_PER_REFERENCE)
    ]
