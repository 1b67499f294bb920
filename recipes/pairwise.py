"""Train a bundled ranker: `python -m recipes.pairwise`, or `... pairwise-published`.

Of five seeds, the one that agrees best with the development comparisons is kept. Scoring 150,000
translations for the features of `pairwise` takes an hour on two cores, once. `pairwise-published`
is the network of Guzmán et al. (2015) with the inputs of the paper, as far as they are available.
"""

from __future__ import annotations

import argparse

from papers import load_page
from tertium.data.dataset_folder import DatasetFolder
from tertium.models.checkpoint import bundled_models_folder

RECIPES = {"pairwise": "bundled", "pairwise-published": "published"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="pairwise", choices=RECIPES)
    parser.add_argument("--data", help="folder of human judgments (default: TERTIUM_DATA)")
    args = parser.parse_args()
    rankers = load_page("guzman2015").definitions[RECIPES[args.model]](
        DatasetFolder.open(args.data), ""
    )
    best = max(rankers, key=lambda ranker: float(ranker.checkpoint.training["tau"]))
    best.save(bundled_models_folder() / args.model)
    for ranker in rankers:
        print(ranker.checkpoint.training, "ships" if ranker is best else "", flush=True)


if __name__ == "__main__":
    main()
