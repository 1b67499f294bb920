"""The two trained architectures, a cross-encoder and late interaction, on any encoder.

Both score pairs of text numbers of a `Tokenized` corpus, in bfloat16 on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tertium.metrics.bundled.input_rows import HYPOTHESIS, REFERENCE
from tertium.metrics.bundled.row_alignment import (
    CrossHead,
    LateInteraction,
    RowAlignment,
)

IntArray = NDArray[np.int64]
MAX_PIECES = 160


@dataclass(frozen=True)
class Tokenized:
    """Piece ids of many texts, without special tokens, on the computing device.

    `lengths` (texts,) are also kept on the CPU, where batches are planned.
    """

    flat: Tensor  # (all pieces,)
    offsets: Tensor  # (texts,)
    device_lengths: Tensor  # (texts,)
    lengths: IntArray  # (texts,)
    start: int
    end: int
    pad: int
    has_double_separator: bool  # mpnet and roberta put two separators between two texts

    @classmethod
    def from_texts(cls, texts: Sequence[str], folder: Path, device: str) -> Tokenized:
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(folder)
        flat: list[NDArray[np.int32]] = []
        lengths: list[int] = []
        for n in range(0, len(texts), 20_000):
            batch = tokenizer(
                list(texts[n : n + 20_000]),
                add_special_tokens=False,
                truncation=True,
                max_length=MAX_PIECES,
            )["input_ids"]
            flat.append(np.fromiter((i for row in batch for i in row), np.int32))
            lengths += [len(row) for row in batch]
        sizes = np.array(lengths)
        # one extra piece, so that indexing past the last text stays in range
        pieces = torch.tensor(np.concatenate([*flat, np.zeros(1, np.int32)]), device=device)
        offsets = torch.tensor(np.cumsum(sizes) - sizes, device=device)
        pair = tokenizer("a", "b")["input_ids"]
        return cls(
            pieces,
            offsets,
            torch.tensor(sizes, device=device),
            sizes,
            tokenizer.cls_token_id,
            tokenizer.sep_token_id,
            tokenizer.pad_token_id,
            has_double_separator=len(pair) == 6,
        )

    def pieces(self, position: Tensor, texts: Tensor) -> tuple[Tensor, Tensor]:
        """Return the piece of each text at each position, and a mask, (texts, positions)."""
        is_inside = (position >= 0) & (position < self.device_lengths[texts][:, None])
        index = self.offsets[texts][:, None] + position.clamp(min=0)
        return self.flat[index.clamp(max=len(self.flat) - 1)].long(), is_inside

    def single(self, texts: Tensor, width: int) -> tuple[Tensor, Tensor]:
        """Return [start] text [end], padded to `width`, and the mask of text pieces."""
        position = torch.arange(width, device=texts.device)[None] - 1  # (1, width)
        ids, inner = self.pieces(position, texts)
        last = position == self.device_lengths[texts][:, None]
        ids = torch.where(inner, ids, torch.where(last, self.end, self.pad))
        ids[:, 0] = self.start
        return ids, inner

    def joined(self, first: Tensor, second: Tensor, width: int) -> tuple[Tensor, Tensor]:
        """Return [start] first [end] ([end]) second [end], padded, and the token types."""
        position = torch.arange(width, device=first.device)[None]
        gap = 3 if self.has_double_separator else 2
        split = self.device_lengths[first][:, None] + gap  # where the second text begins
        left, in_left = self.pieces(position - 1, first)
        right, in_right = self.pieces(position - split, second)
        build_corpus = split + self.device_lengths[second][:, None]
        ids = torch.where(position <= build_corpus, self.end, self.pad)
        ids = torch.where(in_left, left, torch.where(in_right, right, ids))
        ids[:, 0] = self.start
        types = ((position >= split) & (position <= build_corpus)).long()
        return ids, types


class Encoder(nn.Module):
    """A Hugging Face encoder that returns the states of selected layers."""

    def __init__(self, folder: Path, layers: Sequence[int]) -> None:
        super().__init__()
        from transformers import AutoModel

        self.backbone: Any = AutoModel.from_pretrained(folder, dtype=torch.float32)
        self.layers = tuple(layers)
        self.dim: int = self.backbone.config.hidden_size

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor | None = None) -> Tensor:
        """Return states (layers, texts, tokens, dim)."""
        extra = {} if types is None else {"token_type_ids": types}
        out = self.backbone(input_ids=ids, attention_mask=mask, output_hidden_states=True, **extra)
        return torch.stack([out.hidden_states[layer] for layer in self.layers])


def score_pooled(head: CrossHead, states: Tensor, mask: Tensor) -> Tensor:
    """Return scores, (pairs,), of states (pairs, tokens, dim), special tokens included."""
    weights = mask.to(states.dtype)[..., None]
    means = (states * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)
    scores: Tensor = head(means)
    return scores.squeeze(-1).float()


class CrossEncoder(nn.Module):
    """Encode reference and hypothesis together; score with `CrossHead`."""

    needs_surface = False

    def __init__(self, folder: Path, **_: Any) -> None:
        super().__init__()
        self.encoder = Encoder(folder, [-1])
        self.head = CrossHead(self.encoder.dim)
        self.uses_token_types = self.encoder.backbone.config.model_type == "bert"

    def score(self, corpus: Tokenized, h: IntArray, r: IntArray, surface: Tensor | None) -> Tensor:
        device = corpus.flat.device
        widths = corpus.lengths[h] + corpus.lengths[r] + (4 if corpus.has_double_separator else 3)
        parts, order = [], []
        for rows, width in batch_by_width(widths):
            first = torch.as_tensor(r[rows], device=device)
            ids, types = corpus.joined(first, torch.as_tensor(h[rows], device=device), width)
            mask = ids != corpus.pad
            states = self.encoder(ids, mask.long(), types if self.uses_token_types else None)[0]
            parts.append(score_pooled(self.head, states, mask))
            order.append(rows)
        return restore_order(parts, order)


class LateEncoder(nn.Module):
    """Encode both texts separately, each distinct text once; score with `LateInteraction`."""

    needs_surface = True

    def __init__(self, folder: Path, *, layers: Sequence[int], surface: int) -> None:
        super().__init__()
        self.encoder = Encoder(folder, layers)
        self.head = LateInteraction(layers=len(layers), dim=self.encoder.dim, surface=surface)

    def score(self, corpus: Tokenized, h: IntArray, r: IntArray, surface: Tensor | None) -> Tensor:
        assert surface is not None
        texts, position = np.unique(np.concatenate([h, r]), return_inverse=True)
        states, starts = self._encode(corpus, texts)
        places = [slice(n, n + size) for n, size in zip(starts, corpus.lengths[texts], strict=True)]
        sides = zip(position[: len(h)], position[len(h) :], strict=True)
        pairs = [{HYPOTHESIS: places[left], REFERENCE: places[right]} for left, right in sides]
        parts, order = [], []
        for rows, _ in batch_by_width(np.maximum(corpus.lengths[h], corpus.lengths[r]), 12_000):
            alignment = RowAlignment([pairs[n] for n in rows], surface.device, padded=True)
            chosen = surface[torch.as_tensor(rows, device=surface.device)]
            parts.append(self.head(states, alignment, chosen))
            order.append(rows)
        return restore_order(parts, order)

    def _encode(self, corpus: Tokenized, texts: IntArray) -> tuple[Tensor, IntArray]:
        """Return the states of texts, (layers, positions, dim), and where each text starts."""
        states, starts, count = [], np.zeros(len(texts), dtype=np.int64), 0
        for rows, width in batch_by_width(corpus.lengths[texts] + 2):
            numbers = torch.as_tensor(texts[rows], device=corpus.flat.device)
            ids, _ = corpus.single(numbers, width)
            part = self.encoder(ids, (ids != corpus.pad).long()).flatten(1, 2)
            starts[rows] = count + np.arange(len(rows)) * width + 1  # after the special token
            states.append(part)
            count += part.shape[1]
        return torch.cat(states, dim=1), starts


def batch_by_width(widths: IntArray, budget: int = 16_384) -> list[tuple[IntArray, int]]:
    """Return rows of similar width with at most `budget` padded positions per batch."""
    order = np.argsort(widths, kind="stable")
    states_, start = [], 0
    for end in range(1, len(order) + 1):
        wide = end < len(order) and (end - start + 1) * widths[order[end]] > budget
        if wide or end == len(order):
            rows = order[start:end]
            states_.append((rows, -(-max(1, int(widths[rows[-1]])) // 8) * 8))
            start = end
    return states_


def restore_order(parts: Sequence[Tensor], order: Sequence[IntArray]) -> Tensor:
    """Return the scores of batches in the order of their rows."""
    inverse = np.argsort(np.concatenate(order))
    return torch.cat(list(parts))[torch.as_tensor(inverse, device=parts[0].device)]
