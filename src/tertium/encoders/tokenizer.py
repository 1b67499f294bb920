"""Tokenize texts with a model's own tokenizer, without its special tokens.

Special tokens ([CLS], </s> ...) are added only for the forward pass. So truncation and windows work
the same way for every model.
"""

from __future__ import annotations

import copy
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tertium.core.errors import ModelError
from tertium.core.extras import require_modules
from tertium.encoders.model_settings import read_optional_json
from tertium.encoders.weight_files import explain_loading

MAX_SPECIAL_TOKENS = 4  # that a model adds around and between texts
GENERIC_CLASS = "PreTrainedTokenizerFast"  # adds nothing to tokenizer.json
WORDPIECE_CLASSES = ("BertTokenizer", "BertTokenizerFast", "MPNetTokenizer", "MPNetTokenizerFast")
UNKNOWN_TOKENS = frozenset({"[UNK]", "<unk>"})
_PLAIN_WORD = re.compile(r"(?<!\w)[A-Za-z0-9]{1,99}(?!\w)")  # WordPiece rejects longer words

TokenOffsets = tuple[tuple[int, int], ...]  # start and end of each token of a text


@dataclass(frozen=True, slots=True)
class TokenizedText:
    """A text's tokens and their ids, without special tokens."""

    tokens: tuple[str, ...]
    ids: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def truncate(self, count: int) -> TokenizedText:
        """Return the first `count` tokens."""
        return self if len(self) <= count else TokenizedText(self.tokens[:count], self.ids[:count])


class Tokenizer:
    """A model's own tokenizer, without truncation and padding.

    `prompt` is a text that the model expects before every text; its tokens are treated as special
    tokens. `prefix_ids` and `suffix_ids` are the special tokens around a text.
    """

    def __init__(self, folder: Path, *, prompt: str = "") -> None:
        backend = _load_backend(folder)
        backend.no_truncation()
        backend.no_padding()
        self._backend = backend
        self._names: dict[int, str] = {}
        before, self.suffix_ids = _find_special_tokens(backend, folder)
        self.prefix_ids = before + _encode_prompt(backend, prompt, folder)

    @property
    def largest_id(self) -> int:
        """The largest id in the vocabulary, special tokens included."""
        return max(self._backend.get_vocab(with_added_tokens=True).values(), default=-1)

    @property
    def special_count(self) -> int:
        """The number of special tokens around a text."""
        return len(self.prefix_ids) + len(self.suffix_ids)

    def __call__(self, texts: Sequence[str]) -> list[TokenizedText]:
        return [self._name_tokens(ids) for ids in self.encode_ids(texts)]

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        encodings = self._backend.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def token_offsets(self, texts: Sequence[str]) -> list[TokenOffsets]:
        """Return the code points each token spans; a token may include the space before it."""
        encodings = self._backend.encode_batch(list(texts), add_special_tokens=False)
        return [tuple(encoding.offsets) for encoding in encodings]

    def _name_tokens(self, ids: Sequence[int]) -> TokenizedText:
        for token_id in ids:
            if token_id not in self._names:  # filled lazily: a vocabulary may have 250,000 entries
                self._names[token_id] = self._backend.id_to_token(token_id)
        return TokenizedText(tuple(self._names[token_id] for token_id in ids), tuple(ids))


def certainly_fits(text: str, max_length: int) -> bool:
    """Return True if a text has at most `max_length` tokens, judged without tokenizing it.

    Each token covers at least one byte of the decomposed text, except special tokens and a marker
    for the start of a text. False means that the text may or may not fit.

    >>> certainly_fits("a short text", 512), certainly_fits("a " * 300, 512)
    (True, False)
    """
    limit = max_length - MAX_SPECIAL_TOKENS - 1
    if len(text) > limit:
        return False
    if text.isascii():
        return True
    return len(unicodedata.normalize("NFKD", text).encode(errors="replace")) <= limit


def find_longer(
    texts: Sequence[str], limit: int, tokenize: Callable[[list[str]], list[TokenizedText]]
) -> set[str]:
    """Return the texts with more tokens than a limit."""
    candidates = [text for text in texts if not certainly_fits(text, limit)]
    tokenized = zip(candidates, tokenize(candidates), strict=True)
    return {text for text, pieces in tokenized if len(pieces) > limit}


def certainly_has_known_token(text: str) -> bool:
    """Return True if a text is blank or has a known token, judged without tokenizing it.

    All vocabularies contain the Latin letters and digits, but very long words become unknown.

    >>> [certainly_has_known_token(text) for text in ("a cat", "x" * 5_000, " ")]
    [True, False, True]
    """
    return not text.strip() or _PLAIN_WORD.search(text) is not None


def find_out_of_vocabulary(
    texts: Sequence[str], tokenize: Callable[[list[str]], list[TokenizedText]]
) -> set[str]:
    """Return the texts that are not blank but have no known token."""
    candidates = [text for text in texts if not certainly_has_known_token(text)]
    tokenized = zip(candidates, tokenize(candidates), strict=True)
    return {text for text, pieces in tokenized if {*pieces.tokens} <= UNKNOWN_TOKENS}


def _load_backend(folder: Path) -> Any:
    """Load the fast tokenizer of a folder, with transformers only if tokenizer.json needs it."""
    file = folder / "tokenizer.json"
    settings = read_optional_json(folder / "tokenizer_config.json")
    if settings.get("tokenizer_class") in (GENERIC_CLASS, *WORDPIECE_CLASSES) and file.is_file():
        from tokenizers import Tokenizer as Backend

        with explain_loading(f"the tokenizer of {folder}"):
            backend = Backend.from_file(str(file))
        is_generic = settings["tokenizer_class"] == GENERIC_CLASS
        if is_generic or _matches_settings(backend.normalizer, settings):
            return backend
    return _load_with_transformers(folder)


def _matches_settings(normalizer: Any, settings: Mapping[str, Any]) -> bool:
    """Return whether a WordPiece normalizer does what the tokenizer settings ask for."""
    expected = {
        "clean_text": True,
        "lowercase": settings.get("do_lower_case", True),
        "strip_accents": settings.get("strip_accents"),
        "handle_chinese_chars": settings.get("tokenize_chinese_chars", True),
    }
    return all(getattr(normalizer, name, "") == value for name, value in expected.items())


def _load_with_transformers(folder: Path) -> Any:
    purpose = f"the tokenizer of {folder}"
    require_modules("transformers", purpose=purpose)
    from transformers import AutoTokenizer

    with explain_loading(purpose):
        tokenizer = AutoTokenizer.from_pretrained(
            folder, use_fast=True, local_files_only=True, trust_remote_code=False
        )
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ModelError(f"{folder} has no fast tokenizer (tokenizer.json): convert it first")
    return copy.deepcopy(backend)


def _encode_prompt(backend: Any, prompt: str, folder: Path) -> tuple[int, ...]:
    """Return the token ids of the prompt, which must not depend on the text after it."""
    if not prompt:
        return ()
    prompt_ids, text_ids, joint_ids = (
        backend.encode(text, add_special_tokens=False).ids for text in (prompt, "a", prompt + "a")
    )
    if joint_ids != prompt_ids + text_ids:
        raise ModelError(f"the tokenizer of {folder} merges {prompt!r} with the text after it")
    return tuple(prompt_ids)


def _find_special_tokens(backend: Any, folder: Path) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the special tokens that the tokenizer adds before and after a text."""
    plain = backend.encode("a", add_special_tokens=False).ids
    full = backend.encode("a", add_special_tokens=True).ids
    for start in range(len(full) - len(plain) + 1):
        if full[start : start + len(plain)] == plain:
            return tuple(full[:start]), tuple(full[start + len(plain) :])
    raise ModelError(f"the tokenizer of {folder} changes a text when it adds special tokens")
