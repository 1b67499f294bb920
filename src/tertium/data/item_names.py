"""Item names: the names by which files refer to segments, made unique.

Files name segments by words, by numbers from 0 or 1, separately in each document, or not at all.
All readers apply the rules of this module, so that the items of test sets, judgments and scores
match.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import replace

from tertium.core.errors import DataError
from tertium.core.segment import Judgment, Segment


def has_duplicates_across_documents(names: Iterable[tuple[str, str]]) -> bool:
    """Return whether a name, given with its document, occurs in several documents."""
    documents: dict[str, str] = {}
    return any(documents.setdefault(name, document) != document for name, document in names)


def disambiguate_names(names: Sequence[str]) -> tuple[str, ...]:
    """Make names unique if at least half of them are; otherwise return an empty tuple.

    >>> disambiguate_names(["a", "b", "c", "", "c", "d"])
    ('a', 'b', 'c#1', '#4', 'c#2', 'd')
    """
    totals = Counter(names)
    counts = Counter[str]()
    if 2 * sum(totals[name] == 1 for name in names if name) < len(names):
        return ()
    unique = []
    for number, name in enumerate(names, start=1):
        counts[name] += 1
        is_unique = name and totals[name] == 1
        unique.append(name if is_unique else f"{name}#{counts[name] if name else number}")
    return tuple(unique) if len(set(unique)) == len(unique) else ()


def check_numbering_base(items: Collection[str], judged_names: Collection[str], label: str) -> None:
    """Raise an error if judgments count from 0 and `items` from 1, or the reverse.

    Every judgment would be off by one. This is assumed if the judgments include a segment just
    beyond one end of `items` and not the segment at the other end. If they include segments even
    further beyond, they are about a longer test set.
    """
    count = len(items)
    numbers, judged_numbers = (
        {name.lstrip("0") or name[:1] for name in names} for names in (items, judged_names)
    )
    start = next((n for n in (0, 1) if numbers == {str(k) for k in range(n, n + count)}), None)
    if start is None:
        return
    beyond, unused = ("0", str(count)) if start else (str(count), "0")
    is_longer_set = not start and any(
        name.isdecimal() and (len(name), name) > (len(beyond), beyond) for name in judged_numbers
    )
    if beyond in judged_numbers and unused not in judged_numbers and not is_longer_set:
        raise DataError(
            f"there are judgments of segment {beyond} and none of {unused}, but {label} are "
            f"numbered from {start} to {start + count - 1}: use the same numbers in both"
        )


def assign_item_names(judgments: Sequence[Judgment]) -> list[Judgment]:
    """Make item names unique for each text and language pair.

    If names repeat across documents, an item is `DOCUMENT:NAME`. If systems are named and items are
    not, items are identified by their texts. A name that stands for several texts becomes `x#1`,
    `x#2`, ...
    """
    if any(j.system for j in judgments) and not all(j.item for j in judgments):
        judgments = _name_by_texts(judgments)
    names: dict[str, list[tuple[str, str]]] = {}
    for j in judgments:
        names.setdefault(j.lp, []).append((j.item, j.document))
    repeating = {lp for lp, pairs in names.items() if has_duplicates_across_documents(pairs)}
    judgments = [
        replace(j, item=f"{j.document}:{j.item}") if j.lp in repeating else j for j in judgments
    ]
    # Within documents, different sources for one number mean that systems were aligned differently.
    # Elsewhere names are more reliable than sources: one system may have another spelling.
    owners = ["all" if j.lp in repeating else j.system for j in judgments]
    return _split_by_texts(judgments, owners)


def _name_by_texts(judgments: Sequence[Judgment]) -> list[Judgment]:
    """Name unnamed items #1, #2, ... by their source, or by their references without a source.

    A human translation among the systems lacks the reference that it is. Two translations of one
    text by the same system belong to two items.
    """
    unnamed = [j for j in judgments if not j.item]
    texts = [(j.lp, j.document, _original_text(j.segment)) for j in unnamed]
    systems = [j.system for j in unnamed]
    parts = _number_texts(texts, [j.segment.references or None for j in unnamed], systems)
    originals = zip(texts, parts, strict=True)
    outputs: dict[Hashable, dict[str, int]] = {}  # (text, system) -> translation -> index
    numbers: dict[Hashable, int] = {}
    renamed = []
    for j in judgments:
        if not j.item:
            text = next(originals)
            translations = outputs.setdefault((text, j.system), {})
            index = translations.setdefault(j.segment.hypothesis, len(translations))
            number = numbers.setdefault((text, index), len(numbers) + 1)
            j = replace(j, item=f"#{number}")
        renamed.append(j)
    return renamed


def _split_by_texts(judgments: Sequence[Judgment], owners: Sequence[str]) -> list[Judgment]:
    """Rename items for which an owner has several texts, so that each stands for one text."""
    items = [j.item for j in judgments]
    sources = [j.segment.source for j in judgments]
    references = [j.segment.references or None for j in judgments]
    systems = [j.system for j in judgments]
    for texts, text_owners in ((sources, owners), (references, systems)):
        names = [(j.lp, item) for j, item in zip(judgments, items, strict=True)]
        parts = _number_texts(names, texts, text_owners)
        items = [f"{i}#{part}" if part else i for i, part in zip(items, parts, strict=True)]
    return [
        j if item == j.item else replace(j, item=item)
        for j, item in zip(judgments, items, strict=True)
    ]


def _number_texts(
    names: Sequence[Hashable], texts: Sequence[Hashable], owners: Sequence[str]
) -> list[int]:
    """Number the texts of each name from 1 if an owner has several (None is the first); else 0."""
    owned: dict[tuple[Hashable, str], set[Hashable]] = {}
    for name, text, owner in zip(names, texts, owners, strict=True):
        if owner and text is not None:
            owned.setdefault((name, owner), set()).add(text)
    ambiguous = {name for (name, _), values in owned.items() if len(values) > 1}
    numbers: dict[Hashable, dict[Hashable, int]] = {name: {} for name in ambiguous}
    parts = []
    for name, text in zip(names, texts, strict=True):
        by_text = numbers.get(name)
        if by_text is None:
            parts.append(0)
        else:
            parts.append(1 if text is None else by_text.setdefault(text, len(by_text) + 1))
    return parts


def _original_text(segment: Segment) -> tuple[str, Hashable]:
    """Return what identifies the original text: source, references, or the translation itself."""
    if segment.source is not None:
        return "source", segment.source
    if segment.references:
        return "references", segment.references
    return "translation", segment.hypothesis
