"""Saved law violations, one per line of a file; every test run checks them again."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.laws.table import Law, check_law_on, find_law
from tests.laws.trial import LawViolation, Subject

from tertium.data.testset import TestSet
from tertium.models.checkpoint import bundled_models_folder

SAVED_VIOLATIONS = Path(__file__).parent.parent / "fuzz" / "found.jsonl"
MODELS_PLACEHOLDER = "TRAINED"  # placeholder for the folder of bundled models


@dataclass(frozen=True)
class Violation:
    """A law violation: the law, the subject, the test set and the message."""

    law: str
    spec: str
    kind: str
    seed: int
    fault: str
    systems: dict[str, list[str]]
    references: list[list[str]]
    sources: list[str]
    documents: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, law: Law, subject: Subject, testset: TestSet, seed: int, fault: str) -> Violation:
        return cls(
            law=str(law),
            spec=subject.spec.replace(str(bundled_models_folder()), MODELS_PLACEHOLDER),
            kind=subject.kind,
            seed=seed,
            fault=fault[:500].replace(str(bundled_models_folder()), MODELS_PLACEHOLDER),
            systems={name: list(texts) for name, texts in testset.systems.items()},
            references=[list(texts) for texts in testset.references],
            sources=list(testset.sources),
            documents=list(testset.documents),
        )

    @property
    def subject(self) -> Subject:
        return Subject(
            self.spec.replace(MODELS_PLACEHOLDER, str(bundled_models_folder())), self.kind
        )  # type: ignore[arg-type]

    @property
    def testset(self) -> TestSet:
        return TestSet(self.systems, self.references, self.sources, self.documents)

    def recheck(self) -> int:
        """Check the law again and return the number of cases; raise `LawViolation` if it fails."""
        return check_law_on(find_law(self.law), self.subject, self.testset, self.seed)

    @property
    def line(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=True)

    @property
    def command(self) -> str:
        """The command that reproduces the failure."""
        return f"python -m tests.laws.fuzz --replay {shlex.quote(self.line)}"


def parse_violation(line: str) -> Violation:
    fields: dict[str, Any] = json.loads(line)
    return Violation(**fields)


def read_violations(path: Path = SAVED_VIOLATIONS) -> list[Violation]:
    """Read all saved violations."""
    if not path.exists():
        return []
    return [parse_violation(line) for line in path.read_text("utf-8").splitlines() if line]


def save_violation(violation: Violation, path: Path = SAVED_VIOLATIONS) -> None:
    """Save a violation unless it is already saved."""
    if violation not in read_violations(path):
        path.parent.mkdir(exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(violation.line + "\n")


KIND_WORDS = 6  # first words of a message that identify the kind of failure
_TEXTS_AND_NUMBERS = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[-+]?\d[\w.+-]*""")


def failure_kind(fault: str) -> str:
    """Return the first words of a message without its texts and numbers.

    >>> failure_kind("'a b' scored 0.5 above ''") == failure_kind("'c' scored 1e-5 above 'd'")
    True
    """
    return " ".join(_TEXTS_AND_NUMBERS.sub("...", fault).split()[:KIND_WORDS])


def shrink_violation(
    law: Law, subject: Subject, testset: TestSet, seed: int, seconds: float
) -> Violation:
    """Return the violation with the smallest test set that fails in the same way.

    A smaller test set that fails for another reason is not accepted.
    """
    prefix = f"{law}, {subject.spec}: "

    def failure_of(candidate: TestSet) -> str:
        try:
            check_law_on(law, subject, candidate, seed)
        except LawViolation as violation:
            return str(violation).removeprefix(prefix)
        return ""

    first = failure_of(testset)
    if not first:
        return Violation.of(law, subject, testset, seed, "violated once, but not again")
    smallest = shrink(
        testset, lambda smaller: failure_kind(failure_of(smaller)) == failure_kind(first), seconds
    )
    return Violation.of(law, subject, smallest, seed, prefix + (failure_of(smallest) or first))


Fails = Callable[[TestSet], bool]


def shrink(testset: TestSet, fails: Fails, seconds: float = 60.0) -> TestSet:
    """Remove systems, segments, references, then characters while the test set still fails."""
    end = time.monotonic() + seconds
    is_smaller = True
    while is_smaller and time.monotonic() < end:
        is_smaller = False
        for smaller in _smaller_testsets(testset):
            if time.monotonic() > end:
                break
            if fails(smaller):
                testset, is_smaller = smaller, True
                break
    return testset


def _smaller_testsets(testset: TestSet) -> Iterator[TestSet]:
    """Yield smaller test sets, the smallest first."""
    systems, references = testset.systems, testset.references
    for part in _subsets([*systems]):
        yield replace(testset, systems={name: systems[name] for name in part})
    for rows in _subsets([*range(len(testset))]):
        yield testset.subset(rows)
    for n, texts in enumerate(references):
        for fewer in _subsets(texts):
            yield replace(testset, references=_replace_at(references, n, fewer))
    for name, texts in systems.items():
        for shorter in _shorter_texts(texts):
            yield replace(testset, systems={**systems, name: shorter})
    for n, texts in enumerate(references):
        for shorter in _shorter_texts(texts):
            yield replace(testset, references=_replace_at(references, n, shorter))
    for shorter in _shorter_texts(testset.sources):
        yield replace(testset, sources=shorter)


def _shorter_texts(texts: Sequence[str]) -> Iterator[list[str]]:
    for n, text in enumerate(texts):
        for shorter in _shorter_versions(text):
            yield _replace_at(texts, n, shorter)


def _shorter_versions(text: str) -> Iterator[str]:
    """Yield a text without all, halves, quarters ... single characters; then simplified."""
    size = len(text)
    while size:
        for start in range(0, len(text), size):
            yield text[:start] + text[start + size :]
        size = size // 2 if size > 1 else 0
    for n, character in enumerate(text[:40]):
        if character != "a":
            yield text[:n] + "a" + text[n + 1 :]


def _subsets(values: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield halves, then all values but one; never an empty list."""
    count = len(values)
    if count > 2:
        yield [*values[: count // 2]]
        yield [*values[count // 2 :]]
    for n in range(count if count > 1 else 0):
        yield [*values[:n], *values[n + 1 :]]


def _replace_at(values: Sequence[Any], place: int, value: Any) -> list[Any]:
    return [*values[:place], value, *values[place + 1 :]]
