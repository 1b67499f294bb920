"""Links for raters and the manager: random tokens, of which only hashes are stored."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from tertium.people.annotation_store import MANAGER, EventStore

TOKEN_BYTES = 18  # 144 bits
MAX_BAD_TOKENS = 10  # per address and window
WINDOW_SECONDS = 60.0
MAX_ADDRESSES = 10_000


def create_tokens(store: EventStore, persons: Sequence[str]) -> dict[str, str]:
    """Create a token for each person; older tokens of these persons stop working."""
    tokens = {person: secrets.token_urlsafe(TOKEN_BYTES) for person in persons}
    store.replace_links((hash_token(token), person) for person, token in tokens.items())
    return tokens


def hash_token(token: str) -> str:
    """Hash a token. Tokens are long and random, so that a plain hash cannot be guessed."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


class TokenTable:
    """Finds the person of a token, comparing hashes in constant time."""

    def __init__(self, links: Mapping[str, tuple[str, bool]]) -> None:
        self._links = dict(links)

    def find(self, token: str) -> tuple[str, bool] | None:
        """Return the person and whether the token is current; None if it is unknown."""
        digest = hash_token(token)
        result = None
        for stored, entry in self._links.items():
            if hmac.compare_digest(stored, digest):
                result = entry
        return result


class RateLimit:
    """Counts bad tokens per address. Good tokens are never refused: offices share addresses."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._times: dict[str, deque[float]] = {}

    def is_exceeded(self, address: str) -> bool:
        """Record a bad token; return whether the address sent too many."""
        now = self._clock()
        if len(self._times) >= MAX_ADDRESSES:
            self._times.clear()
        times = self._times.setdefault(address, deque(maxlen=MAX_BAD_TOKENS + 1))
        times.append(now)
        return len(times) > MAX_BAD_TOKENS and now - times[0] < WINDOW_SECONDS


def describe_person(person: str) -> str:
    """Name a person in messages."""
    return "manager" if person == MANAGER else person
