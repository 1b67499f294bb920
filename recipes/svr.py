"""Train the support vector regression that ships: `python -m recipes.svr`.

All direct assessments into English of WMT15 and WMT16, sentence vectors of `minilm`, the published
grid by 10-fold cross validation; WMT17 and WMT12 stay unseen. Takes some minutes on two cores.
"""

from __future__ import annotations

import argparse

from tertium.data.dataset_folder import DatasetFolder
from tertium.execution import runtime
from tertium.meta.correlation import pearson
from tertium.metrics.regression.svr import SVR
from tertium.models.checkpoint import bundled_models_folder

SETS = ("da/wmt15", "da/wmt16")
TEST = "da/wmt17"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="the judgments (default: TERTIUM_DATA)")
    parser.add_argument("--encoders", nargs="+", default=["minilm"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("-o", "--output", default=str(bundled_models_folder() / "svr"))
    args = parser.parse_args()
    collection = DatasetFolder.open(args.data)
    read = {
        name: [
            collection.judgments(name, lp) for lp in collection.find(name).lps if lp.endswith("-en")
        ]
        for name in (*SETS, TEST)
    }
    with runtime(threads=args.threads):
        metric = SVR.train(
            [one for name in SETS for one in read[name]],
            dev=read[TEST],
            encoders=args.encoders,
            folder=args.output,
        )
    for setting, value in metric.checkpoint.training["search"][:5]:
        print(setting, f"R^2 {value:.4f}")
    for one in read[TEST]:
        r = float(pearson(one.scores, metric.score(one.segments).segments))
        print(f"{TEST} {one.lp}: r = {r:.3f}", flush=True)


if __name__ == "__main__":
    main()
