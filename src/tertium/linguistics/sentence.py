"""A sentence ready to be compared: its graph, what holds of its nodes, and what its words bring.

The graph is a tree of meaning-bearing nodes. The parser's tree is rearranged so that relations hold
between content words: an object of a preposition hangs on what the preposition hangs on, with the
preposition below it; multi-words, numbers and dates are one node; punctuation is left out.
Relations are deep: the subject of a passive is an object, its agent a subject, so that both voices
have one tree.

What holds of a node beyond its word is whether it is negated, possible or actual, past or future. A
predicate's polarity counts the negations that reach it (its own, a negative subject or object, a
governing "fail to" or "without"): an even number is none. Modality comes from auxiliaries, adverbs
and governing words; monotonicity from negation, conditions and quantifiers (MacCartney and Manning
2008): under them "an animal" no longer follows from "a dog".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tertium.linguistics import lexicons as words
from tertium.linguistics.parse import Analysis, Token, TokenRun
from tertium.linguistics.similarity import BRIDGES, WordProfile, profile

ROOT = -1

KINDS: Mapping[str, str] = {
    "NOUN": "noun", "PROPN": "name", "VERB": "verb", "AUX": "verb", "ADJ": "adjective",
    "ADV": "adverb", "NUM": "number", "PRON": "pronoun", "DET": "determiner",
    "ADP": "preposition", "CCONJ": "conjunction", "SCONJ": "conjunction", "PART": "particle",
    "INTJ": "other", "SYM": "other", "X": "other",
}  # fmt: skip
CONTENT = frozenset({"noun", "name", "verb", "adjective", "adverb", "number"})
LIGHT = frozenset({"be", "have", "do", "so", "then", "there", "here", "very", "as", "also", "just"})

ROLES: Mapping[str, str] = {
    "ROOT": "root", "nsubj": "subject", "csubj": "subject", "nsubjpass": "object",
    "csubjpass": "object", "agent": "subject", "dobj": "object", "obj": "object",
    "dative": "recipient", "attr": "predicate", "acomp": "predicate", "oprd": "predicate",
    "ccomp": "clause", "xcomp": "clause", "pcomp": "clause", "parataxis": "clause",
    "advcl": "adverbial clause", "relcl": "relative clause", "acl": "relative clause",
    "appos": "apposition", "amod": "modifier", "compound": "modifier", "nmod": "modifier",
    "nummod": "number", "quantmod": "number", "advmod": "adverbial", "npadvmod": "adverbial",
    "poss": "genitive", "prep": "adjunct", "conj": "conjunct", "det": "determiner",
    "predet": "determiner", "neg": "negation", "aux": "auxiliary", "auxpass": "auxiliary",
    "mark": "marker", "cc": "marker", "preconj": "marker", "case": "marker", "prt": "marker",
    "expl": "expletive", "dep": "loose", "meta": "loose", "intj": "loose",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Node:
    """One node: tokens `start` to `end`, headed by token `head`.

    `kind` is a coarse part of speech, `role` the deep relation to `parent` (a node, or `ROOT`),
    `label` the parser's own; `marker` the preposition it came with; `quantity` the span of a number
    or date; `content` whether it bears meaning of its own; `depth` its distance from the top.
    """

    index: int
    text: str
    lemma: str
    kind: str
    tag: str
    role: str
    label: str
    marker: str
    parent: int
    depth: int
    start: int
    end: int
    head: int
    entity: str
    quantity: TokenRun | None
    content: bool


@dataclass(frozen=True, slots=True)
class Graph:
    """The nodes of a text in its order, with the nodes below each."""

    analysis: Analysis
    nodes: tuple[Node, ...]
    children: tuple[tuple[int, ...], ...]

    @property
    def roots(self) -> tuple[int, ...]:
        """The nodes at the top, the one that governs most first."""
        tops = [n.index for n in self.nodes if n.parent == ROOT]
        return tuple(sorted(tops, key=lambda i: -len(self.below(i))))

    def below(self, index: int) -> list[int]:
        """A node and all nodes under it, in the order of the text."""
        found = [index]
        for i in found:
            found.extend(self.children[i])
        return sorted(found)

    def phrase(self, index: int) -> str:
        """The words of a node and of what is under it, as far as they are one stretch of text."""
        nodes, tokens = self.nodes, self.analysis.tokens
        inside = {t for i in self.below(index) for t in range(nodes[i].start, nodes[i].end)}
        start, end = nodes[index].start, nodes[index].end
        while start - 1 in inside:
            start -= 1
        while end in inside:
            end += 1
        if start >= end:
            return nodes[index].text
        return self.analysis.words(TokenRun(start, end, "", "")) or tokens[start].text


def build_graph(analysis: Analysis) -> Graph:
    """The graph of an analysis.

    >>> from tertium.linguistics.parse import load_parser
    >>> [a] = load_parser().analyse(["No one was infected by the virus."])
    >>> [f"{n.role} {n.lemma} of {n.parent}" for n in build_graph(a).nodes if not n.depth % 2]
    ['root infect of -1', 'marker by of 5', 'determiner the of 5']
    """
    tokens = analysis.tokens
    heads, labels, markers, token_depths = _collapse(tokens)
    group_of, groups = _groups(analysis)
    tops = [min(members, key=token_depths.__getitem__) for members in groups]
    parents = [_parent(top, heads, group_of) for top in tops]
    depths = _depths([p if p != ROOT else i for i, p in enumerate(parents)])
    spans = {s.start: s for s in (*analysis.multiwords, *analysis.quantities) if s.end > s.start}
    nodes = tuple(
        _node(i, tokens, members, tops[i], labels, markers, parents[i], depths[i], spans)
        for i, members in enumerate(groups)
    )
    children: list[list[int]] = [[] for _ in nodes]
    for node in nodes:
        if node.parent != ROOT:
            children[node.parent].append(node.index)
    return Graph(analysis, nodes, tuple(map(tuple, children)))


def _collapse(tokens: Sequence[Token]) -> tuple[list[int], list[str], list[str], list[int]]:
    """Heads, labels, prepositions and depths, with each preposition hung below its object."""
    heads = [t.head for t in tokens]
    labels = [t.label for t in tokens]
    markers = [""] * len(tokens)
    for i, token in enumerate(tokens):
        preposition = token.head
        if token.label not in ("pobj", "pcomp") or preposition == i:
            continue
        chain = _prepositions(tokens, preposition)
        top, outer = chain[-1], tokens[chain[-1]].head
        first = all(heads[p] == tokens[p].head for p in chain)
        heads[i] = i if outer == top else outer
        labels[i] = _object_label(token, tokens[preposition], outer == top)
        markers[i] = "_".join(tokens[p].lemma.lower() for p in reversed(chain))
        if first:
            for p in chain:
                heads[p], labels[p] = i, "case"
    depths = _depths(heads)
    if max(depths, default=0) < max(1, len(heads)):
        return heads, labels, markers, depths
    plain = [t.head for t in tokens]  # not a tree any more: leave the parser's
    return plain, [t.label for t in tokens], [""] * len(tokens), _depths(plain)


def _prepositions(tokens: Sequence[Token], innermost: int) -> list[int]:
    chain = [innermost]
    while True:
        outer = tokens[chain[-1]].head
        if outer in chain or tokens[outer].label != "prep" or tokens[chain[-1]].label != "prep":
            return chain
        chain.append(outer)


def _object_label(token: Token, preposition: Token, top: bool) -> str:
    if top:
        return "ROOT"
    if token.label == "pcomp":
        return "pcomp"
    return preposition.label if preposition.label in ("agent", "dative") else "prep"


def _depths(heads: Sequence[int]) -> list[int]:
    """The distance of each place from its root; the number of places where there is a cycle."""
    depths = [-1] * len(heads)
    for start in range(len(heads)):
        path: list[int] = []
        i = start
        while depths[i] < 0 and heads[i] != i and len(path) <= len(heads):
            path.append(i)
            i = heads[i]
        if len(path) > len(heads):
            return [len(heads)] * len(heads)
        base = 0 if depths[i] < 0 else depths[i]
        depths[i] = base
        for step, place in enumerate(reversed(path), start=1):
            depths[place] = base + step
    return depths


def _groups(analysis: Analysis) -> tuple[list[int], list[list[int]]]:
    """The node each token belongs to (-1 for punctuation), and the tokens of each node."""
    start_of = {s.start: s.end for s in (*analysis.multiwords, *analysis.quantities)}
    group_of: list[int] = [-1] * len(analysis.tokens)
    groups: list[list[int]] = []
    i = 0
    while i < len(group_of):
        end = start_of.get(i, i + 1)
        token = analysis.tokens[i]
        mark = token.pos in ("PUNCT", "SPACE") or not any(map(str.isalnum, token.text))
        if end > i + 1 or not mark:
            for t in range(i, end):
                group_of[t] = len(groups)
            groups.append(list(range(i, end)))
        i = end
    return group_of, groups


def _parent(top: int, heads: Sequence[int], group_of: Sequence[int]) -> int:
    """The node above a token's node, past punctuation."""
    own, i = group_of[top], top
    while heads[i] != i:
        i = heads[i]
        if group_of[i] not in (-1, own):
            return group_of[i]
    return ROOT


def _node(
    index: int,
    tokens: Sequence[Token],
    members: Sequence[int],
    top: int,
    labels: Sequence[str],
    markers: Sequence[str],
    parent: int,
    depth: int,
    spans: Mapping[int, TokenRun],
) -> Node:
    token = tokens[top]
    span = spans.get(members[0])
    quantity = span if span is not None and span.kind in _QUANTITIES else None
    grouped = span is not None and quantity is None and len(members) > 1
    lemma = span.value if grouped and span is not None else token.lemma.lower()
    kind = _kind(token, labels[top], span, quantity)
    role = "root" if parent == ROOT else ROLES.get(labels[top], "loose")
    if role == "adjunct" and markers[top] == "of":
        role = "genitive"
    return Node(
        index, " ".join(tokens[t].text for t in members), lemma, kind, token.tag, role,
        labels[top], markers[top], parent, depth, members[0], members[-1] + 1, top,
        token.entity, quantity, kind in CONTENT and lemma not in LIGHT,
    )  # fmt: skip


_QUANTITIES = frozenset({"number", "ordinal", "percent", "money", "date", "time"})
_EXPRESSIONS = {"no_one": "pronoun", "each_other": "pronoun", "one_another": "pronoun"}


def _kind(token: Token, label: str, span: TokenRun | None, quantity: TokenRun | None) -> str:
    if quantity is not None:
        return "number"
    if span is not None and span.kind == "expression":
        return _EXPRESSIONS.get(span.value, "particle")
    if label in ("aux", "auxpass"):
        return "auxiliary"
    if label == "neg":
        return "particle"
    return KINDS.get(token.pos, "other")


_ARGUMENTS = frozenset({"subject", "object", "recipient", "predicate", "adjunct", "adverbial"})
_NOMINAL = frozenset({"noun", "name", "number", "pronoun"})
Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What holds of one node; fields that do not apply to it are empty or false.

    `attitude` is the class of the word a clause depends on (factive, report, belief, wish, positive
    and negative implicative); `downward` whether the node stands in a downward monotone context.
    """

    negated: bool = False
    modality: str = "actual"
    tense: str = ""
    perfect: bool = False
    progressive: bool = False
    passive: bool = False
    attitude: str = ""
    downward: bool = False
    quantifier: str = ""
    definite: str = ""
    degree: str = ""
    number: str = ""


def interpret(graph: Graph) -> tuple[Marks, ...]:
    """The marks of each node.

    >>> from tertium.linguistics.sentence import build_graph
    >>> from tertium.linguistics.parse import load_parser
    >>> [a] = load_parser().analyse(["Nobody could have known."])
    >>> m = interpret(build_graph(a))[-1]
    >>> m.negated, m.modality, m.perfect
    (True, 'possible', True)
    """
    negated = [_is_negated(graph, node) for node in graph.nodes]
    modality = [_modality(graph, node) for node in graph.nodes]
    downward = _downward(graph, negated)
    return tuple(
        Marks(
            negated=negated[i],
            modality=modality[i],
            attitude=_attitude(graph, node),
            downward=downward[i],
            **_verb_marks(graph, node),
            **_noun_marks(graph, node, node.parent != ROOT and negated[node.parent]),
        )
        for i, node in enumerate(graph.nodes)
    )


def _is_negated(graph: Graph, node: Node) -> bool:
    """Whether an odd number of negations reaches a predicate, or a noun has one of its own."""
    below = [graph.nodes[c] for c in graph.children[node.index]]
    count = sum(child.role == "negation" or child.lemma == "no_longer" for child in below)
    if node.kind != "verb":
        own = [c for c in below if c.role == "determiner" and c.lemma in words.NEGATIVE_DETERMINERS]
        return (count + len(own) + (node.marker == "without")) % 2 == 1
    for child in below:
        if child.role in _ARGUMENTS and _is_negative(graph, child):
            count += 1
    if node.role == "clause" and node.parent != ROOT:
        count += words.ATTITUDES.get(graph.nodes[node.parent].lemma) == "negative"
    return (count + (node.marker == "without")) % 2 == 1


def _is_negative(graph: Graph, node: Node) -> bool:
    if node.lemma in words.NEGATIVE_PRONOUNS or node.lemma in ("never", "nowhere", "hardly"):
        return True
    return any(
        graph.nodes[c].role in ("determiner", "modifier")
        and graph.nodes[c].lemma in words.NEGATIVE_DETERMINERS
        for c in graph.children[node.index]
    )


def _modality(graph: Graph, node: Node) -> str:
    if node.kind != "verb":
        return "actual"
    found = "actual"
    for c in graph.children[node.index]:
        child = graph.nodes[c]
        if child.lemma in words.MODAL_ADVERBS and child.role in ("adverbial", "predicate"):
            return words.MODAL_ADVERBS[child.lemma]
        if child.role == "marker" and child.lemma in words.CONDITIONALS:
            return "hypothetical"
        if child.role == "auxiliary" and child.lemma in words.MODAL_VERBS:
            found = words.MODAL_VERBS[child.lemma]
    if found == "actual" and node.role == "clause" and node.parent != ROOT:
        return _governing_modality(graph, node)
    return found


def _governing_modality(graph: Graph, node: Node) -> str:
    """The modality an infinitive has from "have to", "able to", "likely to" ..."""
    parent = graph.nodes[node.parent]
    if parent.kind not in ("verb", "adjective") or node.label != "xcomp":
        return "actual"
    return words.SEMI_MODALS.get(parent.lemma, "actual")


def _attitude(graph: Graph, node: Node) -> str:
    if node.parent == ROOT or node.role not in ("clause", "relative clause"):
        return ""
    parent = graph.nodes[node.parent]
    if node.role == "relative clause" and parent.lemma not in ("fact", "belief", "statement"):
        return ""
    return words.ATTITUDES.get(parent.lemma, "")


def _downward(graph: Graph, negated: list[bool]) -> list[bool]:
    """Whether the nearest scope above each node turns inference around."""
    result = [False] * len(graph.nodes)
    for i in sorted(range(len(graph.nodes)), key=lambda i: graph.nodes[i].depth):
        node = graph.nodes[i]
        below = [graph.nodes[c] for c in graph.children[i]]
        opens = (
            negated[i]
            or node.marker == "without"
            or any(c.role == "marker" and c.lemma in words.CONDITIONALS for c in below)
            or any(c.role == "determiner" and c.lemma in words.DOWNWARD for c in below)
        )
        above = node.parent != ROOT and result[node.parent]
        fresh = node.role in ("clause", "relative clause", "adverbial clause")
        inherited = above and not (fresh and node.kind == "verb" and not opens)
        result[i] = opens or inherited
    return result


def _verb_marks(graph: Graph, node: Node) -> dict[str, Any]:
    if node.kind != "verb":
        return {}
    helpers = [
        graph.nodes[c] for c in graph.children[node.index] if graph.nodes[c].role == "auxiliary"
    ]
    lemmas = {helper.lemma for helper in helpers}
    passive = any(h.label == "auxpass" for h in helpers) or (
        node.tag == "VBN" and not helpers and node.role == "relative clause"
    )
    return {
        "tense": _tense(graph, node, helpers),
        "perfect": "have" in lemmas,
        "progressive": node.tag == "VBG" and "be" in lemmas,
        "passive": passive,
    }


_TENSES = {"VBD": "past", "VBZ": "present", "VBP": "present"}


def _tense(graph: Graph, node: Node, helpers: list[Node]) -> str:
    for helper in helpers:
        if helper.text.lower() in words.FUTURE_AUXILIARIES:
            return "future"
        if helper.tag in _TENSES:
            future = helper.lemma == "be" and node.lemma == "go" and _has_infinitive(graph, node)
            return "future" if future else _TENSES[helper.tag]
        if helper.tag == "MD":
            return "past" if helper.lemma in ("could", "would", "might") else "present"
    if node.tag in _TENSES:
        return _TENSES[node.tag]
    if node.role == "clause" and node.parent != ROOT and node.tag == "VB":
        return _TENSES.get(graph.nodes[node.parent].tag, "")
    return ""


def _has_infinitive(graph: Graph, node: Node) -> bool:
    return any(graph.nodes[c].label == "xcomp" for c in graph.children[node.index])


_NUMBERS = {"NN": "singular", "NNP": "singular", "NNS": "plural", "NNPS": "plural"}
_DEGREES = {"JJR": "comparative", "RBR": "comparative", "JJS": "superlative", "RBS": "superlative"}
_DEFINITE = frozenset({"the", "this", "that", "these", "those"})


def _noun_marks(graph: Graph, node: Node, negated_clause: bool) -> dict[str, Any]:
    marks: dict[str, Any] = {"degree": _DEGREES.get(node.tag, "")}
    if node.kind in ("adjective", "adverb") and not marks["degree"]:
        lemmas = {graph.nodes[c].lemma for c in graph.children[node.index]}
        marks["degree"] = "comparative" if lemmas & {"more", "less"} else ""
        marks["degree"] = "superlative" if lemmas & {"most", "least"} else marks["degree"]
    if node.kind not in _NOMINAL:
        return marks
    marks["number"] = _NUMBERS.get(node.tag, "")
    marks["quantifier"] = words.QUANTIFIERS.get(node.lemma, "")
    if negated_clause and node.lemma.startswith("any"):
        marks["quantifier"] = "none"  # not ... anybody: nobody
    for c in graph.children[node.index]:
        child = graph.nodes[c]
        if child.role in ("determiner", "modifier", "number") and not marks["quantifier"]:
            marks["quantifier"] = words.QUANTIFIERS.get(child.lemma, "")
            if negated_clause and child.lemma == "any":
                marks["quantifier"] = "none"
        if child.role == "determiner" and child.lemma in _DEFINITE:
            marks["definite"] = "definite"
        elif child.role == "determiner" and child.lemma in ("a", "an"):
            marks["definite"] = "indefinite"
        elif child.role == "genitive" and child.label == "poss":
            marks["definite"] = "definite"
    return marks


# a unit vector for each node of a graph, zeros where it has none, (nodes, dim)
NodeVectors = Callable[[Graph], Vectors]


@dataclass(frozen=True, slots=True, eq=False)
class Sentence:
    """A text as features see it.

    `marks[i]` and `profiles[i]` belong to `graph.nodes[i]`; row i of `vectors` (nodes, dim) is the
    unit vector of its word, zeros where it has none; `initials` leads from the first letters of
    each name of several words to the node at its head. `contents` and `grammar` number the nodes of
    either sort; `bridges` are those of grammar that can stand for content.
    """

    graph: Graph
    marks: tuple[Marks, ...]
    profiles: tuple[WordProfile, ...]
    vectors: Vectors
    initials: dict[str, int]
    contents: tuple[int, ...]
    grammar: tuple[int, ...]
    bridges: tuple[int, ...]

    @property
    def text(self) -> str:
        return self.graph.analysis.text

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self.graph.nodes


def build_sentence(analysis: Analysis, vectors: NodeVectors | None = None) -> Sentence:
    """Everything about one analysed text that a comparison needs; without vectors, all are zero."""
    graph = build_graph(analysis)
    rows = vectors(graph) if vectors else np.zeros((len(graph.nodes), 1), dtype=np.float32)
    return Sentence(
        graph,
        interpret(graph),
        tuple(profile(node.lemma, node.kind) for node in graph.nodes),
        rows,
        _initials(graph),
        tuple(n.index for n in graph.nodes if n.content),
        tuple(n.index for n in graph.nodes if not n.content),
        tuple(n.index for n in graph.nodes if not n.content and n.lemma in BRIDGES),
    )


def _initials(graph: Graph) -> dict[str, int]:
    tokens = graph.analysis.tokens
    found: dict[str, int] = {}
    for span in graph.analysis.entities:
        words = [t.text for t in tokens[span.start : span.end] if t.pos != "DET"]
        letters = [word[0] for word in words if word[0].isupper()]
        if len(letters) > 1:
            inside = [n for n in graph.nodes if span.start <= n.head < span.end]
            if inside:
                found["".join(letters).lower()] = min(inside, key=lambda n: n.depth).index
    return found
