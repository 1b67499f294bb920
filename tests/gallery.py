"""Difficult texts by kind, and the shapes of test sets that are built from them.

`TEXTS` holds texts of each kind that has broken tools before. `SHAPES` maps names to functions that
arrange texts as systems, references and sources. The laws in `tests/laws` try all of them on every
metric.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tertium.data.testset import TestSet

# All Unicode separators (in the first plane), and characters that look like separators.
BLANKS = [chr(n) for n in range(1 << 16) if unicodedata.category(chr(n))[0] == "Z"]
INVISIBLE = ["\u180e", "\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u3164"]

TEXTS: Mapping[str, tuple[str, ...]] = {
    "empty": ("",),
    "blank": ("   ", "\t", *BLANKS),
    "invisible": tuple(INVISIBLE),
    "one character": ("a", "A", "é", "ß", "中", "I", "ı", "ﬁ"),
    "punctuation": (".", "...", "?!", "- -- —", "„“”‘’", "(((", "'", '"', "&", "%", "\\", "|"),
    "numbers": ("0", "-1", "3.5", "1,000,000", "1e308", "١٢٣", "½", "2026-11-15", "٪", "1e999",
                "9" * 400, "VII"),
    "emoji": ("😀", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇫🇷", "👍🏽 ok", "❤️"),
    "combining": ("\u0301", "e\u0301", "Z\u0351\u036b\u0343a\u0328l\u0327go", "ก็็็็", "\u20dd"),
    "right to left": ("שלום עולם", "مرحبا بالعالم", "\u202eabc\u202c", "\u200f", "\u2066x\u2069",
                      "a\u202b ב \u202c"),
    "no blanks": ("猫坐在垫子上", "私は猫です。", "แมวนั่งบนเสื่อ", "ខ្មែរ", "မြန်မာ"),
    "control": ("\x01", "\x07bell", "a\x1bb", "line\nbreak", "carriage\rreturn", "form\x0cfeed",
                "\x85", "a\u2028b", "\x7f", "tab\tbed"),
    "private use": ("\ue000", "\uf8ff x", "\U000f0000", "\ufffd", "\ufffe", "\U0010ffff"),
    "long word": ("x" * 5000, "ab" * 700),
    "many words": (" ".join(f"w{n % 50}" for n in range(1000)), "the " * 300),
    "HTML": ("<b>bold</b>", "</script><script>alert(1)</script>", "&lt;&amp;&#0;", "<!-- ",
             "<img src=x onerror=alert(1)>", "]]>"),
    "LaTeX": ("$x^2$", "\\textbf{a} & b \\\\", "\\end{tabular}", "100\\% {", "~\\#_^"),
    "special tokens": ("[CLS]", "[SEP] a [PAD]", "<unk>", "</s>", "[MASK]", "<s> a </s>", "##ing",
                       "▁the"),
    "not a number": ("nan", "NaN", "inf", "-Infinity", "null", "None", "true"),
    "markup of files": ("a\tb", '"a","b"', "# comment", "=1+1", "{}", "a|b|c", "`x`", "* x"),
    "plain": ("the cat sat on the mat", "The cat sat on a mat .", "a dog barked", "he went home .",
              "It costs 3.5 million euros.", "They said nothing, and nobody asked them why."),
}  # fmt: skip

ALL: tuple[str, ...] = tuple(dict.fromkeys(text for texts in TEXTS.values() for text in texts))
# texts no longer than a sentence
SHORT: tuple[str, ...] = tuple(text for text in ALL if len(text) <= 100)
LONG: tuple[str, ...] = tuple(text for text in ALL if text not in SHORT)

Draw = Callable[[], str]


def one_segment(draw: Draw, rng: np.random.Generator) -> TestSet:
    """One system, one segment."""
    return TestSet(systems={"a": [draw()]}, references=[[draw()]], sources=[draw()])


def two_segments(draw: Draw, rng: np.random.Generator) -> TestSet:
    """Two systems, two segments."""
    return parallel(draw, systems=2, references=[1, 1])


def identical_systems(draw: Draw, rng: np.random.Generator) -> TestSet:
    """Three systems, two of which are identical."""
    testset = parallel(draw, systems=2, references=[1] * 5)
    copy = testset.systems["s1"]
    return TestSet({**testset.systems, "same": copy}, testset.references, testset.sources)


def uneven_references(draw: Draw, rng: np.random.Generator) -> TestSet:
    """A different number of references for each segment, with documents."""
    counts = [int(n) for n in rng.integers(1, 5, size=6)]
    testset = parallel(draw, systems=2, references=counts)
    documents = ["d1", "d1", "d2", "d3", "d3", "d3"]
    return TestSet(testset.systems, testset.references, testset.sources, documents)


def twenty_systems(draw: Draw, rng: np.random.Generator) -> TestSet:
    """Twenty systems, three segments."""
    return parallel(draw, systems=20, references=[1, 2, 1])


def parallel(draw: Draw, *, systems: int, references: Sequence[int]) -> TestSet:
    count = len(references)
    return TestSet(
        systems={f"s{n}": [draw() for _ in range(count)] for n in range(systems)},
        references=[[draw() for _ in range(n)] for n in references],
        sources=[draw() for _ in range(count)],
    )


SHAPES: Mapping[str, Callable[[Draw, np.random.Generator], TestSet]] = {
    function.__name__.replace("_", " "): function
    for function in (
        one_segment, two_segments, identical_systems, uneven_references, twenty_systems,
    )
}  # fmt: skip


def whole_gallery(*, in_turn: bool = False) -> TestSet:
    """Pair every text with itself, with a short text, and as reference of a plain text.

    `in_turn` uses each text in only one of these pairs.
    """
    plain, short_texts = TEXTS["plain"][0], [SHORT[(n + 1) % len(SHORT)] for n in range(len(ALL))]
    rows = []
    for n, (text, other) in enumerate(zip(ALL, short_texts, strict=True)):
        pairs = [(text, text), (plain, text), (text, plain if in_turn else other)]
        selected = pairs[n % 3 :][:1] if in_turn and text else pairs
        rows += [(hypothesis, reference, other) for hypothesis, reference in selected]
    hypotheses, references, sources = zip(*rows, strict=True)
    return TestSet({"a": hypotheses}, [[text] for text in references], sources)
