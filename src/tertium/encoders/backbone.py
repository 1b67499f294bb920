"""Tokenizer and network of a model, shared by all encoders of that model.

Texts are truncated or split into windows to fit the model, batched by length, and run once, up to
the deepest requested layer. Token vectors of several layer choices and sentence vectors come from
the same pass. Tokenizer and network are loaded when the first text is computed, so a run whose
vectors are all cached loads neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tertium.arrays import Float32Array, exact_squared_norms
from tertium.encoders.batching import run_or_split
from tertium.encoders.encoder import Embeddings, offsets_from_lengths
from tertium.encoders.model_settings import (
    CONFIG_FILE,
    ModelSettings,
    concatenates_layers,
    parse_layers,
    read_optional_json,
)
from tertium.encoders.tokenizer import TokenizedText, Tokenizer, Window, split_windows
from tertium.encoders.weight_files import TensorLoader
from tertium.errors import ModelError
from tertium.execution import LongTextPolicy, Precision, resolve_device
from tertium.text.length_limits import MAX_ENCODED_TOKENS

if TYPE_CHECKING:
    from torch import Tensor

    from tertium.encoders.encoder_network import EncoderNetwork


class WindowJob(NamedTuple):
    """A window of text number `text` and the ids of its tokens."""

    text: int
    window: Window
    ids: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Backbone:
    """A model on a device, in a precision; equal backbones give equal vectors."""

    folder: Path
    settings: ModelSettings
    precision: Precision
    long: LongTextPolicy
    device: str
    load_tensors: TensorLoader | None = None

    @property
    def tokenizer(self) -> Tokenizer:
        return _load_tokenizer(self.folder, self.settings.pooling.lowercase, self.settings.prefix)

    @property
    def network(self) -> EncoderNetwork:
        return _load_network(self.folder, self.device, self.precision, self.load_tensors)

    @property
    def window_size(self) -> int:
        """The number of tokens that fit between the special tokens."""
        return self.settings.max_length - self.tokenizer.special_count

    @property
    def max_tokens(self) -> int:
        """The number of tokens of a text that are read, in one window or several."""
        if self.long == "truncate":
            return self.window_size
        return max(self.window_size, MAX_ENCODED_TOKENS)

    def tokenize(self, texts: Sequence[str]) -> list[TokenizedText]:
        """Return the tokens of texts that have vectors."""
        return [text.truncate(self.max_tokens) for text in self.tokenizer(texts)]

    def count_special_tokens(self, special: bool) -> tuple[int, int]:
        """Return how many special tokens are kept before and after a text."""
        if not special:
            return 0, 0
        return len(self.tokenizer.prefix_ids), len(self.tokenizer.suffix_ids)

    def encode(
        self, texts: Sequence[str], *, layers: Sequence[str], sentences: bool, special: bool
    ) -> EncodingResults:
        """Compute all requested vectors of distinct texts in one pass."""
        from tertium.encoders.parallel import map_on_threads

        complete = self.tokenizer(texts)
        truncated = [len(text) > self.max_tokens for text in complete]
        tokenized = [text.truncate(self.max_tokens) for text in complete]
        counts = self.count_special_tokens(special)
        results = EncodingResults(tokenized, truncated, self.settings, layers, sentences, counts)
        jobs = self._make_jobs(tokenized, sentences)
        lengths = [len(job.ids) + self.tokenizer.special_count for job in jobs]
        batches = [[jobs[i] for i in batch] for batch in self.network.plan_batches(lengths)]
        run = partial(run_or_split, partial(self._run, results))
        for _ in (map_on_threads if self.network.device == "cpu" else map)(run, batches):
            pass
        results.average_windows(jobs, self.settings.pooling.normalize)
        return results

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of the tokens of texts that have vectors."""
        return [ids[: self.max_tokens] for ids in self.tokenizer.encode_ids(texts)]

    def hidden_states(self, texts: Sequence[Sequence[int]], layers: str) -> tuple[Tensor, Tensor]:
        """Compute the states of texts, given as at most `window_size` token ids, on the device.

        Returns states (layers, texts, positions, d) and a mask (texts, positions) that is True for
        tokens and False for special tokens and padding.
        """
        import torch

        before, after = self.tokenizer.prefix_ids, self.tokenizer.suffix_ids
        numbers = parse_layers(layers, self.settings.depth, str(self.folder))
        states, _ = self.network([(*before, *ids, *after) for ids in texts], numbers, None)
        ends = torch.tensor([len(before) + len(ids) for ids in texts])[:, None]  # (texts, 1)
        position = torch.arange(states[0].shape[1])[None]  # (1, positions)
        mask = (position >= len(before)) & (position < ends)
        return torch.stack(states), mask.to(states[0].device)

    def _make_jobs(self, texts: Sequence[TokenizedText], sentences: bool) -> list[WindowJob]:
        """Return the windows to compute; an empty text only has a sentence vector."""
        return [
            WindowJob(number, window, text.ids[window.start : window.stop])
            for number, text in enumerate(texts)
            if len(text) or (sentences and self.tokenizer.special_count)
            for window in split_windows(len(text), self.window_size)
        ]

    def _run(self, results: EncodingResults, jobs: Sequence[WindowJob]) -> None:
        before, after = self.tokenizer.prefix_ids, self.tokenizer.suffix_ids
        choices = {
            layer: parse_layers(layer, self.settings.depth, str(self.folder))
            for layer in results.tokens
        }
        needed = sorted({number for numbers in choices.values() for number in numbers})
        states, pooled = self.network(
            [(*before, *job.ids, *after) for job in jobs],
            needed,
            self.settings.pooling if results.sentences.shape[1] else None,
        )
        by_layer = dict(zip(needed, states, strict=True))
        for choice, numbers in choices.items():
            combined = _combine_layers([by_layer[n] for n in numbers], concatenates_layers(choice))
            results.write_tokens(choice, jobs, combined, len(before))
        if pooled is not None:
            results.window_vectors.update(zip(jobs, pooled.cpu().numpy(), strict=True))


class EncodingResults:
    """The vectors of one pass, filled in place: token vectors by layer choice, sentence vectors.

    `special_counts` counts special tokens kept around a text; `window_vectors` are per window.
    """

    def __init__(
        self,
        texts: Sequence[TokenizedText],
        truncated: Sequence[bool],
        settings: ModelSettings,
        layers: Sequence[str],
        sentences: bool,
        special_counts: tuple[int, int],
    ) -> None:
        self.truncated, self.special_counts = truncated, special_counts
        self.names = tuple(token_names(text, special_counts) for text in texts)
        self.offsets = offsets_from_lengths([len(names) for names in self.names])
        self.tokens: Mapping[str, Float32Array] = {
            layer: np.zeros((int(self.offsets[-1]), token_dim(layer, settings)), dtype=np.float32)
            for layer in layers
        }
        width = settings.pooling.width(settings.hidden) * sentences
        self.sentences = np.zeros((len(texts), width), dtype=np.float32)
        self.window_vectors: dict[WindowJob, Float32Array] = {}

    def make_embeddings(self, layer: str | None, dim: int) -> Embeddings:
        """Return the embeddings of a layer choice, or only sentence vectors if it is None."""
        n = len(self.names)
        return Embeddings(
            vectors=self.tokens[layer] if layer else np.zeros((0, dim), dtype=np.float32),
            offsets=self.offsets if layer else np.zeros(n + 1, dtype=np.int64),
            tokens=self.names if layer else ((),) * n,
            sentences=self.sentences,
            truncated=np.array(self.truncated, dtype=np.bool_),
        )

    def write_tokens(
        self, layer: str, jobs: Sequence[WindowJob], states: Tensor, prefix_length: int
    ) -> None:
        """Write the token vectors that each job keeps; states are (jobs, positions, d)."""
        import torch

        keep = np.zeros(states.shape[:2], dtype=np.bool_)
        rows = []
        for number, job in enumerate(jobs):
            first, last, row = self._text_positions(job, prefix_length)
            keep[number, first:last] = True
            rows.append(np.arange(row, row + last - first))
        token_states = states[torch.from_numpy(keep).to(states.device)]
        self.tokens[layer][np.concatenate(rows)] = token_states.cpu().numpy()

    def _text_positions(self, job: WindowJob, prefix_length: int) -> tuple[int, int, int]:
        """Return the positions first:last of a job's text, and the row of its first vector."""
        (before, after), (start, _, first, last) = self.special_counts, job.window
        begin, end = int(self.offsets[job.text]), int(self.offsets[job.text + 1])
        if begin == end:
            return 0, 0, begin
        leading = before if first == 0 else 0
        trailing = after if begin + before + last + after == end else 0
        shift = prefix_length - start
        return shift + first - leading, shift + last + trailing, begin + before + first - leading

    def average_windows(self, jobs: Sequence[WindowJob], normalize: bool) -> None:
        """Set each sentence vector to the mean over its windows, added up from left to right."""
        for job in jobs:
            if job in self.window_vectors:
                self.sentences[job.text] += self.window_vectors[job]
        counts = np.bincount([job.text for job in jobs], minlength=len(self.sentences))
        several = counts > 1
        if not self.sentences.shape[1] or not several.any():
            return
        self.sentences[several] /= counts[several, None]
        if normalize:
            norms = np.sqrt(exact_squared_norms(self.sentences[several]))[:, None]
            self.sentences[several] /= norms.astype(np.float32)


def token_names(text: TokenizedText, special_counts: tuple[int, int]) -> tuple[str, ...]:
    """Return a text's tokens, with empty strings for the special tokens kept around it."""
    before, after = special_counts if len(text) else (0, 0)
    return ("",) * before + text.tokens + ("",) * after


def token_dim(layer: str, settings: ModelSettings) -> int:
    """Return the size of a token vector for a layer choice."""
    count = len(parse_layers(layer, settings.depth, "")) if concatenates_layers(layer) else 1
    return settings.hidden * count


def _combine_layers(states: Sequence[Tensor], concatenate: bool) -> Tensor:
    """Concatenate or average the states of layers, each (jobs, positions, d)."""
    import torch

    if len(states) == 1:
        return states[0]
    return torch.cat(list(states), dim=-1) if concatenate else torch.stack(list(states)).mean(dim=0)


@lru_cache(maxsize=8)
def _load_tokenizer(folder: Path, lowercase: bool, prompt: str) -> Tokenizer:
    tokenizer = Tokenizer(folder, lowercase=lowercase, prompt=prompt)
    rows = read_optional_json(folder / CONFIG_FILE).get("vocab_size")
    if isinstance(rows, int) and tokenizer.largest_id >= rows:
        raise ModelError(
            f"the tokenizer of {folder} has ids up to {tokenizer.largest_id}, but the model has "
            f"only {rows} embeddings: tokenizer and weights are of different models"
        )
    return tokenizer


@lru_cache(maxsize=4)
def _load_network(
    folder: Path, device: str, precision: str, load_tensors: TensorLoader | None
) -> EncoderNetwork:
    from tertium.encoders.encoder_network import EncoderNetwork

    return EncoderNetwork(
        folder, device=resolve_device(device), precision=precision, load_tensors=load_tensors
    )
