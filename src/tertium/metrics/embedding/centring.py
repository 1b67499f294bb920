"""Take the mean of its language from every vector, and look where translations agree.

The language of a text is that of its side where the pair is given, else it is identified from the
text alone: no score depends on the other texts of a run. Special tokens are left out, and the
sentence vector of a text is the mean of its centred token vectors. Where directions are given, all
vectors are taken in these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tertium.encoders import Chunk, Embeddings
from tertium.encoders.encoder import offsets_of
from tertium.encoders.means import Directions, LanguageMeans
from tertium.text.languages import identify


@dataclass(frozen=True)
class Centring:
    """Means, and the languages of hypotheses (`target`) and sources, empty to identify them."""

    means: LanguageMeans
    source: str = ""
    target: str = ""
    directions: Directions | None = None

    def __call__(self, chunk: Chunk, left: Sequence[str], right: Sequence[str]) -> Chunk:
        """A chunk over centred vectors; `left` and `right` are the texts of its comparisons."""
        rows: dict[tuple[int, str], int] = {}
        places = [
            np.array(
                [
                    rows.setdefault((row, language or identify(text)), len(rows))
                    for row, text in zip(numbers.tolist(), texts, strict=True)
                ],
                dtype=np.int64,
            )
            for numbers, texts, language in (
                (chunk.left, left, self.target),
                (chunk.right, right, self.source),
            )
        ]
        texts = self._centre(chunk.texts, rows)
        return Chunk(pairs=chunk.pairs, left=places[0], right=places[1], texts=texts)

    def _centre(self, texts: Embeddings, rows: dict[tuple[int, str], int]) -> Embeddings:
        centres = self.means.of([language for _, language in rows])
        vectors, pieces = [], []
        for (row, _), mean in zip(rows, centres, strict=True):
            real = [place for place, piece in enumerate(texts.pieces[row]) if piece]
            vectors.append(texts.tokens(row)[real] - mean)
            pieces.append(tuple(texts.pieces[row][place] for place in real))
        width = texts.vectors.shape[1]
        means = [v.mean(axis=0) if len(v) else np.zeros(width) for v in vectors]
        found, sentences = np.concatenate(vectors), np.array(means, dtype=np.float32)
        if self.directions:
            found = self.directions(found, self.directions.tokens)
            sentences = self.directions(sentences, self.directions.sentences)
        return Embeddings(
            vectors=found.astype(np.float32, copy=False),
            offsets=offsets_of([len(v) for v in vectors]),
            pieces=tuple(pieces),
            sentences=sentences,
            truncated=texts.truncated[[row for row, _ in rows]],
        )

    def warnings(self, hypotheses: Sequence[str], sources: Sequence[str]) -> Counter[str]:
        """What should be known of the languages of these texts."""
        counts: Counter[str] = Counter()
        for texts, said in ((hypotheses, self.target), (sources, self.source)):
            for text in texts:
                language = said or identify(text)
                counts["language not told"] += not language and bool(text.strip())
                counts["language without a mean"] += bool(language) and language not in self.means
        return counts

    def signature(self) -> dict[str, str]:
        """The languages as given, or that they were identified, and how many directions."""
        means = f"{self.source or 'identified'}-{self.target or 'identified'}"
        if not self.directions:
            return {"means": means}
        return {"means": means, "dirs": f"{self.directions.tokens}+{self.directions.sentences}"}
