"""Download files of a model from the Hugging Face hub, at a fixed revision and without retries.

Nothing here checks hashes: whoever calls compares the files with the model card. `HF_ENDPOINT` is
the address of another hub, and `HF_HUB_OFFLINE` disables the hub.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
    with suppress(RefusedRequestError), _open("", method="HEAD"):
        pass  # a mirror of the hub may have no start page, but it answers


def download_file(model: str, revision: str, name: str, target: Path, *, max_bytes: int) -> None:
    """Download one file of a model; raise `HubError` if the hub does not send all of it."""
    path = f"{model}/resolve/{revision}/{quote(name)}"
    with (
        _open(path) as response,
        open_atomic(target, make_folder=True, durable=False) as sink,
        progress_task(f"downloading {name}", total=response.length) as advance,
    ):
        expected, size = response.length, 0
        while block := _read_block(response):
            size += len(block)
            if size > max_bytes:
                raise HubError("a file is far larger than expected")
            sink.write(block)
            advance(len(block))
        if expected is not None and size != expected:
            raise HubError(f"the connection ended after {size} of {expected} bytes")


def _read_block(response: HTTPResponse) -> bytes:
    with _explain():
        return response.read(COPY_BYTES)


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
