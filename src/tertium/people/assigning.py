"""Distribute the items of a campaign to raters: blinded, shuffled, with a common part.

Each translation is judged by `overlap` raters. Items of one document go to the same raters and
stay together in document order. Systems are shown in an order of their own for each rater and
item. All random choices follow from the seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tertium.core.errors import UsageError
from tertium.core.resampling import make_rng
from tertium.people.campaign import (
    SIDE_BY_SIDE_PROTOCOLS,
    Assignment,
    CampaignItem,
    GlossaryTerm,
    Protocol,
)

ASSIGNMENT_STREAM, CHECK_STREAM = 1, 2  # numbers of random generators


@dataclass(frozen=True, kw_only=True)
class CampaignSettings:
    """Choices for a campaign; `overlap` raters judge each item and all raters the `common` ones."""

    raters: Sequence[str]
    protocol: Protocol = "esa"
    name: str = "campaign"
    source_language: str = ""
    target_language: str = ""
    overlap: int = 1
    common: int = 0
    checks: int = 0
    tutorials: bool = False
    show_reference: bool = False
    context_size: int = 0
    instructions: str = ""
    glossary: Sequence[GlossaryTerm] = ()
    seed: int = 12345


def assign_items(
    items: Sequence[CampaignItem], settings: CampaignSettings
) -> dict[str, tuple[Assignment, ...]]:
    """Return the assignments of each rater; tutorials come first.

    Checks are judged by the raters of their original, some time after it.
    """
    raters, overlap, protocol = settings.raters, settings.overlap, settings.protocol
    if not 1 <= overlap <= len(raters):
        raise UsageError(
            f"{overlap} raters for each item, but {len(raters)} raters: expected 1 to {len(raters)}"
        )
    rng = make_rng(settings.seed, ASSIGNMENT_STREAM)
    by_document: dict[str, list[CampaignItem]] = {}
    checks: dict[str, list[CampaignItem]] = {}  # by original
    tutorials = [item for item in items if item.kind == "tutorial"]
    for item in items:
        if item.kind == "item":
            by_document.setdefault(item.document or f"\0{item.id}", []).append(item)
        elif item.kind == "check":
            checks.setdefault(item.original, []).append(item)
    documents = [sorted(group, key=lambda item: item.position) for group in by_document.values()]
    documents_of: dict[str, list[list[CampaignItem]]] = {rater: [] for rater in raters}
    loads = dict.fromkeys(raters, 0)
    shared = 0
    for number in rng.permutation(len(documents)):
        document = documents[number]
        is_common = shared < settings.common  # whole documents, until there are enough items
        shared += len(document)
        by_load = sorted(raters, key=lambda name: (loads[name], rng.random()))
        for rater in by_load[: len(raters) if is_common else overlap]:
            documents_of[rater].append(document)
            loads[rater] += sum(len(item.outputs) for item in document)
    assignments = {}
    for number, rater in enumerate(raters):
        rng = make_rng(settings.seed, ASSIGNMENT_STREAM, number)
        turns: list[Assignment] = []
        for place in rng.permutation(len(documents_of[rater])):
            turns += _show(documents_of[rater][place], protocol, rng)
        assigned = [item.id for document in documents_of[rater] for item in document]
        for check in (check for name in assigned for check in checks.get(name, ())):
            last = max(n for n, turn in enumerate(turns) if turn.item == check.original)
            place = int(rng.integers(last + 1, len(turns) + 1))
            turns[place:place] = _show([check], protocol, rng)
        first: list[Assignment] = []
        for item in tutorials:
            first += _show([item], protocol, rng)
        assignments[rater] = (*first, *turns)
    return assignments


def _show(
    document: Sequence[CampaignItem], protocol: str, rng: np.random.Generator
) -> list[Assignment]:
    """Return the turns of one document: side by side, or one system after the other."""
    if protocol in SIDE_BY_SIDE_PROTOCOLS:
        return [
            Assignment(item=item.id, systems=tuple(map(str, rng.permutation([*item.outputs]))))
            for item in document
        ]
    systems = [*dict.fromkeys(system for item in document for system in item.outputs)]
    return [
        Assignment(item=item.id, systems=(str(system),))
        for system in rng.permutation(systems)
        for item in document
        if system in item.outputs
    ]
