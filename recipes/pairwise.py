"""Train the ranker that ships: `python -m recipes.pairwise`.

The recipe is that of the table; of its five seeds, the one that agrees best with the comparisons it
is chosen on is kept. Scoring 150,000 translations for its columns takes an hour of two cores, once.
"""

from __future__ import annotations

import argparse

from papers.guzman2015 import SHIPPED as RECIPE

from tertium.data.collection import Collection
from tertium.models.shipped import shipped_models


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="the judgements (default: TERTIUM_DATA)")
    rankers = RECIPE(Collection.at(parser.parse_args().data), "")
    best = max(rankers, key=lambda ranker: float(ranker.checkpoint.training["tau"]))
    best.save(shipped_models() / "pairwise")
    for ranker in rankers:
        print(ranker.checkpoint.training, "ships" if ranker is best else "", flush=True)


if __name__ == "__main__":
    main()
