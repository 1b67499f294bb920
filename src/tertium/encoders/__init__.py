"""Text to vectors: one protocol for contextual, universal and static encoders, encoded once.

`load_encoder("minilm@4")` gives an `Encoder`; `pairwise` and `stream` feed it distinct texts in
bounded memory, through what memory and disk already hold.
"""

from tertium.encoders.encoder import Embeddings, Encoder, EncoderName, load_encoder
from tertium.encoders.stream import Chunk, chunks, embed, foresee, pairwise, stream

__all__ = [
    "Chunk",
    "Embeddings",
    "Encoder",
    "EncoderName",
    "chunks",
    "embed",
    "foresee",
    "load_encoder",
    "pairwise",
    "stream",
]
