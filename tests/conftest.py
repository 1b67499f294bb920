"""What tests share: small segments, the bundled example, the human judgments where they are."""

from __future__ import annotations

import functools
import importlib
import operator
import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies
from tests.heavy import import_references, tell_imported
from tests.partial_metric import partial  # noqa: F401 (a fixture)
from tests.tiny_models import e5, minilm, tiny_model  # noqa: F401 (fixtures)

from tertium.data.testset import TestSet
from tertium.registry import METRICS
from tertium.runtime import runtime
from tertium.segment import Segment

MANY = 1000  # tests of a run that is worth loading models for
EXAMPLES = Path(__file__).parent.parent / "examples"
SHARED = {"running_browser": "browser", "ray_cluster": "ray"}
# what takes longest begins first, so that no process has it left at the end
SLOWEST = (
    "kills",  # forks children, so it wants a process in which nothing has run
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
# regressions remember the features of a segment for each other: in one process each is found once;
# so is METEOR's alignment of long lines, which rankers read, too
REGRESSIONS = {name for name, place in METRICS.items() if ".regressions:" in place}
RELATED = {*REGRESSIONS, "meteor", "mt-rte-r-embeddings", "pairwise-minilm", "pairwise-published"}

# Caches of loaded models, bounded by what a user's memory holds: tests of small models would push
# out the large ones, which then are read again.
MODELS = {
    "tertium.encoders.body": ("_network", "_tokenizer"),
    "tertium.encoders.encoder": ("_load",),
    "tertium.metrics.heads.metric": ("_scorer",),
}
for module, names in MODELS.items():
    for name in names:
        kept = getattr(importlib.import_module(module), name).__wrapped__
        setattr(importlib.import_module(module), name, functools.lru_cache(maxsize=64)(kept))

# On a GPU neighbors may change last bits: laws are tried on the CPU, unless one names a GPU.
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

# No test measures time: on a busy machine a drawn example may take any.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share something slow run in one process, the slowest of them first."""
    groups = {item: group_of(item) for item in items}
    for item, group in groups.items():
        item.add_marker(pytest.mark.xdist_group(group))
    ranks = {name: rank for rank, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: ranks.get(groups[item], len(ranks)))


def group_of(item: pytest.Item) -> str:
    """A browser, a cluster, or what laws of one metric load and remember; else what a module makes.

    Tests of a module stay together, since what it makes (`scope="module"`) is then made once.
    """
    if own := item.get_closest_marker("xdist_group"):
        return str(own.args[0])
    for fixture in getattr(item, "fixturenames", ()):
        if fixture in SHARED:
            return SHARED[fixture]
    module = item.nodeid.partition("::")[0]
    if "test_pages" in module:  # pages show the same example, which one process reads once
        return "ray" if "corpus.md" in item.nodeid else "pages"  # one parses Ray's commands
    name = re.search(r"\[([\w+-]+)", item.nodeid)
    if name and module.startswith(("tests/laws/", "tests/contracts/")):
        return "mt-rte-r" if name[1] in RELATED else name[1]
    return module


@pytest.hookimpl(optionalhook=True)
def pytest_before_forks(session: pytest.Session) -> None:
    """Load every model once for all processes, where most of the tests are going to run."""
    if len(session.items) < MANY:
        return
    from tests.laws.trial import Subject, missing_resource, subjects

    factory = session.config._tmp_path_factory  # type: ignore[attr-defined]
    # no store: it writes in a thread, which a fork would cut off
    with pytest.MonkeyPatch.context() as patch, runtime(cache=False):
        use_private_cache(factory, patch)
        for subject in (*subjects(), Subject("bertscore:encoder=e5")):
            missing_resource(subject)
    tell_imported(session.config)
    import_references()
    draw_once()


@settings(max_examples=1, database=None)
@given(strategies.integers())
def draw_once(number: int) -> None:
    """hypothesis reads the constants of all modules when it first draws: here for all processes."""


@pytest.fixture(autouse=True)
def private_cache(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No test reads or writes the user's own embedding store."""
    use_private_cache(tmp_path_factory, monkeypatch)


def use_private_cache(factory: pytest.TempPathFactory, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("TERTIUM_CACHE", str(factory.getbasetemp() / "tertium-cache"))
    patch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="session", autouse=True)
def plain_sums() -> None:
    """sacrebleu's BLEU as on Python 3.11: from 3.12 on `sum` rounds once, which moves its last bit.

    Ours does not depend on it, so that with a sum from left to right the two must be equal.
    """
    bleu = importlib.import_module("sacrebleu.metrics.bleu")
    setattr(bleu, "sum", lambda values: functools.reduce(operator.add, values, 0))  # noqa: B010


@pytest.fixture(scope="session")
def human_data() -> Path:
    """The folder of human judgments; the test is skipped without it."""
    folder = os.environ.get("TERTIUM_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("set TERTIUM_DATA to the folder of human judgments")
    return Path(folder)


@pytest.fixture
def segments() -> list[Segment]:
    """Short segments with one or two references, an empty and a perfect hypothesis among them."""
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
    """The bundled example: three systems, two references, sources and documents."""
    return TestSet.read(
        [EXAMPLES / f"system-{name}.en.txt" for name in ("good", "fair", "poor")],
        [EXAMPLES / "reference-a.en.txt", EXAMPLES / "reference-b.en.txt"],
        EXAMPLES / "source.de.txt",
        EXAMPLES / "documents.txt",
        names=["good", "fair", "poor"],
    )
