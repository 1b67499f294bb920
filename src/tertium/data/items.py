"""What items are called: names of segments that files share, each for one text.

A file names segments as it likes: by words, by numbers from 0 or 1, anew in each document, or not
at all. All readers name them by the rules here, so that test sets, judgments and scores meet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import replace

from tertium.errors import DataError
from tertium.segment import Judgment, Segment


def begin_anew(places: Iterable[tuple[str, str]]) -> bool:
    """Whether one name, of pairs with a document, stands in several: DOCUMENT:NAME tells then."""
    homes: dict[str, str] = {}
    return any(homes.setdefault(name, document) != document for name, document in places)


def part_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names of which few are repeated or blank, told apart; none where they name no segments.

    >>> part_names(["a", "b", "c", "", "c", "d"])
    ('a', 'b', 'c#1', '#4', 'c#2', 'd')
    """
    counts, seen = Counter(names), Counter[str]()
    if 2 * sum(counts[name] == 1 for name in names if name) < len(names):
        return ()
    parted = []
    for number, name in enumerate(names, start=1):
        seen[name] += 1
        alone = name and counts[name] == 1
        parted.append(name if alone else f"{name}#{seen[name] if name else number}")
    return tuple(parted) if len(set(parted)) == len(parted) else ()


def check_counting(items: Collection[str], judged: Collection[str], whose: str) -> None:
    """Refuse judgments that count segments from 0 where `items` are 1, 2, ..., or the reverse.

    All would be off by one. They do who judged one segment that is not there, and not the one at
    the other end; who judged further ones knows a longer set.
    """
    count = len(items)
    ours, theirs = ({name.lstrip("0") or name[:1] for name in names} for names in (items, judged))
    start = next((n for n in (0, 1) if ours == {str(k) for k in range(n, n + count)}), None)
    if start is None:
        return
    beyond, unused = ("0", str(count)) if start else (str(count), "0")
    longer = not start and any(
        name.isdecimal() and (len(name), name) > (len(beyond), beyond) for name in theirs
    )
    if beyond in theirs and unused not in theirs and not longer:
        raise DataError(
            f"people judged a segment {beyond} and none {unused}, but {whose} are numbered from "
            f"{start} to {start + count - 1}: give judgments the same numbers"
        )


def name_items(judgments: Sequence[Judgment]) -> list[Judgment]:
    """Judgments whose items are told apart, each by its name and language pair.

    Where names begin anew with each document, an item is DOCUMENT:NAME. Where systems have names
    and items have none, items are told apart by their texts. A name that stands for several texts
    is x#1, x#2, ...
    """
    if any(j.system for j in judgments) and not all(j.item for j in judgments):
        judgments = _name_by_texts(judgments)
    homes: dict[str, list[tuple[str, str]]] = {}
    for j in judgments:
        homes.setdefault(j.lp, []).append((j.item, j.document))
    anew = {lp for lp, places in homes.items() if begin_anew(places)}
    named = [replace(j, item=f"{j.document}:{j.item}") if j.lp in anew else j for j in judgments]
    # In a document, systems that differ in the source of a number were aligned in different ways;
    # elsewhere names are trusted more than sources, which one system may have in another spelling.
    owners = ["all" if j.lp in anew else j.system for j in named]
    return _part_by_texts(named, owners)


def _name_by_texts(judgments: Sequence[Judgment]) -> list[Judgment]:
    """Judgments whose items without a name are #1, #2, ...

    They are told apart by source, else by references: a human translation among the systems lacks
    the reference that it is. Two translations that one system gave of a text are of two items.
    """
    unnamed = [j for j in judgments if not j.item]
    texts = [(j.lp, j.document, _original(j.segment)) for j in unnamed]
    systems = [j.system for j in unnamed]
    parts = _parts(texts, [j.segment.references or None for j in unnamed], systems)
    outputs: dict[Hashable, dict[str, int]] = {}  # of a text and system: translation, place
    numbers: dict[Hashable, int] = {}
    named = []
    for j, text in zip(unnamed, zip(texts, parts, strict=True), strict=True):
        own = outputs.setdefault((text, j.system), {})
        place = own.setdefault(j.segment.hypothesis, len(own))
        number = numbers.setdefault((text, place), len(numbers) + 1)
        named.append(replace(j, item=f"#{number}"))
    rest = iter(named)
    return [j if j.item else next(rest) for j in judgments]


def _part_by_texts(judgments: Sequence[Judgment], owners: Sequence[str]) -> list[Judgment]:
    """Judgments whose items stand for one text, where an owner has several under one name."""
    items = [j.item for j in judgments]
    sources = [j.segment.source for j in judgments]
    references = [j.segment.references or None for j in judgments]
    systems = [j.system for j in judgments]
    for texts, whose in ((sources, owners), (references, systems)):
        names = [(j.lp, item) for j, item in zip(judgments, items, strict=True)]
        parts = _parts(names, texts, whose)
        items = [f"{i}#{part}" if part else i for i, part in zip(items, parts, strict=True)]
    return [
        j if item == j.item else replace(j, item=item)
        for j, item in zip(judgments, items, strict=True)
    ]


def _parts(
    names: Sequence[Hashable], texts: Sequence[Hashable], owners: Sequence[str]
) -> list[int]:
    """The place of each text, from 1, among those under its name, where an owner has several.

    0 stands elsewhere. A text that is not known (None) is taken for the first; who has no name is
    no owner.
    """
    own: dict[tuple[Hashable, str], set[Hashable]] = {}
    for name, text, owner in zip(names, texts, owners, strict=True):
        if owner and text is not None:
            own.setdefault((name, owner), set()).add(text)
    shared = {name for (name, _), several in own.items() if len(several) > 1}
    places: dict[Hashable, dict[Hashable, int]] = {name: {} for name in shared}
    parts = []
    for name, text in zip(names, texts, strict=True):
        known = places.get(name)
        if known is None:
            parts.append(0)
        else:
            parts.append(1 if text is None else known.setdefault(text, len(known) + 1))
    return parts


def _original(segment: Segment) -> tuple[str, Hashable]:
    """What a translation is of, as far as that is known."""
    if segment.source is not None:
        return "source", segment.source
    if segment.references:
        return "references", segment.references
    return "translation", segment.hypothesis
