"""Encoders turn texts into vectors: contextual, universal and static ones share one protocol.

`load_encoder("minilm@4")` returns an `Encoder`. `compare_pairs` and `stream_embeddings` encode each
distinct text once, in bounded memory, and reuse cached vectors.
"""

from tertium.encoders.cached_encoding import (
    Chunk,
    compare_pairs,
    embed_texts,
    iter_chunks,
    share_encoding,
    stream_embeddings,
)
from tertium.encoders.encoder import Embeddings, Encoder, EncoderName, load_encoder

__all__ = [
    "Chunk",
    "Embeddings",
    "Encoder",
    "EncoderName",
    "compare_pairs",
    "embed_texts",
    "iter_chunks",
    "load_encoder",
    "share_encoding",
    "stream_embeddings",
]
