"""Check laws on random inputs: `make fuzz`, with FUZZ_SECONDS and FUZZ_SEED.

Each round draws a subject (sometimes with other settings), a shape and unusual texts, scores them
once and checks the laws. A violation is shrunk, printed as a command and saved in
`tests/fuzz/found.jsonl`. Every test run checks saved violations again.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tests import gallery
from tests.laws.field_laws import setting_variants
from tests.laws.table import LAWS, Law, check_law
from tests.laws.trial import LawViolation, Subject, Trial, can_run, missing_resource, subjects
from tests.laws.violations import Violation, parse_violation, save_violation, shrink_violation

from tertium.data.testset import TestSet

MANY_SEGMENTS = 20  # segments of most rounds; one call costs nearly as much as many
EXPENSIVE_SHARE = 0.15  # fraction of rounds that run expensive laws
OTHER_SETTINGS_SHARE = 0.25
LONG_TEXT_SHARE = 0.002  # fraction of texts; they cost as much as hundreds of others
SHRINK_SECONDS = 60.0  # seconds for one violation


def draw_text(rng: np.random.Generator) -> str:
    """Draw a text of the gallery, two of them joined, or one with changed characters."""
    if rng.random() < LONG_TEXT_SHARE:
        return gallery.LONG[rng.integers(len(gallery.LONG))]
    text = gallery.SHORT[rng.integers(len(gallery.SHORT))]
    chance = rng.random()
    if chance < 0.25:
        other = gallery.SHORT[rng.integers(len(gallery.SHORT))]
        text = text + ("", " ", "\t", "\n", "\u3000")[rng.integers(5)] + other
    elif chance < 0.45:
        place = int(rng.integers(len(text) + 1))
        text = text[:place] + random_character(rng) + text[place + int(rng.integers(2)) :]
    elif chance < 0.55:
        text = text[:40] * int(rng.integers(1, 5))
    return text


def random_character(rng: np.random.Generator) -> str:
    """Draw any character of a text file; the first Unicode planes are as likely as all others."""
    while True:
        code = int(rng.integers(1, (0x250, 0x3000, 0x110000)[rng.integers(3)]))
        if not 0xD800 <= code <= 0xDFFF:
            return chr(code)


def draw_testset(rng: np.random.Generator) -> TestSet:
    """Draw a shape and its texts; half of the hypotheses are similar to their reference."""
    shapes = [*gallery.SHAPES, *["many segments"] * 4]
    shape = shapes[rng.integers(len(shapes))]
    make = gallery.SHAPES.get(shape, many_segments)
    testset = make(lambda: draw_text(rng), rng)
    systems = {
        name: [
            mix_with_reference(text, refs, rng)
            for text, refs in zip(texts, testset.references, strict=True)
        ]
        for name, texts in testset.systems.items()
    }
    if shape == "identical systems":
        systems["same"] = systems["s1"]
    return TestSet(systems, testset.references, testset.sources, testset.documents)


def many_segments(draw: gallery.Draw, rng: np.random.Generator) -> TestSet:
    """Two systems, many segments with one or two references."""
    return gallery.parallel(
        draw, systems=2, references=[1 + (n % 5 == 0) for n in range(MANY_SEGMENTS)]
    )


def mix_with_reference(text: str, references: list[str], rng: np.random.Generator) -> str:
    """Return the text, a reference, or a reference mixed with the text."""
    chance, reference = rng.random(), references[rng.integers(len(references))]
    if chance < 0.2:
        return reference
    return f"{reference} {text}"[:5000] if chance < 0.4 else text


class Campaign:
    """A fuzzing run: counts by law, and violations."""

    def __init__(self, seed: int, save: bool, only: str = "") -> None:
        self.seed, self.save = seed, save
        candidates = [s for s in subjects() if not only or s.spec == only]
        self.subjects = [s for s in candidates if not missing_resource(s)]
        self.settings = {s: setting_variants(s) for s in self.subjects}
        self.cases: Counter[str] = Counter()
        self.violations: list[Violation] = []
        self.reported: set[tuple[str, str]] = set()

    def run(self, seconds: float) -> None:
        start, number = time.monotonic(), 0
        while time.monotonic() - start < seconds:
            self.round(self.subjects[number % len(self.subjects)], number)
            number += 1
            if sys.stderr.isatty():
                print(f"\r{sum(self.cases.values())} cases", end="", file=sys.stderr)

    def round(self, subject: Subject, number: int) -> None:
        """Check the laws on one subject and one test set."""
        rng = np.random.default_rng([self.seed, number])
        testset = draw_testset(rng)
        variants = self.settings[subject]
        if variants and rng.random() < OTHER_SETTINGS_SHARE:
            changed = variants[rng.integers(len(variants))]
            subject = changed if can_run(changed) else subject
        seed = int(rng.integers(1 << 30))
        with tempfile.TemporaryDirectory() as folder:
            trial = Trial(subject, testset, seed, Path(folder))
            for law in draw_laws(rng):
                self.check_one(law, trial)

    def check_one(self, law: Law, trial: Trial) -> None:
        try:
            self.cases[str(law)] += check_law(law, trial)
        except LawViolation as violation:
            key = (str(law), trial.subject.spec)
            if key not in self.reported:
                self.reported.add(key)
                print(f"VIOLATION {violation}", flush=True)
                self.add(law, trial)

    def add(self, law: Law, trial: Trial) -> None:
        violation = shrink_violation(law, trial.subject, trial.testset, trial.seed, SHRINK_SECONDS)
        self.violations.append(violation)
        if self.save:
            save_violation(violation)
        print(f"  {violation.fault}\n  {violation.command}", flush=True)

    def summary(self) -> Iterator[str]:
        """Yield the numbers of cases by operation and law."""
        yield from (f"{self.cases[str(law)]:>9,}  {law}" for law in LAWS)
        yield f"{sum(self.cases.values()):>9,}  cases of {len(self.subjects)} metrics and rankers"
        yield f"{len(self.violations):>9,}  violations (seed {self.seed})"


def draw_laws(rng: np.random.Generator) -> list[Law]:
    """Return all cheap laws and some of the expensive ones."""
    return [law for law in LAWS if not law.is_expensive or rng.random() < EXPENSIVE_SHARE]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("FUZZ_SECONDS", 60)))
    parser.add_argument("--seed", type=int, default=int(os.environ.get("FUZZ_SEED", 1)))
    parser.add_argument(
        "--only", default="", metavar="SPEC", help="check only this metric or ranker"
    )
    parser.add_argument("--no-save", action="store_true", help="do not save violations")
    parser.add_argument("--replay", metavar="JSON", help="check one printed violation again")
    args = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    if args.replay:
        print(f"{parse_violation(args.replay).recheck()} cases passed")
        return 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
        os.environ["TERTIUM_CACHE"] = cache
        campaign = Campaign(args.seed, save=not args.no_save, only=args.only)
        campaign.run(args.seconds)
    print("\n".join(campaign.summary()))
    return 1 if campaign.violations else 0


if __name__ == "__main__":
    sys.exit(main())
