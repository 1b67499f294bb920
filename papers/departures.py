"""Differences between our experiments and the papers, from `departures.toml`.

A table lists its departures in `PaperTable.departures`. The page of the paper describes each one
once, and its tables and rows link to it. Substitutes for encoders or corpora that are not available
are described in the note of a table instead.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from papers.table import Departure

_FILE = Path(__file__).with_suffix(".toml")
DEPARTURES: Mapping[str, Departure] = {
    key: Departure(key=key, **entry)
    for key, entry in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()
}
