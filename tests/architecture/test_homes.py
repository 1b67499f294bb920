"""One home per mechanism: file formats, type hints, random numbers and names of classes."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import tertium
from tertium.metrics.base.compatibility_calls import CompatibilityCalls
from tertium.metrics.base.metric import Metric

PACKAGE = Path(tertium.__file__).parent
LIBRARIES = {
    "safetensors": {"models/checkpoint.py", "encoders/weight_files.py"},
    # The cache, locks of files, and the event log of people (for durability, not speed).
    "sqlite3": {"core/store.py", "core/atomic.py", "people/annotation_store.py"},
}
TYPE_HINTS = {"core/fields.py", "cli/arguments.py"}
DRAWS = "core/resampling.py"
DRAW = re.compile(
    r"default_rng\(|np\.random\.(?!Generator|default_rng)\w+"
    r"|\b(?:rng|generators?)(?:\[\w+\])?\.\w+\(|\.(?:integers|permutation|permuted)\("
)
NO_STATISTICS = (  # what these modules draw is no resample of data
    "encoders/toy_encoder.py",  # vectors of words
    "metrics/pairwise/",  # initial weights and batches
    "metrics/regression/svr.py",  # training rows
    "models/training_examples.py",
    "models/training_loop.py",
    "data/rankings.py",  # a sample of comparisons to train on
    "data/ratings.py",  # the rater of each translation that is held out
    "text/perturbations.py",  # simulated errors
    "people/planning.py",  # campaigns
    "testing.py",  # weights that check a metric
)
MAX_PUBLIC_MEMBERS = 15  # of a metric; what only few metrics can do are protocols
CALLS = {"corpus_score", "sentence_score", "predict", "compute"}  # of other tools


@cache
def sources() -> dict[str, str]:
    """Return the code of all modules by name."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return {path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8") for path in paths}


def modules_with(pattern: str) -> set[str]:
    return {name for name, text in sources().items() if re.search(pattern, text, re.MULTILINE)}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_is_imported_only_at_home(library: str) -> None:
    assert modules_with(rf"^\s*(import|from) {library}\b") == LIBRARIES[library]


def test_type_hints_are_read_at_home() -> None:
    assert modules_with(r"\b(get_type_hints|get_origin|get_args)\b") == TYPE_HINTS


def test_statistics_draw_in_one_module() -> None:
    """Equal seeds give equal draws."""
    drawing = {
        name for name, text in sources().items() if DRAW.search(re.sub(r'"""(?s:.*?)"""', "", text))
    }
    assert DRAWS in drawing
    assert [name for name in drawing - {DRAWS} if not name.startswith(NO_STATISTICS)] == []
    assert [home for home in NO_STATISTICS if not any(n.startswith(home) for n in drawing)] == []


def test_a_class_name_is_of_one_class() -> None:
    """`compat` answers to the names of other tools, some of which are ours as well."""
    names: Counter[str] = Counter()
    for module, text in sources().items():
        if not module.startswith("compat/"):
            classes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]
            names.update(node.name for node in classes)
    assert [name for name, count in names.items() if count > 1] == []


def public_members(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


def test_a_metric_has_few_public_members() -> None:
    """Calls of other tools are one mixin."""
    members = public_members(Metric) - CALLS
    assert len(members) <= MAX_PUBLIC_MEMBERS, sorted(members)
    assert public_members(CompatibilityCalls) - CALLS == {"score", "mark_errors"}
