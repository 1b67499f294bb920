"""Make a campaign from a test set: items, context, attention checks, tutorials and assignments.

Attention checks repeat a chosen output with visible damage (the rules of `tertium meta challenge`).
A rater passes if the damaged output gets a lower score than the original. Tutorials show a
reference and a damaged reference, with an explanation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tertium.core.arrays import IntArray
from tertium.core.errors import DataError, UnknownNameError
from tertium.core.resampling import make_rng
from tertium.core.spans import Span
from tertium.data.challenge_sets import wrong_language_sentence
from tertium.data.records import ITEM_NAMES
from tertium.data.testset import TestSet
from tertium.people.assigning import CHECK_STREAM, assign_items
from tertium.people.campaign import (
    PROTOCOLS,
    PROTOCOLS_WITH_SPANS,
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
TUTORIAL_CORRECT = "This translation is correct. {correct}"
TUTORIAL_DAMAGED = "This translation has a serious error ({kind}). {damaged}"
_SCORE = "Give it a score from 0 (worst) to 100 (best). Use the whole scale."
_SPANS = (
    "Mark every error: minor if the meaning is kept, major if it is changed or hard to understand."
)
INSTRUCTIONS: Mapping[str, str] = {
    "da": f"Read the source and the translation. {_SCORE}",
    "esa": f"Read the source and the translation. {_SPANS} Then give a score. {_SCORE}",
    "mqm": f"Read the source and the translation. {_SPANS} Choose a category for each error.",
    "ranking": "Read the source and all translations. Order them from best to worst. Ties are "
    "allowed.",
    "contrastive-esa": f"Read the source and all translations. {_SPANS} Then give each a score. "
    f"{_SCORE}",
    "post-edit": "Read the source and correct the translation. Change as little as possible.",
}
TUTORIAL_ADVICE: Mapping[str, tuple[str, str]] = {  # for the correct and the damaged translation
    "da": ("Give it a score near 100.", "Give it a low score."),
    "esa": ("Mark nothing and give it a score near 100.", "Mark the error and give a low score."),
    "mqm": ("Mark nothing.", "Mark the error as major."),
    "ranking": ("Rank it first.", "Rank it last."),
    "post-edit": ("Leave it as it is.", "Correct the error."),
}


@dataclass(frozen=True, kw_only=True)
class CampaignSettings:
    """Choices for a campaign; `overlap` raters judge each item and all raters the `common` ones."""

    protocol: Protocol
    raters: Sequence[str]
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
    suspicions: str = ""
    suspected: Mapping[str, Sequence[Sequence[Span]]] = field(default_factory=dict)
    seed: int = 12345


def make_campaign(testset: TestSet, rows: IntArray, settings: CampaignSettings) -> Campaign:
    """Make a campaign of the chosen rows; the same seed gives the same campaign."""
    if settings.protocol not in PROTOCOLS:
        raise UnknownNameError("protocol", settings.protocol, PROTOCOLS)
    if not (testset.sources or testset.references):
        raise DataError("raters need sources or references: give -s or -r")
    items = [_make_item(testset, int(row), settings) for row in rows]
    rng = make_rng(settings.seed, CHECK_STREAM)
    language = settings.target_language
    extra = [
        *(_tutorial_items(testset, rows, settings, rng) if settings.tutorials else ()),
        *_check_items(items, settings.checks, language, rng),
    ]
    everything = [item for item in extra if item.kind == "tutorial"] + items
    everything += [item for item in extra if item.kind == "check"]
    assignments = assign_items(
        everything,
        settings.raters,
        settings.protocol,
        overlap=settings.overlap,
        common=settings.common,
        seed=settings.seed,
    )
    options = DisplayOptions(
        show_reference=settings.show_reference,
        context_size=settings.context_size,
        suspicions=settings.suspicions,
    )
    return Campaign(
        name=settings.name,
        protocol=settings.protocol,
        seed=settings.seed,
        source_language=settings.source_language,
        target_language=settings.target_language,
        instructions=settings.instructions or default_instructions(settings),
        options=options,
        glossary=tuple(settings.glossary),
        systems=tuple(testset.systems),
        items=tuple(everything),
        raters=tuple(settings.raters),
        assignments=assignments,
    )


def default_instructions(settings: CampaignSettings) -> str:
    """Return the instructions of the protocol, with the languages if they are known."""
    codes = (settings.source_language, settings.target_language)
    names = [LANGUAGE_NAMES.get(code, code) for code in codes]
    languages = f"Translation from {names[0]} to {names[1]}. " if all(names) else ""
    return languages + INSTRUCTIONS[settings.protocol]


def _make_item(testset: TestSet, row: int, settings: CampaignSettings) -> CampaignItem:
    document = testset.documents[row] if testset.documents else ""
    rows = [n for n, name in enumerate(testset.documents) if name == document] if document else []
    position = rows.index(row) if rows else row
    size = settings.context_size
    references = testset.references[row] if testset.references else ()
    labels = {name: values[row] for name, values in testset.columns.items()}
    return CampaignItem(
        id=testset.items[row],
        document=document,
        position=position,
        source=testset.sources[row] if testset.sources else None,
        reference=references[0] if references else None,
        outputs={system: outputs[row] for system, outputs in testset.systems.items()},
        before=tuple(_neighbor(testset, n) for n in rows[max(0, position - size) : position]),
        after=tuple(_neighbor(testset, n) for n in rows[position + 1 : position + 1 + size]),
        suspected={
            system: tuple(spans[row])
            for system, spans in settings.suspected.items()
            if settings.protocol in PROTOCOLS_WITH_SPANS and spans[row]
        },
        labels={name: label for name, label in labels.items() if name not in ITEM_NAMES},
    )


def _neighbor(testset: TestSet, row: int) -> Neighbor:
    outputs = {system: texts[row] for system, texts in testset.systems.items()}
    return Neighbor(source=testset.sources[row] if testset.sources else "", outputs=outputs)


def _check_items(
    items: Sequence[CampaignItem], count: int, language: str, rng: np.random.Generator
) -> list[CampaignItem]:
    """Return copies of random items with one damaged output each."""
    checks: list[CampaignItem] = []
    for number in rng.permutation(len(items)):
        if len(checks) == count:
            break
        item, other = items[number], items[(number + 1) % len(items)]
        systems = [*item.outputs]
        system = systems[int(rng.integers(len(systems)))]
        kind, text = _damage(item.outputs[system], item, other, language, rng, len(checks))
        if text is None:
            continue
        checks.append(
            CampaignItem(
                id=f"check-{len(checks) + 1}",
                source=item.source,
                reference=item.reference,
                outputs={system: text},
                kind="check",
                damage={system: kind},
                original=item.id,
            )
        )
    if len(checks) < count:
        raise DataError(
            f"{count} attention checks, but only {len(checks)} of the chosen segments are long "
            "enough to be damaged: ask for fewer checks (--checks)"
        )
    return checks


def _damage(
    text: str,
    item: CampaignItem,
    other: CampaignItem,
    language: str,
    rng: np.random.Generator,
    turn: int,
) -> tuple[str, str | None]:
    """Apply a kind of damage; kinds take turns, and one that does not apply is passed over."""
    original = PerturbationInput(
        text=text,
        language=language,
        source=item.source or "",
        other=next(iter(other.outputs.values())) if other is not item else "",
        foreign=wrong_language_sentence(turn, (language,)),
    )
    kinds = [CHECK_KINDS[(turn + n) % len(CHECK_KINDS)] for n in range(len(CHECK_KINDS))]
    for kind in kinds:
        if kind == "untranslated part" and not original.source.strip():
            continue
        changed = perturb(original, kind, rng)
        if changed and changed.strip():
            return kind, changed
    return "", None


def _tutorial_items(
    testset: TestSet, chosen: IntArray, settings: CampaignSettings, rng: np.random.Generator
) -> list[CampaignItem]:
    """Return a correct and a damaged reference, if possible of a segment that is not judged."""
    if not testset.references:
        raise DataError("tutorials show references as correct translations: give -r")
    rest = [n for n in range(len(testset)) if n not in set(chosen.tolist())]
    system = next(iter(testset.systems))
    correct, damaged = TUTORIAL_ADVICE.get(settings.protocol, TUTORIAL_ADVICE["esa"])
    for row in [*rng.permutation(rest or range(len(testset)))]:
        item = _make_item(testset, int(row), settings)
        other = _make_item(testset, (int(row) + 1) % len(testset), settings)
        if not (item.reference or "").strip():
            continue
        kind, text = _damage(str(item.reference), item, other, settings.target_language, rng, 0)
        if text is None:
            continue
        shared = {"source": item.source, "kind": "tutorial"}
        return [
            CampaignItem(
                id="tutorial-1",
                outputs={system: str(item.reference)},
                notes=TUTORIAL_CORRECT.format(correct=correct),
                expected={system: (80.0, 100.0)},
                **shared,  # type: ignore[arg-type]
            ),
            CampaignItem(
                id="tutorial-2",
                outputs={system: text},
                notes=TUTORIAL_DAMAGED.format(kind=kind, damaged=damaged),
                expected={system: (0.0, 60.0)},
                damage={system: kind},
                **shared,  # type: ignore[arg-type]
            ),
        ]
    raise DataError("no reference is long enough for a tutorial: leave out --tutorials")
