"""Localization files of every format are read as units."""

from __future__ import annotations

import gzip
import tracemalloc

import pytest
from tests.localization import examples
from tests.localization.examples import write

from tertium.core.errors import DataError, UsageError
from tertium.files.catalogs import is_localization_file, read_catalog, read_units
from tertium.files.units import Languages


def texts(
    path: str, languages: Languages | None = None
) -> list[tuple[str, str | None, str | None]]:
    return [(u.name, u.source, u.target) for u in read_catalog(path, languages)]


def test_xliff_1_has_placeholders_segments_and_limits(tmp_path):
    catalog = read_catalog(write(tmp_path, "a.xlf", examples.XLIFF1))
    assert [*catalog.languages] == ["en", "de-DE"]
    assert texts(catalog.path) == [
        ("open", "Open & <g1>save</g1> {2}", "Öffnen & <g1>sichern</g1> {2}"),
        ("count", "You have {n1} files.", "Sie haben Dateien."),
        ("two:0", "One.", "Eins."),
        ("two:1", "Two.", "Zwei."),
        ("new", "New", None),
        ("brand", "Tertium", None),
    ]
    first = catalog.units[0]
    assert (first.document, first.state, first.notes) == ("app.html", "translated", ("A button",))
    assert (first.max_length, first.line) == (8, 5)
    assert not catalog.units[-1].is_translatable


def test_xliff_2_and_string_catalogs(tmp_path):
    catalog = read_catalog(write(tmp_path, "a.xlf", examples.XLIFF2))
    assert [*catalog.languages] == ["en", "de"]
    assert texts(catalog.path) == [
        ("u1", "Open <g1>it</g1>{2}", "Öffne <g1>es</g1>{2}"),
        ("u2:s1", "One.", "Eins."),
        ("u2:s2", "Two\x1f.", "Zwei<g3>.</g3>"),
    ]
    assert (catalog.units[0].state, catalog.units[0].max_length) == ("final", 6)
    path = write(tmp_path, "a.xcstrings", examples.XCSTRINGS)
    assert texts(path) == [
        ("Open", "Open", "Öffnen"),
        ("%lld files[other]", "%lld files", "viele"),
        ("Tertium", "Tertium", None),
    ]
    path = write(tmp_path, "a.xlf", examples.XLIFF1.replace(' size-unit="char"', ""))
    assert read_catalog(path).units[0].max_length == 0


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "iso-8859-1", "windows-1252"])
def test_xml_is_decoded_as_declared(tmp_path, encoding):
    content = examples.XLIFF1.replace("UTF-8", "UTF-16" if "16" in encoding else encoding)
    path = write(tmp_path, "a.xlf", content, encoding)
    assert (read_catalog(path).units[0].target or "").startswith("Öffnen &")


def test_tmx_reads_the_wanted_language(tmp_path):
    path = write(tmp_path, "a.tmx", examples.TMX)
    assert texts(path) == [("1", "Open <g1>it</g1>", "Öffne <g1>es</g1>")]
    path = write(tmp_path, "b.tmx", examples.TMX.replace("de-AT", "fr"))
    assert texts(path, Languages(target="fr")) == [("1", "Open <g1>it</g1>", "Mach es auf")]
    with pytest.raises(UsageError, match=r"b.tmx, line 4: translations into de and fr: choose"):
        read_catalog(path)


def test_po_has_plurals_contexts_and_flags(tmp_path):
    catalog = read_catalog(write(tmp_path, "pl.po", examples.PO))
    assert texts(catalog.path) == [
        ("menu|Open", "Open", 'Otwórz "to"\nteraz'),
        ("%d file[0]", "%d file", "%d plik"),
        ("%d file[1]", "%d files", "%d pliki"),
        ("%d file[2]", "%d files", "%d plików"),
        ("New", "New", None),
    ]
    first = catalog.units[0]
    assert (first.state, first.context, first.notes) == ("fuzzy", "menu", ("A button",))
    assert (first.max_length, first.line, catalog.languages.target) == (12, 13, "pl")


def test_encodings_of_po(tmp_path):
    content = examples.PO.replace("UTF-8", "ISO-8859-2")
    assert texts(write(tmp_path, "pl.po", content, "iso-8859-2"))[3][2] == "%d plików"
    with pytest.raises(DataError, match=r"pl.po, line 14: 'utf-8' codec can't decode"):
        read_catalog(write(tmp_path, "pl.po", examples.PO, "iso-8859-2"))
    header = 'msgid ""\nmsgstr "Plural-Forms: nplurals=1; plural=0;\\n"\n'
    message = '\nmsgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] "%d"\n'
    assert texts(write(tmp_path, "ja.po", header + message))[0][1] == "%d files"


MONOLINGUAL = [
    ("strings.xml", examples.ANDROID,
     [("brand", "Tertium"), ("hello", "Hello %1$s, it's <b>you</b>!"), ("days[0]", "Monday"),
     ("days[1]", "Tuesday"), ("files[one]", "%d file"), ("files[other]", "%d files")]),
    ("a.strings", examples.STRINGS, [("menu.open", 'Open "it"\n'), ("café", "x")]),
    ("a.properties", examples.PROPERTIES,
     [("menu.open", "Open it"), ("not split", "café"), ("empty", None)]),
    ("a.ftl", examples.FLUENT,
     [("open", "Open {$name}"), ("open.title", "Title"), ("files[one]", "one file of {-brand}"),
     ("files[other]", "{$n} files of {-brand}"), ("-brand", "Tertium")]),
    ("en.json", examples.I18NEXT,
     [("menu.open", "Open"), ("file[one]", "file"), ("file[other]", "files"), ("a[0]", "x")]),
    ("app_de.arb", examples.ARB, [("open", "Öffnen")]),
    ("de.yml", examples.RAILS,
     [("no", "Nein"), ("files[one]", "Datei"), ("files[other]", "%{count} Dateien")]),
    ("a.stringsdict", examples.STRINGSDICT,
     [("files", "%#@n@"), ("files.n[one]", "a file"), ("files.n[other]", "%d files")]),
    ("a.srt", examples.SRT, [("00:00:01.000", "Hello\nthere"), ("00:00:03.000", "Bye")]),
    ("a.vtt", examples.VTT, [("00:00:01.000", "Hello\nthere"), ("00:00:03.000", "Bye")]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "expected"), MONOLINGUAL)
def test_files_in_one_language(tmp_path, name, content, expected):
    path = write(tmp_path, name, content)
    assert is_localization_file(path)
    assert [(key, target) for key, _, target in texts(path)] == expected


def test_utf_16_and_byte_order_marks(tmp_path):
    for name, encoding in {"a.strings": "utf-16", "b.strings": "utf-8-sig"}.items():
        path = write(tmp_path, name, examples.STRINGS, encoding)
        assert texts(path)[1][0] == "café"
    path = write(tmp_path, "a.properties", "a = é\n", "latin-1")
    assert texts(path) == [("a", None, "é")]


def test_records_and_other_files_are_no_catalogs(tmp_path):
    assert not is_localization_file(write(tmp_path, "a.json", '{"mt": "x"}\n{"mt": "y"}\n'))
    assert not is_localization_file(write(tmp_path, "b.json", '{"src": "x", "mt": "y"}\n'))
    assert is_localization_file(write(tmp_path, "c.json", '{"translation": {"a": "y"}}'))
    with pytest.raises(DataError, match=r"not a localization file; known are .arb"):
        read_catalog(write(tmp_path, "a.doc", ""))
    with pytest.raises(DataError, match=r"b.xlf: no such file"):
        read_catalog(tmp_path / "b.xlf")


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>\n<xliff version="1.2">&b;</xliff>'
INVALID = [
    ("a.xlf", "<xliff version='1.2'>\n<file>\n</xliff>", "a.xlf, line 3: not well-formed XML"),
    ("a.xlf", BOMB, "a.xlf, line 1: declares entities, which are refused"),
    ("a.xlf", "<x/>", "a.xlf, line 1: expected <xliff>, got <x>"),
    ("a.xlf", "<xliff version='3.0'/>", "XLIFF 3.0: expected version 1 or 2"),
    ("a.xlf", "", "a.xlf, line 1: not well-formed XML"),
    ("a.xlf", "<xliff>" + "<a>" * 300, "more than 200 nested elements"),
    ("a.xlf", '<!DOCTYPE xliff SYSTEM "x.dtd">\n<xliff version="1.2">&nbsp;</xliff>',
     "line 2: the entity &nbsp; is not defined"),
    ("a.xlf", examples.XLIFF2.replace("001F", "x"), "is not a code point"),
    ("a.tmx", "<xliff/>", "expected a TMX file, found <xliff>"),
    ("a.po", 'msgid "a\nmsgstr ""', "a.po, line 1: not a line of a PO file: 'msgid \"a'"),
    ("a.po", 'msgid "a" b"\nmsgstr ""', "a.po, line 1: not a line"),
    ("a.po", 'msgstr "a"', "a.po, line 1: msgstr without the lines"),
    ("a.po", 'msgid "a"', "a.po, line 1: the last message has no msgstr"),
    ("a.po", 'msgid "a"\nmsgid "b"\nmsgstr ""', "line 2: msgid without the lines"),
    ("a.po", "hello", "a.po, line 1: not a line of a PO file: 'hello'"),
    ("a.po", 'msgid ""\nmsgstr "charset=x-y\\n"',
     "a.po, line 1: unknown encoding: x-y; correct the charset"),
    ("a.po", 'msgid ""\nmsgstr "Plural-Forms: nplurals=2; plural=n!!1;\\n"',
     "Plural-Forms is not valid"),
    ("a.arb", '{"a": "x", "a": "y"}', "a.arb"),
    ("a.arb", "[]", "expected an object of messages"),
    ("a.yml", "a: x\na: y", "a.yml, line 2: not YAML \\(the key 'a' is given twice"),
    ("a.yml", "a: [", "a.yml, line 1: not YAML"),
    ("a.yml", "- a", "expected a mapping"),
    ("a.yml", "a: x\nb: \x07", "a.yml, line 2: not YAML \\(U\\+0007 is not allowed"),
    ("a.yml", "a: x\n? [b]\n: c", "a.yml, line 2: not YAML \\(a key is not a text"),
    ("a.yml", "a: x\nb: !!map y", "a.yml, line 2: not YAML \\(expected a mapping"),
    ("a.strings", '"a" = "b"', "a.strings, line 1: not a key with a text"),
    ("a.properties", "a = \\u12", "a.properties, line 1: .u needs four hexadecimal digits"),
    ("a.ftl", "a = b\nhello", "a.ftl, line 2: not Fluent"),
    ("a.stringsdict", "x", "a.stringsdict: not a property list"),
    ("a.xcstrings", "{}", "expected a string catalog"),
    ("a.srt", "1\nhello\n", "a.srt, line 1: a cue without times: '1'"),
    ("a.srt", "1\n00:00:01 --> x\nhello\n", "a.srt, line 1: a cue without times"),
    ("strings.xml", "<resources><string>a</string></resources>", "<string> without a name"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "message"), INVALID)
def test_invalid_files_are_refused(tmp_path, name, content, message):
    with pytest.raises(DataError, match=message):
        read_catalog(write(tmp_path, name, content))


def test_aliases_that_expand_without_end_are_refused(tmp_path):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    with pytest.raises(DataError, match="aliases expand to more texts than the file has"):
        read_catalog(write(tmp_path, "a.yml", "\n".join(lines)))


def test_compressed_files_are_read_and_damaged_ones_refused(tmp_path):
    path = tmp_path / "a.xlf.gz"
    data = gzip.compress(examples.XLIFF1.encode())
    path.write_bytes(data)
    assert len(read_catalog(path).units) == 6
    path.write_bytes(data[:-20])
    with pytest.raises(DataError, match=r"a.xlf.gz: cannot be read \(Compressed file ended"):
        read_catalog(path)
    for place in range(10, len(data), 3):  # after the header
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(DataError, match=r"a.xlf.gz"):
            read_catalog(path)


def test_values_of_yaml_that_look_like_other_types(tmp_path):
    lines = ["date: 2023-02-30", "day: 2023-02-03", "2023-02-30: key", "sign: =", "number: 0b_"]
    path = write(tmp_path, "a.yml", "\n".join([*lines, "count: 3", "no: yes"]))
    assert [(name, target) for name, _, target in texts(path)] == [
        ("date", "2023-02-30"),
        ("day", "2023-02-03"),
        ("2023-02-30", "key"),
        ("sign", "="),
    ]


@pytest.mark.slow
def test_large_files_are_read_in_parts(tmp_path):
    """A file of 40 MB is read with less than 4 MB of memory."""
    head, _, tail = examples.XLIFF2.partition('  <unit id="u2">')
    body = tail[: tail.index(" </file>")]
    path = tmp_path / "large.xlf"
    with path.open("w") as stream:
        stream.write(head)
        for n in range(140_000):
            stream.write(f'  <unit id="x{n}">{body}')
        stream.write(" </file>\n</xliff>\n")
    assert path.stat().st_size > 40_000_000
    tracemalloc.start()
    count = sum(1 for _ in read_units(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 280_001
    assert peak < 4_000_000
