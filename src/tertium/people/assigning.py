"""Distribute the items of a campaign to raters: blinded, shuffled, with a common part.

Each translation is judged by `overlap` raters. Items of one document go to the same raters and
stay together in document order. Systems are shown in an order of their own for each rater and
item. All random choices follow from the seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tertium.core.errors import UsageError
from tertium.core.resampling import make_rng
from tertium.people.campaign import SIDE_BY_SIDE_PROTOCOLS, Assignment, CampaignItem

ASSIGNMENT_STREAM, CHECK_STREAM = 1, 2  # numbers of random generators


def assign_items(
    items: Sequence[CampaignItem],
    raters: Sequence[str],
    protocol: str,
    *,
    overlap: int = 1,
    common: int = 0,
    seed: int = 12345,
) -> dict[str, tuple[Assignment, ...]]:
    """Return the assignments of each rater; tutorials come first.

    `common` items are judged by all raters, to measure agreement; the others by `overlap` raters.
    Checks are judged by the raters of their original, some time after it.
    """
    if not raters:
        raise UsageError("a campaign needs at least one rater")
    if not 1 <= overlap <= len(raters):
        raise UsageError(
            f"{overlap} raters for each item, but {len(raters)} raters: expected 1 to {len(raters)}"
        )
    rng = make_rng(seed, ASSIGNMENT_STREAM)
    groups = _group_by_document([item for item in items if item.kind == "item"])
    order = [groups[n] for n in rng.permutation(len(groups))]
    turns: dict[str, list[list[CampaignItem]]] = {rater: [] for rater in raters}
    loads = dict.fromkeys(raters, 0)
    is_common = _mark_common(order, common)
    for group, for_all in zip(order, is_common, strict=True):
        by_load = sorted(raters, key=lambda name: (loads[name], rng.random()))
        for rater in by_load[: len(raters) if for_all else overlap]:
            turns[rater].append(group)
            loads[rater] += sum(len(item.outputs) for item in group)
    tutorials = [item for item in items if item.kind == "tutorial"]
    checks: dict[str, list[CampaignItem]] = {}
    for item in items:
        if item.kind == "check":
            checks.setdefault(item.original, []).append(item)
    return {
        rater: _order_for_rater(rater, number, tutorials, turns[rater], checks, protocol, seed)
        for number, rater in enumerate(raters)
    }


def _group_by_document(items: Sequence[CampaignItem]) -> list[list[CampaignItem]]:
    groups: dict[str, list[CampaignItem]] = {}
    for item in items:
        groups.setdefault(item.document or f"\0{item.id}", []).append(item)
    return [sorted(group, key=lambda item: item.position) for group in groups.values()]


def _mark_common(groups: Sequence[Sequence[CampaignItem]], common: int) -> list[bool]:
    """Mark whole groups until `common` items are reached."""
    marks, count = [], 0
    for group in groups:
        marks.append(count < common)
        count += len(group) if marks[-1] else 0
    return marks


def _order_for_rater(
    rater: str,
    number: int,
    tutorials: Sequence[CampaignItem],
    groups: Sequence[Sequence[CampaignItem]],
    checks: Mapping[str, Sequence[CampaignItem]],
    protocol: str,
    seed: int,
) -> tuple[Assignment, ...]:
    rng = make_rng(seed, ASSIGNMENT_STREAM, number)
    turns = [
        turn
        for group in (groups[n] for n in rng.permutation(len(groups)))
        for turn in _show(group, protocol, rng)
    ]
    for item in [item for group in groups for item in group]:
        for check in checks.get(item.id, ()):
            last = max(n for n, turn in enumerate(turns) if turn.item == item.id)
            [turn] = _show([check], protocol, rng)
            turns.insert(int(rng.integers(last + 1, len(turns) + 1)), turn)
    first = [turn for item in tutorials for turn in _show([item], protocol, rng)]
    return (*first, *turns)


def _show(
    group: Sequence[CampaignItem], protocol: str, rng: np.random.Generator
) -> list[Assignment]:
    """Return the turns of one document: side by side, or one system after the other."""
    systems = list(dict.fromkeys(system for item in group for system in item.outputs))
    if protocol in SIDE_BY_SIDE_PROTOCOLS:
        return [Assignment(item=item.id, systems=_shuffle([*item.outputs], rng)) for item in group]
    return [
        Assignment(item=item.id, systems=(system,))
        for system in _shuffle(systems, rng)
        for item in group
        if system in item.outputs
    ]


def _shuffle(names: Sequence[str], rng: np.random.Generator) -> tuple[str, ...]:
    return tuple(names[n] for n in rng.permutation(len(names)))
