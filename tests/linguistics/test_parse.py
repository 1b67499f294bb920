"""Texts become analyses: tokens, entities, groups of words, quantities; and no text fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from tertium.errors import DataError
from tertium.linguistics.graph import build_graph
from tertium.linguistics.interpretation import interpret
from tertium.linguistics.parse import (
    Analysis,
    AnalysisStore,
    Parser,
    Token,
    clean,
    is_cut,
    load_parser,
    may_be_english,
    pack,
    unpack,
)
from tertium.runtime import runtime
from tertium.text.bounds import PARSED_CHARACTERS, PARSED_WORDS

FAULTS = {
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
    "long": "The old man sold the car . " * 80,
    "same word": "the " * 500,
    "one long word": "x" * (PARSED_CHARACTERS + 5),
    "many words": "and " * (PARSED_WORDS + 1),
    "many marks": "a,b" * PARSED_WORDS,
}


@pytest.fixture(scope="module")
def parser() -> Parser:
    return load_parser()


@pytest.mark.parametrize("name", FAULTS)
def test_no_text_makes_it_fail(parser: Parser, name: str) -> None:
    [analysis] = parser.analyse([FAULTS[name]])
    graph = build_graph(analysis)
    assert len(interpret(graph)) == len(graph.nodes)
    assert all(0 <= token.head < len(analysis.tokens) for token in analysis.tokens)
    for node in graph.nodes:  # every node reaches a root: the graph is a forest
        seen, i = set(), node.index
        while i != -1:
            assert i not in seen
            seen.add(i)
            i = graph.nodes[i].parent
        assert graph.phrase(node.index)
    assert analysis.cut == (name in ("one long word", "many words", "many marks"))
    assert len(analysis.tokens) <= PARSED_WORDS


def test_a_text_of_ordinary_length_is_parsed_whole() -> None:
    text = "It isn't cut, is it? " * 128  # 640 words, 1,152 with their marks
    assert not is_cut(text)
    assert clean(text) == text


def test_texts_keep_their_order_and_offsets(parser: Parser) -> None:
    texts = ["The second one is longer than that.", "First.", "The second one is longer than that."]
    analyses = parser.analyse(texts)
    assert [a.text for a in analyses] == texts
    for analysis in analyses:
        for token in analysis.tokens:
            assert analysis.text[token.start : token.start + len(token.text)] == token.text


def test_control_characters_keep_offsets() -> None:
    assert clean("a\0b\nc\ud800") == "a b c\ufffd"


def test_groups_of_words_are_found(parser: Parser) -> None:
    [a] = parser.analyse(["We gave up the prime minister's credit card as well as no one in 2016."])
    assert [span.value for span in a.multiwords] == [
        "give_up",
        "prime_minister",
        "credit_card",
        "as_well_as",
        "no_one",
    ]
    assert [(q.kind, q.value) for q in a.quantities] == [("date", "2016-?-?-?")]


def test_a_pronoun_is_no_number(parser: Parser) -> None:
    may, one = parser.analyse(["May I?", "Two came, one left in May."])
    assert may.quantities == ()
    assert [q.value for q in one.quantities] == ["2", "1", "?-5-?-?"]


def test_an_analysis_survives_storage(parser: Parser) -> None:
    for analysis in parser.analyse(list(FAULTS.values())):
        assert unpack(analysis.text, pack(analysis)) == analysis


def test_a_damaged_row_is_refused() -> None:
    for row in ("", "[]", "[[[1]], [], 0]", "nonsense"):
        with pytest.raises(DataError, match="a stored analysis cannot be read"):
            unpack("x", row)


def analysis_of(text: str) -> Analysis:
    return Analysis(text, (Token(text, text, "X", "XX", "", 0, "ROOT", "", 0),))


def test_the_store_returns_what_it_was_given(tmp_path: Path) -> None:
    store = AnalysisStore("test", tmp_path)
    kept = [analysis_of(f"word{n}") for n in range(1200)]
    store.put(kept)
    again = AnalysisStore("test", tmp_path)
    assert again.get(["word7", "unknown"]) == {"word7": analysis_of("word7")}
    assert len(again.get([a.text for a in kept])) == 1200


def test_a_store_that_cannot_be_used_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "analyses-1-bad.sqlite").write_bytes(b"this is not a database" * 100)
    store = AnalysisStore("bad", tmp_path)
    store.put([analysis_of("a")])
    assert store.get(["a"]) == {}
    (tmp_path / "file").write_text("")
    assert AnalysisStore("x", tmp_path / "file" / "below").get(["a"]) == {}


def test_the_cache_can_be_switched_off(parser: Parser, tmp_path: Path) -> None:
    own = Parser(parser._pipeline, "own", AnalysisStore("own", tmp_path))
    with runtime(cache=False):
        own.analyse(["Hello there."])
    assert not list(tmp_path.iterdir())
    own.analyse(["Hello there."])
    assert list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("The cat sat on the mat.", True),
        ("Die Katze sitzt auf der Matte.", False),
        ("Le chat est assis sur le tapis depuis hier soir.", False),
        ("Это русский текст", False),
        ("这不是英文", False),
        ("Angela Merkel, Berlin", True),
        ("", True),
        ("12 345 !?", True),
        ("We're teaching him sign language", True),
    ],
)
def test_english_is_recognized(text: str, english: bool) -> None:
    assert may_be_english(text) is english
