"""What an entailment feature is: a name, what it finds in a pair, and how to say it.

Most features are small linguistic theories: `find` returns the matches of nodes on which they fire.
Their value is how many those are, relative to the square root of the hypothesis' length (between a
count, which grows with the sentence, and a share, which hides a single grave error); an explanation
shows the matches themselves. A few are measures of quality, with a value and nothing to show.

All look at a `Pair`: premise, hypothesis and the alignment between them. Features speak of one
direction, and both are asked of a translation: with the reference as premise (what does the
translation add?) and as hypothesis (what does it lose?).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tertium.linguistics.alignment import NOTHING, WordAlignment, align_both
from tertium.linguistics.sentence import Sentence

# (hypothesis node, premise node); NOTHING where there is none
Match = tuple[int, int]
FORWARD, BACKWARD = "forward", "backward"


NOMINAL = frozenset({"noun", "name", "pronoun", "number"})


class Pair:
    """One direction of a comparison, with the lists that features ask for most.

    `h` and `p` are the nodes of hypothesis and premise, `h_marks` and `p_marks` what holds of them;
    `targets`, `relations`, `similarity` and `edges` are those of the alignment, by hypothesis node.
    `aligned` holds the matches of all nodes, `contents` those of content nodes, `predicates` of two
    verbs, `nominals` of two nouns, names, numbers or pronouns; `unaligned` the hypothesis nodes
    that went to nothing; `takers` counts the nodes that went to each premise node. `size` is the
    number of content nodes of the hypothesis, at least 1.
    """

    def __init__(self, hypothesis: Sentence, premise: Sentence, alignment: WordAlignment) -> None:
        self.hypothesis, self.premise, self.alignment = hypothesis, premise, alignment
        self.h_marks, self.p_marks = hypothesis.marks, premise.marks
        self.targets, self.relations = alignment.targets, alignment.relations
        self.similarity, self.edges = alignment.similarity, alignment.edges
        self.h, self.p = h, p = hypothesis.graph.nodes, premise.graph.nodes
        self.aligned = aligned = [(i, j) for i, j in enumerate(self.targets) if j != NOTHING]
        self.contents = [m for m in aligned if h[m[0]].content]
        self.predicates = [(i, j) for i, j in aligned if h[i].kind == "verb" == p[j].kind]
        self.nominals = [(i, j) for i, j in aligned if {h[i].kind, p[j].kind} <= NOMINAL]
        self.unaligned = [i for i, j in enumerate(self.targets) if j == NOTHING]
        self.takers = Counter(j for _, j in aligned)
        self.size = max(1, len(hypothesis.contents))

    def matches_by(self, *relations: str) -> list[Match]:
        """The content matches that hold by one of these relations."""
        found = self.relations
        return [match for match in self.contents if found[match[0]] in relations]


def make_pairs(translation: Sentence, reference: Sentence) -> tuple[Pair, Pair]:
    """Both directions: the reference as premise, then the translation as premise."""
    forward, backward = align_both(translation, reference)
    return Pair(translation, reference, forward), Pair(reference, translation, backward)


Find = Callable[[Pair], Sequence[Match]]


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature that fires on matches.

    `says` is a sentence about one match, with the fields {hypothesis} and {reference} (the words on
    either side, whatever the direction), {words} (the words on the side that is the hypothesis of
    this direction), {phrase} (with all that depends on them) and {adds} ("adds" or, where the
    reference is the hypothesis of this direction, "drops"), {premise} (the words on the other side
    of this direction), and {hypothesis_modality} and {reference_modality}.
    """

    name: str
    find: Find
    says: str
    good: bool = False

    def value(self, pair: Pair) -> float:
        """How often it fires, relative to the square root of the hypothesis' content words."""
        return len(self.find(pair)) / math.sqrt(pair.size)

    def sentences(self, pair: Pair, direction: str) -> list[str]:
        """What it has to say, one sentence for each match."""
        return [self.say(pair, match, direction) for match in self.find(pair)]

    def say(self, pair: Pair, match: Match, direction: str) -> str:
        """The sentence about one match."""
        i, j = match
        own = pair.h[i].text if i != NOTHING else ""
        other = pair.p[j].text if j != NOTHING else ""
        forward = direction == FORWARD
        return self.says.format(
            hypothesis=f"'{own if forward else other}'",
            reference=f"'{other if forward else own}'",
            words=f"'{own or other}'",
            phrase=f"'{_phrase(pair, i)}'" if i != NOTHING else f"'{other}'",
            premise=f"'{other}'",
            adds="adds" if forward else "drops",
            **_modalities(pair, match, forward),
        )


def merit(name: str, find: Find, says: str) -> Feature:
    """A feature that speaks for the hypothesis."""
    return Feature(name, find, says, good=True)


@dataclass(frozen=True, slots=True)
class Quality:
    """A feature that is a number between 0 and 1 for the pair as a whole."""

    name: str
    measure: Callable[[Pair], float]
    says: str
    good: bool = True

    def find(self, pair: Pair) -> Sequence[Match]:
        return ()

    def value(self, pair: Pair) -> float:
        return self.measure(pair)

    def sentences(self, pair: Pair, direction: str) -> list[str]:
        side = "the hypothesis" if direction == FORWARD else "the reference"
        return [self.says.format(value=self.measure(pair), side=side)]


AnyFeature = Feature | Quality


def _modalities(pair: Pair, match: Match, forward: bool) -> dict[str, str]:
    if NOTHING in match:
        return {"hypothesis_modality": "", "reference_modality": ""}
    own, other = pair.h_marks[match[0]].modality, pair.p_marks[match[1]].modality
    hypothesis, reference = (own, other) if forward else (other, own)
    return {"hypothesis_modality": hypothesis, "reference_modality": reference}


_LONGEST_PHRASE = 8


def _phrase(pair: Pair, index: int) -> str:
    """The words of a node with its dependents; of a long phrase only the node's own."""
    phrase = pair.hypothesis.graph.phrase(index)
    return phrase if len(phrase.split()) <= _LONGEST_PHRASE else pair.h[index].text
