"""The WordNet reader; facts checked against the dictionary files and NLTK 3.9's reader of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tertium.errors import DataError, MissingResourceError, UnknownNameError
from tertium.linguistics.wordnet import WordNet, load_wordnet, wordnet_pos
from tertium.linguistics.wordnet_files import WORDNET, find_wordnet
from tertium.linguistics.wordnet_index import load_arrays, read_dictionary


@pytest.fixture(scope="module")
def wordnet() -> WordNet:
    return load_wordnet()


def first(wordnet: WordNet, word: str, pos: str) -> list[str]:
    return list(wordnet.synsets(word, pos)[0].lemmas)  # type: ignore[arg-type]


def test_it_is_wordnet_3(wordnet: WordNet) -> None:
    assert len(wordnet) == 117_659  # wnstats(7WN) of WordNet 3.0


def test_synsets_come_most_frequent_first(wordnet: WordNet) -> None:
    assert first(wordnet, "dog", "n") == ["dog", "domestic_dog", "canis_familiaris"]
    assert wordnet.synsets("dog", "n")[0].offset == 2_084_071
    assert len(wordnet.synsets("dog", "n")) == 7
    assert [s.pos for s in wordnet.synsets("dog")] == ["n"] * 7 + ["v"]


def test_words_are_found_in_any_case_and_with_spaces(wordnet: WordNet) -> None:
    assert wordnet.synsets("New York", "n") == wordnet.synsets("new_york", "n") != ()
    assert "Paris" in wordnet
    assert "qwertz" not in wordnet
    assert wordnet.synsets("qwertz") == wordnet.synsets("") == ()


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


def test_relations_lead_where_the_files_say(wordnet: WordNet) -> None:
    dog = wordnet.synsets("dog", "n")[0]
    hypernyms = wordnet.related_synsets(dog, "hypernym")
    assert [s.lemmas[0] for s in hypernyms] == ["canine", "domestic_animal"]
    assert "poodle" in [s.lemmas[0] for s in wordnet.related_synsets(dog, "hyponym")]
    assert wordnet.related_words("hot", "antonym", "a") == {"cold"}
    assert "invasion" in wordnet.related_words("invade", "derivation")
    assert "slow" in wordnet.related_words("slowly", "pertainym")
    assert "sleep" in wordnet.related_words("snore", "entailment")
    assert "die" in wordnet.related_words("kill", "cause")
    assert "wet" in wordnet.related_words("damp", "similar_to")
    assert wordnet.related_words("qwertz", "antonym") == frozenset()


def test_relations_of_single_words_start_at_the_word(wordnet: WordNet) -> None:
    big = wordnet.synsets("big", "a")[0]
    assert "large" in big.lemmas
    assert "little" in wordnet.related_words("big", "antonym")
    assert "little" not in wordnet.related_words("large", "antonym")
    assert any("little" in s.lemmas for s in wordnet.related_synsets(big, "antonym"))


def test_every_relation_can_be_followed_both_ways(wordnet: WordNet) -> None:
    for there, back in (("hypernym", "hyponym"), ("instance_hypernym", "instance_hyponym")):
        for row in range(0, len(wordnet), 997):
            for above in wordnet.related_rows(row, there):  # type: ignore[arg-type]
                assert row in wordnet.related_rows(above, back)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="hypernym"):
        wordnet.related_rows(0, "hyperonym")  # type: ignore[arg-type]


def test_depth_and_ancestors(wordnet: WordNet) -> None:
    entity, dog = wordnet.rows("entity", "n")[0], wordnet.rows("dog", "n")[0]
    assert wordnet.depth(entity) == 1
    assert wordnet.depth(dog) == 14  # NLTK: max_depth 13, counted from 0
    assert wordnet.ancestors(dog)[entity] == 8  # NLTK: min_depth 8
    assert wordnet.ancestors(dog)[dog] == 0


def test_information_grows_downwards(wordnet: WordNet) -> None:
    information = wordnet.information("brown")
    dog = wordnet.rows("dog", "n")[0]
    assert information[wordnet.rows("entity", "n")[0]] == 0
    assert information[dog] == pytest.approx(9.006014, abs=1e-5)  # NLTK, ic-brown.dat
    for above in wordnet.ancestors(dog):
        assert information[above] <= information[dog]
    assert np.isnan(information[wordnet.rows("hot", "a")[0]])
    with pytest.raises(UnknownNameError, match="semcor"):
        wordnet.information("semcore")


def test_universal_tags() -> None:
    tags = ("NOUN", "PROPN", "VERB", "ADJ", "ADV", "PUNCT")
    assert [wordnet_pos(tag) for tag in tags] == ["n", "n", "v", "a", "r", None]


SMALL = {
    "data.noun": "00000010 03 n 01 thing 0 001 ~ 00000020 n 0000 | a thing\r\n"
    "00000020 03 n 02 Stone 0 rock 0 002 @ 00000010 n 0000 + 00000030 v 0201 | hard\r\n",
    "data.verb": "00000030 30 v 01 rock 0 001 + 00000020 n 0102 01 + 02 00 | move\n",
    "data.adj": "00000040 00 a 01 stony(p) 0 001 & 00000050 a 0000 | x\n"
    "00000050 00 s 01 rocky 0 001 & 00000040 a 0000 | y\n",
    "data.adv": "",
    "index.noun": "  1 licence\nthing n 1 1 ~ 1 0 00000010\nstone n 1 1 @ 1 0 00000020\n"
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
    stone = wordnet.synsets("stonen", "n")[0]
    assert stone.lemmas == ("stone", "rock")
    assert wordnet.related_words("rock", "derivation") == {"rock"}
    assert wordnet.related_words("stone", "derivation") == frozenset()
    assert wordnet.related_words("stony", "similar_to") == {"rocky"}
    with pytest.raises(MissingResourceError, match="path"):
        wordnet.information()


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
    assert find_wordnet() != folder  # nothing is in it
    (folder / "data.noun").touch()
    assert find_wordnet() == folder


def test_what_is_installed_is_what_the_reader_reads() -> None:
    """Every dictionary file, the licence, and the counts of both corpora."""
    names = {Path(name).name for name in WORDNET.files}
    parts = ("noun", "verb", "adj", "adv")
    assert {f"data.{part}" for part in parts} | {f"index.{part}" for part in parts} <= names
    assert {f"{part}.exc" for part in parts} | {"ic-brown.dat", "ic-semcor.dat", "LICENSE"} <= names


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
