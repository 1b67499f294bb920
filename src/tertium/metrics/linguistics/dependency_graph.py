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
        start = nodes[index].start
        end = nodes[index].end
        while start - 1 in inside:
            start -= 1
        while end in inside:
            end += 1
        first = self.analysis.tokens[start]
        last = self.analysis.tokens[end - 1]
        return self.analysis.text[first.start : last.start + len(last.text)]


def build_graph(analysis: Analysis) -> Graph:
    """Build the graph of an analysis.

    >>> from tertium.metrics.linguistics.dependency_parser import load_parser
    >>> [a] = load_parser().analyze(["No one was infected by the virus."])
    >>> [f"{n.role} {n.lemma} of {n.parent}" for n in build_graph(a).nodes if not n.depth % 2]
    ['root infect of -1', 'marker by of 5', 'determiner the of 5']
    """
    tokens, markers, depths = _attach_prepositions(analysis.tokens)
    spans = {span.start: span for span in (*analysis.multiwords, *analysis.quantities)}
    group_of, groups = _group_tokens(tokens, spans)
    tops = [min(members, key=depths.__getitem__) for members in groups]
    parents = [_find_parent(top, tokens, group_of) for top in tops]
    node_depths = _compute_depths([i if p == ROOT else p for i, p in enumerate(parents)])
    nodes: list[Node] = []
    children: list[list[int]] = [[] for _ in groups]
    for i, (members, top, parent) in enumerate(zip(groups, tops, parents, strict=True)):
        token = tokens[top]
        marker = markers[top]
        span = spans.get(members[0])
        is_quantity = span is not None and span.kind in _QUANTITY_KINDS
        kind = _node_kind(token, span, is_quantity)
        lemma = token.lemma.lower() if span is None or is_quantity else span.value
        role = "root" if parent == ROOT else ROLE_BY_LABEL.get(token.label, "loose")
        nodes.append(
            Node(
                i,
                " ".join(tokens[t].text for t in members),
                lemma,
                kind,
                token.tag,
                "genitive" if role == "adjunct" and marker == "of" else role,
                token.label,
                marker,
                parent,
                node_depths[i],
                members[0],
                members[-1] + 1,
                top,
                token.entity,
                span if is_quantity else None,
                kind in CONTENT_KINDS and lemma not in LIGHT_WORDS,
            )
        )
        if parent != ROOT:
            children[parent].append(i)
    return Graph(analysis, tuple(nodes), tuple(map(tuple, children)))


def _attach_prepositions(tokens: Sequence[Token]) -> tuple[Sequence[Token], list[str], list[int]]:
    """Put each preposition below its object; return tokens, their prepositions and depths."""
    attached = list(tokens)
    markers = [""] * len(tokens)
    for i, token in enumerate(tokens):
        if token.label not in ("pobj", "pcomp") or token.head == i:
            continue
        chain = _preposition_chain(tokens, token.head)
        outer = tokens[chain[-1]].head
        label = token.label
        if outer == chain[-1]:
            outer = i
            label = "ROOT"
        elif label == "pobj":
            own = tokens[token.head].label
            label = own if own in ("agent", "dative") else "prep"
        is_first_object = all(attached[p].head == tokens[p].head for p in chain)
        attached[i] = token._replace(head=outer, label=label)
        markers[i] = "_".join(tokens[p].lemma.lower() for p in reversed(chain))
        if is_first_object:
            for p in chain:
                attached[p] = tokens[p]._replace(head=i, label="case")
    depths = _compute_depths([token.head for token in attached])
    if max(depths, default=-1) < len(tokens):
        return attached, markers, depths
    # The result is not a tree: keep the parser's.
    return tokens, [""] * len(tokens), _compute_depths([token.head for token in tokens])


def _preposition_chain(tokens: Sequence[Token], innermost: int) -> list[int]:
    chain = [innermost]
    while True:
        outer = tokens[chain[-1]].head
        if outer in chain or tokens[outer].label != "prep" or tokens[chain[-1]].label != "prep":
            return chain
        chain.append(outer)


def _compute_depths(heads: Sequence[int]) -> list[int]:
    """Compute the distance of each position from its root; `len(heads)` in or below a cycle."""
    depths = []
    for i in range(len(heads)):
        depth = 0
        while heads[i] != i and depth < len(heads):
            i = heads[i]
            depth = depth + 1
        depths.append(depth)
    return depths


def _group_tokens(
    tokens: Sequence[Token], spans: Mapping[int, TypedSpan]
) -> tuple[list[int], list[range]]:
    """Return the node of each token (-1 for punctuation) and the tokens of each node."""
    group_of = [-1] * len(tokens)
    groups: list[range] = []
    i = 0
    while i < len(tokens):
        members = range(i, spans[i].end if i in spans else i + 1)
        token = tokens[i]
        is_word = token.pos not in ("PUNCT", "SPACE") and any(map(str.isalnum, token.text))
        if is_word or len(members) > 1:
            for t in members:
                group_of[t] = len(groups)
            groups.append(members)
        i = members.stop
    return group_of, groups


def _find_parent(top: int, tokens: Sequence[Token], group_of: Sequence[int]) -> int:
    """Find the node above the node of a token, skipping punctuation."""
    i = top
    while tokens[i].head != i:
        i = tokens[i].head
        if group_of[i] not in (-1, group_of[top]):
            return group_of[i]
    return ROOT


_QUANTITY_KINDS = word_set("number ordinal percent money date time")
_PRONOUNS = ("no_one", "each_other", "one_another")  # among the fixed expressions


def _node_kind(token: Token, span: TypedSpan | None, is_quantity: bool) -> str:
    if is_quantity:
        return "number"
    if span is not None and span.kind == "expression":
        return "pronoun" if span.value in _PRONOUNS else "particle"
    if token.label in ("aux", "auxpass"):
        return "auxiliary"
    return "particle" if token.label == "neg" else KIND_BY_POS.get(token.pos, "other")


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


class AnalysisStore:
    """A store on disk for the analyses of one parser, without their texts."""

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
                tokens, *parts, is_truncated = json.loads(zlib.decompress(row))
                words = tuple(Token(*token) for token in tokens)
                entities, quantities, multiwords = (
                    tuple(TypedSpan(*span) for span in part) for part in parts
                )
                analyses[text] = Analysis(
                    text, words, entities, quantities, multiwords, is_truncated
                )
        return analyses

    def put(self, analyses: Iterable[Analysis]) -> None:
        """Store analyses."""
        rows = {}
        for one in analyses:
            parts = [one.tokens, one.entities, one.quantities, one.multiwords, one.is_truncated]
            row = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
            rows[one.text] = zlib.compress(row.encode("utf-8", errors="replace"), 1)
        self._store.write(ANALYSES.name, rows)
