"""One vector for the syntax of a sentence: the mean of the vectors its parser works on.

The parser's first layer gives every token a vector from which tags, heads and labels are then
read (`doc.tensor` in spaCy). Only that layer is run, which takes a small part of a full parse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tertium.linguistics.parse import clean, load_parser
from tertium.progress import task

BATCH = 256


def parser_name() -> str:
    """The parser whose vectors these are, for names of files and signatures."""
    return load_parser().name


def syntax_vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    """The mean token vector of each text, zeros for a text without tokens, (n, width)."""
    pipeline: Any = load_parser()._pipeline
    layer = pipeline.get_pipe("tok2vec")
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))  # like lengths share a batch
    rows = np.zeros((len(texts), layer.model.get_dim("nO")), dtype=np.float32)
    with task("parser vectors", total=len(texts)) as advance:
        for start in range(0, len(order), BATCH):
            part = order[start : start + BATCH]
            documents = [pipeline.make_doc(clean(texts[i])) for i in part]
            for i, tokens in zip(part, layer.predict(documents), strict=True):
                if len(tokens):
                    rows[i] = np.asarray(tokens).mean(axis=0)
            advance(len(part))
    return rows
