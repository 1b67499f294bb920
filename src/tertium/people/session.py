"""Run an annotation campaign: open its database, make links, serve until interrupted.

Links contain random tokens, of which only hashes are stored.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import secrets
import socket
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from tertium.core.atomic import PathLike, check_writable, create_private_file, lock_file
from tertium.core.errors import UsageError
from tertium.people.annotation_store import MANAGER, EventStore
from tertium.people.campaign import Campaign
from tertium.people.state import CampaignState

TOKEN_BYTES = 18  # 144 bits
MAX_BAD_TOKENS = 10  # per address and window
WINDOW_SECONDS = 60.0
MAX_ADDRESSES = 10_000
ANY_ADDRESS = ("0.0.0.0", "::")
DATABASE_SUFFIX = ".answers.db"


def default_database(campaign_file: PathLike) -> Path:
    """Return the database next to a campaign file: campaign.json -> campaign.answers.db."""
    return Path(campaign_file).with_suffix(DATABASE_SUFFIX)


class AnnotationSession:
    """An open campaign: its events on disk and the state that they add up to."""

    def __init__(self, campaign: Campaign, database: PathLike) -> None:
        self.campaign = campaign
        self.state = CampaignState(campaign)
        self.store = EventStore(Path(database), campaign.id, self.state.apply)

    def new_tokens(self, *, replace: bool = False) -> Mapping[str, str]:
        """Create tokens for everybody without one; `replace` creates all of them again."""
        owners = {*self.store.links().values()}
        persons = [MANAGER, *self.campaign.raters]
        tokens = {
            p: secrets.token_urlsafe(TOKEN_BYTES) for p in persons if replace or p not in owners
        }
        self.store.replace_links((hash_token(token), person) for person, token in tokens.items())
        return tokens

    def close(self) -> None:
        """Close the database."""
        self.store.close()


@contextmanager
def open_session(campaign: Campaign, database: PathLike) -> Iterator[AnnotationSession]:
    """Open a campaign for one server; another server on the same database is refused.

    The lock lies next to the file that a symbolic link names.
    """
    check_writable(database)
    path = Path(os.path.realpath(database))
    lock = path.with_name(f"{path.name}.lock")
    create_private_file(lock)
    with lock_file(lock) as is_locked:
        if not is_locked:
            raise UsageError(f"{database} is in use by another server: stop that one first")
        with closing(AnnotationSession(campaign, path)) as session:
            yield session


def bind_socket(host: str, port: int) -> socket.socket:
    """Open the socket of the server; port 0 chooses a free one."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # browsers that are faster than the server wait
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {host}, port {port} ({error.strerror}): give another "
            "--listen HOST:PORT (port 0 chooses a free one)"
        ) from None


def is_loopback(host: str) -> bool:
    """Tell whether a host can be reached from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def public_address(host: str) -> str:
    """Return the address for links: if the server listens on all, that of the default network."""
    if host not in ANY_ADDRESS:
        return host
    family = socket.AF_INET if host == "0.0.0.0" else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1" if family == socket.AF_INET else "2001:db8::1", 9))
            return str(probe.getsockname()[0])  # nothing was sent
        except OSError:
            return socket.gethostname()


def make_link(host: str, port: int, person: str, token: str) -> str:
    """Return the address for a person. The token is a fragment: browsers do not send it.

    >>> make_link("127.0.0.1", 8000, "anna", "secret")
    'http://127.0.0.1:8000/#secret'
    """
    name = f"[{host}]" if ":" in host else host
    page = "manager" if person == MANAGER else ""
    return f"http://{name}:{port}/{page}#{quote(token)}"


def hash_token(token: str) -> str:
    """Hash a token. Tokens are long and random, so that a plain hash cannot be guessed."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def find_person(token: str, links: Mapping[str, str]) -> str | None:
    """Return the person of a token; None if it is unknown or was replaced.

    `links` has persons by hashed token. All hashes are compared, in constant time.
    """
    digest = hash_token(token)
    matches = [person for stored, person in links.items() if hmac.compare_digest(stored, digest)]
    return matches[0] if matches else None


class RateLimit:
    """Counts bad tokens per address. Good tokens are never refused: offices share addresses."""

    def __init__(self) -> None:
        self._times: dict[str, deque[float]] = {}

    def is_exceeded(self, address: str) -> bool:
        """Record a bad token; return whether the address sent too many."""
        now = time.monotonic()
        if len(self._times) >= MAX_ADDRESSES:
            self._times.clear()
        times = self._times.setdefault(address, deque(maxlen=MAX_BAD_TOKENS + 1))
        times.append(now)
        return len(times) > MAX_BAD_TOKENS and now - times[0] < WINDOW_SECONDS
