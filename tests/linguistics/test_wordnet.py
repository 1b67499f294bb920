"""The WordNet reader; facts checked against the dictionary files and NLTK 3.9's reader of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tertium.errors import DataError, MissingResourceError, UnknownNameError
from tertium.linguistics.wordnet import (
    WORDNET,
    Relation,
    WordNet,
    find_wordnet,
    load_arrays,
    load_wordnet,
    places,
    read_dictionary,
)


@pytest.fixture(scope="module")
def wordnet() -> WordNet:
    return load_wordnet()


def first(wordnet: WordNet, word: str, pos: str) -> list[str]:
    return list(wordnet.lemmas(wordnet.rows(word, pos)[0]))  # type: ignore[arg-type]


def test_it_is_wordnet_3(wordnet: WordNet) -> None:
    assert len(wordnet) == 117_659  # wnstats(7WN) of WordNet 3.0


def test_synsets_come_most_frequent_first(wordnet: WordNet) -> None:
    assert first(wordnet, "dog", "n") == ["dog", "domestic_dog", "canis_familiaris"]
    nouns, verbs = wordnet.rows("dog", "n"), wordnet.rows("dog", "v")
    assert wordnet.offset(nouns[0]) == 2_084_071
    assert (len(nouns), len(verbs)) == (7, 1)
    assert wordnet.rows("dog") == nouns + verbs


def test_words_are_found_in_any_case_and_with_spaces(wordnet: WordNet) -> None:
    assert wordnet.rows("New York", "n") == wordnet.rows("new_york", "n") != ()
    assert "Paris" in wordnet
    assert "qwertz" not in wordnet
    assert wordnet.rows("qwertz") == wordnet.rows("") == ()


@pytest.mark.parametrize(
    ("word", "pos", "bases"),
    [
        ("mice", "n", ["mouse"]),
        ("saw", "v", ["saw", "see"]),
        ("churches", "n", ["church"]),
        ("ladies", "n", ["lady"]),
        ("running", "v", ["run"]),
        ("better", "r", ["better", "well"]),
        ("nicest", "a", ["nice"]),
        ("gas", "n", ["gas"]),
        ("glass", "n", ["glass"]),
        ("of", "n", []),
    ],
)
def test_base_forms(wordnet: WordNet, word: str, pos: str, bases: list[str]) -> None:
    assert list(wordnet.base_forms(word, pos)) == bases  # type: ignore[arg-type]


def related(wordnet: WordNet, word: str, relation: Relation) -> set[str]:
    """The words of all synsets that any synset of a word leads to."""
    rows = (target for row in wordnet.rows(word) for target in wordnet.related_rows(row, relation))
    return {lemma for row in rows for lemma in wordnet.lemmas(row)}


def test_relations_lead_where_the_files_say(wordnet: WordNet) -> None:
    dog = wordnet.rows("dog", "n")[0]
    above = wordnet.related_rows(dog, "hypernym")
    assert [wordnet.lemmas(row)[0] for row in above] == ["canine", "domestic_animal"]
    below = wordnet.related_rows(dog, "hyponym")
    assert "poodle" in [wordnet.lemmas(row)[0] for row in below]
    assert "cold" in related(wordnet, "hot", "antonym")
    assert "invasion" in related(wordnet, "invade", "derivation")
    assert "slow" in related(wordnet, "slowly", "pertainym")
    assert "sleep" in related(wordnet, "snore", "entailment")
    assert "die" in related(wordnet, "kill", "cause")
    assert "wet" in related(wordnet, "damp", "similar_to")
    assert related(wordnet, "qwertz", "antonym") == set()


def test_relations_of_single_words_start_at_any_word_of_a_synset(wordnet: WordNet) -> None:
    assert "large" in first(wordnet, "big", "a")
    assert "little" in related(wordnet, "big", "antonym")


def test_every_relation_can_be_followed_both_ways(wordnet: WordNet) -> None:
    for there, back in (("hypernym", "hyponym"), ("instance_hypernym", "instance_hyponym")):
        for row in range(0, len(wordnet), 997):
            for above in wordnet.related_rows(row, there):  # type: ignore[arg-type]
                assert row in wordnet.related_rows(above, back)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="hypernym"):
        wordnet.related_rows(0, "hyperonym")  # type: ignore[arg-type]


def test_ancestors(wordnet: WordNet) -> None:
    entity, dog = wordnet.rows("entity", "n")[0], wordnet.rows("dog", "n")[0]
    assert wordnet.ancestors(dog)[entity] == 8  # NLTK: min_depth 8
    assert wordnet.ancestors(dog)[dog] == 0


SMALL = {
    "data.noun": "00000010 03 n 01 thing 0 001 ~ 00000020 n 0000 | a thing\r\n"
    "00000020 03 n 02 Stone 0 rock 0 002 @ 00000010 n 0000 + 00000030 v 0201 | hard\r\n",
    "data.verb": "00000030 30 v 01 rock 0 001 + 00000020 n 0102 01 + 02 00 | move\n",
    "data.adj": "00000040 00 a 01 stony(p) 0 001 & 00000050 a 0000 | x\n"
    "00000050 00 s 01 rocky 0 001 & 00000040 a 0000 | y\n",
    "data.adv": "",
    "index.noun": "  1 license\nthing n 1 1 ~ 1 0 00000010\nstone n 1 1 @ 1 0 00000020\n"
    "rock n 1 1 @ 1 0 00000020\n",
    "index.verb": "rock v 1 1 + 1 0 00000030\n",
    "index.adj": "stony a 1 1 & 1 0 00000040\nrocky a 1 1 & 1 0 00000050\n",
    "index.adv": "",
    "noun.exc": "stonen stone\n",
    "verb.exc": "",
    "adj.exc": "",
    "adv.exc": "",
}


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dictionary of four synsets in the format of WordNet's files, and an empty cache."""
    folder = tmp_path / "dictionary"
    folder.mkdir()
    for name, text in SMALL.items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
    monkeypatch.setenv("TERTIUM_WORDNET", str(folder))
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path / "cache"))
    return folder


def test_a_small_dictionary_by_hand(small: Path) -> None:
    wordnet = WordNet(read_dictionary(small))
    (stone,), (rock,) = wordnet.rows("stonen", "n"), wordnet.rows("rock", "v")
    assert wordnet.lemmas(stone) == ("stone", "rock")
    assert wordnet.related_rows(rock, "derivation") == (stone,)
    assert wordnet.related_rows(stone, "derivation") == (rock,)
    assert related(wordnet, "stony", "similar_to") == {"rocky"}


def test_the_folder_named_by_the_environment_is_used(small: Path) -> None:
    assert find_wordnet() == small
    assert len(load_arrays(find_wordnet())["offset"]) == 5


def test_the_index_is_kept_and_renewed_when_the_source_changes(small: Path) -> None:
    folder = small.parent / "cache" / "indexes"
    load_arrays(small)
    (kept,) = folder.glob("wordnet-*.npz")
    before = kept.stat().st_mtime_ns
    load_arrays(small)
    assert kept.stat().st_mtime_ns == before
    (small / "noun.exc").write_text("stonen stone\nrocken rock\n")
    assert WordNet(load_arrays(small)).exceptions["rocken", "n"] == ("rock",)
    assert len(list(folder.glob("wordnet-*.npz"))) == 2


def test_a_damaged_index_is_made_anew(small: Path) -> None:
    load_arrays(small)
    (kept,) = (small.parent / "cache" / "indexes").glob("wordnet-*.npz")
    for damage in (b"", b"not an archive", kept.read_bytes()[:-100]):
        kept.write_bytes(damage)
        assert len(load_arrays(small)["offset"]) == 5
    assert kept.stat().st_size > 1000


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (small.parent / "file").write_text("in the way")
    monkeypatch.setenv("TERTIUM_CACHE", str(small.parent / "file"))
    assert len(load_arrays(small)["offset"]) == 5


def test_the_models_folder_comes_before_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TERTIUM_WORDNET", raising=False)
    monkeypatch.setenv("TERTIUM_MODELS", str(tmp_path))
    folder = tmp_path / "wordnet" / "wordnet-3.0"
    folder.mkdir(parents=True)
    assert next(iter(places())) == folder
    (folder / "data.noun").touch()
    assert find_wordnet() == folder


def test_what_is_installed_is_what_the_reader_reads() -> None:
    """Every dictionary file, and the license."""
    names = {Path(name).name for name in WORDNET.files}
    parts = ("noun", "verb", "adj", "adv")
    assert {f"data.{part}" for part in parts} | {f"index.{part}" for part in parts} <= names
    assert {f"{part}.exc" for part in parts} | {"LICENSE"} <= names


def test_without_wordnet_the_install_command_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TERTIUM_WORDNET", raising=False)
    monkeypatch.setenv("TERTIUM_MODELS", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    if not Path("/usr/share/wordnet/data.noun").is_file():
        with pytest.raises(MissingResourceError, match="tertium models install wordnet"):
            find_wordnet()
    monkeypatch.setenv("TERTIUM_WORDNET", str(tmp_path))
    with pytest.raises(MissingResourceError, match=r"data\.noun"):
        find_wordnet()


def test_incomplete_and_damaged_files_are_refused(small: Path) -> None:
    (small / "data.verb").write_text("00000030 30 v zz rock\n")
    with pytest.raises(DataError, match="cannot be read"):
        read_dictionary(small)
    (small / "data.verb").unlink()
    with pytest.raises(MissingResourceError, match="incomplete"):
        read_dictionary(small)
