"""WordNet reader: expected values come from the dictionary files and from NLTK 3.9."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest

from tertium.core.errors import DataError, MissingResourceError
from tertium.metrics.base.wordnet import (
    WordNet,
    candidate_folders,
    find_wordnet,
    load_wordnet,
)


@pytest.fixture(scope="module")
def wordnet() -> WordNet:
    return load_wordnet()


def test_installed_version_is_wordnet_3(wordnet: WordNet) -> None:
    assert len(wordnet._synsets) == 117_659  # wnstats(7WN) of WordNet 3.0


def test_synsets_are_ordered_by_frequency(wordnet: WordNet) -> None:
    nouns, verbs = wordnet.synsets("dog", "n"), wordnet.synsets("dog", "v")
    assert nouns[0] == "n02084071"
    assert (len(nouns), len(verbs)) == (7, 1)
    assert wordnet.synsets("dog") == nouns + verbs
    assert nouns[0] == wordnet.synsets("canis_familiaris", "n")[0]


def test_words_match_in_any_case_and_with_spaces(wordnet: WordNet) -> None:
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


def is_related(wordnet: WordNet, word: str, relation: str, other: str) -> bool:
    """Whether a relation leads from a synset of a word to a synset of the other one."""
    related = (wordnet.related_synsets(synset, relation) for synset in wordnet.synsets(word))
    return not set(wordnet.synsets(other)).isdisjoint(chain(*related))


def test_relations_match_the_files(wordnet: WordNet) -> None:
    dog = wordnet.synsets("dog", "n")[0]
    above = wordnet.related_synsets(dog, "hypernym")
    assert above == wordnet.direct_hypernyms(dog)
    assert above[0] in wordnet.synsets("canine", "n")
    assert above[1] in wordnet.synsets("domestic_animal", "n")
    assert is_related(wordnet, "hot", "antonym", "cold")
    assert is_related(wordnet, "invade", "derivation", "invasion")
    assert is_related(wordnet, "slowly", "pertainym", "slow")
    assert is_related(wordnet, "snore", "entailment", "sleep")
    assert is_related(wordnet, "kill", "cause", "die")
    assert is_related(wordnet, "Paris", "instance_hypernym", "city") is False
    assert is_related(wordnet, "Paris", "instance_hypernym", "national_capital")
    assert not is_related(wordnet, "qwertz", "antonym", "cold")


def test_ancestors(wordnet: WordNet) -> None:
    entity, dog = wordnet.synsets("entity", "n")[0], wordnet.synsets("dog", "n")[0]
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
def small(tmp_path: Path) -> Path:
    """Write a dictionary of five synsets in WordNet's format."""
    folder = tmp_path / "dictionary"
    folder.mkdir()
    for name, text in SMALL.items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
    return folder


def test_small_dictionary(small: Path) -> None:
    wordnet = WordNet(small)
    (stone,), (rock,) = wordnet.synsets("stonen", "n"), wordnet.synsets("rock", "v")
    assert wordnet.synsets("stone", "n") == wordnet.synsets("rock", "n") == (stone,)
    assert wordnet.related_synsets(rock, "derivation") == (stone,)
    assert wordnet.related_synsets(stone, "derivation") == (rock,)
    assert len(wordnet.related_synsets(stone, "hypernym")) == 1


def test_models_folder_comes_before_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TERTIUM_WORDNET", raising=False)
    monkeypatch.setenv("TERTIUM_MODELS", str(tmp_path))
    folder = tmp_path / "wordnet" / "wordnet-3.0"
    folder.mkdir(parents=True)
    assert next(iter(candidate_folders())) == folder
    (folder / "data.noun").touch()
    assert find_wordnet() == folder


def test_error_without_wordnet_shows_the_install_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TERTIUM_WORDNET", raising=False)
    monkeypatch.setenv("TERTIUM_MODELS", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    if not Path("/usr/share/wordnet/data.noun").is_file():
        with pytest.raises(MissingResourceError, match="tertium setup install wordnet"):
            find_wordnet()
    monkeypatch.setenv("TERTIUM_WORDNET", str(tmp_path))
    with pytest.raises(MissingResourceError, match=r"data\.noun"):
        find_wordnet()


def test_incomplete_and_damaged_files_are_rejected(small: Path) -> None:
    (small / "index.noun").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="cannot be read"):
        WordNet(small)
    (small / "index.noun").unlink()
    with pytest.raises(MissingResourceError, match="incomplete"):
        WordNet(small)
