"""Answers of judges, in memory and in the cache on disk, stored one by one as they arrive.

The key of an answer is everything that was sent except the API key and the address of the server:
model, messages, pass and parameters. Failures are remembered in memory only, so that a later run
asks again.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache

from tertium.core.cached_files import ANSWERS
from tertium.core.runtime import current_runtime
from tertium.core.store import Store, open_store

FORMAT_VERSION = 2
MAX_STORED_BYTES = 16 << 30
MAX_ANSWERS_IN_MEMORY = 200_000

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A valid answer: its text, the model that the server named, and tokens of all attempts."""

    content: str
    model: str
    prompt_tokens: int
    completion_tokens: int


_answers: OrderedDict[str, StoredAnswer] = OrderedDict()
_not_on_disk: set[str] = set()  # answers that arrived while the cache was off
_failures: dict[str, str] = {}


def get_answers(keys: Iterable[str]) -> dict[str, StoredAnswer]:
    """Return the answers of keys that are in memory or in the cache."""
    wanted_keys = list(dict.fromkeys(keys))
    stored = {key: _answers[key] for key in wanted_keys if key in _answers}
    if not current_runtime().cache:
        return stored
    for key in _not_on_disk & {*stored}:
        put_answer(key, stored[key])
    missing = [key for key in wanted_keys if key not in stored]
    for key, row in (_store().read(ANSWERS.name, missing) if missing else {}).items():
        answer = _decode(row)
        if answer is not None:
            stored[key] = answer
            _remember(key, answer)
    return stored


def put_answer(key: str, answer: StoredAnswer) -> None:
    """Store an answer in memory and, unless the cache is off, on disk."""
    _remember(key, answer)
    _failures.pop(key, None)
    if not current_runtime().cache:
        _not_on_disk.add(key)
        return
    if _store().write(ANSWERS.name, {key: json.dumps(asdict(answer), ensure_ascii=False).encode()}):
        _not_on_disk.discard(key)
    else:
        _not_on_disk.add(key)
        _warn_not_cached(str(_store().path))


def put_failure(key: str, kind: str) -> None:
    """Remember that a question has no valid answer, and why."""
    _failures[key] = kind


def get_failures(keys: Iterable[str]) -> Mapping[str, str]:
    """Return the kinds of failure of the keys that have one."""
    return {key: _failures[key] for key in keys if key in _failures}


def clear_memory() -> None:
    """Forget answers and failures in memory; the cache on disk is unchanged."""
    _answers.clear()
    _not_on_disk.clear()
    _failures.clear()


def _remember(key: str, answer: StoredAnswer) -> None:
    _answers[key] = answer
    _answers.move_to_end(key)
    if len(_answers) > MAX_ANSWERS_IN_MEMORY:
        oldest, _ = _answers.popitem(last=False)
        _not_on_disk.discard(oldest)


@lru_cache(maxsize=4)
def _warn_not_cached(path: str) -> None:
    """Warn once that answers cannot be written."""
    logger.warning("warning: %s cannot be written: another run requests the answers again", path)


def _store() -> Store:
    return open_store(ANSWERS.path(str(FORMAT_VERSION)), MAX_STORED_BYTES, log_level=logging.INFO)


def _decode(row: bytes) -> StoredAnswer | None:
    """Decode a stored answer; a damaged one counts as missing."""
    try:
        return StoredAnswer(**json.loads(row))
    except (ValueError, TypeError) as error:
        logger.info("a cached answer is damaged (%s): it is requested again", error)
        return None
