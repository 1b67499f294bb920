"""A SentencePiece unigram model, read from its file and run by `tokenizers`.

The file is a protocol buffer. Its tokens (field 1, each with a text and a score) come first. The
text normalization table is field 2 of the settings in field 3.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tertium.core.errors import ModelError
from tertium.core.extras import explain_missing
from tertium.encoders.tokenizer import TokenizedText

UNKNOWN_ID = 0
SPACE = "\u2581"
TOKEN, SETTINGS, TABLE = 0x0A, 0x1A, 0x12  # first bytes of a token, the settings and the table

_FLOAT = struct.Struct("<f")
_UNKNOWN_PARTS = re.compile("<unk>|.", re.DOTALL)


class SentencePieceTokenizer:
    """Splits texts into tokens of a SentencePiece unigram model; unknown characters are tokens.

    A blank text has no tokens.
    """

    def __init__(self, path: Path) -> None:
        with explain_missing("a SentencePiece model"):
            from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
        vocabulary, table = _read_model(path)
        steps: list[Any] = [
            normalizers.Precompiled(table),
            normalizers.Replace(Regex(" {2,}"), " "),
            normalizers.Strip(),
        ]
        metaspace = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always")
        self._tokenizer = Tokenizer(models.Unigram(vocabulary, UNKNOWN_ID, False))
        self._tokenizer.normalizer = normalizers.Sequence(steps)
        self._tokenizer.pre_tokenizer = metaspace

    def __call__(self, texts: Sequence[str]) -> list[TokenizedText]:
        valid = [text.encode(errors="replace").decode() for text in texts]
        encodings = self._tokenizer.encode_batch(valid, add_special_tokens=False)
        return [_split_unknown(encoding.ids, encoding.tokens) for encoding in encodings]


def _split_unknown(ids: Sequence[int], tokens: Sequence[str]) -> TokenizedText:
    """Split tokens that join several unknown characters."""
    if UNKNOWN_ID not in ids:
        return TokenizedText(tuple(tokens), tuple(ids))
    pairs = [
        (part, token_id)
        for token_id, token in zip(ids, tokens, strict=True)
        for part in (_UNKNOWN_PARTS.findall(token) if token_id == UNKNOWN_ID else [token])
    ]
    return TokenizedText(tuple(part for part, _ in pairs), tuple(number for _, number in pairs))


def _read_model(path: Path) -> tuple[list[tuple[str, float]], bytes]:
    """Read the (token, score) list of a SentencePiece file and its normalization table."""
    data = path.read_bytes()
    vocabulary: list[tuple[str, float]] = []
    position = 0
    try:
        while data[position] == TOKEN:  # 0x0A, size, 0x0A, size of the text, text, 0x15, score
            end = position + 4 + data[position + 3]
            text, score = data[position + 4 : end].decode(), _FLOAT.unpack_from(data, end + 1)[0]
            vocabulary.append((text, score))
            position += 2 + data[position + 1]
        settings = dict(_iter_fields(data[position:]))[SETTINGS]
        return vocabulary, dict(_iter_fields(settings))[TABLE]
    except (IndexError, KeyError, UnicodeDecodeError, struct.error) as error:
        raise ModelError(f"{path} is not a SentencePiece model: {error!r}") from None


def _iter_fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the fields of a message up to the first number, by their first byte."""
    position = 0
    while position < len(data) and data[position] & 7 == 2:
        size = shift = 0
        tag = data[position]
        while True:
            position += 1
            size |= (data[position] & 0x7F) << shift
            shift += 7
            if data[position] < 0x80:
                break
        yield tag, data[position + 1 : position + 1 + size]
        position += 1 + size
