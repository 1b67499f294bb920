"""Every check: its examples, and cases that are right in spite of differences."""

from __future__ import annotations

import pytest

from tertium.checks.check import CheckRunner, PairSettings, Term, TranslationPair, select_checks
from tertium.checks.check_settings import CHECKS, CHECKS_BY_ID
from tertium.core.errors import UnknownNameError
from tertium.core.spans import check_span_bounds

BY_ID = {"ids": [check.id for check in CHECKS]}


def messages(check: str, source: str, hypothesis: str, languages: str = "en-de") -> list[str]:
    pair = TranslationPair(source, hypothesis, *languages.split("-"))
    return [message for _, _, _, message in CHECKS_BY_ID[check].find(pair)]


@pytest.mark.parametrize("check", CHECKS, **BY_ID)
def test_right_example_has_no_finding(check):
    """Nor of any other check."""
    assert [*CheckRunner(CHECKS).run([check.example(check.right)])] == [()]


@pytest.mark.parametrize("check", CHECKS, **BY_ID)
def test_wrong_example_has_a_valid_finding(check):
    pair = check.example(check.wrong)
    [findings] = CheckRunner(CHECKS).run([pair])
    spans = [span for span in findings if span.category == check.id]
    assert spans
    for span in spans:
        assert span.severity == check.severity
        assert span.message
    check_span_bounds(spans, pair.source, "source")
    check_span_bounds(spans, pair.hypothesis, "hypothesis")


@pytest.mark.parametrize("check", CHECKS, **BY_ID)
@pytest.mark.parametrize(
    "text", ["", " ", "a", "\ufeff", "{", "%", "<", "`", "{a, plural, one {", "५"]
)
def test_unusual_texts_are_no_problem(check, text):
    for pair in (
        TranslationPair(text, "b {", "en", "de"),
        TranslationPair("b <", text, "en", "fr"),
        TranslationPair(text, text),
    ):
        for side, start, end, _ in check.find(pair):
            size = len(pair.source if side == "source" else pair.hypothesis)
            assert 0 <= start < end <= size


def test_examples_of_checks_are_complete():
    assert len(CHECKS_BY_ID) == len(CHECKS)
    assert len({check.rule.sentence for check in CHECKS}) == len(CHECKS)
    assert all(check.rule.sentence.endswith(".") for check in CHECKS)
    for check in CHECKS:
        own = frozenset(check.characters)
        assert not own or not own.isdisjoint(check.source + check.wrong)


def test_checks_are_selected_by_id_and_limited():
    chosen = select_checks(CHECKS, ["tags", "numbers"], ["tags"])
    assert [check.id for check in chosen] == ["numbers"]
    with pytest.raises(UnknownNameError, match="unknown check 'number': did you mean 'numbers'"):
        select_checks(CHECKS, ["number"])
    pair = TranslationPair("", "a (b {x}", "", "en")
    [spans] = CheckRunner(CHECKS, has_source=False).run([pair])
    assert {span.category for span in spans} == {"brackets"}
    pair = TranslationPair("x " * 50, "{a} " * 50)
    [spans] = CheckRunner([CHECKS_BY_ID["placeholders"]]).run([pair])
    assert len(spans) == 20


RIGHT = [
    ("placeholders", "%s of %d", "%2$d von %1$s"),
    ("placeholders", "%2$d of %1$s", "%1$s: %2$d"),
    ("placeholders", "%s of %d", "%1$s: %2$d von %1$s"),  # an argument may be used twice
    ("placeholders", "%1$s, %1$s", "%1$s"),
    ("placeholders", "%1$s", "%s"),
    ("placeholders", "%*d of %s", "%3$s: %2$*1$d"),
    ("placeholders", "%'d of %,d", "%2$,d: %1$'d"),
    ("placeholders", "%APP% of %d", "%d von %APP%"),
    ("placeholders", "{name} met {name}", "{name} traf {name}, {name}!"),
    ("placeholders", "100%% of %d", "100%% von %d"),
    ("placeholders", "a 5% discount", "5% de descuento"),
    ("placeholders", "{n, plural, one {# day} other {# days}}",
     "{n, plural, one {# den} few {# dny} many {# dne} other {# dní}}"),
    ("placeholders", "{n, plural, =0 {no files} one {a file} other {# files}}",
     "{n, plural, =0 {keine Dateien} one {eine Datei} other {# Dateien}}"),
    ("placeholders", "on {day, date, short}", "am {day,date,short}"),
    ("placeholders", "{g, select, male {he} other {they}}",
     "{g, select, other {sie} male {er}}"),
    ("placeholders", "{g, select, male {he} other {they}}; {g, select, male {his} other {{a}}}",
     "{g, select, male {er} other {sie}}; {g, select, male {sein} other {{a}}}"),
    ("tags", 'a <a href="x" title="Help">b</a><br>', 'a <a href="y" title="Hilfe">b</a><br/>'),
    ("tags", "3 < 4 and x<y", "3 < 4 und x<y"),
    ("entities", "a&nbsp;b &quot;c&quot;", "a b „c“"),
    ("entities", "AT&T", "AT&amp;T"),
    ("urls", "(see https://a.org/x).", "https://a.org/x: siehe dort"),
    ("numbers", "1.5 million people", "1500000 Menschen"),
    ("numbers", "10,000 of 3", "10 000 von ٣"),
    ("numbers", "the 1960s", "die 60er Jahre"),
    ("numbers", "at 8:30 p.m.", "kello 20.30"),
    ("numbers", "4:41.30 minutes", "4.41,30 Minuten"),
    ("numbers", "in the 8th century", "700-luvulla"),
    ("numbers", "5 cats", "fünf Katzen"),
    ("numbers", "am 5.9.2021", "on September 5, 2021"),
    ("numbers", "2008-09 season", "Saison 2008-2009"),
    ("markdown", "a * b_c # d", "a * b_c # d"),
    ("chatter", "Translation: see below", "Übersetzung: siehe unten"),
    ("chatter", "I am sorry, I cannot come.", "I'm sorry, I cannot"),
    ("untranslated", "iPhone 12 Pro", "iPhone 12 Pro"),
    ("untranslated", "OK", "OK"),
    ("repetition", "ha ha ha ha ha ha ha ha ha ha", "ha ha ha ha ha ha ha ha ha ha"),
    ("truncation", "one, two,", "eins, zwei,"),
    ("end-mark", "Dr. No", "Dr. No"),
    ("brackets", "a) first", "a) erstens"),
    ("quotes", 'a 5" disk', 'eine 5"-Scheibe'),
    ("double-words", "that is what they saw", "dass die die Stadt sahen"),
    ("identifiers", "the iPod", "das IPOD-Gerät"),
    ("identifiers", "iPadille ja iPhonesta", "for the iPad and from the iPhone"),
    ("identifiers", "the A310", "der А310"),  # a Cyrillic letter
    ("identifiers", "noooOOOooo", "neeein"),
    ("numbers", "a 6 inch pipe", "ein Rohr von 15 cm"),
    ("numbers", "at 95 °F", "bei 35 °C"),
    ("numbers", "220 km (140 miles) away", "220 km entfernt"),
    ("numbers", "since the 1970s", "seit den Siebzigern"),
    ("numbers", "110 million", "1,1 Mrd."),
    ("numbers", "61 percent", "Einundsechzig Prozent"),
    ("emails", "@user29@user30.engineer hi", "@user29@user30 hallo"),
    ("end-mark", "She says that. You know.", "Das sagt sie. Weißt du?"),
    ("end-mark", "data from our own site.", "Daten von uns"),
    ("end-mark", "So you are going there.", "Du gehst also da hin?"),
    ("end-mark", "“Is it open?”", "„Ist es offen?“."),
    ("end-mark", "Was that you???", "Warst das du?!"),
    ("end-mark", "Bread, butter, cheese, etc.", "Brot, Butter, Käse und so weiter"),
    (
        "end-mark",
        "He came home to a large house in which nobody had lived for years:",
        "Er kam in ein großes Haus, in dem jahrelang niemand gewohnt hatte.",
    ),
    ("units", "5 GB, 10%, 160 km/h", "5 GB, 10 %, 160 km pro Stunde"),
    ("acronyms", "the UN and NASA", "die Vereinten Nationen"),
]  # fmt: skip

WRONG = [
    ("placeholders", "%s of %d", "%d von %s", "another position"),
    ("placeholders", "{{user}} and ${total}", "{{user}} und {total}", "${total} is missing"),
    ("placeholders", "%(name)s", "%(Name)s", "%(name)s is missing"),
    ("placeholders", "%1$s and %2$s", "%1$s und", "%2$s is missing"),
    ("placeholders", "%s of %d", "%1$d von %2$s", "%1$s is missing"),
    ("placeholders", "%1$s of %2$d", "%1$d von %2$s", "%2$s is not in the source"),
    ("placeholders", "%s of %s", "%1$s von %1$s", "%2$s is missing"),
    ("placeholders", "%s of %s", "%1$s von %3$s", "%3$s is not in the source"),
    ("placeholders", "%s of %d", "%2$d von %s", "%s has no number"),
    ("placeholders", "%'d files", "Dateien", "%'d is missing"),
    ("placeholders", "{n, plural, one {# day} other {# days}}",
     "{n, plural, one {# Tag} other {Tage}}", "# is missing in branch other"),
    ("placeholders", "{n, plural, one {# day} other {# days}}",
     "{n, plural, one {# Tag}}", "no branch other"),
    ("placeholders", "{g, select, male {he} other {they}}",
     "{g, select, mann {er} other {sie}}", "branch male"),
    ("placeholders", "{g, select, male {he} other {they}}",
     "{g, select, male {er}}", "no branch other"),
    ("placeholders", "{g, select, male {he} other {they}}",
     "{g, select, male {er} few {sie} other {sie}}", "branch few"),
    ("placeholders", "{n, plural, one {{a} x} other {{a} xs}}",
     "{n, plural, one {x} other {{a} xs}}", "{a} is missing in branch one"),
    ("placeholders", "{n, plural, one {a} other {b}}", "a, b", "{n, plural} is missing"),
    ("tags", "<b><i>x</i></b>", "<b><i>x</b></i>", "not nested"),
    ("tags", '<x id="1"/> a', '<x id="2"/> a', "id=1"),
    ("entities", "a < b", "a &lt; b", "not in the source"),
    ("numbers", "in 1947", "im Jahr 1974", "1947 in the source, 1974"),
    ("numbers", "12 of 12 items", "12 von 7 Dingen", "12 in the source, 7"),
    ("numbers", "it has 4711 parts", "es hat viele Teile", "4711 is missing"),
    ("chatter", "Hello", "Sure! Here is the translation: Hallo", "a phrase of the model"),
    ("chatter", "Hello", "```\nHallo\n```", "a phrase of the model"),
    ("chatter", "你好", "I'm sorry, but I cannot translate this.", "a phrase of the model"),
    ("untranslated", "Nobody knew what the old man was doing there in the dark.",
     "Nobody knew what the old man faisait là.", "6 words are copied"),
    ("mixed-scripts", "A cat.", "Eine 猫.", "Han letters"),
    ("mojibake", "Größe", "GrÃ¶Ãe", "wrong encoding"),
    ("truncation", "He came home, and then he slept.", "Er kam heim und (", "cut"),
    ("blanks", "a b", "a  b", "two blanks"),
    ("numbers", "a 6 inch pipe", "ein Rohr von 20 cm", "6 in the source, 20"),
    ("numbers", "61 percent", "sechs Prozent", "61 is missing"),
    ("numbers", "2.8 km", "2,2 km", "2.8 in the source, 2,2"),
    ("numbers", "id 1760800168473928104", "id 1760800168473928103", "1760800168473928103"),
    ("numbers", "It's from 1839", "It&#39;s from 1739", "1839 in the source, 1739"),
    ("units", "It costs $20.", "Es kostet 20 €.", "$ in the source, € in the translation"),
    ("units", "16 GB of memory", "16 МБ", "GB in the source, MB"),
    ("acronyms", "Use HTTPS.", "Nutzen Sie HTTP.", "HTTPS is not in the translation"),
    ("chatter", "Hello", "Es tut mir leid, aber ich kann das nicht übersetzen.", "a phrase"),
    ("chatter", "Hello", "抱歉，我无法翻译", "a phrase of the model"),
    ("blanks", " a", "a", "starts with a blank"),
    ("end-mark", "Really?", "Wirklich.", "ends with ?"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "source", "hypothesis"), RIGHT)
def test_right_translation_has_no_finding(check, source, hypothesis):
    assert messages(check, source, hypothesis) == []


@pytest.mark.parametrize(("check", "source", "hypothesis", "message"), WRONG)
def test_wrong_translation_has_a_finding(check, source, hypothesis, message):
    languages = "en-fr" if check == "untranslated" else "en-de"
    assert message in " ".join(messages(check, source, hypothesis, languages))


def test_marks_of_chinese_and_japanese():
    assert messages("punctuation-style", "Yes.", "是的.", "en-zh") == [
        ". after a character of zh: use 。"
    ]
    assert messages("punctuation-style", "3.5 m, ok", "3.5米，OK。", "en-zh") == []
    assert messages("punctuation-style", "A, b", "はい,そう。", "en-ja") == [
        ", after a character of ja: use 、"
    ]
    assert messages("end-mark", 'He said: "No."', "彼は「いいえ」", "en-ja") == []
    assert messages("end-mark", "Is it open?", "開いています。", "en-ja") != []
    assert messages("blanks", "a b", "ಅ  ಬ", "en-kn") == []
    assert messages("blanks", "a b", "ಅ ಬ ", "en-kn") == ["the source does not end with a blank"]
    assert messages("numbers", "in 2010", "ในปี 2553", "en-th") == []
    assert messages("numbers", "in 2010", "im Jahr 2553", "en-de") != []


def test_length_is_compared_with_the_usual_ratio_of_the_languages():
    source = "The parliament rejected the budget on Tuesday after a long debate in the capital."
    target = "议会周二在首都经过长时间辩论后否决了预算。"
    assert messages("length-ratio", source, target, "en-zh") == []
    assert messages("length-ratio", source, target[:3], "en-zh") != []
    assert messages("length-ratio", source, target[:3], "en-xx") == []


def test_terms_match_inflected_forms_and_case():
    settings = PairSettings(terms=(Term("cloud account", ("Cloudkonto",), ("Wolke",)),))
    check = CHECKS_BY_ID["terms"]
    right = TranslationPair("Your cloud accounts", "Ihre Cloudkontos", "en", "de", settings)
    wrong = TranslationPair("Your cloud account", "Ihre Wolke", "en", "de", settings)
    assert [*check.find(right)] == []
    assert [finding[3] for finding in check.find(wrong)] == [
        "'Wolke' is a forbidden translation of 'cloud account'",
        "term 'cloud account': expected 'Cloudkonto'",
    ]


def test_added_sentences_are_marked_without_the_translation():
    check = CHECKS_BY_ID["added-text"]
    ((side, start, end, message),) = check.find(check.example(check.wrong))
    text = check.wrong
    assert text[:start] == "Die Tür ist jetzt offen. "
    assert (side, end, message) == ("hypothesis", len(text), "text is added: 3 sentences for 1")
