"""Saved law violations, one per line of a file; every test run checks them again."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.laws.shrink import shrink
from tests.laws.table import Law, law_named, try_law
from tests.laws.trial import Broken, Subject

from tertium.data.testset import TestSet
from tertium.models.checkpoint import bundled_models_folder

SAVED_VIOLATIONS = Path(__file__).parent.parent / "fuzz" / "found.jsonl"
PLACE = "TRAINED"  # placeholder for the folder of bundled models


@dataclass(frozen=True)
class Finding:
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
    def of(cls, law: Law, subject: Subject, testset: TestSet, seed: int, fault: str) -> Finding:
        return cls(
            law=str(law),
            spec=subject.spec.replace(str(bundled_models_folder()), PLACE),
            kind=subject.kind,
            seed=seed,
            fault=fault[:500].replace(str(bundled_models_folder()), PLACE),
            systems={name: list(texts) for name, texts in testset.systems.items()},
            references=[list(texts) for texts in testset.references],
            sources=list(testset.sources),
            documents=list(testset.documents),
        )

    @property
    def subject(self) -> Subject:
        return Subject(self.spec.replace(PLACE, str(bundled_models_folder())), self.kind)  # type: ignore[arg-type]

    @property
    def testset(self) -> TestSet:
        return TestSet(self.systems, self.references, self.sources, self.documents)

    def try_again(self) -> int:
        """Check the law again and return the number of cases; raises `Broken` if it still fails."""
        return try_law(law_named(self.law), self.subject, self.testset, self.seed)

    @property
    def line(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=True)

    @property
    def command(self) -> str:
        """The command that reproduces the failure."""
        return f"python -m tests.laws.fuzz --replay {shlex.quote(self.line)}"


def read_finding(line: str) -> Finding:
    fields: dict[str, Any] = json.loads(line)
    return Finding(**fields)


def read_findings(path: Path = SAVED_VIOLATIONS) -> list[Finding]:
    """Read all saved violations."""
    if not path.exists():
        return []
    return [read_finding(line) for line in path.read_text("utf-8").splitlines() if line]


def keep_finding(finding: Finding, path: Path = SAVED_VIOLATIONS) -> None:
    """Save a violation unless it is already saved."""
    if finding not in read_findings(path):
        path.parent.mkdir(exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(finding.line + "\n")


WORDS = 6  # first words of a message that identify the kind of failure
_TEXTS_AND_NUMBERS = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[-+]?\d[\w.+-]*""")


def kind_of(fault: str) -> str:
    """Return the first words of a message without its texts and numbers.

    >>> kind_of("'a b' scored 0.5 above ''") == kind_of("'c' scored 1e-5 above 'd'")
    True
    """
    return " ".join(_TEXTS_AND_NUMBERS.sub("...", fault).split()[:WORDS])


def smallest(law: Law, subject: Subject, testset: TestSet, seed: int, seconds: float) -> Finding:
    """Return the violation with the smallest test set that fails in the same way.

    Less text may break it otherwise: a metric refuses what is left, say. That is another fault.
    """
    prefix = f"{law}, {subject.spec}: "

    def fault_of(candidate: TestSet) -> str:
        try:
            try_law(law, subject, candidate, seed)
        except Broken as broken:
            return str(broken).removeprefix(prefix)
        return ""

    first = fault_of(testset)
    if not first:
        return Finding.of(law, subject, testset, seed, "broken once, and not again")
    small = shrink(testset, lambda less: kind_of(fault_of(less)) == kind_of(first), seconds)
    return Finding.of(law, subject, small, seed, prefix + (fault_of(small) or first))
