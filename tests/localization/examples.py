"""Small localization files of every format, with the texts that they contain."""

from __future__ import annotations

from pathlib import Path

from tests.builders import write_file

SAMPLES = Path(__file__).parent / "samples"


def read_sample(name: str) -> str:
    return (SAMPLES / name).read_bytes().decode()


XLIFF1 = read_sample("xliff1.xlf")
XLIFF2 = read_sample("xliff2.xlf")
TMX = read_sample("memory.tmx")
PO = read_sample("messages.po")
ANDROID = read_sample("strings.xml")
STRINGS = read_sample("menu.strings")
PROPERTIES = read_sample("menu.properties")
FLUENT = read_sample("menu.ftl")
I18NEXT = read_sample("i18next.json")
ARB = read_sample("app.arb")
RAILS = read_sample("rails.yml")
XCSTRINGS = read_sample("catalog.xcstrings")
STRINGSDICT = read_sample("plurals.stringsdict")
SRT = read_sample("subtitles.srt")
VTT = read_sample("subtitles.vtt")


def write(folder: Path, name: str, content: str, encoding: str = "utf-8") -> str:
    """Write a file and return its path."""
    return str(write_file(folder / name, content.encode(encoding)))
