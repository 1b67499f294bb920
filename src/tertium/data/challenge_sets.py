"""Challenge sets: pairs of a better and a worse translation, labeled with a phenomenon.

ACES (Amrhein et al. 2022)        TSV or JSONL: ID, source, good-translation, incorrect-translation,
                                  reference, phenomena, langpair; Span-ACES has more columns
HW-TSC (Chen et al. 2022)         TSV with the columns of ACES up to `phenomena`, then a second
                                  column `source`, the origin of the text
DEMETR (Karpinska et al. 2022)    JSON: src_sent, mt_sent, pert_sent, eng_sent, pert_name, lang_tag,
                                  pert_check; if the perturbed output is the reference, it is the
                                  better one
`damage` (bundled)                ten sentences in six languages, damaged by the rules of
                                  `text.damage`; generated deterministically on demand
"""

from __future__ import annotations

import json
import os
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib.resources import files
from itertools import islice, product
from pathlib import Path

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, UnknownNameError, UsageError, short_repr
from tertium.core.resampling import make_rng
from tertium.core.segment import Segment
from tertium.data.formats.preferences import LANGUAGES
from tertium.data.human_data import reasons
from tertium.data.record_files import parse_json, read_records
from tertium.data.records import Record
from tertium.data.tables import read_table
from tertium.data.testset import TestSet
from tertium.data.text_files import check_record, read_first_lines, read_text
from tertium.text.perturbations import MEANING_KINDS, PERTURBATIONS, PerturbationInput, perturb

DAMAGE_SET = "damage"
SAME_TRANSLATION = "both translations are the same"
ACES = ("source", "good-translation", "incorrect-translation", "reference", "phenomena", "langpair")
HW_TSC = (*ACES[:5], "origin")  # its header says `source` instead of `origin`
DEMETR = ("src_sent", "mt_sent", "pert_sent", "eng_sent", "pert_name")
NOT_PERTURBED = "the output could not be changed in this way"


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two translations of one source, of which `better` is known to be better."""

    better: Segment
    worse: Segment
    phenomenon: str
    lp: str = ""


@dataclass(frozen=True, kw_only=True)
class ChallengeSet:
    """Contrasts with a name; `unused` contains contrasts that cannot be used, with the reason."""

    name: str
    contrasts: tuple[Contrast, ...] = field(repr=False)
    unused: tuple[tuple[Contrast, str], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if not self.contrasts:
            raise DataError(f"{self.name}: no usable pair{reasons(self.excluded_counts)}")

    def __len__(self) -> int:
        return len(self.contrasts)

    @property
    def excluded_counts(self) -> dict[str, int]:
        """The number of unused contrasts by reason."""
        return dict(Counter(reason for _, reason in self.unused))

    @property
    def phenomena(self) -> tuple[str, ...]:
        """The phenomena, in order of first appearance."""
        return tuple(dict.fromkeys(contrast.phenomenon for contrast in self.contrasts))

    def choose(self, phenomena: Sequence[str] = (), lps: Sequence[str] = ()) -> ChallengeSet:
        """Select phenomena and language pairs; an unknown one is an error."""
        pairs = dict.fromkeys(contrast.lp for contrast in self.contrasts)
        for kind, selected, available in (
            ("phenomenon", phenomena, self.phenomena),
            ("language pair", lps, pairs),
        ):
            for name in selected:
                if name not in available:
                    raise UnknownNameError(f"{kind} of {self.name}", name, available)

        def is_selected(contrast: Contrast) -> bool:
            is_kind = not phenomena or contrast.phenomenon in phenomena
            return is_kind and (not lps or contrast.lp in lps)

        contrasts = tuple(filter(is_selected, self.contrasts))
        unused = tuple(entry for entry in self.unused if is_selected(entry[0]))
        return replace(self, contrasts=contrasts, unused=unused)

    def testset(self) -> TestSet:
        """Return the better translations as a test set of one system."""
        segments = [contrast.better for contrast in self.contrasts]
        has_sources = all(segment.source is not None for segment in segments)
        return TestSet(
            systems={"better": [segment.hypothesis for segment in segments]},
            sources=[segment.source or "" for segment in segments] if has_sources else (),
            references=[segment.references for segment in segments],
            name=self.name,
        )


def join_challenges(sets: Sequence[ChallengeSet]) -> ChallengeSet:
    for index, entry in enumerate(sets):
        if entry in sets[:index]:
            raise UsageError(f"challenge set {entry.name!r} is given twice")
    return ChallengeSet(
        name=", ".join(entry.name for entry in sets[:3]) + (", ..." if sets[3:] else ""),
        contrasts=tuple(contrast for entry in sets for contrast in entry.contrasts),
        unused=tuple(pair for entry in sets for pair in entry.unused),
    )


def read_challenge(source: PathLike) -> ChallengeSet:
    """Read a file in the format of ACES or DEMETR, or generate the bundled set `damage`.

    >>> read_challenge("damage").phenomena[:3]
    ('omission', 'truncation', 'addition')
    """
    if not isinstance(source, str | os.PathLike):
        raise UsageError(f"expected the file or name of a challenge set, got {short_repr(source)}")
    if str(source) == DAMAGE_SET and not Path(source).exists():
        return damage_challenge()
    contrasts: list[Contrast] = []
    unused: list[tuple[Contrast, str]] = []
    for where, record in _records(Path(source)):
        contrast = _contrast(record, where)
        if record.get("pert_check", True) is False:
            unused.append((contrast, NOT_PERTURBED))
        elif contrast.better.hypothesis == contrast.worse.hypothesis:
            unused.append((contrast, SAME_TRANSLATION))
        else:
            contrasts.append(contrast)
    name = Path(source).name.split(".")[0]
    return ChallengeSet(name=name, contrasts=tuple(contrasts), unused=tuple(unused))


def _records(path: Path) -> Iterator[tuple[str, Record]]:
    """Yield records with their locations; a JSON file may be one list or object of records."""
    text = read_text(path).lstrip() if ".json" in path.suffixes else ""
    if text.startswith("[") or text.partition("\n")[0].rstrip() == "{":
        content = parse_json(text, str(path))
        records = [*content.values()] if isinstance(content, dict) else content
        for number, record in enumerate(records, start=1):
            where = f"{path}, object {number}"
            if not isinstance(record, dict):
                raise DataError(f"{where}: expected an object, got {str(record)[:40]!r}")
            check_record(record, where)
            yield where, record
        return
    header = next(iter(read_first_lines(path, 1)), "").split("\t")
    if tuple(header) == (*HW_TSC[:-1], "source"):
        yield from islice(read_table(path, HW_TSC), 1, None)
        return
    yield from read_records(path)


def _contrast(record: Record, where: str) -> Contrast:
    if {*ACES[1:3]} <= {*record}:
        source, better, worse, reference, phenomenon, lp = (_text(record, n, where) for n in ACES)
    elif {*DEMETR[1:3]} <= {*record}:
        source, better, worse, reference, phenomenon = (_text(record, n, where) for n in DEMETR)
        better, worse = (worse, better) if worse == reference else (better, worse)
        lp = _demetr_pair(_text(record, "lang_tag", where) or "")
    else:
        raise DataError(
            f"{where}: expected the columns of ACES ({', '.join(ACES[1:3])}) or of DEMETR "
            f"({', '.join(DEMETR[1:3])}); found {', '.join(record)}"
        )
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
    """Return the language pair of a tag; all translations are into English.

    >>> _demetr_pair("chinese_simple"), _demetr_pair("polish"), _demetr_pair("")
    ('zh-en', 'pl-en', '')
    """
    language = tag.partition("_")[0].lower()
    return f"{LANGUAGES.get(language, language)}-en" if language else ""


def _text(record: Record, name: str, where: str) -> str | None:
    value = record.get(name)
    if value is not None and not isinstance(value, str):
        raise DataError(f"{where}: {name} is {value!r}, not a text")
    return value


def wrong_language_sentence(number: int, languages: Sequence[str]) -> str:
    """Return a bundled sentence, selected by number, in none of the given languages.

    >>> wrong_language_sentence(0, ("en", "de")).split()[:3]
    ['Anna', 'ne', 'sera']
    """
    items = _bundled_items()
    choices = [language for language in items[0] if language not in languages]
    return items[number % len(items)][choices[number // len(items) % len(choices)]][0]


@cache
def _bundled_items() -> list[dict[str, list[str]]]:
    text = files("tertium.data").joinpath("challenge.json").read_text("utf-8")
    items: list[dict[str, list[str]]] = json.loads(text)["items"]
    return items


@lru_cache(maxsize=2)  # generating thousands of texts takes time
def damage_challenge(seed: int = 0) -> ChallengeSet:
    """Generate the bundled set: all kinds of `text.damage` on translations from and into English.

    Each sentence has two wordings: the reference and the good translation. For phenomena named
    `close: ...`, the reference is damaged: a correct paraphrase is compared with an incorrect text
    that is close to the reference.
    """
    items = _bundled_items()
    languages = [language for language in items[0] if language != "en"]
    directions = [pair for other in languages for pair in (("en", other), (other, "en"))]
    kinds = [(kind, 1) for kind in PERTURBATIONS] + [(kind, 0) for kind in MEANING_KINDS]
    contrasts = []
    for (kind, wording), (source, target) in product(kinds, directions):
        name = kind if wording else f"close: {kind}"
        lp = f"{source}-{target}"
        third = next(
            language for language in ("fr", "es", "de") if language not in (source, target)
        )
        for index, item in enumerate(items):
            original = PerturbationInput(
                text=item[target][wording],
                language=target,
                source=item[source][0],
                other=items[(index + 1) % len(items)][target][1],
                foreign=item[third][0],
            )
            rng = make_rng(seed, index, zlib.crc32(f"{lp} {name}".encode()))
            damaged = perturb(original, kind, rng)
            if damaged is None:
                continue
            reference, good = item[target]
            better, worse = (
                Segment(text, original.source, (reference,)) for text in (good, damaged)
            )
            contrasts.append(Contrast(better, worse, name, lp))
    return ChallengeSet(name=DAMAGE_SET, contrasts=tuple(contrasts))
