"""The segments that golden scores are about."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from tests import gallery

from tertium.core.segment import Segment
from tertium.data.testset import TestSet

EXAMPLES = Path(__file__).parents[2] / "examples"
LONG_WORDS = 450
VOCABULARY = (
    "river garden letter window market doctor winter bridge morning paper the of and a to in was "
    "that it he she they had with for on running houses quickly , ."
).split()
RARE = [
    # nothing on one side or both
    Segment("", "nichts", ("nothing",)),
    Segment("something", "etwas", ("",)),
    Segment("something", "", ("anything",)),
    Segment("", "", ("",)),
    Segment("nothing", "nichts", ("", "nothing", "nothing at all")),
    Segment("   ", "nichts", ("nothing",)),
    # several references
    Segment("the cat sat", "die Katze sass", ("a cat sat", "the cat was sitting", "the cat sat")),
    Segment("the cat sat", "die Katze sass", ("a cat sat", "a cat sat")),
    # repeated
    *[Segment("a dog barked", "ein Hund bellte", ("the dog was barking",))] * 3,
    # wrong, untranslated, too long, too short
    Segment("Der Zug ist heute zu spät.", "Der Zug ist heute zu spät.", ("The train is late.",)),
    Segment("Le train est en retard.", "Der Zug ist zu spät.", ("The train is late today.",)),
    Segment("The The The The The The The", "Der Zug.", ("The train.",)),
    Segment("Yes.", "Ja, wir haben alle Fragen beantwortet und kommen um 17.30 Uhr nach Berlin.",
            ("Yes, we have answered all questions and will come to Berlin at 5:30 pm.",)),
    Segment("We come to Berlin at 7:30 pm.", "Wir kommen um 17.30 Uhr nach Berlin.",
            ("We will come to Berlin at 5:30 pm.",)),
    # placeholders, tags, numbers, brackets
    Segment("You have {n} new messages", "Sie haben {count} neue Nachrichten",
            ("You have {count} new messages",)),
    Segment("Press <b>Save to go on.", "Drücken Sie <b>Speichern</b>, um fortzufahren.",
            ("Press <b>Save</b> to continue.",)),
    Segment("It costs 1.947 euros (", "Es kostet 1974 Euro.", ("It costs 1,974 euros.",)),
    Segment("see https://example.org/a", "siehe https://example.org/b",
            ("see https://example.org/b",)),
    # scripts and normal forms
    Segment("Cafe\u0301 Zoe\u0308", "Café Zoë", ("Café Zoë",)),
    Segment("猫坐在垫子上。", "the cat sits on the mat.", ("一只猫坐在垫子上。", "猫咪坐着")),
    Segment("Кошка сидит на ковре.", "The cat sits on the carpet.", ("Кот сидел на коврике.",)),
    Segment("القطة على السجادة", "The cat is on the carpet.", ("القط يجلس على السجادة",)),
]  # fmt: skip


def long_segment(count: int, references: int) -> Segment:
    """Return a segment of pseudo-random words; the references differ in words and in order."""
    rng = random.Random(count)
    words = [rng.choice(VOCABULARY) for _ in range(count)]
    texts = []
    for _ in range(references):
        cut = rng.randrange(count)
        changed = [*words[cut:], *words[:cut]]
        for place in rng.sample(range(count), count // 10):
            changed[place] = rng.choice(VOCABULARY)
        texts.append(" ".join(changed))
    return Segment(" ".join(words), "Das ist ein langer Text. " * (count // 5), tuple(texts))


@cache
def sample() -> tuple[Segment, ...]:
    """Return rare cases, lines of the example, and some texts of the gallery."""
    example = TestSet.read(
        [EXAMPLES / f"system-{name}.en.txt" for name in ("fair", "poor")],
        [EXAMPLES / "reference-a.en.txt", EXAMPLES / "reference-b.en.txt"],
        EXAMPLES / "source.de.txt",
    )
    rng = np.random.default_rng(31)
    uneven = gallery.SHAPES["uneven references"](lambda: str(rng.choice(gallery.SHORT)), rng)
    segments = [
        *RARE,
        *(s for system in example.systems for s in example.segments(system)[:6]),
        *(replace(s, context=None) for name in uneven.systems for s in uneven.segments(name)),
    ]
    return tuple(segments)


@cache
def sample_with_a_long_text() -> tuple[Segment, ...]:
    """Return the sample, a long text, and every second text of the gallery."""
    texts = gallery.whole_gallery(in_turn=True)
    short_texts = [s for s in texts.segments("a") if len(s.hypothesis) <= 1000]
    return (*sample(), long_segment(LONG_WORDS, 1), *short_texts[::2])


@cache
def everything() -> tuple[Segment, ...]:
    """Return the sample, long texts, and every text of the gallery."""
    texts = gallery.whole_gallery(in_turn=True)
    long_texts = (long_segment(LONG_WORDS, 1), long_segment(LONG_WORDS + 1, 2))
    return (*sample(), *long_texts, *texts.segments("a"))


def with_inputs(segments: tuple[Segment, ...], inputs: str) -> list[Segment]:
    """Return segments with only some inputs: "reference", "source" or "both"."""
    if inputs == "reference":
        return [replace(segment, source=None) for segment in segments]
    if inputs == "source":
        return [replace(segment, references=()) for segment in segments]
    return list(segments)
