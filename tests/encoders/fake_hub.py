"""A small Hugging Face hub on the loopback interface, with faults."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REVISION = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class FakeHub:
    """Files by path; `faults` are by path: an HTTP status or "cut"."""

    files: Mapping[str, bytes]
    faults: dict[str, int | str] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    url: str = ""

    @contextmanager
    def serve(self) -> Iterator[FakeHub]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                hub.answer(self)

            def do_GET(self) -> None:
                hub.requests.append(self.path)
                hub.answer(self)

            def log_message(self, *_: object) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads, server.block_on_close = True, False
        self.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path
        self.tokens.add(handler.headers.get("Authorization", ""))
        fault = self.faults.get(path)
        if path.startswith("/api/"):
            entries = [
                {"type": "file", "path": n.split("/", 5)[-1], "size": len(c), "oid": str(len(c))}
                for n, c in self.files.items()
            ]
            content = json.dumps(entries).encode()
        elif isinstance(fault, int) or path not in self.files:
            handler.send_error(fault if isinstance(fault, int) else 404)
            return
        else:
            content = self.files[path]
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        handler.send_header("X-Repo-Commit", REVISION)
        handler.end_headers()
        if handler.command == "GET":
            handler.wfile.write(content if fault != "cut" else content[: len(content) // 2])
            handler.close_connection = True
