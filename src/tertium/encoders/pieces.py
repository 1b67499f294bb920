"""Text to pieces: what the model's tokenizer makes of a text, without its special tokens.

Special tokens ([CLS], </s> ...) are put around a text only for the forward pass, so that truncation
and windows are decided here and are the same for every model; so is which texts share a pass.
"""

from __future__ import annotations

import copy
import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tertium.arrays import IntArray
from tertium.errors import ModelError
from tertium.extras import require

MOST_SPECIALS = 4  # tokens that a model puts around and between texts, at most
PLAIN_CLASS = "PreTrainedTokenizerFast"  # has nothing to add to its file
WORD_PIECES = ("BertTokenizer", "BertTokenizerFast", "MPNetTokenizer", "MPNetTokenizerFast")
UNKNOWN_PIECES = frozenset({"[UNK]", "<unk>"})
_PLAIN_WORD = re.compile(r"(?<!\w)[A-Za-z0-9]{1,99}(?!\w)")  # WordPiece reads words up to 100

Places = tuple[tuple[int, int], ...]  # where the pieces of a text begin and end


@dataclass(frozen=True, slots=True)
class Pieces:
    """A text's pieces, as text and as the model's numbers, without special tokens."""

    pieces: tuple[str, ...]
    ids: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def first(self, count: int) -> Pieces:
        """The first pieces, at most so many."""
        return self if len(self) <= count else Pieces(self.pieces[:count], self.ids[:count])


class Tokenizer:
    """A model's own tokenizer, with its truncation and padding switched off.

    The pieces of `opening`, a text that every text begins with for the model, are put before it as
    special tokens are.
    """

    def __init__(self, folder: Path, *, lower: bool = False, opening: str = "") -> None:
        backend = _load(folder)
        backend.no_truncation()
        backend.no_padding()
        self._backend = backend
        self._lower = lower
        self._names: dict[int, str] = {}
        before, self.suffix = _specials(backend, folder)
        self.prefix = before + _opening(backend, opening, folder)

    @property
    def specials(self) -> int:
        """How many special tokens are put around a text."""
        return len(self.prefix) + len(self.suffix)

    def __call__(self, texts: Sequence[str]) -> list[Pieces]:
        return [self._pieces(ids) for ids in self.number(texts)]

    def number(self, texts: Sequence[str]) -> list[list[int]]:
        """The model's numbers of the pieces of texts."""
        plain = [text.lower() for text in texts] if self._lower else list(texts)
        encodings = self._backend.encode_batch_fast(plain, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def places(self, texts: Sequence[str]) -> list[Places]:
        """Where each text's pieces stand in it, in code points; some include a blank before."""
        if self._lower:
            raise ValueError("a text in lower case may have other code points than its original")
        encodings = self._backend.encode_batch(list(texts), add_special_tokens=False)
        return [tuple(encoding.offsets) for encoding in encodings]

    def _pieces(self, ids: Sequence[int]) -> Pieces:
        for number in ids:
            if number not in self._names:  # a vocabulary may have 250,000; few occur
                self._names[number] = self._backend.id_to_token(number)
        return Pieces(tuple(self._names[number] for number in ids), tuple(ids))


def surely_fits(text: str, max_length: int) -> bool:
    """Whether a text can be known, without tokenizing it, to have at most max_length pieces.

    Every piece stands for at least one byte of the decomposed text, but for a marker of the
    beginning and the special tokens.

    >>> surely_fits("a short text", 512), surely_fits("a " * 300, 512)
    (True, False)
    """
    room = max_length - MOST_SPECIALS - 1
    if len(text) > room:
        return False
    if text.isascii():
        return True
    return len(unicodedata.normalize("NFKD", text).encode(errors="replace")) <= room


def surely_known(text: str) -> bool:
    """Whether a text can be known, without tokenizing it, to have a piece that is not unknown, or
    to be blank: vocabularies have all Latin letters and digits, and words of some length.

    >>> surely_known("a cat"), surely_known("x" * 5_000), surely_known(" ")
    (True, False, True)
    """
    return not text.strip() or _PLAIN_WORD.search(text) is not None


def count_opaque(texts: Sequence[str], cut: Callable[[list[str]], list[Pieces]]) -> int:
    """How many texts are not blank and yet have no known piece, as `cut` makes pieces of them."""
    doubtful = [text for text in texts if not surely_known(text)]
    return sum({*text.pieces} <= UNKNOWN_PIECES for text in cut(doubtful))


class Window(NamedTuple):
    """Pieces start:stop of a text, of which the vectors of first:last are kept."""

    start: int
    stop: int
    first: int
    last: int


def windows(length: int, room: int) -> list[Window]:
    """Overlapping windows over a long text, or one window where it fits.

    Neighbors overlap by half a window; each piece keeps the vector of the window in which it has
    the most context on its poorer side.

    >>> [tuple(window) for window in windows(10, 4)]
    [(0, 4, 0, 3), (2, 6, 3, 5), (4, 8, 5, 7), (6, 10, 7, 10)]
    """
    if length <= room:
        return [Window(0, length, 0, length)]
    stride = max(1, room // 2)
    starts = [*range(0, length - room, stride), length - room]
    result = []
    for number, start in enumerate(starts):
        stop = start + room
        first = 0 if number == 0 else (start + starts[number - 1] + room) // 2
        final = number == len(starts) - 1
        last = length if final else (starts[number + 1] + stop) // 2
        result.append(Window(start, stop, first, last))
    return result


def plan_batches(
    lengths: Sequence[int] | IntArray, *, budget: int, overhead: int, limit: int | None = None
) -> list[IntArray]:
    """Partition items into batches, longest first.

    `budget` bounds the padded tokens of a batch (a longer item goes alone), `limit` its items;
    `overhead` is what starting a batch costs, in tokens. From the longest text down, a shorter
    length joins the current batch where the padding it brings costs less than starting a new one
    (an overhead of 0 keeps lengths apart). On a CPU batches change no vector (`apart`), on a GPU by
    no more than floating-point noise.

    >>> [batch.tolist() for batch in plan_batches([3, 9, 3, 8], budget=18, overhead=4)]
    [[1, 3], [0, 2]]
    >>> [batch.tolist() for batch in plan_batches([3, 9, 3, 8], budget=18, overhead=0)]
    [[1], [3], [0, 2]]
    """
    sizes = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-sizes, kind="stable")
    runs = np.split(order, np.flatnonzero(np.diff(sizes[order])) + 1) if len(order) else []
    batches: list[list[int]] = []
    current: list[int] = []
    longest = 0
    for run in runs:
        length, start = int(sizes[run[0]]), 0
        if current:
            room = _room(longest, budget, limit) - len(current)
            joining = min(room, len(run))
            if joining > 0 and joining * (longest - length) <= overhead:
                current += run[:joining].tolist()
                start = joining
        for item in run[start:].tolist():
            if not current or longest != length or len(current) >= _room(length, budget, limit):
                current, longest = [], length
                batches.append(current)
            current.append(item)
    return [np.array(batch, dtype=np.int64) for batch in batches]


def _room(longest: int, budget: int, limit: int | None) -> int:
    """How many items of this length fit into one batch, at least one."""
    room = max(1, budget // max(1, longest))
    return room if limit is None else min(room, limit)


def _load(folder: Path) -> Any:
    """The fast tokenizer of a folder; transformers is asked where its file does not say all."""
    file, told = folder / "tokenizer.json", _read_told(folder)
    if told.get("tokenizer_class") in (PLAIN_CLASS, *WORD_PIECES) and file.is_file():
        from tokenizers import Tokenizer as Backend

        try:
            backend = Backend.from_file(str(file))
        except Exception as error:  # its parser has no type of error of its own
            raise _refusal(folder, error) from None
        if told["tokenizer_class"] == PLAIN_CLASS or _says_the_same(backend.normalizer, told):
            return backend
    return _load_by_class(folder)


def _says_the_same(normalizer: Any, told: Mapping[str, Any]) -> bool:
    """Whether a WordPiece tokenizer's file reads texts as its settings tell its class to."""
    wanted = {
        "clean_text": True,
        "lowercase": told.get("do_lower_case", True),
        "strip_accents": told.get("strip_accents"),
        "handle_chinese_chars": told.get("tokenize_chinese_chars", True),
    }
    return all(getattr(normalizer, name, "") == value for name, value in wanted.items())


def _load_by_class(folder: Path) -> Any:
    require("transformers", purpose=f"the tokenizer of {folder}")
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(
            folder, use_fast=True, local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # the parser of tokenizer.json has no type of its own
        raise _refusal(folder, error) from None
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ModelError(f"{folder} has no fast tokenizer (tokenizer.json): convert it first")
    return copy.deepcopy(backend)


def _refusal(folder: Path, error: Exception) -> ModelError:
    said = str(error).strip().splitlines() or [type(error).__name__]
    return ModelError(f"the tokenizer of {folder} cannot be loaded: {said[0]}")


def _read_told(folder: Path) -> dict[str, Any]:
    try:
        settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return settings if isinstance(settings, dict) else {}


def _opening(backend: Any, opening: str, folder: Path) -> tuple[int, ...]:
    """The pieces of what every text begins with; they must not depend on the text behind."""
    if not opening:
        return ()
    first, text, both = (
        backend.encode(text, add_special_tokens=False).ids for text in (opening, "a", opening + "a")
    )
    if both != first + text:
        raise ModelError(f"the tokenizer of {folder} joins {opening!r} with the text behind it")
    return tuple(first)


def _specials(backend: Any, folder: Path) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The special tokens the tokenizer puts before and after a text."""
    plain = backend.encode("a", add_special_tokens=False).ids
    full = backend.encode("a", add_special_tokens=True).ids
    for start in range(len(full) - len(plain) + 1):
        if full[start : start + len(plain)] == plain:
            return tuple(full[:start]), tuple(full[start + len(plain) :])
    raise ModelError(f"the tokenizer of {folder} changes a text when it adds special tokens")
