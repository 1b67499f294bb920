"""Paraphrase tables: phrase lookup, matches in both directions, error messages."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tertium.core.errors import DataError, MissingResourceError
from tertium.metrics.base.paraphrase_table import ParaphraseTable, load_paraphrases, read_table
from tertium.text.meteor_alignment import Match


def write_table(path: Path, entries: list[tuple[str, str]], is_gzipped: bool = True) -> Path:
    data = "".join(f"0.1\n{a}\n{b}\n" for a, b in entries).encode()
    path.write_bytes(gzip.compress(data) if is_gzipped else data)
    return path


@pytest.fixture
def table(tmp_path: Path) -> ParaphraseTable:
    entries = [("took part", "participated"), ("a b", "c"), ("c", "a b")]
    entries.append(("took part", "joined in"))
    return ParaphraseTable(read_table(write_table(tmp_path / "t.gz", entries)))


def test_phrases_are_found_by_start_then_length(table: ParaphraseTable) -> None:
    phrases = table.find_phrases(["he", "took", "part", "and", "c", "a", "b"])
    assert [(p.start, p.length) for p in phrases] == [(1, 2), (4, 1), (5, 2)]
    assert table.find_phrases([]) == ()


def test_matches_are_found_in_both_directions(table: ParaphraseTable) -> None:
    expected = [Match("paraphrase", 1, 2, 1, 1)]
    assert list(table.find_matches(["he", "took", "part"], ["he", "participated"])) == expected
    expected = [Match("paraphrase", 1, 1, 1, 2)]
    assert list(table.find_matches(["he", "participated"], ["he", "took", "part"])) == expected


def test_paraphrases_are_in_file_order(table: ParaphraseTable) -> None:
    matches = table.find_matches(["joined", "in", "participated"], ["took", "part"])
    assert [m.hypothesis_start for m in matches] == [2, 0]


def test_plain_and_gzipped_files_give_the_same_index(tmp_path: Path) -> None:
    entries = [("über uns", "von uns")]
    zipped = read_table(write_table(tmp_path / "a.gz", entries))
    plain = read_table(write_table(tmp_path / "b.txt", entries, is_gzipped=False))
    assert (zipped["hashes"] == plain["hashes"]).all()
    assert zipped["digest"].tobytes() != plain["digest"].tobytes()


def test_index_is_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path / "cache"))
    file = write_table(tmp_path / "t.gz", [("a", "b")])
    assert list(load_paraphrases(str(file)).find_matches(["a"], ["b"]))
    load_paraphrases.cache_clear()
    assert list((tmp_path / "cache" / "indexes").glob("paraphrases-*.npz"))
    assert list(load_paraphrases(str(file)).find_matches(["b"], ["a"]))


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"", "empty"), (b"0.5\nphrase\n", "not complete"), (b"0.5\n\xff\xfe\nx\n", "cannot be read")],
)
def test_invalid_files_are_rejected(tmp_path: Path, data: bytes, message: str) -> None:
    file = tmp_path / "table"
    file.write_bytes(data)
    with pytest.raises(DataError, match=message):
        read_table(file)


def test_package_with_the_table_is_found_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "pycocoevalcap"
    (folder / "meteor" / "data").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise AssertionError('must not be imported')")
    write_table(folder / "meteor" / "data" / "paraphrase-en.gz", [("a b", "c")])
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    monkeypatch.setattr("sys.path_importer_cache", {})
    load_paraphrases.cache_clear()
    assert load_paraphrases("pycocoevalcap").digest
    load_paraphrases.cache_clear()


def test_error_names_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    load_paraphrases.cache_clear()
    with pytest.raises(MissingResourceError, match="pip install --no-deps pycocoevalcap"):
        load_paraphrases("pycocoevalcap")
