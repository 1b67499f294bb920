"""Download files of a model from the Hugging Face hub, at a fixed revision and without retries.

Nothing here checks hashes: whoever calls compares the files with the model card. `HF_ENDPOINT` is
the address of another hub, and `HF_HUB_OFFLINE` disables the hub.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

from tertium.core.atomic import open_atomic
from tertium.core.runtime import progress_task
from tertium.version import __version__

DEFAULT_ENDPOINT = "https://huggingface.co"
TIMEOUT = 5.0  # seconds to wait for a connection, and for each block of a file
COPY_BYTES = 1 << 20


class HubError(Exception):
    """The hub cannot be reached or does not have a file; the text is the reason."""


class RefusedRequestError(HubError):
    """The hub answers, but does not send the file."""


def is_offline() -> bool:
    """Return whether the user has disabled the hub, as the Hugging Face libraries read it."""
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    return any(os.environ.get(name, "").upper() in ("1", "ON", "YES", "TRUE") for name in names)


def check_hub() -> None:
    """Raise `HubError` if the hub does not answer within a few seconds."""
    problems: list[HubError] = []

    def request() -> None:
        try:
            with _open("", method="HEAD"):
                pass
        except RefusedRequestError:
            pass  # it answers: a mirror of the hub may have no start page
        except HubError as error:
            problems.append(error)

    # Looking up a host name cannot be interrupted and may take longer than any timeout.
    thread = threading.Thread(target=request, daemon=True)
    thread.start()
    thread.join(2 * TIMEOUT)
    if thread.is_alive():
        raise HubError(f"no answer within {2 * TIMEOUT:.0f} s")
    if problems:
        raise problems[0]


def download_file(model: str, revision: str, name: str, target: Path, *, max_bytes: int) -> None:
    """Download one file of a model; raise `HubError` if the hub does not send all of it."""
    path = f"{model}/resolve/{revision}/{quote(name)}"
    with (
        _open(path) as response,
        open_atomic(target, make_folder=True, durable=False) as sink,
        progress_task(f"downloading {name}", total=response.length) as advance,
    ):
        for block in _read_blocks(response, max_bytes):
            sink.write(block)
            advance(len(block))


def _read_blocks(response: HTTPResponse, max_bytes: int) -> Iterator[bytes]:
    expected, size = response.length, 0
    while True:
        with _explain():
            block = response.read(COPY_BYTES)
        if not block:
            break
        size += len(block)
        if size > max_bytes:
            raise HubError("a file is far larger than expected")
        yield block
    if expected is not None and size != expected:
        raise HubError(f"the connection ended after {size} of {expected} bytes")


@contextmanager
def _open(path: str, *, method: str = "GET") -> Iterator[HTTPResponse]:
    endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or DEFAULT_ENDPOINT
    if not endpoint.startswith(("https://", "http://")):
        raise HubError(f"HF_ENDPOINT={endpoint}: expected an address that starts with https://")
    headers = {"User-Agent": f"tertium/{__version__}"}
    with _explain():
        request = Request(f"{endpoint}/{path}", headers=headers, method=method)
        response: HTTPResponse = urlopen(request, timeout=TIMEOUT)
    with response:
        yield response


@contextmanager
def _explain() -> Iterator[None]:
    """Turn the errors of a request into a `HubError` with a reason of one line."""
    try:
        yield
    except HTTPError as error:
        raise RefusedRequestError(f"HTTP status {error.code}") from None
    except (OSError, HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        text = getattr(reason, "strerror", None) or str(reason) or repr(reason)
        is_late = isinstance(reason, TimeoutError)
        raise HubError("no answer" if is_late else text.splitlines()[0]) from None
