"""tertium evaluates machine translation. A quick tour:

    import tertium

    # Score and compare system outputs; one text per line in each file.
    testset = tertium.TestSet.read(["ours.txt", "theirs.txt"], references=["reference.txt"])
    evaluation = tertium.score(testset, ["bleu", "chrf"])
    comparison = tertium.compare(testset, ["chrf"])  # with significance tests
    tertium.report(testset, ["bleu", "chrf"]).write("report.html")

    # Use one metric on one segment.
    metric = tertium.load_metric("chrf++")
    metric.sentence_score("a hypothesis", ["a reference"])
    tertium.explain(tertium.Segment("a hypothesis", references=("a reference",)), metric="rte-r")

    # Rank systems, measure agreement with human scores, train a metric, filter a corpus.
    ranking = tertium.rank(testset, "pairwise")
    agreement = tertium.meta_evaluate("judgments.tsv", ["bleu", "chrf"])
    trained = tertium.train("bleu-r", "judgments.tsv", folder="models/mine")
    tertium.score_corpus("pairs/*.parquet", ["chrf"], "scored", keep="chrf >= 50")

    # Choose device, threads, batch size or cache for a block of calls.
    with tertium.runtime(device="cpu", threads=4, cache=False):
        tertium.score(testset, "bertscore")

Names are loaded on first use: `import tertium` imports no metric and no heavy library.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any


def _read_public_names(package_file: str) -> dict[str, str]:
    """Return the module of each public name of a package, from its stub for type checkers."""
    modules = {}
    for line in Path(package_file).with_suffix(".pyi").read_text(encoding="utf-8").splitlines():
        if line.startswith("from "):  # from MODULE import NAME as NAME
            words = line.split()
            modules[words[-1]] = words[1]
    return modules


_MODULE_BY_NAME = _read_public_names(__file__)
__all__ = [*_MODULE_BY_NAME]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_BY_NAME:
        raise AttributeError(f"module 'tertium' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_BY_NAME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
