"""States of a frozen encoder that a head learns from, by the numbers of texts.

`DiskStates` computes every text once, keeps half-precision numbers in a file and maps it, so that
epochs run at the speed of the head in bounded memory; `LiveStates` runs the encoder for every
batch, which a GPU does faster than a disk can read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from tertium.arrays import IntArray
from tertium.atomic import replace_content
from tertium.encoders.encoder import Encoder, offsets_of
from tertium.encoders.stream import stream
from tertium.encoders.transformer import Transformer
from tertium.errors import UsageError, WriteError
from tertium.metrics.heads.networks import split_layers
from tertium.metrics.heads.recurrence import Sequences
from tertium.runtime import Precision, choose_device, task


class DiskStates:
    """States of all texts in one file of half-precision numbers, (total tokens, layers x d).

    `file` is made anew; 160,000 texts of 28 tokens are 24 GB for minilm's seven layers, of which
    the operating system keeps in memory what fits.
    """

    def __init__(
        self, encoder: Encoder, texts: Sequence[str], file: Path, *, device: str = "cpu"
    ) -> None:
        self.device, self.layers = device, encoder.layers
        lengths: list[int] = []
        try:
            with (
                replace_content(file, durable=False) as out,
                task("encoding", total=len(texts)) as advance,
            ):
                for part in stream(encoder, texts, sentences=False):
                    out.write(part.vectors.astype(np.float16).tobytes())
                    lengths += part.lengths.tolist()
                    advance(len(part))
        except WriteError as error:
            size = _estimate(encoder, texts) / 1e9
            raise WriteError(
                f"{error}: about {size:.1f} GB are needed there for the encoder's states; set "
                "TMPDIR to a folder with room"
            ) from None
        self._offsets = offsets_of(lengths)
        shape = (int(self._offsets[-1]), encoder.dim)
        self._flat = (
            np.memmap(file, dtype=np.float16, mode="r", shape=shape)
            if shape[0]
            else np.zeros(shape, np.float16)
        )

    @property
    def lengths(self) -> IntArray:
        return np.diff(self._offsets)

    def __call__(self, texts: IntArray) -> Sequences:
        lengths = self.lengths[texts]
        width = max(1, int(lengths.max(initial=0)))
        padded = np.zeros((len(texts), width, self._flat.shape[1]), dtype=np.float16)
        for row, text in enumerate(texts):
            padded[row, : lengths[row]] = self._flat[self._offsets[text] : self._offsets[text + 1]]
        values = torch.from_numpy(padded).to(self.device).float()
        return Sequences(split_layers(values, self.layers), torch.from_numpy(lengths))


class LiveStates:
    """States computed by a forward pass of the encoder for each batch.

    Texts are tokenized at once; the network is loaded with the first batch, so that processes
    forked in between share the tokens and have a GPU of their own.
    """

    def __init__(
        self,
        encoder: Transformer,
        texts: Sequence[str],
        *,
        device: str = "auto",
        precision: Precision = "fp32",
    ) -> None:
        if encoder.layer != "all":
            raise UsageError(f"encoder {encoder.name}: a learned mix needs all layers (@all)")
        self._body = replace(encoder.body, device=device, precision=precision, long="truncate")
        self._ids = self._body.number(texts)
        self.lengths = np.array([len(ids) for ids in self._ids], dtype=np.int64)

    @cached_property
    def device(self) -> str:
        return choose_device(self._body.device)

    def __call__(self, texts: IntArray) -> Sequences:
        states, _ = self._body.states([self._ids[text] for text in texts], "all")
        lengths = torch.from_numpy(self.lengths[texts])
        shift, width = len(self._body.tokenizer.prefix), max(1, int(lengths.max()))
        return Sequences(states[:, :, shift : shift + width].permute(1, 2, 0, 3), lengths)


States = DiskStates | LiveStates  # of texts by their numbers


def _estimate(encoder: Encoder, texts: Sequence[str]) -> int:
    return 2 * encoder.dim * sum(len(text) // 4 + 2 for text in texts)


def make_states(encoder: Encoder, texts: Sequence[str], device: str, workspace: Path) -> States:
    """On a GPU a transformer runs for each batch; otherwise states are computed once, to disk."""
    if device.startswith("cuda") and isinstance(encoder, Transformer) and encoder.layer == "all":
        return LiveStates(encoder, texts, device=device, precision="fp16")
    return DiskStates(encoder, texts, workspace / "states", device=device)
