"""tertium-base: reference and hypothesis read together by a fine-tuned mpnet, judged by a head.

What ships is the low-rank difference to the public encoder (`packaged`), which is put onto
its weights in memory. Every pair is a text of its own, so that nothing is shared between pairs: it
costs about seven times what tertium-small does, and agrees with people better.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from tertium.arrays import Float32Array, FloatArray, IntArray
from tertium.encoders.encoder import EncoderName
from tertium.encoders.pieces import count_opaque, surely_fits
from tertium.encoders.transformer import of_weights
from tertium.encoders.weights import locate
from tertium.errors import ModelError
from tertium.extras import require
from tertium.metrics.base.explanation import TextComparison
from tertium.metrics.base.matching import compare_pieces
from tertium.metrics.flagship.assessment import AssessmentSettings, EnglishAssessment
from tertium.metrics.flagship.packaged import (
    ENCODER_PREFIX,
    Packaged,
    apply_difference,
    load_packaged,
)
from tertium.models.checkpoint import check_names, load_into
from tertium.runtime import Precision, current_runtime, task
from tertium.schema import POSITIVE, Rule, Sha256

if TYPE_CHECKING:
    from torch import Tensor

    from tertium.encoders.network import Network
    from tertium.metrics.flagship.late import CrossHead

MODEL = "tertium-base"
HEAD_PREFIX = "head."
TwoPieces = tuple[tuple[str, ...], tuple[str, ...]]
TwoVectors = tuple[Float32Array, Float32Array]


@dataclass(frozen=True, kw_only=True)
class BaseSettings(AssessmentSettings):
    """What the `config.json` of such a model declares.

    It changes a public encoder of a known hash, reads so many `positions` of a pair, and its raw
    scores are those of the head times `scale` plus `shift`.
    """

    encoder: str
    encoder_sha256: Sha256
    positions: Annotated[int, Rule(lambda n: n >= 8, "8 or more")]
    scale: Annotated[float, POSITIVE]
    shift: float


@dataclass(frozen=True, kw_only=True, eq=False)
class TertiumBase(EnglishAssessment):
    """Expected direct assessment of a translation into English, 0 to 1, by the larger model.

    Scores mean what tertium-small's mean, with the same calibration, uncertainty and percentiles of
    its own. `folder` names another model of the same make, as the recipe writes it.

    Needs English references and the public encoder (`tertium models install mpnet`). Relatives:
    `tertium-small` had the same teachers, and scores seven times as fast.
    """

    name: ClassVar[str] = MODEL
    title: ClassVar[str] = "tertium-base"

    folder: str = ""

    @property
    def model(self) -> Packaged:
        return Packaged(Path(self.folder)) if self.folder else load_packaged(MODEL)

    @property
    def settings(self) -> BaseSettings:
        return self.model.settings(BaseSettings)

    @property
    def fingerprint(self) -> str:
        told = self.settings
        parts = (told.encoder_sha256, told.positions, told.scale, told.shift)
        return f"{super().fingerprint}:{'+'.join(map(str, parts))}"

    @property
    def weights_hash(self) -> str:
        """The hash of the weights, and of the settings that scores follow from with them."""
        told = f"{self.fingerprint} {self.human_scale}"
        return f"{self.model.hash}+{sha256(told.encode()).hexdigest()[:8]}"

    @property
    def beside(self) -> str:
        """Of another model than the one that ships, its settings."""
        return self.weights_hash.removeprefix(self.model.hash) if self.folder else ""

    @property
    def reader(self) -> PairJudge:
        return _judge(self.model, self.precision, current_runtime().device)

    def judge(self, hypotheses: Sequence[str], references: Sequence[str]) -> FloatArray:
        result = np.zeros(len(hypotheses))
        with task("judging pairs", total=len(result)) as advance:
            for places, scores in self.reader.scores(hypotheses, references):
                result[places] = scores
                advance(len(places))
        return result

    def compare(
        self, hypothesis: str, reference: str, values: Mapping[str, float]
    ) -> TextComparison:
        """Each piece's best partner among the pieces it was read together with."""
        found = self.reader.pieces_and_vectors(hypothesis, reference)
        return compare_pieces(reference, values, *found)


class PairJudge:
    """The tuned encoder with its head: pairs of texts in, raw scores out."""

    def __init__(self, model: Packaged, precision: Precision, device: str) -> None:
        self._model = model
        require("torch", "tokenizers", purpose=model.folder.name)
        self._told = told = model.settings(BaseSettings)
        name = EncoderName.parse(told.encoder)
        self._weights = locate(name)
        if self._weights.hash != told.encoder_sha256:
            raise ModelError(
                f"{model.folder.name} changes the encoder {told.encoder} with the hash "
                f"{told.encoder_sha256[:8]}, but the one in {self._weights.folder} has "
                f"{self._weights.hash[:8]}: tertium models install {told.encoder}"
            )
        tuned = replace(self._weights, tensors=self._tuned_tensors)
        self._body = of_weights(name, tuned, precision=precision, device=device).body
        self._settings = self._body.settings
        if told.positions > self._settings.max_length:
            raise ModelError(
                f"{model.folder}: positions is {told.positions}, and {told.encoder} has "
                f"{self._settings.max_length}"
            )

    @property
    def max_length(self) -> int:
        """How many pieces of a pair are read, special tokens included."""
        return self._told.positions

    @cached_property
    def _network(self) -> Network:
        return self._body.network

    @cached_property
    def _head(self) -> CrossHead:
        from tertium.metrics.flagship.late import CrossHead

        weights = self._model.restore_tensors(HEAD_PREFIX)
        head = load_into(
            lambda: CrossHead(self._settings.hidden, dropout=0.0), weights, self._model.folder
        )
        return head.to(self._network.device)

    def _tuned_tensors(self) -> dict[str, Tensor]:
        """The public weights with the difference put onto them."""
        from tertium.encoders.bert import read_tensors

        changes = {
            name.removeprefix(ENCODER_PREFIX): value
            for name, value in self._model.weights.items()
            if name.startswith(ENCODER_PREFIX)
        }
        stored = read_tensors(self._weights.folder)
        public = {name: value for name, value in stored.items() if value.is_floating_point()}
        tuned = apply_difference(public, changes, self._model.folder)
        check_names(tuned, public, self._model.folder)
        return tuned

    def count_truncated(self, texts: Sequence[str]) -> int:
        """How many texts lose pieces in a pair."""
        doubtful = [text for text in texts if not surely_fits(text, self._room)]
        return sum(len(pieces) > self._room for pieces in self._body.tokenizer(doubtful))

    def count_opaque(self, texts: Sequence[str]) -> int:
        return count_opaque(texts, self._body.tokenizer)

    @property
    def _room(self) -> int:
        """How many pieces either text of a pair may have."""
        return (self.max_length - 4) // 2

    def _rows(
        self, hypotheses: Sequence[str], references: Sequence[str]
    ) -> list[tuple[tuple[int, ...], int]]:
        """[start] reference [end] [end] hypothesis [end], and where the hypothesis begins."""
        start, end = self._body.tokenizer.prefix, self._body.tokenizer.suffix
        pairs = zip(self._body.tokenizer(hypotheses), self._body.tokenizer(references), strict=True)
        rows = []
        for hypothesis, reference in pairs:
            first = (*start, *reference.ids[: self._room], *end, *end)
            rows.append(((*first, *hypothesis.ids[: self._room], *end), len(first)))
        return rows

    def scores(
        self, hypotheses: Sequence[str], references: Sequence[str]
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        """Places of some pairs and their raw scores, batch after batch."""
        import torch

        from tertium.encoders.apart import each_on_one_thread
        from tertium.metrics.flagship.late import judge

        rows = [row for row, _ in self._rows(hypotheses, references)]
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        network, head = self._network, self._head
        scale, shift = self._told.scale, self._told.shift

        def run(places: IntArray) -> tuple[IntArray, FloatArray]:
            [states], _ = network([rows[place] for place in places], [network.depth], None)
            mask = torch.arange(states.shape[1]) < torch.from_numpy(lengths[places])[:, None]
            mask = mask.to(states.device)
            with torch.inference_mode():
                if network.device == "cpu":  # pair after pair, as `apart` says
                    each = [states[i, None, :n].clone() for i, n in enumerate(lengths[places])]
                    parts = [judge(head, pair, pair.new_ones(pair.shape[:2])) for pair in each]
                    raw = torch.cat(parts)
                else:
                    raw = judge(head, states, mask)
            return places, raw.cpu().numpy().astype(np.float64) * scale + shift

        batches = network.plan(lengths)
        yield from (each_on_one_thread if network.device == "cpu" else map)(run, batches)

    def pieces_and_vectors(self, hypothesis: str, reference: str) -> tuple[TwoPieces, TwoVectors]:
        """The pieces of both texts and their vectors at the middle layer, read together."""
        [(row, begin)] = self._rows([hypothesis], [reference])
        [states], _ = self._network([row], [self._network.depth // 2], None)
        vectors = states[0].cpu().numpy()
        (left, right), room = self._body.tokenizer([hypothesis, reference]), self._room
        first = len(self._body.tokenizer.prefix)
        pieces = left.pieces[:room], right.pieces[:room]
        of_hypothesis = vectors[begin : begin + len(pieces[0])]
        return pieces, (of_hypothesis, vectors[first : first + len(pieces[1])])


@lru_cache(maxsize=2)
def _judge(model: Packaged, precision: Precision, device: str) -> PairJudge:
    return PairJudge(model, precision, device)
