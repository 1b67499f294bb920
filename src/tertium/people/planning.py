"""Make a campaign from a test set: items, context, attention checks and assignments.

Attention checks repeat a chosen output with visible damage (the rules of `tertium meta challenge`).
A rater passes if the damaged output gets a lower score than the original.

Distribute the items of a campaign to raters: blinded, shuffled, with a common part.

Each translation is judged by `overlap` raters. Items of one document go to the same raters and
stay together in document order. Systems are shown in an order of their own for each rater and
item. All random choices follow from the seed.

Choose the segments to judge, each with the same probability.

Every method is systematic sampling: the segments are put into an order and taken at equal distances
from a random start. The sample has the requested size, and means of its segments are unbiased.

    random        random order
    stratified    ordered by stratum: every stratum gets its share
    documents     whole documents in random order
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

import numpy as np

from tertium.checks.check_settings import read_terms
from tertium.core.arrays import IntArray
from tertium.core.errors import DataError, UnknownNameError, UsageError
from tertium.core.fields import choices
from tertium.core.resampling import make_rng
from tertium.core.spans import Span
from tertium.data.records import ITEM_NAMES
from tertium.data.slices import slice_testset
from tertium.data.testset import TestSet, check_testset
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric
from tertium.people.campaign import (
    PROTOCOL_TEXTS,
    PROTOCOLS,
    PROTOCOLS_WITH_SPANS,
    SIDE_BY_SIDE_PROTOCOLS,
    Assignment,
    Campaign,
    CampaignItem,
    DisplayOptions,
    GlossaryTerm,
    Neighbor,
    Protocol,
)
from tertium.text.language_codes import LANGUAGE_NAMES
from tertium.text.perturbations import PerturbationInput, perturb

# damage that an attentive rater cannot overlook, the most specific first
CHECK_KINDS = ("untranslated part", "truncation", "addition", "word order", "unrelated")
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
    show_reference: bool = False
    context_size: int = 0
    instructions: str = ""
    glossary: Sequence[GlossaryTerm] = ()
    seed: int = 12345


def read_glossary(path: str, source: str = "", target: str = "") -> list[GlossaryTerm]:
    """Read the terms that raters see, as `check_settings.read_terms` does; "" has none."""
    terms = [term for term in read_terms(path, source, target) if term.targets]
    return [GlossaryTerm(source=term.source, target=" | ".join(term.targets)) for term in terms]


def plan_campaign(
    testset: TestSet,
    segments: int | None = None,
    *,
    choose: Method = "random",
    strata: Sequence[str] = (),
    suspicions: str | Metric | None = None,
    **settings: Any,
) -> Campaign:
    """Choose segments of a test set and make a campaign for raters.

    Parameters
    ----------
    testset
        Sources, outputs of all systems, and optionally references and documents.
    segments
        The number of segments to judge. By default, all of them.
    choose
        "random", "stratified" or "documents" (whole documents).
    strata
        Columns of the test set, "document", "length" or "language", for stratified choice.
    suspicions
        A metric that marks errors, which raters see marked in advance.
    **settings
        The fields of `tertium.people.planning.CampaignSettings`: `raters` (names), `protocol`
        ("da", "esa", "mqm", "ranking", "contrastive-esa" or "post-edit"), `overlap` (raters of each
        segment), `common` (segments for all raters), `checks`, `show_reference`,
        `context_size`, `instructions`, `glossary`, `name`, `source_language`, `target_language`,
        and `seed`. The same seed gives the same campaign.

    Returns
    -------
    Campaign
        The campaign; `tertium.people.campaign.write_campaign` writes it to a file.

    Examples
    --------
    >>> testset = TestSet.from_lists({"a": ["Hallo", "Ja"], "b": ["Na", "Nein"]}, ["Hello", "Yes"])
    >>> plan_campaign(testset, 1, raters=["anna"], protocol="da").raters
    ('anna',)
    """
    check_testset(testset)
    chosen = CampaignSettings(**settings)
    if chosen.protocol not in PROTOCOLS:
        raise UnknownNameError("protocol", chosen.protocol, PROTOCOLS)
    if not (testset.sources or testset.references):
        raise DataError("raters need sources or references: give -s or -r")
    size = len(testset)
    rows = choose_segments(
        size,
        size if segments is None else min(segments, size),
        make_rng(chosen.seed),
        method=choose,
        documents=testset.documents,
        strata=_read_strata(testset, strata) if choose == "stratified" else (),
    ).tolist()
    marker = load_metric(suspicions) if isinstance(suspicions, str) else suspicions
    marks: dict[str, Sequence[Sequence[Span]]] = {}
    if marker is not None and chosen.protocol in PROTOCOLS_WITH_SPANS:
        marks = {name: marker.mark_errors(testset.segments(name)) for name in testset.systems}
    rng = make_rng(chosen.seed, CHECK_STREAM)
    items = [_make_item(testset, row, chosen.context_size, marks) for row in rows]
    items += _make_checks(items, chosen, rng)
    return Campaign(
        name=chosen.name,
        protocol=chosen.protocol,
        seed=chosen.seed,
        source_language=chosen.source_language,
        target_language=chosen.target_language,
        instructions=chosen.instructions or default_instructions(chosen),
        options=DisplayOptions(
            show_reference=chosen.show_reference,
            context_size=chosen.context_size,
            suspicions=marker.spec if marker is not None else "",
        ),
        glossary=tuple(chosen.glossary),
        systems=tuple(testset.systems),
        items=tuple(items),
        raters=tuple(chosen.raters),
        assignments=assign_items(items, chosen),
    )


def _read_strata(testset: TestSet, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the labels of each segment in the named columns."""
    names = names or ["document" if testset.documents else "length"]
    labels = [slice_testset(testset, name).labels for name in names]
    return [*zip(*labels, strict=True)]


def default_instructions(settings: CampaignSettings) -> str:
    """Return the instructions of the protocol, with the languages if they are known."""
    codes = (settings.source_language, settings.target_language)
    names = [LANGUAGE_NAMES.get(code, code) for code in codes]
    languages = f"Translation from {names[0]} to {names[1]}. " if all(names) else ""
    return f"{languages}{PROTOCOL_TEXTS[settings.protocol]['instructions']}"


def _make_item(
    testset: TestSet, row: int, context_size: int, marks: Mapping[str, Sequence[Sequence[Span]]]
) -> CampaignItem:
    document = testset.documents[row] if testset.documents else ""
    rows = [n for n, name in enumerate(testset.documents) if document and name == document]
    position = rows.index(row) if rows else row
    references = testset.references[row] if testset.references else ()
    return CampaignItem(
        id=testset.items[row],
        document=document,
        position=position,
        source=testset.sources[row] if testset.sources else None,
        reference=references[0] if references else None,
        outputs=_outputs(testset, row),
        before=_neighbors(testset, rows[max(0, position - context_size) : position]),
        after=_neighbors(testset, rows[position + 1 : position + 1 + context_size]),
        suspected={name: tuple(spans[row]) for name, spans in marks.items() if spans[row]},
        labels={k: labels[row] for k, labels in testset.columns.items() if k not in ITEM_NAMES},
    )


def _neighbors(testset: TestSet, rows: Sequence[int]) -> tuple[Neighbor, ...]:
    sources = testset.sources or [""] * len(testset)
    return tuple(Neighbor(source=sources[n], outputs=_outputs(testset, n)) for n in rows)


def _outputs(testset: TestSet, row: int) -> dict[str, str]:
    return {system: texts[row] for system, texts in testset.systems.items()}


def _make_checks(
    items: Sequence[CampaignItem], settings: CampaignSettings, rng: np.random.Generator
) -> list[CampaignItem]:
    """Return copies of random items with one damaged output each."""
    damaged = _damage_items(items, settings.target_language, rng)
    checks = [
        replace(check, id=f"check-{number}")
        for number, check in enumerate(islice(damaged, settings.checks), 1)
    ]
    if len(checks) < settings.checks:
        raise DataError(
            f"{settings.checks} attention checks, but only {len(checks)} of the chosen segments "
            "are long enough to be damaged: ask for fewer checks (--checks)"
        )
    return checks


def _damage_items(
    items: Sequence[CampaignItem], language: str, rng: np.random.Generator
) -> Iterator[CampaignItem]:
    """Yield copies of random items with one damaged output.

    Kinds take turns, and one that does not apply is passed over.
    """
    turn = 0
    for number in rng.permutation(len(items)):
        item = items[number]
        other = items[(number + 1) % len(items)]
        system = [*item.outputs][int(rng.integers(len(item.outputs)))]
        original = PerturbationInput(
            text=item.outputs[system],
            language=language,
            source=item.source or "",
            other=next(iter(other.outputs.values())) if other is not item else "",
            foreign="",  # for no kind of CHECK_KINDS
        )
        for n in range(len(CHECK_KINDS)):
            kind = CHECK_KINDS[(turn + n) % len(CHECK_KINDS)]
            if kind == "untranslated part" and not original.source.strip():
                continue
            text = perturb(original, kind, rng)
            if text and text.strip():
                yield CampaignItem(
                    id=item.id,
                    source=item.source,
                    reference=item.reference,
                    outputs={system: text},
                    kind="check",
                    damage={system: kind},
                    original=item.id,
                )
                turn += 1
                break


def assign_items(
    items: Sequence[CampaignItem], settings: CampaignSettings
) -> dict[str, tuple[Assignment, ...]]:
    """Return the assignments of each rater.

    Checks are judged by the raters of their original, some time after it.
    """
    raters = settings.raters
    overlap = settings.overlap
    protocol = settings.protocol
    if not 1 <= overlap <= len(raters):
        raise UsageError(
            f"{overlap} raters for each item, but {len(raters)} raters: expected 1 to {len(raters)}"
        )
    rng = make_rng(settings.seed, ASSIGNMENT_STREAM)
    by_document: dict[str, list[CampaignItem]] = {}
    checks: dict[str, list[CampaignItem]] = {}  # by original
    for item in items:
        if item.kind == "check":
            checks.setdefault(item.original, []).append(item)
        else:
            by_document.setdefault(item.document or f"\0{item.id}", []).append(item)
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
        assignments[rater] = tuple(turns)
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
    systems = dict.fromkeys(system for item in document for system in item.outputs)
    turns = []
    for system in map(str, rng.permutation([*systems])):
        translated = [item for item in document if system in item.outputs]
        turns += [Assignment(item=item.id, systems=(system,)) for item in translated]
    return turns


Method = Literal["random", "stratified", "documents"]
METHODS: tuple[Method, ...] = choices(Method)


def choose_segments(
    population: int,
    count: int,
    rng: np.random.Generator,
    *,
    method: Method = "random",
    documents: Sequence[str] = (),
    strata: Sequence[tuple[str, ...]] = (),
) -> IntArray:
    """Return `count` of `population` segments in ascending order, by a method of this module.

    `strata` has the labels of each segment; segments with the same labels are one stratum. With
    `documents` the number of segments is that of whole documents, close to `count`.
    """
    if method not in METHODS:
        raise UnknownNameError("way to choose segments", method, METHODS)
    if not 1 <= count <= population:
        raise UsageError(f"{count} segments cannot be chosen from {population}")
    order: IntArray = rng.permutation(population)
    if method == "documents":
        if len(documents) != population:
            raise UsageError("whole documents need the document of each segment (--documents FILE)")
        names, numbers = np.unique(documents, return_inverse=True)
        size = min(len(names), max(1, round(count / population * len(names))))
        chosen = rng.permutation(len(names))[draw_systematic(len(names), size, rng)]
        return np.flatnonzero(np.isin(numbers, chosen))
    if method == "stratified":
        groups = np.unique(["\t".join(labels) for labels in strata], return_inverse=True)[1]
        order = order[np.argsort(groups[order], kind="stable")]
    return np.sort(order[draw_systematic(population, count, rng)])


def draw_systematic(population: int, count: int, rng: np.random.Generator) -> IntArray:
    """Return `count` positions at equal distances, from a random start."""
    positions = (rng.random() + np.arange(count)) * (population / count)
    return positions.astype(np.int64)
