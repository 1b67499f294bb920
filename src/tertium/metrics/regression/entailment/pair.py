"""A premise, a hypothesis and the alignment between them: what every entailment feature looks at.

Features speak of one direction: does the hypothesis follow from the premise? Both directions are
asked of a translation, with the reference as premise (what does the translation add?) and as
hypothesis (what does it drop?).
"""

from __future__ import annotations

from dataclasses import dataclass

from tertium.linguistics.alignment import NOTHING, WordAlignment, align_both
from tertium.linguistics.graph import Node
from tertium.linguistics.meaning import Marks
from tertium.linguistics.sentence import Sentence

# (hypothesis node, premise node); NOTHING where there is none
Match = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """One direction of a comparison, with the lists that features ask for most.

    `h` and `p` are the nodes of hypothesis and premise, `h_marks` and `p_marks` what holds of them;
    `targets`, `relations`, `similarity` and `edges` are those of the alignment, by hypothesis node.
    `aligned` holds the matches of all nodes, `contents` those of content nodes, `predicates` of two
    verbs, `nominals` of two nouns, names, numbers or pronouns; `unaligned` the hypothesis nodes
    that went to nothing; `takers` counts the nodes that went to each premise node. `size` is the
    number of content nodes of the hypothesis, at least 1.
    """

    hypothesis: Sentence
    premise: Sentence
    alignment: WordAlignment
    h: tuple[Node, ...]
    p: tuple[Node, ...]
    h_marks: tuple[Marks, ...]
    p_marks: tuple[Marks, ...]
    targets: tuple[int, ...]
    relations: tuple[str, ...]
    similarity: tuple[float, ...]
    edges: tuple[str, ...]
    aligned: tuple[Match, ...]
    contents: tuple[Match, ...]
    predicates: tuple[Match, ...]
    nominals: tuple[Match, ...]
    unaligned: tuple[int, ...]
    takers: dict[int, int]
    size: int

    def matches_by(self, *relations: str) -> list[Match]:
        """The content matches that hold by one of these relations."""
        found = self.relations
        return [match for match in self.contents if found[match[0]] in relations]


NOMINAL = frozenset({"noun", "name", "pronoun", "number"})


def make_pair(hypothesis: Sentence, premise: Sentence, alignment: WordAlignment) -> Pair:
    """A pair with its lists filled in."""
    h, p, targets = hypothesis.graph.nodes, premise.graph.nodes, alignment.targets
    aligned = tuple((i, j) for i, j in enumerate(targets) if j != NOTHING)
    takers: dict[int, int] = {}
    for _, j in aligned:
        takers[j] = takers.get(j, 0) + 1
    return Pair(
        hypothesis,
        premise,
        alignment,
        h,
        p,
        hypothesis.marks,
        premise.marks,
        targets,
        alignment.relations,
        alignment.similarity,
        alignment.edges,
        aligned=aligned,
        contents=tuple(m for m in aligned if h[m[0]].content),
        predicates=tuple(m for m in aligned if h[m[0]].kind == "verb" == p[m[1]].kind),
        nominals=tuple(m for m in aligned if h[m[0]].kind in NOMINAL and p[m[1]].kind in NOMINAL),
        unaligned=tuple(i for i, j in enumerate(targets) if j == NOTHING),
        takers=takers,
        size=max(1, len(hypothesis.contents)),
    )


def make_pairs(translation: Sentence, reference: Sentence) -> tuple[Pair, Pair]:
    """Both directions: the reference as premise, then the translation as premise."""
    forward, backward = align_both(translation, reference)
    return (
        make_pair(translation, reference, forward),
        make_pair(reference, translation, backward),
    )
