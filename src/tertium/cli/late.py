"""A parser that learns its options when it is used, so that other commands need not load them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

Late = Callable[[argparse.ArgumentParser, Sequence[str]], None]


class LateParser(argparse.ArgumentParser):
    """Calls `late` once, with the arguments it is given, before it parses or explains itself."""

    late: Late | None = None

    def complete(self, arguments: Sequence[str] = ()) -> None:
        late, self.late = self.late, None
        if late is not None:
            late(self, arguments)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.complete(args or ())
        return super().parse_known_args(args, namespace)

    def format_help(self) -> str:
        self.complete()
        return super().format_help()
