"""A model on a device, and one pass of texts through it for all that is asked of them.

Texts are cut or windowed to the positions the model has, batched by length, and run once, as deep
as the deepest layer asked for; token vectors of several layer choices and sentence vectors come
from the same pass. On a CPU a pass runs on one thread, and changes no text's vectors by a bit
(`apart`). The tokenizer and the network load when the first text has to be computed, so that a run
served by the cache loads neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from tertium.arrays import Float32Array, squares
from tertium.encoders.encoder import Embeddings, offsets_of
from tertium.encoders.pieces import Pieces, Tokenizer, Window, windows
from tertium.encoders.settings import ModelSettings, parse_layers, side_by_side
from tertium.encoders.weights import Tensors
from tertium.runtime import Long, Precision, choose_device
from tertium.text.bounds import ENCODED_PIECES

if TYPE_CHECKING:
    from torch import Tensor

    from tertium.encoders.network import Network


Batch = TypeVar("Batch", bound=Any)
R = TypeVar("R")


class Job(NamedTuple):
    """A window of a text that goes through the network, with the numbers of its pieces."""

    text: int
    window: Window
    ids: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Body:
    """A model on a device in a precision; equal bodies give equal vectors."""

    folder: Path
    settings: ModelSettings
    precision: Precision
    long: Long
    device: str
    tensors: Tensors | None = None

    @property
    def tokenizer(self) -> Tokenizer:
        return _tokenizer(self.folder, self.settings.pooling.lower, self.settings.prefix)

    @property
    def network(self) -> Network:
        return _network(self.folder, self.device, self.precision, self.tensors)

    @property
    def room(self) -> int:
        """How many pieces fit between the special tokens."""
        return self.settings.max_length - self.tokenizer.specials

    @property
    def most(self) -> int:
        """How many pieces of a text are read: as many as fit, or several windows of them."""
        return self.room if self.long == "truncate" else max(self.room, ENCODED_PIECES)

    def pieces(self, texts: Sequence[str]) -> list[Pieces]:
        """The pieces of texts that have vectors."""
        return [pieces.first(self.most) for pieces in self.tokenizer(texts)]

    def count_around(self, special: bool) -> tuple[int, int]:
        """How many special tokens are kept before and behind a text."""
        return (len(self.tokenizer.prefix), len(self.tokenizer.suffix)) if special else (0, 0)

    def encode(
        self, texts: Sequence[str], *, layers: Sequence[str], sentences: bool, special: bool
    ) -> PassResults:
        """Everything that is asked of distinct texts, from one pass."""
        found = self.tokenizer(texts)
        cut = [len(pieces) > self.most for pieces in found]
        pieces = [text.first(self.most) for text in found]
        around = self.count_around(special)
        results = PassResults(pieces, cut, self.settings, layers, sentences, around)
        jobs = self._jobs(pieces, sentences)
        batches = self.network.plan([len(job.ids) + self.tokenizer.specials for job in jobs])
        self._run_all(results, [[jobs[i] for i in batch] for batch in batches])
        results.settle(jobs, self.settings.pooling.normalise)
        return results

    def number(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of those pieces of texts that have vectors."""
        return [ids[: self.most] for ids in self.tokenizer.number(texts)]

    def states(self, texts: Sequence[Sequence[int]], layers: str) -> tuple[Tensor, Tensor]:
        """States of texts, given as numbers of at most `room` pieces, left on the device.

        (layers, texts, positions, d), with a mask (texts, positions) of the pieces among them,
        which special tokens are not.
        """
        import torch

        before, after = self.tokenizer.prefix, self.tokenizer.suffix
        wanted = parse_layers(layers, self.settings.depth, str(self.folder))
        states, _ = self.network([(*before, *ids, *after) for ids in texts], wanted, None)
        ends = torch.tensor([len(before) + len(ids) for ids in texts])[:, None]
        place = torch.arange(states[0].shape[1])[None]
        mask = (place >= len(before)) & (place < ends)
        return torch.stack(states), mask.to(states[0].device)

    def _run_all(self, results: PassResults, batches: Sequence[Sequence[Job]]) -> None:
        from tertium.encoders.apart import each_on_one_thread

        work = partial(run_or_halve, partial(self._run, results))
        for _ in (each_on_one_thread if self.network.device == "cpu" else map)(work, batches):
            pass

    def _jobs(self, pieces: Sequence[Pieces], sentences: bool) -> list[Job]:
        """The windows to compute; an empty text has a sentence vector only."""
        return [
            Job(number, window, text.ids[window.start : window.stop])
            for number, text in enumerate(pieces)
            if len(text) or (sentences and self.tokenizer.specials)
            for window in windows(len(text), self.room)
        ]

    def _run(self, results: PassResults, jobs: Sequence[Job]) -> None:
        before, after = self.tokenizer.prefix, self.tokenizer.suffix
        choices = {
            layer: parse_layers(layer, self.settings.depth, str(self.folder))
            for layer in results.tokens
        }
        wanted = sorted({layer for chosen in choices.values() for layer in chosen})
        states, pooled = self.network(
            [(*before, *job.ids, *after) for job in jobs],
            wanted,
            self.settings.pooling if results.sentences.shape[1] else None,
        )
        by_layer = dict(zip(wanted, states, strict=True))
        for choice, chosen in choices.items():
            joined = _join([by_layer[layer] for layer in chosen], side_by_side(choice))
            results.write_tokens(choice, jobs, joined, len(before))
        if pooled is not None:
            results.pooled.update(zip(jobs, pooled.cpu().numpy(), strict=True))


class PassResults:
    """The vectors of one pass, filled in place: token vectors by layer choice, sentence vectors.

    `cut` says which texts are read in part, `around` how many special tokens are kept before and
    behind a text; `pooled` are the sentence vectors of single windows.
    """

    def __init__(
        self,
        pieces: Sequence[Pieces],
        cut: Sequence[bool],
        settings: ModelSettings,
        layers: Sequence[str],
        sentences: bool,
        around: tuple[int, int],
    ) -> None:
        self.truncated, self.around = cut, around
        self.names = tuple(names_of(text, around) for text in pieces)
        self.offsets = offsets_of([len(text) for text in self.names])
        self.tokens: Mapping[str, Float32Array] = {
            layer: np.zeros((int(self.offsets[-1]), width_of(layer, settings)), dtype=np.float32)
            for layer in layers
        }
        width = settings.pooling.width(settings.hidden) * sentences
        self.sentences = np.zeros((len(pieces), width), dtype=np.float32)
        self.pooled: dict[Job, Float32Array] = {}

    def of(self, layer: str | None, width: int) -> Embeddings:
        """The embeddings under a layer choice, or sentence vectors alone."""
        n = len(self.names)
        return Embeddings(
            vectors=self.tokens[layer] if layer else np.zeros((0, width), dtype=np.float32),
            offsets=self.offsets if layer else np.zeros(n + 1, dtype=np.int64),
            pieces=self.names if layer else ((),) * n,
            sentences=self.sentences,
            truncated=np.array(self.truncated, dtype=np.bool_),
        )

    def write_tokens(self, layer: str, jobs: Sequence[Job], states: Tensor, shift: int) -> None:
        """Write the vectors each job keeps; states are (jobs, positions, d)."""
        import torch

        keep = np.zeros(states.shape[:2], dtype=np.bool_)
        places = []
        for row, job in enumerate(jobs):
            first, last, place = self._span(job, shift)
            keep[row, first:last] = True
            places.append(np.arange(place, place + last - first))
        kept = states[torch.from_numpy(keep).to(states.device)]
        self.tokens[layer][np.concatenate(places)] = kept.cpu().numpy()

    def _span(self, job: Job, shift: int) -> tuple[int, int, int]:
        """The positions first:last of a job whose vectors are kept, and the first one's row."""
        (before, after), (start, _, first, last) = self.around, job.window
        begin, end = int(self.offsets[job.text]), int(self.offsets[job.text + 1])
        if begin == end:
            return 0, 0, begin
        opening = before if first == 0 else 0
        closing = after if begin + before + last + after == end else 0
        place = shift - start
        return place + first - opening, place + last + closing, begin + before + first - opening

    def settle(self, jobs: Sequence[Job], normalise: bool) -> None:
        """The mean over a text's windows, added up from left to right; length 1 if asked for."""
        for job in jobs:
            if job in self.pooled:
                self.sentences[job.text] += self.pooled[job]
        counts = np.bincount([job.text for job in jobs], minlength=len(self.sentences))
        many = counts > 1
        if not self.sentences.shape[1] or not many.any():
            return
        self.sentences[many] /= counts[many, None]
        if normalise:
            norms = np.sqrt(squares(self.sentences[many]))[:, None]
            self.sentences[many] /= norms.astype(np.float32)


def run_or_halve(work: Callable[[Batch], R], batch: Batch) -> list[R]:
    """The work on a batch; where the device has too little memory for it, on its halves."""
    try:
        return [work(batch)]
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError" or len(batch) == 1:
            raise
    half = len(batch) // 2
    return run_or_halve(work, batch[:half]) + run_or_halve(work, batch[half:])


def names_of(text: Pieces, around: tuple[int, int]) -> tuple[str, ...]:
    """A text's pieces with empty ones for the special tokens that are kept around it."""
    before, after = around if len(text) else (0, 0)
    return ("",) * before + text.pieces + ("",) * after


def width_of(layer: str, settings: ModelSettings) -> int:
    """The width of a token vector under a layer choice."""
    count = len(parse_layers(layer, settings.depth, "")) if side_by_side(layer) else 1
    return settings.hidden * count


def _join(states: Sequence[Tensor], apart: bool) -> Tensor:
    """Layers side by side, or their mean; each is (jobs, positions, d)."""
    import torch

    if len(states) == 1:
        return states[0]
    return torch.cat(list(states), dim=-1) if apart else torch.stack(list(states)).mean(dim=0)


@lru_cache(maxsize=8)
def _tokenizer(folder: Path, lower: bool, opening: str) -> Tokenizer:
    return Tokenizer(folder, lower=lower, opening=opening)


@lru_cache(maxsize=4)
def _network(folder: Path, device: str, precision: str, tensors: Tensors | None) -> Network:
    """One network for all layers and uses of a model."""
    from tertium.encoders.network import Network

    return Network(folder, device=choose_device(device), precision=precision, tensors=tensors)
