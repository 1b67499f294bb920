"""What all entailment features have in common: a name, a rule and a sentence about its matches.

The rule of most features tests a linguistic condition and returns the matches of nodes on which it
holds. The value is their number divided by the square root of the hypothesis length. This lies
between a count, which grows with the sentence, and a share, which hides a single serious error.
Explanations show the matches. A few rules measure quality: they return a value from 0 to 1.

All features take a `Pair`: premise, hypothesis and their alignment. They are computed in both
directions: with the reference as premise (what does the translation add?) and with the reference
as hypothesis (what does it drop?).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tertium.metrics.linguistics.dependency_graph import NOMINAL_KINDS, Node
from tertium.metrics.linguistics.semantic_attributes import SemanticAttributes, Sentence
from tertium.metrics.linguistics.word_alignment import (
    UNALIGNED,
    WordAlignment,
    align_both_directions,
)

# (hypothesis node, premise node); UNALIGNED without a partner
Match = tuple[int, int]
FORWARD = "forward"
BACKWARD = "backward"
_MAX_PHRASE_WORDS = 8


class AlignedNodes(NamedTuple):
    """A hypothesis node, the premise node that it is aligned with, and how they match."""

    h: Node
    p: Node
    h_attributes: SemanticAttributes
    p_attributes: SemanticAttributes
    relation: str
    similarity: float
    edge: str

    @property
    def match(self) -> Match:
        return self.h.index, self.p.index


class Pair:
    """An aligned hypothesis and premise: one direction of a comparison.

    `h` and `p` are the nodes of hypothesis and premise, `targets` the targets of the alignment by
    hypothesis node. `nodes` lists aligned nodes by kind: "all", those of "content" words, those of
    two verbs ("predicate"), and those of two nouns, names, numbers or pronouns ("nominal").
    `unaligned` lists hypothesis nodes without a target. `content_count` is the number of content
    words of the hypothesis, at least 1.
    """

    def __init__(self, hypothesis: Sentence, premise: Sentence, alignment: WordAlignment) -> None:
        self.hypothesis = hypothesis
        self.premise = premise
        self.alignment = alignment
        self.h = hypothesis.nodes
        self.p = premise.nodes
        self.targets = alignment.targets
        aligned = [
            AlignedNodes(
                self.h[i],
                self.p[j],
                hypothesis.attributes[i],
                premise.attributes[j],
                alignment.relations[i],
                alignment.similarity[i],
                alignment.edges[i],
            )
            for i, j in enumerate(self.targets)
            if j != UNALIGNED
        ]
        self.nodes = {
            "all": aligned,
            "content": [n for n in aligned if n.h.is_content],
            "predicate": [n for n in aligned if n.h.kind == n.p.kind == "verb"],
            "nominal": [n for n in aligned if {n.h.kind, n.p.kind} <= NOMINAL_KINDS],
        }
        self.unaligned = [n for n in self.h if self.targets[n.index] == UNALIGNED]
        self.content_count = max(1, len(hypothesis.content_nodes))


def make_pairs(translation: Sentence, reference: Sentence) -> tuple[Pair, Pair]:
    """Align in both directions: first with the reference as premise, then the translation."""
    forward, backward = align_both_directions(translation, reference)
    return Pair(translation, reference, forward), Pair(reference, translation, backward)


Find = Callable[[Pair], Sequence[Match]]
Rule = Find | Callable[[Pair], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A feature: `rule` returns its matches, or its value from 0 to 1.

    `template` is a sentence about one match. Its fields are

    - {hypothesis} and {reference}: the words on either side, in any direction
    - {words} and {premise}: the words on the hypothesis and the premise side of this direction
    - {phrase}: {words} with their dependents
    - {adds}: "adds", or "drops" if the reference is the hypothesis of this direction
    - {hypothesis_modality} and {reference_modality}

    A feature that `is_positive` is evidence for the translation, any other evidence against it. If
    a feature that `blocks_entailment` fires, the hypothesis does not follow from the premise. A
    feature that is not `is_reported` repeats another one, or readers do not need it. Of the
    features with a `rank` that fire on one word, the lowest is reported; 0 is no rank.
    """

    name: str
    group: str
    is_positive: bool
    blocks_entailment: bool
    is_reported: bool
    rank: int
    template: str
    rule: Rule

    def find(self, pair: Pair) -> Sequence[Match]:
        """Return the matches of the rule; a measure of quality has none."""
        result = self.rule(pair)
        return () if isinstance(result, float) else result

    def value(self, pair: Pair) -> float:
        """Return the measure, or the number of matches per root of `pair.content_count`."""
        result = self.rule(pair)
        if isinstance(result, float):
            return result
        return len(result) / math.sqrt(pair.content_count)

    def describe(self, pair: Pair, direction: str) -> list[str]:
        """Describe each match in a sentence."""
        return [self.describe_match(pair, match, direction) for match in self.find(pair)]

    def describe_match(self, pair: Pair, match: Match, direction: str) -> str:
        """Describe one match in a sentence."""
        i, j = match
        own, own_modality = _describe_node(pair.hypothesis, i)
        other, other_modality = _describe_node(pair.premise, j)
        is_forward = direction == FORWARD
        return self.template.format(
            hypothesis=f"'{own if is_forward else other}'",
            reference=f"'{other if is_forward else own}'",
            words=f"'{own or other}'",
            phrase=f"'{_phrase(pair, i)}'" if i != UNALIGNED else f"'{other}'",
            premise=f"'{other}'",
            adds="adds" if is_forward else "drops",
            hypothesis_modality=own_modality if is_forward else other_modality,
            reference_modality=other_modality if is_forward else own_modality,
        )


def _describe_node(sentence: Sentence, index: int) -> tuple[str, str]:
    """Return the text and the modality of a node; both are empty without a node."""
    if index == UNALIGNED:
        return "", ""
    return sentence.nodes[index].text, sentence.attributes[index].modality


def _phrase(pair: Pair, index: int) -> str:
    """Return the text of a node with its dependents, or of the node alone if that is long."""
    phrase = pair.hypothesis.graph.phrase_text(index)
    return phrase if len(phrase.split()) <= _MAX_PHRASE_WORDS else pair.h[index].text
