"""Train the bundled support vector regression: `python -m recipes.svr`.

Training data: all direct assessments into English of WMT15 and WMT16, as sentence vectors of
`minilm`. The published grid is searched by 10-fold cross-validation. WMT17 and WMT12 are not used
in training. Takes some minutes on two cores.
"""

from __future__ import annotations

import argparse

from papers.experiments import read_judgments

from tertium.core.runtime import runtime
from tertium.data.dataset_folder import DatasetFolder
from tertium.meta.agreement import pearson
from tertium.metrics.regression.svr import SVR
from tertium.models.checkpoint import bundled_models_folder

SETS = ("da/wmt15", "da/wmt16")
TEST = "da/wmt17"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of human judgments (default: TERTIUM_DATA)")
    parser.add_argument("--encoders", nargs="+", default=["minilm"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("-o", "--output", default=str(bundled_models_folder() / "svr"))
    args = parser.parse_args()
    datasets = DatasetFolder.open(args.data)
    sets = {name: read_judgments(datasets, name) for name in (*SETS, TEST)}
    with runtime(threads=args.threads):
        metric = SVR.train(
            [dataset for name in SETS for dataset in sets[name]],
            dev=sets[TEST],
            encoders=args.encoders,
            folder=args.output,
        )
    for setting, value in metric.checkpoint.training["search"][:5]:
        print(setting, f"R^2 {value:.4f}")
    for dataset in sets[TEST]:
        r = float(pearson(dataset.scores, metric.score(dataset.segments).segments))
        print(f"{TEST} {dataset.lp}: r = {r:.3f}", flush=True)


if __name__ == "__main__":
    main()
