"""A small Hugging Face hub on the loopback interface, with faults."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STALL_SECONDS = 30.0  # longer than any timeout of a test


@dataclass
class FakeHub:
    """Files by path; `faults` are by path: an HTTP status, "cut", "stall" or "redirect"."""

    files: Mapping[str, bytes]
    faults: dict[str, int | str] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)
    url: str = ""

    @contextmanager
    def serve(self) -> Iterator[FakeHub]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                self.send_response(200)
                self.end_headers()

            def do_GET(self) -> None:
                hub.requests.append(self.path)
                hub.tokens[self.path] = self.headers.get("Authorization", "")
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
        path = handler.path.removeprefix("/elsewhere")
        fault = self.faults.get(path)
        if fault == "redirect" and handler.path == path:
            handler.send_response(302)
            handler.send_header("Location", f"{self.url}/elsewhere{path}")
            handler.end_headers()
        elif isinstance(fault, int) or path not in self.files:
            handler.send_error(fault if isinstance(fault, int) else 404)
        else:
            content = self.files[path]
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(content)))
            handler.end_headers()
            is_whole = fault not in ("cut", "stall")
            handler.wfile.write(content if is_whole else content[: len(content) // 2])
            handler.wfile.flush()
            if fault == "stall":
                time.sleep(STALL_SECONDS)
            handler.close_connection = True
