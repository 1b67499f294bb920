"""Answers of judges, in memory and in the cache on disk, stored one by one as they arrive.

The key of an answer is everything that was sent except the API key and the address of the server:
model, messages, pass and parameters. Failures are remembered in memory only, so that a later run
asks again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from tertium.core.cached_files import ANSWERS
from tertium.core.errors import ModelError
from tertium.core.fields import read_dataclass
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


answers_in_memory: dict[str, StoredAnswer] = {}
failures: dict[str, str] = {}  # why a question has no valid answer


def get_answers(keys: Iterable[str]) -> dict[str, StoredAnswer]:
    """Return the answers of keys that are in memory or in the cache."""
    wanted = dict.fromkeys(keys)
    answers = {key: answers_in_memory[key] for key in wanted if key in answers_in_memory}
    missing = [key for key in wanted if key not in answers]
    if missing and current_runtime().cache:
        for key, row in open_answers().read(ANSWERS.name, missing).items():
            try:
                answers[key] = read_dataclass(StoredAnswer, json.loads(row), "cached answer")
            except (ValueError, ModelError) as error:
                logger.info("a cached answer is damaged (%s): it is requested again", error)
            else:
                _remember(key, answers[key])
    return answers


def put_answer(key: str, answer: StoredAnswer) -> None:
    """Store an answer in memory and, unless the cache is off, on disk."""
    _remember(key, answer)
    failures.pop(key, None)
    row = json.dumps(asdict(answer), ensure_ascii=False).encode()
    if current_runtime().cache:
        open_answers().write(ANSWERS.name, {key: row})


def open_answers() -> Store:
    """Return the cache on disk, which warns if it cannot be used."""
    return open_store(ANSWERS.path(str(FORMAT_VERSION)), MAX_STORED_BYTES)


def _remember(key: str, answer: StoredAnswer) -> None:
    answers_in_memory[key] = answer
    if len(answers_in_memory) > MAX_ANSWERS_IN_MEMORY:
        del answers_in_memory[next(iter(answers_in_memory))]
