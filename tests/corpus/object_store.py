"""An in-process object store with the part of the S3 protocol that pyarrow uses.

Objects lie in a dictionary; signatures are not checked. It answers to lists, ranges, uploads whole
and in parts, with the client's own retries and checks of content in front of it.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import IO
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

NOTHING: Mapping[str, str] = {}
STAMP = "2026-01-01T00:00:00.000Z"


class ObjectStore(ThreadingHTTPServer):
    """Objects by `bucket/key`, and uploads by their numbers."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.numbers = itertools.count(1)

    def address(self, path: str) -> str:
        options = f"endpoint_override=127.0.0.1:{self.server_port}&scheme=http&region=us-east-1"
        return f"s3://{path}?{options}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ObjectStore

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        if "/" not in self.name.strip("/"):
            self.list_objects() if self.command == "GET" else self.answer(200)
            return
        content = self.server.objects.get(self.name)
        if content is None:
            self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        start, _, stop = (self.headers.get("Range") or "").removeprefix("bytes=").partition("-")
        if not start:
            self.answer(200, content)
            return
        last = min(int(stop or len(content)), len(content) - 1)
        place = f"bytes {start}-{last}/{len(content)}"
        self.answer(206, content[int(start) : last + 1], {"Content-Range": place})

    def list_objects(self) -> None:
        prefix, most = self.query.get("prefix", ""), int(self.query.get("max-keys", 1000))
        names = [name.partition("/")[2] for name in sorted(self.server.objects)]
        chosen = [name for name in names if name.startswith(prefix)][:most]
        found = "".join(
            f"<Contents><Key>{escape(name)}</Key><LastModified>{STAMP}</LastModified>"
            f"<Size>{len(self.server.objects[f'{self.name}/{name}'])}</Size></Contents>"
            for name in chosen
        )
        head = f"<Name>{self.name}</Name><KeyCount>{len(chosen)}</KeyCount>"
        self.answer(200, f"<ListBucketResult>{head}{found}</ListBucketResult>".encode())

    def do_PUT(self) -> None:
        content = self.body()
        if "uploadId" in self.query:
            number = int(self.query["partNumber"])
            self.server.uploads[self.query["uploadId"]][number] = content
        elif "/" in self.name:
            self.server.objects[self.name] = content
        self.answer(200, more={"ETag": f'"{hashlib.md5(content).hexdigest()}"'})

    def do_POST(self) -> None:
        self.body()
        bucket, _, key = self.name.partition("/")
        named = f"<Bucket>{bucket}</Bucket><Key>{escape(key)}</Key>"
        if "uploads" in self.query:
            upload = str(next(self.server.numbers))
            self.server.uploads[upload] = {}
            kind, more = "InitiateMultipartUploadResult", f"<UploadId>{upload}</UploadId>"
        else:
            parts = self.server.uploads.pop(self.query["uploadId"])
            self.server.objects[self.name] = b"".join(parts[n] for n in sorted(parts))
            kind, more = "CompleteMultipartUploadResult", '<ETag>"x"</ETag>'
        self.answer(200, f"<{kind}>{named}{more}</{kind}>".encode())

    def do_DELETE(self) -> None:
        self.server.objects.pop(self.name, None)
        self.answer(204)

    @property
    def name(self) -> str:
        return unquote(urlsplit(self.path).path).lstrip("/")

    @property
    def query(self) -> dict[str, str]:
        parsed = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        return {key: values[0] for key, values in parsed.items()}

    def body(self) -> bytes:
        """The request body, joined from HTTP chunks and S3 chunks."""
        if self.headers.get("Transfer-Encoding") == "chunked":
            raw = join_chunks(self.rfile)
        else:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        inside = "aws-chunked" in (self.headers.get("Content-Encoding") or "")
        return join_chunks(io.BytesIO(raw)) if inside else raw

    def answer(self, code: int, content: bytes = b"", more: Mapping[str, str] = NOTHING) -> None:
        self.send_response(code)
        for name, value in more.items():
            self.send_header(name, value)
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Suppress request logging."""


def join_chunks(stream: IO[bytes]) -> bytes:
    """Join chunks that are prefixed with their sizes, up to the empty chunk."""
    content = b""
    while size := int(stream.readline().partition(b";")[0], 16):
        content += stream.read(size)
        stream.readline()
    while stream.readline().strip():
        pass
    return content


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Run a store while the block is executed."""
    with ObjectStore() as store:
        thread = threading.Thread(target=store.serve_forever, daemon=True)
        thread.start()
        try:
            yield store
        finally:
            store.shutdown()
            thread.join()
