"""A SentencePiece unigram model: its file read directly, its search done by `tokenizers`.

The file is a protocol buffer. Its pieces (field 1, each with a text and a score) and the table of
its text normalisation (field 2 of the settings in fields 2 and 3) are all that is needed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tertium.errors import ModelError
from tertium.extras import explain_missing

if TYPE_CHECKING:
    from tokenizers import Tokenizer

UNKNOWN = 0
SPACE = "\u2581"

_FLOAT = struct.Struct("<f")
_UNKNOWN_PARTS = re.compile("<unk>|.", re.DOTALL)


def read_model(path: Path) -> tuple[list[tuple[str, float]], bytes]:
    """The (piece, score) list of a SentencePiece file and its compiled normalisation table."""
    pieces: list[tuple[str, float]] = []
    table = b""
    try:
        for field, value in _fields(path.read_bytes()):
            if field == 1:
                pieces.append(_piece(value))
            elif field in (2, 3):
                table = max(table, dict(_fields(value)).get(2, b""), key=len)
    except (IndexError, KeyError, UnicodeDecodeError, struct.error) as error:
        raise ModelError(f"{path} is no SentencePiece model: {error!r}") from None
    if not pieces:
        raise ModelError(f"{path} is no SentencePiece model: it has no pieces")
    return pieces, table


def _piece(value: bytes) -> tuple[str, float]:
    """A piece and its score; the shape nearly all of the thousands have is read without a loop."""
    if value[0] == 0x0A and value[1] < 0x80 and len(value) >= value[1] + 7:
        end = 2 + value[1]
        if value[end] == 0x15:
            return value[2:end].decode(), _FLOAT.unpack_from(value, end + 1)[0]
    parts = dict(_fields(value))
    return parts[1].decode(), _FLOAT.unpack(parts[2])[0] if 2 in parts else 0.0


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The (number, bytes) of each field of a protocol buffer; plain numbers are skipped."""
    position, end = 0, len(data)
    while position < end:
        tag, position = _varint(data, position)
        kind = tag & 7
        if kind == 0:
            _, position = _varint(data, position)
            continue
        if kind == 2:
            length, position = _varint(data, position)
        else:
            length = {1: 8, 5: 4}[kind]
        yield tag >> 3, data[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


class PieceTokenizer:
    """Splits texts into the pieces of a SentencePiece unigram model.

    Each character without a piece is one unknown piece of its own, as is the literal text `<unk>`.
    """

    def __init__(self, path: Path) -> None:
        pieces, table = read_model(path)
        self.size = len(pieces)
        self._tokenizer = _build(pieces, table)

    def encode(self, texts: Sequence[str]) -> list[tuple[list[int], tuple[str, ...]]]:
        """The piece numbers and the pieces of each text; both empty for a blank text."""
        clean = [text.encode(errors="replace").decode() for text in texts]
        found = self._tokenizer.encode_batch(clean, add_special_tokens=False)
        return [self._split_unknown(item.ids, item.tokens) for item in found]

    @staticmethod
    def _split_unknown(ids: list[int], pieces: list[str]) -> tuple[list[int], tuple[str, ...]]:
        if UNKNOWN not in ids:
            return ids, tuple(pieces)
        numbers: list[int] = []
        texts: list[str] = []
        for number, piece in zip(ids, pieces, strict=True):
            parts = _UNKNOWN_PARTS.findall(piece) if number == UNKNOWN else [piece]
            numbers += [number] * len(parts)
            texts += parts
        return numbers, tuple(texts)


def _build(pieces: list[tuple[str, float]], table: bytes) -> Tokenizer:
    with explain_missing("a SentencePiece model"):
        from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
    steps: list[Any] = [normalizers.Precompiled(table)] if table else []
    steps += [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()]
    tokenizer = Tokenizer(models.Unigram(pieces, UNKNOWN, False))
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always")
    return tokenizer
