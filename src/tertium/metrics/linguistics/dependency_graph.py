"""Dependency graphs: trees of content and function words with deep relations.

The parser's tree is rearranged so that relations hold between content words. The object of a
preposition is attached to the head of the preposition, with the preposition below it. Multi-words,
numbers and dates are one node; punctuation is dropped. Relations are deep: the subject of a passive
is an object and its agent a subject, so that both voices have the same tree.
"""

from __future__ import annotations

import contextlib
import json
import logging
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tertium.core.store import ANALYSES, Store, open_store
from tertium.metrics.linguistics.lexicons import map_to_class, word_set

ROOT = -1

KIND_BY_POS = map_to_class(
    noun="NOUN",
    name="PROPN",
    verb="VERB AUX",
    adjective="ADJ",
    adverb="ADV",
    number="NUM",
    pronoun="PRON",
    determiner="DET",
    preposition="ADP",
    conjunction="CCONJ SCONJ",
    particle="PART",
    other="INTJ SYM X",
)
CONTENT_KINDS = word_set("noun name verb adjective adverb number")
NOMINAL_KINDS = word_set("noun name number pronoun")
CLAUSE_ROLES = frozenset({"clause", "relative clause", "adverbial clause"})
LIGHT_WORDS = word_set("be have do so then there here very as also just")

ROLE_BY_LABEL = map_to_class(
    root="ROOT",
    subject="nsubj csubj agent",
    object="nsubjpass csubjpass dobj obj",
    recipient="dative",
    predicate="attr acomp oprd",
    clause="ccomp xcomp pcomp parataxis",
    apposition="appos",
    modifier="amod compound nmod",
    number="nummod quantmod",
    adverbial="advmod npadvmod",
    genitive="poss",
    adjunct="prep",
    conjunct="conj",
    determiner="det predet",
    negation="neg",
    auxiliary="aux auxpass",
    marker="mark cc preconj case prt",
    expletive="expl",
    loose="dep meta intj",
    **{"adverbial clause": "advcl", "relative clause": "relcl acl"},
)


@dataclass(frozen=True, slots=True)
class Node:
    """A node that covers tokens `start` to `end`, headed by token `head`.

    `kind` is a coarse part of speech. `role` is the deep relation to `parent` (a node or `ROOT`),
    `label` the parser's own label. `marker` is the preposition of the node, `quantity` the span of
    a number or date. `is_content` marks content words. `depth` is the distance from the root.
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
    quantity: TypedSpan | None
    is_content: bool


@dataclass(frozen=True, slots=True)
class Graph:
    """The nodes of a text in text order, and the children of each node."""

    analysis: Analysis
    nodes: tuple[Node, ...]
    children: tuple[tuple[int, ...], ...]

    def child_nodes(self, index: int) -> list[Node]:
        return [self.nodes[child] for child in self.children[index]]

    @property
    def roots(self) -> tuple[int, ...]:
        """Return the root nodes, the one with the largest subtree first."""
        tops = [n.index for n in self.nodes if n.parent == ROOT]
        return tuple(sorted(tops, key=lambda i: -len(self.subtree(i))))

    def subtree(self, index: int) -> list[int]:
        """Return a node and all nodes below it, in text order."""
        nodes = [index]
        for i in nodes:
            nodes.extend(self.children[i])
        return sorted(nodes)

    def phrase_text(self, index: int) -> str:
        """Return the contiguous text of a node and the nodes below it."""
        nodes = self.nodes
        inside = {t for i in self.subtree(index) for t in range(nodes[i].start, nodes[i].end)}
        start, end = nodes[index].start, nodes[index].end
        while start - 1 in inside:
            start -= 1
        while end in inside:
            end += 1
        start, end = self.analysis.character_span(start, end)
        return self.analysis.text[start:end]


def build_graph(analysis: Analysis) -> Graph:
    """Build the graph of an analysis.

    >>> from tertium.metrics.linguistics.dependency_parser import load_parser
    >>> [a] = load_parser().analyze(["No one was infected by the virus."])
    >>> [f"{n.role} {n.lemma} of {n.parent}" for n in build_graph(a).nodes if not n.depth % 2]
    ['root infect of -1', 'marker by of 5', 'determiner the of 5']
    """
    tokens = analysis.tokens
    heads, labels, markers, token_depths = _attach_prepositions(tokens)
    group_of, groups = _group_tokens(analysis)
    tops = [min(members, key=token_depths.__getitem__) for members in groups]
    parents = [_find_parent(top, heads, group_of) for top in tops]
    depths = _compute_depths([p if p != ROOT else i for i, p in enumerate(parents)])
    spans = {s.start: s for s in (*analysis.multiwords, *analysis.quantities) if s.end > s.start}
    nodes = tuple(
        _build_node(i, tokens, members, tops[i], labels, markers, parents[i], depths[i], spans)
        for i, members in enumerate(groups)
    )
    children: list[list[int]] = [[] for _ in nodes]
    for node in nodes:
        if node.parent != ROOT:
            children[node.parent].append(node.index)
    return Graph(analysis, nodes, tuple(map(tuple, children)))


def _attach_prepositions(
    tokens: Sequence[Token],
) -> tuple[list[int], list[str], list[str], list[int]]:
    """Compute heads, labels, prepositions and depths, with each preposition below its object."""
    heads = [t.head for t in tokens]
    labels = [t.label for t in tokens]
    markers = [""] * len(tokens)
    for i, token in enumerate(tokens):
        preposition = token.head
        if token.label not in ("pobj", "pcomp") or preposition == i:
            continue
        chain = _preposition_chain(tokens, preposition)
        top, outer = chain[-1], tokens[chain[-1]].head
        is_first_object = all(heads[p] == tokens[p].head for p in chain)
        heads[i] = i if outer == top else outer
        labels[i] = _object_label(token, tokens[preposition], outer == top)
        markers[i] = "_".join(tokens[p].lemma.lower() for p in reversed(chain))
        if is_first_object:
            for p in chain:
                heads[p], labels[p] = i, "case"
    depths = _compute_depths(heads)
    if max(depths, default=0) < max(1, len(heads)):
        return heads, labels, markers, depths
    parser_heads = [t.head for t in tokens]  # the result is not a tree: keep the parser's
    labels = [t.label for t in tokens]
    return parser_heads, labels, [""] * len(tokens), _compute_depths(parser_heads)


def _preposition_chain(tokens: Sequence[Token], innermost: int) -> list[int]:
    chain = [innermost]
    while True:
        outer = tokens[chain[-1]].head
        if outer in chain or tokens[outer].label != "prep" or tokens[chain[-1]].label != "prep":
            return chain
        chain.append(outer)


def _object_label(token: Token, preposition: Token, is_root: bool) -> str:
    if is_root:
        return "ROOT"
    if token.label == "pcomp":
        return "pcomp"
    return preposition.label if preposition.label in ("agent", "dative") else "prep"


def _compute_depths(heads: Sequence[int]) -> list[int]:
    """Compute the distance of each position from its root; `len(heads)` in or below a cycle."""
    depths = []
    for i in range(len(heads)):
        depth = 0
        while heads[i] != i and depth < len(heads):
            i, depth = heads[i], depth + 1
        depths.append(depth)
    return depths


def _group_tokens(analysis: Analysis) -> tuple[list[int], list[list[int]]]:
    """Return the node of each token (-1 for punctuation) and the tokens of each node."""
    span_ends = {s.start: s.end for s in (*analysis.multiwords, *analysis.quantities)}
    group_of: list[int] = [-1] * len(analysis.tokens)
    groups: list[list[int]] = []
    i = 0
    while i < len(group_of):
        end = span_ends.get(i, i + 1)
        token = analysis.tokens[i]
        is_word = token.pos not in ("PUNCT", "SPACE") and any(map(str.isalnum, token.text))
        if end > i + 1 or is_word:
            for t in range(i, end):
                group_of[t] = len(groups)
            groups.append(list(range(i, end)))
        i = end
    return group_of, groups


def _find_parent(top: int, heads: Sequence[int], group_of: Sequence[int]) -> int:
    """Find the node above the node of a token, skipping punctuation."""
    own_group, i = group_of[top], top
    while heads[i] != i:
        i = heads[i]
        if group_of[i] not in (-1, own_group):
            return group_of[i]
    return ROOT


def _build_node(
    index: int,
    tokens: Sequence[Token],
    members: Sequence[int],
    top: int,
    labels: Sequence[str],
    markers: Sequence[str],
    parent: int,
    depth: int,
    spans: Mapping[int, TypedSpan],
) -> Node:
    token = tokens[top]
    span = spans.get(members[0])
    quantity = span if span is not None and span.kind in _QUANTITY_KINDS else None
    grouped = span is not None and quantity is None and len(members) > 1
    lemma = span.value if grouped and span is not None else token.lemma.lower()
    kind = _node_kind(token, labels[top], span, quantity)
    role = "root" if parent == ROOT else ROLE_BY_LABEL.get(labels[top], "loose")
    if role == "adjunct" and markers[top] == "of":
        role = "genitive"
    return Node(
        index,
        " ".join(tokens[t].text for t in members),
        lemma,
        kind,
        token.tag,
        role,
        labels[top],
        markers[top],
        parent,
        depth,
        members[0],
        members[-1] + 1,
        top,
        token.entity,
        quantity,
        kind in CONTENT_KINDS and lemma not in LIGHT_WORDS,
    )


_QUANTITY_KINDS = word_set("number ordinal percent money date time")
_EXPRESSION_KINDS = {"no_one": "pronoun", "each_other": "pronoun", "one_another": "pronoun"}


def _node_kind(token: Token, label: str, span: TypedSpan | None, quantity: TypedSpan | None) -> str:
    if quantity is not None:
        return "number"
    if span is not None and span.kind == "expression":
        return _EXPRESSION_KINDS.get(span.value, "particle")
    if label in ("aux", "auxpass"):
        return "auxiliary"
    if label == "neg":
        return "particle"
    return KIND_BY_POS.get(token.pos, "other")


LAYOUT_VERSION = 3  # increase it when analyses change and the parser does not
MAX_STORED_BYTES = 512 << 20  # about 400,000 analyses


class Token(NamedTuple):
    """A word or punctuation mark.

    `pos` is the universal and `tag` the Penn part of speech. `head` is the index of the governing
    token (a root governs itself) and `label` the relation to it. `entity` is the type of the named
    entity, or empty. `start` is the character offset in the text.
    """

    text: str
    lemma: str
    pos: str
    tag: str
    head: int
    label: str
    entity: str
    start: int


class TypedSpan(NamedTuple):
    """Tokens or characters `start` to `end` (exclusive) with a type and a value.

    `kind` is the type of an entity (PERSON, GPE, ORG ...), of a quantity (number, date ...) or of a
    multi-word (noun, verb, expression). `value` is its text, canonical value or lemma.
    """

    start: int
    end: int
    kind: str
    value: str


@dataclass(frozen=True, slots=True)
class Analysis:
    """The analysis of one text; `is_truncated` if the text was too long and its end is dropped."""

    text: str
    tokens: tuple[Token, ...] = ()
    entities: tuple[TypedSpan, ...] = ()
    quantities: tuple[TypedSpan, ...] = ()
    multiwords: tuple[TypedSpan, ...] = ()
    is_truncated: bool = False

    def character_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the character offsets of tokens `start` to `end`."""
        last = self.tokens[end - 1]
        return self.tokens[start].start, last.start + len(last.text)


def serialize_analysis(analysis: Analysis) -> bytes:
    """Serialize an analysis without its text."""
    parts = analysis.tokens, analysis.entities, analysis.quantities, analysis.multiwords
    row = json.dumps([*parts, analysis.is_truncated], ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(row.encode("utf-8", errors="replace"), 1)


def deserialize_analysis(text: str, row: bytes) -> Analysis:
    """Restore the analysis of `text` from a row written by `serialize_analysis`."""
    tokens, *spans, is_truncated = json.loads(zlib.decompress(row))
    entities, quantities, multiwords = (tuple(TypedSpan(*span) for span in part) for part in spans)
    words = tuple(Token(*token) for token in tokens)
    return Analysis(text, words, entities, quantities, multiwords, is_truncated)


class AnalysisStore:
    """A store on disk for the analyses of one parser."""

    def __init__(self, parser: str, folder: Path | None = None) -> None:
        path = ANALYSES.path(f"{LAYOUT_VERSION}-{parser}")
        self._path = folder / path.name if folder else path

    @property
    def _store(self) -> Store:
        return open_store(self._path, MAX_STORED_BYTES, log_level=logging.INFO)

    def get(self, texts: Iterable[str]) -> dict[str, Analysis]:
        """Return the stored analyses of these texts."""
        analyses: dict[str, Analysis] = {}
        for text, row in self._store.read(ANALYSES.name, texts).items():
            with contextlib.suppress(ValueError, TypeError, zlib.error):  # a damaged row
                analyses[text] = deserialize_analysis(text, row)
        return analyses

    def put(self, analyses: Iterable[Analysis]) -> None:
        """Store analyses."""
        rows = {analysis.text: serialize_analysis(analysis) for analysis in analyses}
        self._store.write(ANALYSES.name, rows)
