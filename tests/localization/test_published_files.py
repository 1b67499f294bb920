"""Localization files as they were published: OASIS examples, real catalogs, test files of tools.

The files are not part of the repository; see `tests/data/test_published_files.py`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.localization.test_write_back import check_round_trip

from tertium.core.errors import DataError, UsageError
from tertium.files.catalogs import is_localization_file, read_catalog, suffix_of
from tertium.files.projects import read_project
from tertium.files.units import Languages
from tertium.files.write_back import WRITABLE_SUFFIXES

DATA = os.environ.get("TERTIUM_DATA", "")
SAMPLES = Path(
    os.environ.get("TERTIUM_SAMPLES") or (Path(DATA).parent / "samples" if DATA else ".")
)
FOLDER = SAMPLES / "localization"

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="needs samples of published localization files"
)

# wrong on purpose, or damaged where they were published
INVALID = {
    "file-XLIFFFilter-invalid-content.xlf",
    "Good-pgs_plural.xlf",
    "bad_InvalidHexValueOnCp.xlf",
    "file-POFilter-multiple.po",
    "xx.po",
    "file-ResourceBundleFilter-BadLiteral1.properties",
    "file-ResourceBundleFilter-BadLiteral3.properties",
    "ja.lproj/Localizable.strings",
    "gecko_strings.ftl",
}


def is_invalid(path: Path) -> bool:
    is_listed = path.name in INVALID or "/".join(path.parts[-2:]) in INVALID
    return is_listed or "fixtures" in path.parts or "invalid" in path.name or "empty" in path.name


def sample_files() -> list[Path]:
    return sorted(path for path in FOLDER.rglob("*") if path.is_file())


def wanted_languages(path: Path) -> Languages:
    """Return the second of the languages that a file with several names."""
    try:
        read_catalog(path)
    except UsageError as error:
        return Languages(target=str(error).partition("into ")[2].split(":")[0].split(" and ")[-1])
    return Languages()


def test_published_files_are_read():
    read: dict[str, int] = {}
    for path in sample_files():
        if not is_localization_file(path) or "missing_" in path.name:
            continue
        try:
            read_catalog(path)
        except UsageError:
            assert path.suffix in (".tmx", ".xcstrings"), path
        except DataError:
            if is_invalid(path):
                continue
            raise
        read[suffix_of(path)] = read.get(suffix_of(path), 0) + 1
    assert read[".xlf"] > 300
    assert len(read) >= 17


@pytest.mark.slow
def test_bytes_of_published_files_are_kept(tmp_path):
    count = 0
    for path in sample_files():
        if suffix_of(path) in WRITABLE_SUFFIXES and not is_invalid(path):
            check_round_trip(str(path), tmp_path, wanted_languages(path))
            count += 1
    assert count > 450


def test_bytes_of_oasis_examples_and_a_catalog_are_kept(tmp_path):
    oasis = FOLDER / "xliff2/oasis/xliff-22/core/valid"
    for path in [*oasis.glob("with*.xlf"), FOLDER / "po/mate-calc/ar.po"]:
        check_round_trip(str(path), tmp_path)


PAIRS = [
    ("android/aegis/values/strings.xml", "android/aegis/values-de-rDE/strings.xml", 500),
    ("arb/wger/app_en.arb", "arb/wger/app_de.arb", 400),
    ("fluent/fx-private-relay/en/misc.ftl", "fluent/fx-private-relay/fr/misc.ftl", 150),
    ("rails-yaml/rails-i18n/en.yml", "rails-yaml/rails-i18n/pl.yml", 150),
    ("properties/omegat/Bundle.properties", "properties/omegat/Bundle_de.properties", 1600),
    ("weblate-test/srt/en.srt", "weblate-test/srt/cs.srt", 4),
    ("ios/mastodon/Intents/input/en.lproj/Intents.strings",
     "ios/mastodon/Intents/input/de.lproj/Intents.strings", 25),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target", "least"), PAIRS)
def test_published_pairs_are_aligned(source, target, least):
    testset = read_project([FOLDER / target], FOLDER / source).testset
    assert len(testset) >= least
    assert len(testset.sources) == len(testset)
