"""What a run is and which of its parts are done, kept beside the shards.

`_manifest.json` says what the run is: inputs, metrics with their signatures, and every choice that
changes a shard. `_done/PART.json` holds what was counted in a part and is written after its shard:
a part without it was not done, whatever else lies there, and is done again from the beginning. So
each row is in the output once, whoever was killed and when. `_bad/PART.jsonl` holds what was put
aside, `_lock` keeps other processes out while one is at work. Names begin with _ so that readers of
the folder pass them over.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tertium.atomic import lock_file
from tertium.corpus.places import (
    is_remote,
    join,
    list_sizes,
    read_content,
    remove_remains,
    write_content,
)
from tertium.corpus.tally import Tally
from tertium.data.formats import null_missing
from tertium.errors import DataError, UsageError

MANIFEST, DONE, BAD, SUMMARY = "_manifest.json", "_done", "_bad", "_summary.json"
LOCK = "_lock"
SHOWN = 3  # differences that an error names


@dataclass(frozen=True)
class RunLedger:
    """The notes of a run in its output folder."""

    folder: str

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from the folder meanwhile; behind an address none is kept."""
        if is_remote(self.folder):
            yield
            return
        with lock_file(Path(self.folder, LOCK)) as is_ours:
            if not is_ours:
                raise UsageError(
                    f"another process writes to {self.folder} just now: wait for it, "
                    "or give another folder"
                )
            yield

    def check_free(self, *, resume: bool) -> None:
        """Refuse a folder that holds a run which is not to be resumed, or what no run wrote."""
        is_begun = self._read(MANIFEST) is not None
        other = min(self._list_written(), default=None)
        if other is not None and not is_begun:
            raise UsageError(
                f"{self.folder} is not empty ({other}), and no run of tertium began there: "
                "give another folder"
            )
        if other is not None and not resume:
            raise UsageError(
                f"{self.folder} holds a run already: continue it with --resume, "
                "or give another folder"
            )

    def begin(self, manifest: Mapping[str, Any]) -> None:
        """Begin a run, or go on with the one that is here.

        What is here must be of the same run: else nothing is touched, and an error names what
        differs. Where it has written nothing yet, nothing could mix: it gives way, unless behind an
        address a process may be at work on its first part.
        """
        there = self._read(MANIFEST)
        if there is None or not (is_remote(self.folder) or self._list_written()):
            self._write(MANIFEST, manifest)
            return
        if there.keys() != manifest.keys() or there["version"] != manifest["version"]:
            raise UsageError(
                f"{self.folder} holds a run that tertium {there.get('version')} began, and shards "
                f"of another version ({manifest['version']}) must not mix with its own: go on with "
                "the one that began it, or give another folder"
            )
        differences = list(_differences(there, manifest))
        if differences:
            more = len(differences) - SHOWN
            listed = "; ".join(differences[:SHOWN]) + (f"; and {more} more" if more > 0 else "")
            raise UsageError(
                f"{self.folder} holds another run, and the two must not mix: {listed}; "
                "run it as it was, or give another folder"
            )

    def find_done(self, suffix: str) -> Iterator[tuple[str, Tally]]:
        """The parts that are done, with what was counted in each.

        A part whose shard, PART with this suffix, is gone or has another size is to be done again.
        """
        sizes = list_sizes(self.folder)
        names = [name for name in sizes if name.startswith(f"{DONE}/") and name.endswith(".json")]
        for name in names:
            part, kept = name[len(DONE) + 1 : -len(".json")], self._read(name)
            if kept is None:
                continue
            size, tally = self._parse_done(name, kept)
            if sizes.get(part + suffix) == size:
                yield part, tally

    def read_tally(self, part: str) -> Tally:
        """What was counted in a part that is done."""
        name = f"{DONE}/{part}.json"
        return self._parse_done(name, self._read(name))[1]

    def finish(self, part: str, tally: Tally, size: int) -> None:
        """Note that a part is done, with the bytes of its shard: the last thing that happens."""
        self._write(f"{DONE}/{part}.json", {"bytes": size, **tally.record()}, indent=None)

    def summarize(self, summary: Mapping[str, Any]) -> None:
        """Write what came of the whole, and clear away what killed workers left."""
        self._write(SUMMARY, summary)
        remove_remains(self.folder)

    def _list_written(self) -> list[str]:
        """What lies in the folder beside that a run began."""
        return [name for name in list_sizes(self.folder) if name not in (MANIFEST, LOCK)]

    def _read(self, name: str) -> Any:
        content = read_content(join(self.folder, name))
        try:
            found = None if content is None else json.loads(content)
        except ValueError:
            found = None  # behind an address, what was being written when a worker died
        if name == MANIFEST and content is not None and not isinstance(found, dict):
            raise DataError(f"{join(self.folder, name)}: damaged; give another folder")
        return found

    def _parse_done(self, name: str, kept: Any) -> tuple[int, Tally]:
        """The bytes of a part's shard and what was counted in it."""
        try:
            return int(kept["bytes"]), Tally.from_record(kept)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise DataError(
                f"{join(self.folder, name)}: not what a run notes of a part that is done; "
                "remove it, and the part is done again"
            ) from None

    def _write(self, name: str, value: Mapping[str, Any], indent: int | None = 1) -> None:
        text = json.dumps(null_missing(value), ensure_ascii=False, indent=indent) + "\n"
        with write_content(join(self.folder, name)) as stream:
            stream.write(text.encode("utf-8"))


def _differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterable[str]:
    for key in now:
        old, new = then.get(key), now[key]
        if not isinstance(new, Mapping) or not isinstance(old, Mapping):
            if old != new:
                yield f"{key} was {_show(old)} and is {_show(new)}"
            continue
        if old.keys() == new.keys() and [*old] != [*new]:  # by which columns stand in theirs
            yield f"{key} stood in another order"
        for name in [*old, *(name for name in new if name not in old)]:
            if name not in new:
                yield f"{key}: {name} was there and is not"
            elif name not in old:
                yield f"{key}: {name} is new"
            elif old[name] != new[name]:
                yield f"{key}: {name} was {_show(old[name])} and is {_show(new[name])}"


def _show(value: Any) -> str:
    match value:
        case [int(size), int(nanoseconds)]:  # the state of a file
            written = datetime.fromtimestamp(nanoseconds / 1e9, UTC).astimezone()
            return f"{size:,} bytes of {written.isoformat(' ', 'milliseconds')}"
    return repr(value)
