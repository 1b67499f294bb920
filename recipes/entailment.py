"""Train the bundled regression metrics: `python -m recipes.entailment`.

Training data: all direct assessments into English of WMT15 and WMT16. WMT17 and WMT12 are not
used. Features are computed once and shared by the eight models.
"""

from __future__ import annotations

import argparse
from typing import Any

from papers.experiments import read_judgments

from tertium.data.dataset_folder import DatasetFolder
from tertium.metrics.regression.linear_metric import Regression
from tertium.metrics.regression.regression_metrics import (
    BLEUR,
    METEORR,
    MTR,
    MTRTER,
    NISTR,
    RTER,
    TERR,
)
from tertium.models.checkpoint import bundled_models_folder

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of human judgments (default: TERTIUM_DATA)")
    datasets = DatasetFolder.open(parser.parse_args().data)
    data = [one for name in SETS for one in read_judgments(datasets, name)]
    for cls, config in MODELS:
        metric = cls.train(data, note=" + ".join(SETS) + " into English", **config)
        metric.save(bundled_models_folder() / metric.bundled_name)
        print(metric.bundled_name, metric.checkpoint.training["strength"], flush=True)


if __name__ == "__main__":
    main()
