"""States of a frozen encoder for training heads, by text index.

`DiskStates` computes every text once and maps a file of half-precision states, so training is
limited by the head and memory is bounded. `LiveStates` runs the encoder for every batch, which on
a GPU is faster than reading a disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from tertium.core.arrays import IntArray
from tertium.core.atomic import open_atomic
from tertium.core.errors import UsageError, WriteError
from tertium.core.runtime import Precision, progress_task, resolve_device
from tertium.encoders.cached_encoding import stream_embeddings
from tertium.encoders.encoder import Encoder, offsets_from_lengths
from tertium.encoders.transformer_encoder import TransformerEncoder
from tertium.metrics.heads.bilstm import PaddedSequences
from tertium.metrics.heads.networks import split_layers


class DiskStates:
    """States of all texts in a half-precision file, (total tokens, layers x d).

    160,000 texts of 28 tokens take 24 GB for the seven layers of minilm; the operating system
    caches what fits in memory.
    """

    def __init__(
        self, encoder: Encoder, texts: Sequence[str], file: Path, *, device: str = "cpu"
    ) -> None:
        self.device, self.layers = device, encoder.layers
        lengths: list[int] = []
        try:
            with (
                open_atomic(file, durable=False) as out,
                progress_task("encoding", total=len(texts)) as advance,
            ):
                for part in stream_embeddings(encoder, texts, sentences=False):
                    out.write(part.vectors.astype(np.float16).tobytes())
                    lengths += part.lengths.tolist()
                    advance(len(part))
        except WriteError as error:
            size = _estimate_bytes(encoder, texts) / 1e9
            raise WriteError(
                f"{error}: the states of the encoder need about {size:.1f} GB; set TMPDIR to a "
                "folder with enough space"
            ) from None
        self._offsets = offsets_from_lengths(lengths)
        shape = (int(self._offsets[-1]), encoder.dim)
        self._flat = (
            np.memmap(file, dtype=np.float16, mode="r", shape=shape)
            if shape[0]
            else np.zeros(shape, np.float16)
        )

    @property
    def lengths(self) -> IntArray:
        return np.diff(self._offsets)

    def __call__(self, texts: IntArray) -> PaddedSequences:
        lengths = self.lengths[texts]
        width = max(1, int(lengths.max(initial=0)))
        padded = np.zeros((len(texts), width, self._flat.shape[1]), dtype=np.float16)
        for row, text in enumerate(texts):
            padded[row, : lengths[row]] = self._flat[self._offsets[text] : self._offsets[text + 1]]
        values = torch.from_numpy(padded).to(self.device).float()
        return PaddedSequences(split_layers(values, self.layers), torch.from_numpy(lengths))


class LiveStates:
    """States computed by a forward pass per batch; each forked process uses its own GPU."""

    def __init__(
        self,
        encoder: TransformerEncoder,
        texts: Sequence[str],
        *,
        device: str = "auto",
        precision: Precision = "fp32",
    ) -> None:
        if encoder.layer != "all":
            raise UsageError(f"encoder {encoder.name}: mixing layers needs all of them (@all)")
        self._encoder = replace(encoder, device=device, precision=precision, long="truncate")
        self._ids = self._encoder.encode_ids(texts)
        self.lengths = np.array([len(ids) for ids in self._ids], dtype=np.int64)

    @cached_property
    def device(self) -> str:
        return resolve_device(self._encoder.device)

    def __call__(self, texts: IntArray) -> PaddedSequences:
        states, _ = self._encoder.hidden_states([self._ids[text] for text in texts], "all")
        lengths = torch.from_numpy(self.lengths[texts])
        shift, width = len(self._encoder.tokenizer.prefix_ids), max(1, int(lengths.max()))
        return PaddedSequences(states[:, :, shift : shift + width].permute(1, 2, 0, 3), lengths)


States = DiskStates | LiveStates


def _estimate_bytes(encoder: Encoder, texts: Sequence[str]) -> int:
    return 2 * encoder.dim * sum(len(text) // 4 + 2 for text in texts)


def make_states(encoder: Encoder, texts: Sequence[str], device: str, workspace: Path) -> States:
    """Run transformers per batch on a GPU; otherwise compute the states once, on disk."""
    if (
        device.startswith("cuda")
        and isinstance(encoder, TransformerEncoder)
        and encoder.layer == "all"
    ):
        return LiveStates(encoder, texts, device=device, precision="fp16")
    return DiskStates(encoder, texts, workspace / "states", device=device)
