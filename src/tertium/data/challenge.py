"""Challenge sets: pairs of a better and a worse translation, each with the phenomenon it is about.

ACES (Amrhein et al. 2022)        TSV or JSONL: ID, source, good-translation, incorrect-translation,
                                  reference, phenomena, langpair; Span-ACES has more columns
DEMETR (Karpinska et al. 2022)    JSON: src_sent, mt_sent, pert_sent, eng_sent, pert_name, lang_tag,
                                  pert_check; where the reference itself is the changed output, it
                                  is the better one
ours (`damage`)                   ten sentences in six languages, damaged by the rules of
                                  `text.damage`: made when asked for, the same each time
"""

from __future__ import annotations

import json
import os
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

from tertium.arrays import generator
from tertium.data.formats import PathLike, check_record, parse_json, read_records, read_text
from tertium.data.testset import TestSet
from tertium.data.wmt import LANGUAGES
from tertium.errors import DataError, UnknownNameError, UsageError, one_line
from tertium.segment import Segment, check_texts
from tertium.text.damage import KINDS, MEANING, Original, damage

OWN = "damage"
SAME = "both translations are the same"
ACES = ("source", "good-translation", "incorrect-translation", "reference", "phenomena", "langpair")
DEMETR = ("src_sent", "mt_sent", "pert_sent", "eng_sent", "pert_name")
NOT_CHANGED = "the output could not be changed in this way"


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two translations of one source, of which people know that one is better."""

    better: Segment
    worse: Segment
    phenomenon: str
    lp: str = ""


@dataclass(frozen=True, kw_only=True)
class ChallengeSet:
    """Contrasts under a name; `unused` are others that were read, each with why it cannot serve."""

    name: str
    contrasts: tuple[Contrast, ...] = field(repr=False)
    unused: tuple[tuple[Contrast, str], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if not self.contrasts:
            why = "; ".join(f"{reason}: {count}" for reason, count in self.left_out.items())
            raise DataError(f"{self.name}: no pair of translations" + (f" ({why})" if why else ""))

    def __len__(self) -> int:
        return len(self.contrasts)

    @property
    def left_out(self) -> dict[str, int]:
        """How many were read and cannot be used, by reason."""
        return dict(Counter(reason for _, reason in self.unused))

    @property
    def phenomena(self) -> tuple[str, ...]:
        """The phenomena, in order of first appearance."""
        return tuple(dict.fromkeys(contrast.phenomenon for contrast in self.contrasts))

    def choose(self, phenomena: Sequence[str] = (), lps: Sequence[str] = ()) -> ChallengeSet:
        """Some phenomena and language pairs; one that is not there is an error."""
        pairs = dict.fromkeys(contrast.lp for contrast in self.contrasts)
        for kind, wanted, known in (
            ("phenomenon", phenomena, self.phenomena),
            ("language pair", lps, pairs),
        ):
            check_texts(wanted, f"each {kind}", "name")
            unknown = next((name for name in wanted if name not in known), None)
            if unknown is not None:
                raise UnknownNameError(f"{kind} of {self.name}", unknown, known)

        def is_wanted(one: Contrast) -> bool:
            return (not phenomena or one.phenomenon in phenomena) and (not lps or one.lp in lps)

        kept = tuple(filter(is_wanted, self.contrasts))
        unused = tuple((one, why) for one, why in self.unused if is_wanted(one))
        return ChallengeSet(name=self.name, contrasts=kept, unused=unused)

    def testset(self) -> TestSet:
        """The better translations as one system."""
        good = [contrast.better for contrast in self.contrasts]
        known = all(segment.source is not None for segment in good)
        return TestSet(
            systems={"better": [segment.hypothesis for segment in good]},
            sources=[segment.source or "" for segment in good] if known else (),
            references=[segment.references for segment in good],
            name=self.name,
        )


def join_challenges(sets: Sequence[ChallengeSet]) -> ChallengeSet:
    """Several sets as one."""
    for place, one in enumerate(sets):
        if one in sets[:place]:
            raise UsageError(f"challenge set {one.name!r} is given twice")
    return ChallengeSet(
        name=", ".join(one.name for one in sets[:3]) + (", ..." if sets[3:] else ""),
        contrasts=tuple(contrast for one in sets for contrast in one.contrasts),
        unused=tuple(pair for one in sets for pair in one.unused),
    )


def read_challenge(source: PathLike) -> ChallengeSet:
    """A set from a file of ACES' or DEMETR's layout, or our own by its name, `damage`.

    >>> read_challenge("damage").phenomena[:3]
    ('omission', 'truncation', 'addition')
    """
    if not isinstance(source, str | os.PathLike):
        raise UsageError(f"expected the file or name of a challenge set, got {one_line(source)}")
    if str(source) == OWN and not Path(source).exists():
        return own_challenge()
    contrasts: list[Contrast] = []
    unused: list[tuple[Contrast, str]] = []
    for where, record in _records(Path(source)):
        contrast = _contrast(record, where)
        if record.get("pert_check", True) is False:
            unused.append((contrast, NOT_CHANGED))
        elif contrast.better.hypothesis == contrast.worse.hypothesis:
            unused.append((contrast, SAME))  # no metric could tell them apart
        else:
            contrasts.append(contrast)
    name = Path(source).name.split(".")[0]
    return ChallengeSet(name=name, contrasts=tuple(contrasts), unused=tuple(unused))


def _records(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Records with where they stand; a JSON file may hold one list of them."""
    if ".json" in path.suffixes and (text := read_text(path)).lstrip().startswith("["):
        for number, record in enumerate(parse_json(text, str(path)), start=1):
            where = f"{path}, object {number}"
            if not isinstance(record, dict):
                raise DataError(f"{where}: expected an object, got {str(record)[:40]!r}")
            check_record(record, where)
            yield where, record
        return
    yield from read_records(path)


def _contrast(record: Mapping[str, Any], where: str) -> Contrast:
    layout = next((names for names in (ACES, DEMETR) if {*names[1:3]} <= {*record}), None)
    if layout is None:
        raise DataError(
            f"{where}: neither ACES' columns ({', '.join(ACES[1:3])}) nor DEMETR's "
            f"({', '.join(DEMETR[1:3])}); found {', '.join(record)}"
        )
    if layout is ACES:
        source, better, worse, reference, phenomenon, lp = (_text(record, n, where) for n in ACES)
    else:
        source, better, worse, reference, phenomenon = (_text(record, n, where) for n in DEMETR)
        better, worse = (worse, better) if worse == reference else (better, worse)
        lp = _demetr_pair(_text(record, "lang_tag", where) or "")
    if better is None or worse is None:
        raise DataError(f"{where}: one of the two translations is missing")
    references = (reference,) if reference else ()
    return Contrast(
        Segment(better, source or None, references),
        Segment(worse, source or None, references),
        phenomenon or "(none)",
        lp or "",
    )


def _demetr_pair(tag: str) -> str:
    """The language pair of a tag; all of it is translated into English.

    >>> _demetr_pair("chinese_simple"), _demetr_pair("polish"), _demetr_pair("")
    ('zh-en', 'pl-en', '')
    """
    language = tag.partition("_")[0].lower()
    return f"{LANGUAGES.get(language, language)}-en" if language else ""


def _text(record: Mapping[str, Any], name: str, where: str) -> str | None:
    value = record.get(name)
    if value is not None and not isinstance(value, str):
        raise DataError(f"{where}: {name} is {value!r}, not a text")
    return value


def foreign_sentence(number: int, languages: Sequence[str]) -> str:
    """One of our sentences, by number, in a language that is none of these.

    >>> foreign_sentence(0, ("en", "de")).split()[:3]
    ['Anna', 'ne', 'sera']
    """
    items = _own_items()
    others = [language for language in items[0] if language not in languages]
    return items[number % len(items)][others[number // len(items) % len(others)]][0]


@cache
def _own_items() -> list[dict[str, list[str]]]:
    text = files("tertium.data").joinpath("challenge.json").read_text("utf-8")
    items: list[dict[str, list[str]]] = json.loads(text)["items"]
    return items


@lru_cache(maxsize=2)  # thousands of texts are damaged
def own_challenge(seed: int = 0) -> ChallengeSet:
    """Our set: every kind of `text.damage` on translations from and into English.

    Each sentence is said in two ways: one is the reference, the other the good translation. Where
    the phenomenon is `close: ...`, it is the reference that was damaged: a free translation that is
    right stands against a near copy of the reference that is wrong.
    """
    items = _own_items()
    others = [language for language in items[0] if language != "en"]
    directions = [pair for other in others for pair in (("en", other), (other, "en"))]
    kinds = [(kind, 1) for kind in KINDS] + [(kind, 0) for kind in MEANING]
    contrasts = [
        _own_contrast(items, place, direction, kind, wording, seed)
        for (kind, wording), direction, place in product(kinds, directions, range(len(items)))
    ]
    return ChallengeSet(name=OWN, contrasts=tuple(c for c in contrasts if c is not None))


def _own_contrast(
    items: Sequence[Mapping[str, Sequence[str]]],
    place: int,
    direction: tuple[str, str],
    kind: str,
    wording: int,
    seed: int,
) -> Contrast | None:
    source, target = direction
    third = next(name for name in ("fr", "es", "de") if name not in direction)
    original = Original(
        text=items[place][target][wording],
        language=target,
        source=items[place][source][0],
        other=items[(place + 1) % len(items)][target][1],
        foreign=items[place][third][0],
    )
    name = kind if wording else f"close: {kind}"
    lp = f"{source}-{target}"
    changed = damage(original, kind, generator(seed, place, zlib.crc32(f"{lp} {name}".encode())))
    if changed is None:
        return None
    reference, good = items[place][target]
    return Contrast(
        Segment(good, original.source, (reference,)),
        Segment(changed, original.source, (reference,)),
        name,
        lp,
    )
