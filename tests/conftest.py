"""Shared fixtures, and the order and grouping of tests."""

from __future__ import annotations

import functools
import importlib
import operator
import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies
from tests.heavy import import_references, record_heavy_imports
from tests.partial_metric import partial  # noqa: F401 (a fixture)
from tests.tiny_models import e5, minilm, tiny_model  # noqa: F401 (fixtures)

from tertium.core.registry import METRICS
from tertium.core.runtime import runtime
from tertium.core.segment import Segment
from tertium.data.testset import TestSet

MIN_PRELOAD_TESTS = 1000  # in a run that preloads all models
EXAMPLES = Path(__file__).parent.parent / "examples"
GROUP_BY_FIXTURE = {"running_browser": "browser", "ray_cluster": "ray"}
# The slowest groups start first, so that no process is left with one at the end.
SLOWEST_GROUPS = (
    "kills",  # forks children, so it needs a fresh process
    "mt-rte-r",
    "tertium-base",
    "tertium-multi",
    "pages",
    "browser",
    "ray",
    "esim",
    "svr",
    "bilstm",
    "tertium-small",
    "e5",
)
# Regression metrics share cached features of a segment, so one process runs all of them; the same
# holds for METEOR's alignments of long lines, which rankers use as well.
REGRESSIONS = {name for name, target in METRICS.items() if ".regression_metrics:" in target}
SHARED_FEATURES = {
    *REGRESSIONS,
    "meteor",
    "mt-rte-r-embeddings",
    "pairwise-minilm",
    "pairwise-published",
}

# Caches of loaded models are small, to save memory. In tests, small models would evict large ones,
# so the caches are enlarged.
MODEL_CACHES = {
    "tertium.encoders.transformer_encoder": ("_load_network", "_load_tokenizer"),
    "tertium.encoders.encoder": ("_load",),
}
for module, names in MODEL_CACHES.items():
    for name in names:
        load = getattr(importlib.import_module(module), name).__wrapped__
        setattr(importlib.import_module(module), name, functools.lru_cache(maxsize=64)(load))

# On a GPU, batch composition may change the last bits: tests run on the CPU by default.
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

# No deadlines: on a busy machine an example may take any time.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run tests that share slow resources in one process, the slowest groups first."""
    groups = {item: find_group(item) for item in items}
    for item, group in groups.items():
        item.add_marker(pytest.mark.xdist_group(group))
    ranks = {name: rank for rank, name in enumerate(SLOWEST_GROUPS)}
    items.sort(key=lambda item: ranks.get(groups[item], len(ranks)))


def find_group(item: pytest.Item) -> str:
    """Return the group of a test: by shared fixture, by metric, else by module.

    Tests of a module stay together, so that its `scope="module"` fixtures are created once.
    """
    if own := item.get_closest_marker("xdist_group"):
        return str(own.args[0])
    for fixture in getattr(item, "fixturenames", ()):
        if fixture in GROUP_BY_FIXTURE:
            return GROUP_BY_FIXTURE[fixture]
    module = item.nodeid.partition("::")[0]
    if "test_pages" in module:  # all pages use the same example
        return "ray" if "corpus.md" in item.nodeid else "pages"  # corpus.md uses Ray
    name = re.search(r"\[([\w+-]+)", item.nodeid)
    if name and module.startswith(("tests/laws/", "tests/contracts/", "tests/golden/test_scores")):
        return "mt-rte-r" if name[1] in SHARED_FEATURES else name[1]
    return module


@pytest.hookimpl(optionalhook=True)
def pytest_before_forks(session: pytest.Session) -> None:
    """Load all models once, before forking, if most tests are going to run."""
    if len(session.items) < MIN_PRELOAD_TESTS:
        return
    from tests.laws.trial import Subject, missing_resource, subjects

    factory = session.config._tmp_path_factory  # type: ignore[attr-defined]
    # No cache on disk: it writes in a thread, which does not survive a fork.
    with pytest.MonkeyPatch.context() as patch, runtime(cache=False):
        use_private_cache(factory, patch)
        for subject in (*subjects(), Subject("bertscore:encoder=e5")):
            missing_resource(subject)
    record_heavy_imports(session.config)
    import_references()
    draw_once()


@settings(max_examples=1, database=None)
@given(strategies.integers())
def draw_once(number: int) -> None:
    """Draw once before forking: on its first draw, hypothesis reads constants of all modules."""


@pytest.fixture(autouse=True)
def private_cache(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep tests away from the user's cache."""
    use_private_cache(tmp_path_factory, monkeypatch)


def use_private_cache(factory: pytest.TempPathFactory, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("TERTIUM_CACHE", str(factory.getbasetemp() / "tertium-cache"))
    patch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="session", autouse=True)
def plain_sums() -> None:
    """Make sacrebleu's BLEU sum as on Python 3.11: from 3.12 on, `sum` rounds only once.

    Our BLEU adds from left to right, so both must be equal to the last bit.
    """
    bleu = importlib.import_module("sacrebleu.metrics.bleu")
    setattr(bleu, "sum", lambda values: functools.reduce(operator.add, values, 0))  # noqa: B010


@pytest.fixture(scope="session")
def human_data() -> Path:
    """Return the folder of human judgments; skip the test without it."""
    folder = os.environ.get("TERTIUM_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("set TERTIUM_DATA to the folder of human judgments")
    return Path(folder)


@pytest.fixture
def segments() -> list[Segment]:
    """Return short segments with one or two references, including an empty hypothesis."""
    rows = [
        ("the cat sat on the mat", "die Katze sass auf der Matte", ("the cat sat on a mat",)),
        ("a dog barked", "ein Hund bellte", ("a dog was barking", "the dog barked loudly")),
        ("", "nichts", ("nothing",)),
        ("he went home .", "er ging nach Hause.", ("he went home .",)),
        ("mat the on sat cat the", "die Katze sass auf der Matte", ("the cat sat on a mat",)),
        ("It costs 3.5 million euros.", "Es kostet 3,5 Mio.", ("The price is 3.5 million euros.",)),
    ]
    return [Segment(h, s, r) for h, s, r in rows]


@pytest.fixture(scope="session")
def example() -> TestSet:
    """Return the bundled example: three systems, two references, sources and documents."""
    return TestSet.read(
        [EXAMPLES / f"system-{name}.en.txt" for name in ("good", "fair", "poor")],
        [EXAMPLES / "reference-a.en.txt", EXAMPLES / "reference-b.en.txt"],
        EXAMPLES / "source.de.txt",
        EXAMPLES / "documents.txt",
        names=["good", "fair", "poor"],
    )
