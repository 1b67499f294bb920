"""The laws at random: `make fuzz`, for FUZZ_SECONDS, from FUZZ_SEED.

Each round draws a subject, now and then under other settings, a shape, and hostile texts, whole or
mutated; scores them once and tries the laws of the table on the result. What fails is shrunk,
printed as one command and kept in `tests/fuzz/found.jsonl`, which the tests try again for ever.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tests import gallery
from tests.laws.field_laws import settings_of
from tests.laws.findings import Finding, keep_finding, read_finding, smallest
from tests.laws.table import LAWS, Law, hold_law
from tests.laws.trial import Broken, Subject, Trial, is_possible, missing_resource, subjects

from tertium.data.testset import TestSet

MANY_SEGMENTS = 20  # segments of most rounds; one call costs nearly as much as many
EXPENSIVE_SHARE = 0.15  # fraction of rounds that run expensive laws
OTHER_SETTINGS = 0.25
LONG_TEXTS = 0.002  # fraction of texts; they cost as much as hundreds of others
SHRINK_SECONDS = 60.0  # seconds for one violation


def draw_text(rng: np.random.Generator) -> str:
    """Draw a text of the gallery, two of them joined, or one with changed characters."""
    if rng.random() < LONG_TEXTS:
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


def draw_testset(rng: np.random.Generator) -> tuple[str, TestSet]:
    """Draw a shape and its texts; half of the hypotheses are similar to their reference."""
    shapes = [*gallery.SHAPES, *["many segments"] * 4]
    shape = shapes[rng.integers(len(shapes))]
    make = gallery.SHAPES.get(shape, many_segments)
    testset = make(lambda: draw_text(rng), rng)
    systems = {
        name: [near(text, refs, rng) for text, refs in zip(texts, testset.references, strict=True)]
        for name, texts in testset.systems.items()
    }
    if shape == "identical systems":
        systems["same"] = systems["s1"]
    return shape, TestSet(systems, testset.references, testset.sources, testset.documents)


def many_segments(draw: gallery.Draw, rng: np.random.Generator) -> TestSet:
    """Two systems, many segments with one or two references."""
    return gallery.parallel(
        draw, systems=2, references=[1 + (n % 5 == 0) for n in range(MANY_SEGMENTS)]
    )


def near(text: str, references: list[str], rng: np.random.Generator) -> str:
    """Return the text, a reference, or a reference mixed with the text."""
    chance, reference = rng.random(), references[rng.integers(len(references))]
    if chance < 0.2:
        return reference
    return f"{reference} {text}"[:5000] if chance < 0.4 else text


class Campaign:
    """A fuzzing run: counts by law, and violations."""

    def __init__(self, seed: int, keep: bool, only: str = "") -> None:
        self.seed, self.keep = seed, keep
        everyone = [s for s in subjects() if not only or s.spec == only]
        self.subjects = [s for s in everyone if not missing_resource(s)]
        self.settings = {s: settings_of(s) for s in self.subjects}
        self.cases: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.seconds: dict[str, float] = defaultdict(float)
        self.findings: list[Finding] = []
        self.broken: set[tuple[str, str]] = set()

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
        shape, testset = draw_testset(rng)
        variants = self.settings[subject]
        if variants and rng.random() < OTHER_SETTINGS:
            changed = variants[rng.integers(len(variants))]
            subject = changed if is_possible(changed) else subject
        self.kinds[f"shape {shape}"] += 1
        self.kinds.update(gallery.kinds([t for o in testset.systems.values() for t in o]))
        seed = int(rng.integers(1 << 30))
        with tempfile.TemporaryDirectory() as folder:
            trial = Trial(subject, testset, seed, Path(folder))
            for law in chosen_laws(rng):
                self.try_one(law, trial)

    def try_one(self, law: Law, trial: Trial) -> None:
        started = time.monotonic()
        try:
            self.cases[str(law)] += hold_law(law, trial)
        except Broken as broken:
            key = (str(law), trial.subject.spec)
            if key not in self.broken:
                self.broken.add(key)
                print(f"BROKEN {broken}", flush=True)
                self.add(law, trial)
        self.seconds[str(law)] += time.monotonic() - started

    def add(self, law: Law, trial: Trial) -> None:
        finding = smallest(law, trial.subject, trial.testset, trial.seed, SHRINK_SECONDS)
        self.findings.append(finding)
        if self.keep:
            keep_finding(finding)
        print(f"  {finding.fault}\n  {finding.command}", flush=True)

    def summary(self) -> Iterator[str]:
        """Yield the numbers of cases by operation and law, and by kind of text."""
        for law in LAWS:
            name = str(law)
            yield f"{self.cases[name]:>9,}  {name}  ({self.seconds[name]:.0f} s)"
        yield f"{sum(self.cases.values()):>9,}  cases of {len(self.subjects)} metrics and rankers"
        for kind, count in self.kinds.most_common():
            yield f"{count:>9,}  rounds: {kind}"
        yield f"{len(self.findings):>9,}  findings (seed {self.seed})"


def chosen_laws(rng: np.random.Generator) -> list[Law]:
    """Return all cheap laws and some of the expensive ones."""
    return [law for law in LAWS if not law.costly or rng.random() < EXPENSIVE_SHARE]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("FUZZ_SECONDS", 60)))
    parser.add_argument("--seed", type=int, default=int(os.environ.get("FUZZ_SEED", 1)))
    parser.add_argument("--only", default="", metavar="SPEC", help="this metric or ranker alone")
    parser.add_argument("--forget", action="store_true", help="do not keep what is found")
    parser.add_argument("--replay", metavar="JSON", help="one finding, as it was printed")
    args = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    if args.replay:
        print(f"{read_finding(args.replay).try_again()} cases hold")
        return 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
        os.environ["TERTIUM_CACHE"] = cache
        campaign = Campaign(args.seed, keep=not args.forget, only=args.only)
        campaign.run(args.seconds)
    print("\n".join(campaign.summary()))
    return 1 if campaign.findings else 0


if __name__ == "__main__":
    sys.exit(main())
