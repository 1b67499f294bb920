"""Any Hugging Face encoder: pieces, token vectors of a layer, and pooled sentence vectors.

One class for all architectures. The tokenizer and the network load when the first text has to be
computed, so that a run served by the cache loads neither. One forward pass, as deep as needed,
gives both token and sentence vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tertium.encoders.batching import plan_batches
from tertium.encoders.embeddings import Embeddings, Float32Array, offsets_of
from tertium.encoders.encoder import EncoderName
from tertium.encoders.pieces import Pieces, Tokenizer, Window, surely_fits, windows
from tertium.encoders.runtime import Long, Precision, current_runtime
from tertium.encoders.settings import ModelSettings, parse_layers, read_settings, side_by_side
from tertium.encoders.weights import Weights, locate

if TYPE_CHECKING:
    from torch import Tensor

    from tertium.encoders.network import Network

# Tokens of one forward pass, and what starting one costs in tokens, measured with minilm: on a CPU
# activations that stay in its cache are worth more than large products.
BUDGETS = {"cpu": 1024, "gpu": 65536}
OVERHEADS = {"cpu": 64, "gpu": 8192}


class Job(NamedTuple):
    """A window of a text that goes through the network, with the numbers of its pieces."""

    text: int
    window: Window
    ids: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Transformer:
    """The encoder of a model folder at a layer.

    `layer` is a number (0: the embeddings), a range such as 3-6 (their mean), a list such as 2+4+6
    or `all` (side by side, for learners that weigh them). Sentence vectors do not depend on it. `special` keeps the
    special tokens around a text as rows of their own, with empty pieces.
    """

    name: str
    weights: Weights
    settings: ModelSettings
    layer: str
    precision: Precision = "fp32"
    long: Long = "truncate"
    special: bool = False
    device: str = "auto"
    _known: dict[str, bool] = field(default_factory=dict, repr=False)

    @property
    def dim(self) -> int:
        return self.settings.hidden * self.layers

    @property
    def sentence_dim(self) -> int:
        return self.settings.pooling.width(self.settings.hidden)

    @property
    def layers(self) -> int:
        if not side_by_side(self.layer):
            return 1
        return len(parse_layers(self.layer, self.settings.depth, self.name))

    @property
    def languages(self) -> frozenset[str] | None:
        return self.weights.card.languages if self.weights.card else None

    @property
    def weights_hash(self) -> str:
        return self.weights.hash

    @property
    def max_length(self) -> int:
        """How many positions the model has, special tokens included."""
        return self.settings.max_length

    def encode(
        self, texts: Sequence[str], *, tokens: bool = True, sentences: bool = True
    ) -> Embeddings:
        places: dict[str, int] = {}
        order = [places.setdefault(text, len(places)) for text in texts]
        result = self._encode_distinct(list(places), tokens, sentences)
        return result if len(places) == len(texts) else result.take(order)

    def pieces(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        found = self._tokenizer(texts)
        room = self._room if self.long == "truncate" else max(map(len, found), default=0)
        return [self._names(text.first(room)) for text in found]

    def truncated(self, texts: Sequence[str]) -> int:
        if self.long == "window":
            return 0
        doubtful = [text for text in texts if not surely_fits(text, self.max_length)]
        unknown = [text for text in dict.fromkeys(doubtful) if text not in self._known]
        if unknown:
            for text, pieces in zip(unknown, self._tokenizer(unknown), strict=True):
                self._known[text] = len(pieces) > self._room
        return sum(self._known[text] for text in doubtful)

    def signature_fields(self) -> Mapping[str, str]:
        stem = self.name.rpartition("@")[0].replace(":", "_").replace("|", "_")
        fields = {
            "model": f"{stem}@{self.weights_hash[:8]}",
            "layer": self.layer,
            "prec": self.precision,
            "maxlen": str(self.max_length),
        }
        return {**fields, "long": "window"} if self.long == "window" else fields

    def with_special(self) -> Transformer:
        """This encoder keeping special tokens: what memory and disk hold, whoever asks."""
        return self if self.special else replace(self, special=True)

    def fingerprint(self, part: str) -> str:
        layer = self.layer if part == "tokens" else "pooled"
        choices = (self.settings.hash, layer, self.precision, str(self.max_length), self.long)
        return ":".join(["transformer-2", self.weights_hash, part, *choices])

    @property
    def _tokenizer(self) -> Tokenizer:
        return _tokenizer(self.weights.folder, self.settings.pooling.lower)

    @property
    def _room(self) -> int:
        return self.max_length - self._tokenizer.specials

    @property
    def _network(self) -> Network:
        return _network(self.weights.folder, self.device, self.precision)

    def _encode_distinct(self, texts: Sequence[str], tokens: bool, sentences: bool) -> Embeddings:
        pieces, room = self._tokenizer(texts), self._room
        cut = [len(p) > room and self.long == "truncate" for p in pieces]
        if self.long == "truncate":
            pieces = [p.first(room) for p in pieces]
        offsets = offsets_of([self._rows(p) if tokens else 0 for p in pieces])
        result = Embeddings(
            vectors=np.zeros((int(offsets[-1]), self.dim), dtype=np.float32),
            offsets=offsets,
            pieces=tuple(self._names(p) if tokens else () for p in pieces),
            sentences=np.zeros((len(texts), self.sentence_dim * sentences), dtype=np.float32),
            truncated=np.array(cut, dtype=np.bool_),
        )
        if tokens or sentences:
            jobs = self._jobs(pieces, sentences)
            self._fill(result, jobs, tokens)
            if sentences:
                self._settle(result.sentences, jobs)
        return result

    @property
    def _around(self) -> tuple[int, int]:
        """How many special tokens before and after a text have rows in the result."""
        kept = self._tokenizer if self.special else None
        return (len(kept.prefix), len(kept.suffix)) if kept else (0, 0)

    def _rows(self, text: Pieces) -> int:
        return len(text) + sum(self._around) if len(text) else 0

    def _names(self, text: Pieces) -> tuple[str, ...]:
        before, after = self._around if len(text) else (0, 0)
        return ("",) * before + text.pieces + ("",) * after

    def _jobs(self, pieces: Sequence[Pieces], sentences: bool) -> list[Job]:
        """The windows to compute; an empty text has a sentence vector only."""
        return [
            Job(number, window, text.ids[window.start : window.stop])
            for number, text in enumerate(pieces)
            if len(text) or (sentences and self._tokenizer.specials)
            for window in windows(len(text), self._room)
        ]

    def _fill(self, result: Embeddings, jobs: Sequence[Job], tokens: bool) -> None:
        """Run the jobs in batches and write their vectors into the result."""
        runtime, network = current_runtime(), self._network
        network.use_threads(runtime.threads)
        kind = "cpu" if network.device == "cpu" else "gpu"
        batches = plan_batches(
            [len(job.ids) + self._tokenizer.specials for job in jobs],
            budget=runtime.token_budget or BUDGETS[kind],
            overhead=OVERHEADS[kind],
            limit=runtime.batch_size,
        )
        for batch in batches:
            self._run_batch(result, [jobs[i] for i in batch], tokens)

    def _run_batch(self, result: Embeddings, jobs: Sequence[Job], tokens: bool) -> None:
        before, after = self._tokenizer.prefix, self._tokenizer.suffix
        states, pooled = self._network(
            [(*before, *job.ids, *after) for job in jobs],
            parse_layers(self.layer, self.settings.depth, self.name) if tokens else (),
            self.settings.pooling if result.sentences.shape[1] else None,
        )
        if tokens:
            self._write_tokens(result, jobs, states)
        if pooled is not None:
            for job, vector in zip(jobs, pooled.cpu().numpy(), strict=True):
                result.sentences[job.text] += vector

    def _write_tokens(
        self, result: Embeddings, jobs: Sequence[Job], states: Sequence[Tensor]
    ) -> None:
        """Write the vectors each job keeps; states are (jobs, positions, d), one for each layer."""
        import torch

        if side_by_side(self.layer):
            joined = torch.cat(list(states), dim=-1)
        else:
            joined = states[0] if len(states) == 1 else torch.stack(list(states)).mean(dim=0)
        keep = np.zeros(joined.shape[:2], dtype=np.bool_)
        places = []
        for row, job in enumerate(jobs):
            first, last, place = self._span(result, job)
            keep[row, first:last] = True
            places.append(np.arange(place, place + last - first))
        kept = joined[torch.from_numpy(keep).to(joined.device)]
        result.vectors[np.concatenate(places)] = kept.cpu().numpy()

    def _span(self, result: Embeddings, job: Job) -> tuple[int, int, int]:
        """The positions first:last of a job whose vectors are kept, and the first one's row."""
        (before, after), (start, _, first, last) = self._around, job.window
        begin, end = result.offsets[job.text], result.offsets[job.text + 1]
        shift = len(self._tokenizer.prefix) - start
        opening = before if first == 0 else 0
        closing = after if begin + before + last + after == end else 0
        return shift + first - opening, shift + last + closing, begin + before + first - opening

    def _settle(self, sentences: Float32Array, jobs: Sequence[Job]) -> None:
        """Turn the sum over a text's windows into their mean, of length 1 where asked for."""
        counts = np.bincount([job.text for job in jobs], minlength=len(sentences))
        many = counts > 1
        sentences[many] /= counts[many, None]
        if self.settings.pooling.normalise:
            sentences[many] /= np.linalg.norm(sentences[many], axis=1, keepdims=True)


@lru_cache(maxsize=8)
def _tokenizer(folder: Path, lower: bool) -> Tokenizer:
    return Tokenizer(folder, lower=lower)


@lru_cache(maxsize=4)
def _network(folder: Path, device: str, precision: str) -> Network:
    """One network for all layers and uses of a model."""
    from tertium.encoders.network import Network, choose_device

    return Network(folder, device=choose_device(device), precision=precision)


def load(
    name: EncoderName, *, precision: Precision, long: Long, special: bool, device: str
) -> Transformer:
    """The transformer of a name such as minilm@4, hf/NAME@9 or dir/PATH."""
    if precision == "fp16" or device not in ("auto", "cpu"):
        from tertium.encoders.network import check_device

        check_device(device, precision)
    weights = locate(name)
    settings = read_settings(weights.folder)
    recommended = weights.card.layer if weights.card else None
    layer = name.layer or str(settings.depth if recommended is None else recommended)
    parse_layers(layer, settings.depth, str(name))
    return Transformer(
        name=str(EncoderName(name.family, name.rest, layer)),
        weights=weights,
        settings=settings,
        layer=layer,
        precision=precision,
        long=long,
        special=special,
        device=device,
    )
