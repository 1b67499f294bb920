"""Lines of a language: FLORES, Tatoeba where that has none, sources of WMT20 for two more."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections import defaultdict
from functools import cache
from pathlib import Path

DEV = 997  # lines of FLORES before those of its test part
# ISO 639-3 names of languages that FLORES does not have here
TATOEBA = {
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
SOURCES = ("ne", "si")


@cache
def lines(data: Path) -> dict[str, list[str]]:
    """Lines by language: FLORES' development part, every second of Tatoeba, sources of training.

    What they leave out (FLORES' test part, the other lines of Tatoeba) is left to tests.
    """
    found = flores(data, slice(0, DEV))
    others = tatoeba(data)
    found |= {code: others[long][::2] for long, code in TATOEBA.items() if code not in found}
    for code in SOURCES:
        file = data / "qe" / "wmt20" / f"{code}-en.train.jsonl.gz"
        with gzip.open(file, "rt", encoding="utf-8") as stream:
            found[code] = [json.loads(line)["source"] for line in stream][:1000]
    return found


def flores(data: Path, part: slice) -> dict[str, list[str]]:
    """A part of FLORES' lines by language, line by line the same."""
    found = {}
    with tarfile.open(data / "parallel" / "flores.tar.xz") as archive:
        for member in archive:
            name = Path(member.name)
            if name.suffix == ".txt" and len(name.parts) == 1:
                stream = archive.extractfile(member)
                assert stream is not None
                text = io.TextIOWrapper(stream, encoding="utf-8").read()
                found["no" if name.stem == "nb" else name.stem] = text.split("\n")[part]
    return found


def tatoeba(data: Path) -> dict[str, list[str]]:
    """The sentences of Tatoeba by language, ISO 639-3."""
    found = defaultdict(list)
    with gzip.open(data / "parallel" / "tatoeba.tsv.gz", "rt", encoding="utf-8") as stream:
        for line in stream:
            language, sentence, _ = line.rstrip("\n").split("\t")
            found[language].append(sentence)
    return dict(found)
