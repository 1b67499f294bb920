"""Train the regressions that ship: `python -m recipes.entailment`.

All direct assessments into English of WMT15 and WMT16, nothing else: WMT17 and WMT12 stay unseen.
Features are computed once and shared by the eight models.
"""

from __future__ import annotations

import argparse
from typing import Any

from tertium.data.collection import Collection
from tertium.metrics.regression.metric import Regression
from tertium.metrics.regression.regressions import BLEUR, METEORR, MTR, MTRTER, NISTR, RTER, TERR
from tertium.models.checkpoint import shipped_models
from tertium.segment import Judgment

SETS = ("da/wmt15", "da/wmt16")
MODELS: tuple[tuple[type[Regression], dict[str, Any]], ...] = (
    (RTER, {}),
    (BLEUR, {}),
    (NISTR, {}),
    (METEORR, {}),
    (TERR, {}),
    (MTR, {}),
    (MTRTER, {}),
    (MTRTER, {"embeddings": True}),
)


def judgments(collection: Collection) -> list[Judgment]:
    """Every judged translation into English of the training sets."""
    return [
        judgment
        for name in SETS
        for lp in collection.find(name).lps
        if lp.endswith("-en")
        for judgment in collection.judgments(name, lp).judgments
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="the judgments (default: TERTIUM_DATA)")
    data = judgments(Collection.at(parser.parse_args().data))
    for cls, config in MODELS:
        metric = cls.train(data, note=" + ".join(SETS) + " into English", **config)
        metric.save(shipped_models() / metric.shipped)
        print(metric.shipped, metric.checkpoint.training["strength"], flush=True)


if __name__ == "__main__":
    main()
