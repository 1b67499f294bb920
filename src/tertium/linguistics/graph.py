"""The graph of a sentence: a tree of meaning-bearing nodes.

The parser's tree is rearranged so that relations hold between content words: an object of a
preposition hangs on what the preposition hangs on, with the preposition below it; multi-words,
numbers and dates are one node; punctuation is left out. Relations are deep: the subject of a
passive is an object, its agent a subject, so that both voices have one tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tertium.linguistics.parse import Analysis, Token, TokenRun

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
