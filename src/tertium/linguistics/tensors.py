"""One vector for the syntax of a sentence: the mean of the vectors its parser works on.

The parser's first layer gives every token a vector from which tags, heads and labels are then
read (`doc.tensor` in spaCy, `Parser.token_vectors` here).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tertium.linguistics.parse import load_parser
from tertium.progress import task

BATCH = 256


def parser_name() -> str:
    """The parser whose vectors these are, for names of files and signatures."""
    return load_parser().name


def syntax_vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    """The mean token vector of each text, zeros for a text without tokens, (n, width)."""
    parser = load_parser()
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))  # like lengths share a batch
    rows = np.zeros((len(texts), parser.vector_width), dtype=np.float32)
    with task("parser vectors", total=len(texts)) as advance:
        for start in range(0, len(order), BATCH):
            part = order[start : start + BATCH]
            for i, tokens in zip(part, parser.token_vectors([texts[i] for i in part]), strict=True):
                if len(tokens):
                    rows[i] = tokens.mean(axis=0)
            advance(len(part))
    return rows
