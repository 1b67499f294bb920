"""Test sets of localization files: several files, alignment by key, missing and extra keys."""

from __future__ import annotations

import logging

import pytest
from tests.localization import examples
from tests.localization.examples import write

from tertium.core.errors import DataError, TertiumError, UsageError
from tertium.files.projects import read_project
from tertium.files.units import Languages
from tertium.files.wmt import read_wmt_sgml, read_wmt_xml


def test_a_bilingual_file_is_a_test_set(tmp_path, caplog):
    path = write(tmp_path, "de.xlf", examples.XLIFF1)
    project = read_project([path])
    testset = project.testset
    assert [*project.languages] == ["en", "de-DE"]
    assert testset.items == ("open", "count", "two:0", "two:1")
    assert testset.documents == ("app.html",) * 4
    assert testset.columns["state"] == ("translated", "", "", "")
    assert testset.columns["max_length"] == ("8", "", "", "")
    assert "strings without a translation: 1 of 5; they are not scored" in caplog.text
    complete = read_project([path], keep_untranslated=True).testset
    assert complete.systems["de.xlf"][-1] == ""
    location = project.locate("de.xlf", 1, "hypothesis")
    assert (location.file, location.line) == (path, 11)


def test_the_same_strings_are_systems(tmp_path):
    first = write(tmp_path, "a.xlf", examples.XLIFF2)
    second = write(tmp_path, "b.xlf", examples.XLIFF2.replace("Eins", "Ein"))
    project = read_project([first, second])
    testset = project.testset
    assert [*testset.systems] == ["a.xlf", "b.xlf"]
    assert testset.systems["b.xlf"][1] == "Ein."
    location = project.locate("b.xlf", 1, "hypothesis")
    assert (location.file, location.line) == (second, 14)


def test_different_strings_are_one_project(tmp_path):
    first = write(tmp_path, "a.xlf", examples.XLIFF2)
    second = write(tmp_path, "b.xlf", examples.XLIFF1)
    project = read_project([first, second])
    testset = project.testset
    assert [*testset.systems] == ["project"]
    assert (testset.documents[0], testset.documents[-1]) == ("a.xlf:app.html", "b.xlf:app.html")
    location = project.locate("project", 3, "hypothesis")
    assert (location.file, location.line) == (second, 5)
    other = write(tmp_path, "c.xlf", examples.XLIFF2.replace('trgLang="de"', 'trgLang="fr"'))
    with pytest.raises(UsageError, match=r"a.xlf is in de, .*c.xlf in fr: give files in one"):
        read_project([first, other])


def test_files_in_one_language_are_aligned_by_key(tmp_path, caplog):
    source = write(tmp_path, "en.json", '{"a": "A", "n_one": "%d x", "n_other": "%d xs", "z": "Z"}')
    target = write(
        tmp_path, "pl.json", '{"n_one": "1", "n_few": "2", "n_many": "5", "a": "Ą", "q": "Q"}'
    )
    project = read_project([target], source)
    testset = project.testset
    assert [*project.languages] == ["en", "pl"]
    wanted = read_project([target], source, languages=Languages(target="pl")).languages
    assert [*wanted] == ["en", "pl"]
    assert testset.items == ("a", "n[one]", "n[few]", "n[many]")
    assert testset.sources == ("A", "%d x", "%d xs", "%d xs")
    assert testset.systems["pl.json"] == ("Ą", "1", "2", "5")
    assert "keys not in the source file: 1 ('q')" in caplog.text
    assert "keys missing: 1 ('z')" in caplog.text
    testset = read_project([target], source, keep_untranslated=True).testset
    assert (testset.items[-1], testset.systems["pl.json"][-1]) == ("z", "")


def test_sources_and_references_are_aligned_by_key(tmp_path):
    source = write(tmp_path, "en.po", 'msgid "open"\nmsgstr "Open"\n')
    target = write(tmp_path, "de.po", 'msgid "open"\nmsgstr "Öffnen"\n')
    assert read_project([target], source).testset.sources == ("Open",)
    path = write(tmp_path, "mt.xlf", examples.XLIFF2)
    reference = write(tmp_path, "human.xlf", examples.XLIFF2.replace("Eins", "Eines"))
    testset = read_project([path], references=[reference]).testset
    assert testset.references[1] == ("Eines.",)
    with pytest.raises(DataError, match=r"other.xlf: no reference for the string 'u1'"):
        read_project([path], references=[write(tmp_path, "other.xlf", examples.XLIFF1)])
    source = write(tmp_path, "en.properties", "a = 1\n")
    with pytest.raises(DataError, match="have no keys in common"):
        read_project([write(tmp_path, "de.properties", "b = 1\n")], source)
    with pytest.raises(DataError, match="no translated strings"):
        read_project([write(tmp_path, "a.pot", 'msgid "a"\nmsgstr ""\n')])


def test_duplicate_and_long_ids_are_named(tmp_path, caplog):
    content = examples.XLIFF1.replace('id="count"', 'id="open"')
    testset = read_project([write(tmp_path, "a.xlf", content)]).testset
    assert "ids that are used twice: 1; the first is 'open' (lines 5 and 11)" in caplog.text
    assert testset.items[:2] == ("open#1", "open#2")
    source = write(tmp_path, "en.properties", "a = 1\na = 2\n")
    with pytest.raises(DataError, match=r"the first is 'a' \(lines 1 and 2\); files are"):
        read_project([write(tmp_path, "de.properties", "a = 1\n")], source)
    caplog.set_level(logging.ERROR)
    path = write(tmp_path, "a.po", f'msgid "{"word " * 30}"\nmsgstr "x"\n')
    assert read_project([path]).testset.items == (f"{'word ' * 8}"[:-1] + "… (line 1)",)


WMT = """\
<dataset id="wmt"><doc id="d1" origlang="en">
<src lang="en"><p><seg id="1">Hello.</seg></p><p><seg id="2">Bye.</seg></p></src>
<ref lang="de" translator="A"><p><seg id="1">Hallo.</seg><seg id="2">Tschüs.</seg></p></ref>
<hyp system="ours" language="de"><p><seg id="2">Ade.</seg><seg id="1">Hallo!</seg></p></hyp>
</doc></dataset>
"""


def test_wmt_xml_is_a_test_set(tmp_path):
    languages = Languages()
    testset = read_wmt_xml(write(tmp_path, "a.xml", WMT), languages)
    assert testset.systems == {"ours": ("Hallo!", "Ade.")}
    assert testset.references == (("Hallo.",), ("Tschüs.",))
    assert (testset.documents, [*languages]) == (("d1", "d1"), ["en", "de"])
    with pytest.raises(DataError, match="ours lacks segment '2' of document 'd1'"):
        read_wmt_xml(write(tmp_path, "b.xml", WMT.replace('<seg id="2">Ade.</seg>', "")), languages)
    with pytest.raises(DataError, match="no system outputs"):
        read_wmt_xml(write(tmp_path, "c.xml", WMT.replace("hyp", "x")), languages)


SOURCE_SGML = """\
<srcset setid="t" srclang="any">
<doc docid="d1" genre="news" origlang="en"><p>
<seg id="1">Tom &amp; Ann R&D.</seg>
<seg id="2"> Bye. </seg></p></doc>
<doc docid="d2" origlang="en"><seg id="1">No.</seg></doc></srcset>
"""
OUTPUT_SGML = """\
<tstset trglang="de" setid="t" srclang="any">
<DOC sysid="ours" sysid="ref" docid="d2"><seg id=1>Nein.</seg></DOC>
<DOC sysid="ours" docid="d1"><hl><seg id="1">Tom und Ann,
F&amp;E.</seg></hl><seg id="2">Ade.</seg></DOC></tstset>
"""


def test_wmt_sgml_is_a_test_set(tmp_path):
    languages = Languages()
    source = write(tmp_path, "src.en.sgm", SOURCE_SGML)
    output = write(tmp_path, "out.de.sgm", OUTPUT_SGML)
    plain = write(tmp_path, "plain.txt", "A\nB\nC\n")
    testset = read_wmt_sgml([output], source, [plain, output], None, languages)
    assert testset.sources == ("Tom & Ann R&D.", "Bye.", "No.")
    assert testset.systems == {"ours": ("Tom und Ann, F&E.", "Ade.", "Nein.")}
    assert testset.references[2] == ("C", "Nein.")
    assert (testset.documents, [*languages]) == (("d1", "d1", "d2"), ["en", "de"])
    assert [*read_wmt_sgml([plain, output], source, [], None, languages).systems] == [
        "plain.txt",
        "out.de.sgm",
    ]


@pytest.mark.parametrize(("name", "content", "message"), [
    ("a.sgm", OUTPUT_SGML.replace('<seg id="2">Ade.</seg>', ""), "lacks segment '2' of docu"),
    ("a.sgm", OUTPUT_SGML.replace("d2", "d3"), "document 'd[23]'"),
    ("a.sgm", OUTPUT_SGML.replace('id="2"', 'id="1"'),
     "line 4: a segment needs a document and an id"),
    ("a.sgm", OUTPUT_SGML.replace(' id="2"', ""), "line 4: a segment needs a document and an id"),
    ("a.sgm", OUTPUT_SGML.replace("</seg>", ""), "line 2: a segment without </seg>"),
    ("a.sgm", "<p>Nein.</p>", "it has no <seg>"),
    ("a.txt", "one line\n", "a.txt has 1 lines, .*src.sgm 3 segments"),
])  # fmt: skip
def test_damaged_sgml_is_named(tmp_path, name, content, message):
    source = write(tmp_path, "src.sgm", SOURCE_SGML)
    with pytest.raises(TertiumError, match=message):
        read_wmt_sgml([write(tmp_path, name, content)], source, [], None, Languages())
