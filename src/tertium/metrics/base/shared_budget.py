"""One budget for several processes: the parent keeps it, and its workers borrow over a connection.

A worker borrows for each request and returns the rest afterwards. If it is killed, its loans count
as spent.
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any

from tertium.metrics.base.judge_run import Budget, BudgetError

BudgetAddress = tuple[str, int, str]  # host, port and a secret


class _BudgetServer(ThreadingTCPServer):
    """Accepts workers that know the secret."""

    daemon_threads = True
    budget: Budget
    secret: str


class _Lender(StreamRequestHandler):
    """Lends to one worker until it ends."""

    server: _BudgetServer

    def handle(self) -> None:
        loans: set[int] = set()
        with suppress(OSError):  # the worker was killed
            for line in self.rfile:
                secret, number, amount = json.loads(line)
                if secret != self.server.secret:
                    break
                reply: int | str | None = None
                if number is not None:
                    self.server.budget.settle(number, amount)
                    loans.remove(number)
                else:
                    try:
                        reply = self.server.budget.borrow(amount)
                    except BudgetError as error:
                        reply = str(error)
                if isinstance(reply, int):
                    loans.add(reply)
                self.wfile.write(json.dumps(reply).encode() + b"\n")
        for number in loans:
            self.server.budget.settle(number)


@contextmanager
def share_budget(budget: Budget, host: str = "127.0.0.1") -> Iterator[BudgetAddress]:
    """Lend a budget to other processes inside the block; yield the address for them."""
    with _BudgetServer((host, 0), _Lender) as server:
        server.budget, server.secret = budget, secrets.token_hex()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield host, server.server_address[1], server.secret
        finally:
            server.shutdown()


class RemoteBudget:
    """The budget of another process."""

    def __init__(self, address: BudgetAddress) -> None:
        host, port, self._secret = address
        self._stream = socket.create_connection((host, port)).makefile("rw")

    def borrow(self, amount: float) -> int | None:
        """Return the number of a loan, or None while requests in progress may free enough."""
        reply: int | str | None = self._send(None, amount)
        if isinstance(reply, str):
            raise BudgetError(reply)
        return reply

    def settle(self, number: int, cost: float | None = None) -> None:
        """End a loan; if the cost is unknown, all of the loan is spent."""
        self._send(number, cost)

    def _send(self, number: int | None, amount: float | None) -> Any:
        print(json.dumps([self._secret, number, amount]), file=self._stream, flush=True)
        return json.loads(self._stream.readline())
