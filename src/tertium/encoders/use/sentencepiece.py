"""A SentencePiece unigram model, read from its file and run by `tokenizers`.

The file is a protocol buffer. Its tokens (field 1, each with a text and a score) and the text
normalization table (field 2 of the settings in fields 2 and 3) are all that is needed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tertium.core.errors import ModelError
from tertium.core.extras import explain_missing

if TYPE_CHECKING:
    from tokenizers import Tokenizer

UNKNOWN_ID = 0
SPACE = "\u2581"

_FLOAT = struct.Struct("<f")
_UNKNOWN_PARTS = re.compile("<unk>|.", re.DOTALL)


def read_model(path: Path) -> tuple[list[tuple[str, float]], bytes]:
    """Read the (token, score) list of a SentencePiece file and its normalization table."""
    vocabulary: list[tuple[str, float]] = []
    table = b""
    try:
        for field, value in _iter_fields(path.read_bytes()):
            if field == 1:
                vocabulary.append(_parse_token(value))
            elif field in (2, 3):
                table = max(table, dict(_iter_fields(value)).get(2, b""), key=len)
    except (IndexError, KeyError, UnicodeDecodeError, struct.error) as error:
        raise ModelError(f"{path} is not a SentencePiece model: {error!r}") from None
    if not vocabulary:
        raise ModelError(f"{path} is not a SentencePiece model: it has no tokens")
    return vocabulary, table


def _parse_token(value: bytes) -> tuple[str, float]:
    """Parse a token and its score, with a fast path for the usual layout."""
    if value[0] == 0x0A and value[1] < 0x80 and len(value) >= value[1] + 7:
        end = 2 + value[1]
        if value[end] == 0x15:
            return value[2:end].decode(), _FLOAT.unpack_from(value, end + 1)[0]
    fields = dict(_iter_fields(value))
    return fields[1].decode(), _FLOAT.unpack(fields[2])[0] if 2 in fields else 0.0


def _iter_fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the (number, bytes) of each protocol buffer field, without integer fields."""
    position, end = 0, len(data)
    while position < end:
        tag, position = _read_varint(data, position)
        kind = tag & 7
        if kind == 0:
            _, position = _read_varint(data, position)
            continue
        if kind == 2:
            length, position = _read_varint(data, position)
        else:
            length = {1: 8, 5: 4}[kind]
        yield tag >> 3, data[position : position + length]
        position += length


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


class SentencePieceTokenizer:
    """Splits texts into tokens of a SentencePiece unigram model; unknown characters are tokens."""

    def __init__(self, path: Path) -> None:
        self._tokenizer = _build_tokenizer(*read_model(path))

    def encode(self, texts: Sequence[str]) -> list[tuple[list[int], tuple[str, ...]]]:
        """Return the token ids and tokens of each text; both are empty for a blank text."""
        valid = [text.encode(errors="replace").decode() for text in texts]
        encodings = self._tokenizer.encode_batch(valid, add_special_tokens=False)
        return [self._split_unknown(encoding.ids, encoding.tokens) for encoding in encodings]

    @staticmethod
    def _split_unknown(ids: list[int], tokens: list[str]) -> tuple[list[int], tuple[str, ...]]:
        if UNKNOWN_ID not in ids:
            return ids, tuple(tokens)
        all_ids: list[int] = []
        all_tokens: list[str] = []
        for token_id, token in zip(ids, tokens, strict=True):
            parts = _UNKNOWN_PARTS.findall(token) if token_id == UNKNOWN_ID else [token]
            all_ids += [token_id] * len(parts)
            all_tokens += parts
        return all_ids, tuple(all_tokens)


def _build_tokenizer(vocabulary: list[tuple[str, float]], table: bytes) -> Tokenizer:
    with explain_missing("a SentencePiece model"):
        from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
    steps: list[Any] = [normalizers.Precompiled(table)] if table else []
    steps += [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()]
    tokenizer = Tokenizer(models.Unigram(vocabulary, UNKNOWN_ID, False))
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always")
    return tokenizer
