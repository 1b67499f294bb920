"""Run an annotation campaign: open its database, make links, serve until interrupted."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from tertium.core.atomic import PathLike, check_writable, create_private_file, lock_file
from tertium.core.errors import UsageError
from tertium.people.access import create_tokens
from tertium.people.annotation_store import MANAGER, EventStore
from tertium.people.campaign import Campaign
from tertium.people.state import CampaignState

SHUTDOWN_SECONDS = 3
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
        persons = [MANAGER, *self.campaign.raters]
        owners = {person for person, is_current in self.store.links().values() if is_current}
        return create_tokens(self.store, [p for p in persons if replace or p not in owners])

    def serve(self, listener: socket.socket) -> None:
        """Answer requests on a bound socket until the process is interrupted."""
        import uvicorn

        from tertium.people.server import AnnotationServer

        app = AnnotationServer(self.campaign, self.store, self.state).app
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
        with suppress(KeyboardInterrupt):  # uvicorn raises it again after an orderly end
            uvicorn.Server(config).run(sockets=[listener])

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
        session = AnnotationSession(campaign, path)
        try:
            yield session
        finally:
            session.close()


def bind_socket(host: str, port: int) -> socket.socket:
    """Open the socket of the server; port 0 chooses a free one."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(1024)  # browsers that are faster than the server wait
    except OSError as error:
        raise UsageError(
            f"cannot listen on {host}, port {port} ({error.strerror}): give another "
            "--listen HOST:PORT (port 0 chooses a free one)"
        ) from None
    return listener


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
