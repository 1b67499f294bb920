"""Read lines by language: FLORES, Tatoeba for other languages, WMT20 sources for two more."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections import defaultdict
from functools import cache
from pathlib import Path

FLORES_DEV_LINES = 997  # the other lines are the test part
# ISO 639-3 codes of languages that are not in FLORES
TATOEBA_LANGUAGES = {
    "eus": "eu",
    "gle": "ga",
    "urd": "ur",
    "sqi": "sq",
    "kat": "ka",
    "mkd": "mk",
    "epo": "eo",
    "lat": "la",
    "bre": "br",
    "gla": "gd",
    "khm": "km",
    "uzb": "uz",
    "mon": "mn",
    "swh": "sw",
    "kaz": "kk",
    "ckb": "ku",
    "uig": "ug",
    "yid": "yi",
}
QE_LANGUAGES = ("ne", "si")


@cache
def language_lines(data: Path) -> dict[str, list[str]]:
    """Return lines by language: FLORES dev, every second Tatoeba line, QE sources.

    The FLORES test part and the other Tatoeba lines are reserved for tests.
    """
    lines_by_language = read_flores(data, slice(0, FLORES_DEV_LINES))
    tatoeba_lines = read_tatoeba(data)
    lines_by_language |= {
        code: tatoeba_lines[long][::2]
        for long, code in TATOEBA_LANGUAGES.items()
        if code not in lines_by_language
    }
    for code in QE_LANGUAGES:
        file = data / "qe" / "wmt20" / f"{code}-en.train.jsonl.gz"
        with gzip.open(file, "rt", encoding="utf-8") as stream:
            lines_by_language[code] = [json.loads(line)["source"] for line in stream][:1000]
    return lines_by_language


def read_flores(data: Path, part: slice) -> dict[str, list[str]]:
    """Return a slice of the parallel FLORES lines by language."""
    lines_by_language = {}
    with tarfile.open(data / "parallel" / "flores.tar.xz") as archive:
        for member in archive:
            name = Path(member.name)
            if name.suffix == ".txt" and len(name.parts) == 1:
                stream = archive.extractfile(member)
                assert stream is not None
                text = io.TextIOWrapper(stream, encoding="utf-8").read()
                lines_by_language["no" if name.stem == "nb" else name.stem] = text.split("\n")[part]
    return lines_by_language


def read_tatoeba(data: Path) -> dict[str, list[str]]:
    """Return the sentences of Tatoeba by ISO 639-3 language."""
    lines_by_language = defaultdict(list)
    with gzip.open(data / "parallel" / "tatoeba.tsv.gz", "rt", encoding="utf-8") as stream:
        for line in stream:
            language, sentence, _ = line.rstrip("\n").split("\t")
            lines_by_language[language].append(sentence)
    return dict(lines_by_language)
