"""The state of a run, stored next to its shards: its settings and the parts that are done.

`_manifest.json` describes the run: inputs, metrics with their signatures, and every setting that
changes a shard. `_done/PART.json` holds the counts of a part and is written after its shard. A part
without it is redone from the beginning, so each row is written exactly once even if workers are
killed. `_bad/PART.jsonl` holds rejected rows, `_lock` keeps other processes out. Names start with
an underscore so that readers of the folder skip them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from tertium.atomic import lock_file
from tertium.corpus import storage
from tertium.corpus.tally import Tally
from tertium.data.tables import missing_to_null
from tertium.errors import DataError, UsageError, short_repr

MANIFEST, DONE, BAD, SUMMARY = "_manifest.json", "_done", "_bad", "_summary.json"
LOCK = "_lock"
MAX_LISTED = 3  # differences listed in an error


class DonePart(NamedTuple):
    """The record of a finished part: size and checksum of its shard, and its counts."""

    size: int
    sha256: str
    tally: Tally


@dataclass(frozen=True)
class RunState:
    """The state files of a run in its output folder."""

    folder: str

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder against other processes; a remote folder is not locked."""
        if storage.is_remote(self.folder):
            yield
            return
        with lock_file(Path(self.folder, LOCK)) as is_ours:
            if not is_ours:
                raise UsageError(
                    f"another process is writing to {self.folder}: wait for it, "
                    "or give another folder"
                )
            yield

    def check_free(self, *, resume: bool) -> None:
        """Refuse a folder that holds other files, or a run that is not to be resumed."""
        has_manifest = self._read(MANIFEST) is not None
        existing = min(self._list_outputs(), default=None)
        if existing is not None and not has_manifest:
            raise UsageError(
                f"{self.folder} is not empty ({existing}) and holds no run of tertium: "
                "give another folder"
            )
        if existing is not None and not resume:
            raise UsageError(
                f"{self.folder} already holds a run: continue it with --resume, "
                "or give another folder"
            )

    def begin(self, manifest: Mapping[str, Any]) -> None:
        """Start a run, or resume the one in the folder.

        An existing run must have the same settings: otherwise nothing is changed and the error
        lists the differences. A run that has not written anything yet is replaced, except in a
        remote folder, where a process may be working on its first part.
        """
        existing = self._read(MANIFEST)
        if existing is None or not (storage.is_remote(self.folder) or self._list_outputs()):
            self._write(MANIFEST, manifest)
            return
        if existing.keys() != manifest.keys() or existing["version"] != manifest["version"]:
            raise UsageError(
                f"{self.folder} holds a run of tertium {existing.get('version')}, which version "
                f"{manifest['version']} cannot continue: use the old version, or give another "
                "folder"
            )
        differences = list(_differences(existing, manifest))
        if differences:
            more = len(differences) - MAX_LISTED
            listed = "; ".join(differences[:MAX_LISTED])
            listed += f"; and {more} more" if more > 0 else ""
            raise UsageError(
                f"{self.folder} holds a run with other settings: {listed}; "
                "use the same settings, or give another folder"
            )

    def find_done(self, suffix: str) -> Iterator[tuple[str, Tally]]:
        """Yield the done parts with their counts; a shard that has changed is redone.

        Local shards are compared by checksum. Remote ones are compared by size: their store keeps
        checksums, and reading them again would cost as much as the run.
        """
        sizes = storage.list_sizes(self.folder)
        names = [name for name in sizes if name.startswith(f"{DONE}/") and name.endswith(".json")]
        for name in names:
            part, record = name[len(DONE) + 1 : -len(".json")], self._read(name)
            if record is None:
                continue
            done = self._parse_done(name, record)
            shard = storage.join(self.folder, part + suffix)
            if sizes.get(part + suffix) == done.size and (
                storage.is_remote(shard) or storage.hash_content(shard) == done.sha256
            ):
                yield part, done.tally

    def finish(self, part: str, tally: Tally, size: int, sha256: str) -> None:
        """Record that a part is done, with the size and checksum of its shard; called last."""
        record = {"bytes": size, "sha256": sha256, **tally.record()}
        self._write(f"{DONE}/{part}.json", record, indent=None)

    def summarize(self, summary: Mapping[str, Any]) -> None:
        """Write the summary of the run, and remove partial files of killed workers."""
        self._write(SUMMARY, summary)
        storage.remove_partial_files(self.folder)

    def _list_outputs(self) -> list[str]:
        return [name for name in storage.list_sizes(self.folder) if name not in (MANIFEST, LOCK)]

    def _read(self, name: str) -> Any:
        content = storage.read_content(storage.join(self.folder, name))
        try:
            value = None if content is None else json.loads(content)
        except ValueError:
            value = None  # a remote file that a killed worker was writing
        if name == MANIFEST and content is not None and not isinstance(value, dict):
            raise DataError(f"{storage.join(self.folder, name)}: damaged; give another folder")
        return value

    def _parse_done(self, name: str, record: Any) -> DonePart:
        try:
            return DonePart(int(record["bytes"]), record["sha256"], Tally.from_record(record))
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            raise DataError(
                f"{storage.join(self.folder, name)}: not a valid record of a finished part; "
                "remove it to redo the part"
            ) from None

    def _write(self, name: str, value: Mapping[str, Any], indent: int | None = 1) -> None:
        text = json.dumps(missing_to_null(value), ensure_ascii=False, indent=indent) + "\n"
        with storage.write_content(storage.join(self.folder, name)) as stream:
            stream.write(text.encode("utf-8"))


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterable[str]:
    for key in after:
        old, new = before.get(key), after[key]
        if not isinstance(new, Mapping) or not isinstance(old, Mapping):
            if old != new:
                yield f"{key} was {_format(old)} and is now {_format(new)}"
            continue
        if old.keys() == new.keys() and [*old] != [*new]:  # decides the order of columns
            yield f"{key} had another order"
        for name in [*old, *(name for name in new if name not in old)]:
            if name not in new:
                yield f"{key}: {name} is missing"
            elif name not in old:
                yield f"{key}: {name} is new"
            elif old[name] != new[name]:
                yield f"{key}: {name} was {_format(old[name])} and is now {_format(new[name])}"


def _format(value: Any) -> str:
    match value:
        case [int(size), int(nanoseconds), str(sha256)] if 0 <= nanoseconds < 1 << 62:
            written = datetime.fromtimestamp(nanoseconds / 1e9, UTC).astimezone()
            checksum = f", sha256 {sha256[:8]}" if sha256 else ""
            return f"{size:,} bytes of {written.isoformat(' ', 'milliseconds')}{checksum}"
    return short_repr(value, 80)
