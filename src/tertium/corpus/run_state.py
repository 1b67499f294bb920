"""The state of a run, stored next to its shards: its settings and the parts that are done.

`_manifest.json` describes the run: inputs, metrics with their signatures, and every setting that
changes a shard. `_done/PART.json` holds the counts of a part and is written after its shard. A part
without it is redone from the beginning, so each row is written exactly once even if workers are
killed. `_bad/PART.jsonl` holds rejected rows, `_lock` keeps other processes out. Names start with
an underscore so that readers of the folder skip them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tertium.core.atomic import PARTIAL_PATTERN, lock_file
from tertium.core.errors import ModelError, UsageError, short_repr
from tertium.core.fields import read_dataclass
from tertium.corpus.corpus_paths import CorpusPath
from tertium.corpus.summary import Tally
from tertium.data.record_files import to_json

MANIFEST, DONE, SUMMARY = "_manifest.json", "_done", "_summary.json"
LOCK = "_lock"
MAX_LISTED = 3  # differences listed in an error


@dataclass
class DonePart:
    """The record of a finished part: size and checksum of its shard, and its counts."""

    shard: str
    tally: Tally


@dataclass(frozen=True)
class RunState:
    """The state files of a run in its output folder."""

    folder: CorpusPath

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder against other processes; a remote folder is not locked."""
        if not self.folder.is_local:
            yield
            return
        with lock_file(Path(self.folder.path, LOCK)) as is_ours:
            if not is_ours:
                raise UsageError(
                    f"another process is writing to {self.folder}: wait for it, "
                    "or give another folder"
                )
            yield

    def check_free(self, *, resume: bool) -> None:
        """Refuse a folder that holds other files, or a run that is not to be resumed."""
        if self.folder.state.is_file:
            raise UsageError(f"{self.folder} is a file; expected a folder for the shards")
        outputs = self._list_outputs()
        if outputs and not self._read(MANIFEST):
            raise UsageError(
                f"{self.folder} is not empty ({outputs[0]}) and holds no run of tertium: "
                "give another folder"
            )
        if outputs and not resume:
            raise UsageError(
                f"{self.folder} already holds a run: continue it with --resume, "
                "or give another folder"
            )

    def begin(self, manifest: Mapping[str, Any]) -> None:
        """Start a run, or resume the one in the folder.

        An existing run must have the same settings: otherwise nothing is changed and the error
        lists the differences. A run that has not written anything yet is replaced.
        """
        if not self._list_outputs():
            self._write(MANIFEST, manifest)
            return
        existing = self._read(MANIFEST)
        differences = [
            f"{key} was {short_repr(existing.get(key), 80)} and is now "
            f"{short_repr(manifest.get(key), 80)}"
            for key in {**existing, **manifest}
            if existing.get(key) != manifest.get(key)
        ]
        if differences:
            listed = "; ".join(differences[:MAX_LISTED])
            raise UsageError(
                f"{self.folder} holds a run with other settings: {listed}; "
                "use the same settings, or give another folder"
            )

    def find_done(self, suffix: str) -> dict[str, Tally]:
        """Return the counts of finished parts; one whose shard or record has changed is not."""
        names, finished = set(self._list_outputs()), {}
        for name in sorted(names):
            part = name.removeprefix(f"{DONE}/").removesuffix(".json")
            if part == name or part + suffix not in names:
                continue
            try:
                record = read_dataclass(DonePart, self._read(name), name)
            except ModelError:
                continue
            if (self.folder / (part + suffix)).fingerprint() == record.shard:
                finished[part] = record.tally
        return finished

    def finish(self, part: str, tally: Tally, shard: CorpusPath) -> None:
        """Record that a part is done; its shard is complete."""
        self._write(f"{DONE}/{part}.json", asdict(DonePart(shard.fingerprint(), tally)))

    def summarize(self, summary: Mapping[str, Any]) -> None:
        """Write the summary of the run, and remove partial files of killed workers."""
        self._write(SUMMARY, summary)
        if self.folder.is_local:
            for file in Path(self.folder.path).rglob(PARTIAL_PATTERN):
                file.unlink(missing_ok=True)

    def _list_outputs(self) -> list[str]:
        return [name for name in self.folder.list_names() if name not in (MANIFEST, LOCK)]

    def _read(self, name: str) -> dict[str, Any]:
        """Return a JSON object; an empty one if the file is missing or damaged."""
        try:
            value = json.loads((self.folder / name).read())
        except (FileNotFoundError, ValueError, RecursionError):
            value = None
        return value if isinstance(value, dict) else {}

    def _write(self, name: str, value: Mapping[str, Any]) -> None:
        with (self.folder / name).write() as stream:
            stream.write(to_json(value).encode("utf-8"))
