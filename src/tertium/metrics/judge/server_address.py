"""Address and key of the server: where requests go, and whether that is safe."""

from __future__ import annotations

import os
from ipaddress import ip_address
from urllib.parse import urlsplit

from tertium.core.errors import UsageError
from tertium.core.runtime import JudgeOptions

API_KEY, BASE_URL = "OPENAI_API_KEY", "OPENAI_BASE_URL"


def server_url(options: JudgeOptions) -> str:
    """Return the base URL of the server; refuse unencrypted connections to other machines."""
    url = read_url(options)
    if not url:
        raise UsageError(
            "judge: no server: give --judge-url URL, such as http://localhost:8080/v1, or set "
            f"{BASE_URL} (in Python: tertium.runtime(judge=JudgeOptions(url=...)))"
        )
    parts = urlsplit(url)
    if parts.scheme == "http" and not options.allow_http and not _is_local(parts.hostname or ""):
        raise UsageError(
            f"judge: {url} is not encrypted and not on this machine: use https://, or give "
            "--allow-http (allow_http=True) if you trust the network"
        )
    return url


def read_url(options: JudgeOptions) -> str:
    """Return the base URL of the server, or an empty text; refuse what is not a URL."""
    url = (options.url or os.environ.get(BASE_URL, "")).strip().rstrip("/")
    if not url:
        return url
    try:
        parts = urlsplit(url)
        has_password = parts.username is not None or parts.password is not None
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port
        _ = (parts.hostname or "").encode("idna")
    except ValueError as error:  # such as a port of 99999
        raise UsageError(f"judge: the URL of the server is not valid: {error}") from None
    if has_password:
        raise UsageError(f"judge: the URL contains a password: set {API_KEY} instead")
    if not is_valid or not url.isprintable() or " " in url:
        raise UsageError(f"judge: {url!r} is not a URL that starts with https:// or http://")
    if parts.query or parts.fragment:
        raise UsageError(f"judge: the URL has a part after ?: expected {url.partition('?')[0]}")
    return url


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def request_headers() -> dict[str, str]:
    """Return the header with the API key, if there is one; the key is never shown."""
    key = os.environ.get(API_KEY, "").strip()
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise UsageError(f"{API_KEY} is not a valid key: it contains blanks or other characters")
    return {"Authorization": f"Bearer {key}"} if key else {}
