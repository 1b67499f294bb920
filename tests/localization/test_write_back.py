"""Scores and findings are written into localization files, and every other byte is kept."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.localization import examples
from tests.localization.examples import write

from tertium.core.errors import DataError, UsageError
from tertium.core.spans import Span
from tertium.data.testset import TestSet
from tertium.files.annotations import Annotation, FileEdits
from tertium.files.catalogs import read_catalog
from tertium.files.projects import Project, read_project
from tertium.files.units import Catalog, Languages, Unit
from tertium.files.write_back import add_columns, annotate_catalog, annotate_files, check_write_back


def annotate(unit: Unit) -> Annotation:
    """Return scores and a finding with characters that XML escapes and Latin-1 lacks."""
    spans = [Span(0, 1, severity="major", category="tags", message='"<b>" & Ω')]
    return Annotation({"chrf": 54.321, "qe": 0.75}, spans if unit.target else (), 0.75)


def annotate_file(
    path: str, output: str, find: Callable[[Unit], Annotation], languages: Languages | None = None
) -> None:
    """Write a copy of a file with an annotation of every unit."""
    catalog = read_catalog(path, languages)
    annotated: dict[int, list[tuple[Unit, Annotation]]] = {}
    for unit in catalog:
        annotated.setdefault(id(unit.place), []).append((unit, find(unit)))
    annotate_catalog(catalog, output, annotated)


def contents(catalog: Catalog) -> list[tuple[object, ...]]:
    return [((u.document, u.name), u.source, u.target, u.notes) for u in catalog]


def check_round_trip(path: str, folder: Path, languages: Languages | None = None) -> bytes:
    """Annotate a file, annotate it again, and remove the annotations; return the first copy."""
    suffix = Path(path).suffix
    first, second, restored = (str(folder / f"{n}{suffix}") for n in "123")
    annotate_file(path, first, annotate, languages)
    annotate_file(first, second, annotate, languages)
    annotate_file(first, restored, lambda _: Annotation(), languages)
    assert Path(second).read_bytes() == Path(first).read_bytes()
    assert Path(restored).read_bytes() == Path(path).read_bytes()
    assert contents(read_catalog(first, languages)) == contents(read_catalog(path, languages))
    return Path(first).read_bytes()


FILES = {
    "xliff 1": ("a.xlf", examples.XLIFF1),
    "xliff 2": ("a.xlf", examples.XLIFF2),
    "xliff 2 with metadata": ("a.xlf",
     examples.XLIFF2.replace("   <notes>",
     '   <m:metadata xmlns:m="urn:oasis:names:tc:xliff:metadata:2.0"><m:metaGroup>'
     '<m:meta type="x">y</m:meta></m:metaGroup></m:metadata>\n   <notes>')),
    "xliff in one line": ("a.xlf", "".join(map(str.strip, examples.XLIFF1.split("\n")))),
    "xliff with a prefix": ("a.xlf",
     '<x:xliff xmlns:x="urn:oasis:names:tc:xliff:document:1.2" version="1.2"><x:file><x:body>'
     '<x:trans-unit id="1"><x:source>a</x:source><x:target>b</x:target></x:trans-unit>'
     "</x:body></x:file></x:xliff>"),
    "tmx": ("a.tmx", examples.TMX),
    "po": ("a.po", examples.PO),
}  # fmt: skip


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", FILES)
def test_all_other_bytes_are_kept(tmp_path, name, line_end):
    file, content = FILES[name]
    path = write(tmp_path, file, content.replace("\n", line_end))
    annotated = check_round_trip(path, tmp_path)
    assert b"54.321" in annotated
    if line_end == "\r\n":
        assert annotated.count(b"\n") == annotated.count(b"\r\n")
    if not file.endswith(".po"):
        ElementTree.fromstring(annotated)  # well-formed, with all namespaces declared


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "iso-8859-1"])
def test_the_encoding_is_kept(tmp_path, encoding):
    content = examples.XLIFF1.replace("UTF-8", "UTF-16" if "16" in encoding else encoding)
    annotated = check_round_trip(write(tmp_path, "a.xlf", content, encoding), tmp_path)
    finding = '"&lt;b&gt;" &amp; ' + ("Ω" if "16" in encoding else "&#937;")
    assert finding in annotated.decode(encoding)


def test_xliff_1_gets_notes_and_confidence(tmp_path):
    path = write(tmp_path, "a.xlf", examples.XLIFF1)
    text = check_round_trip(path, tmp_path).decode()
    assert (
        '        <target xmlns:its="http://www.w3.org/2005/11/its" '
        'its:annotatorsRef="mt-confidence|tertium" its:mtConfidence="0.75" state="translated">'
    ) in text
    assert (
        '        <note from="tertium" priority="5" annotates="general">'
        "chrf: 54.321; qe: 0.75</note>\n"
        '        <note from="tertium" priority="2" annotates="target">tags (major): '
        '"&lt;b&gt;" &amp; Ω [translation: Ö]</note>\n'
        "        <note>A button</note>\n"
    ) in text
    assert '<note from="tertium" priority="5" annotates="general">1: chrf' in text  # a segment


@pytest.mark.parametrize("attribute", ['its:mtConfidence="0.5"', 'its:locQualityRatingScore="90"'])
def test_its_attributes_of_other_tools_are_kept(tmp_path, attribute):
    other = f'xmlns:its="http://www.w3.org/2005/11/its" {attribute} state="translated"'
    path = write(tmp_path, "a.xlf", examples.XLIFF1.replace('state="translated"', other))
    text = check_round_trip(path, tmp_path).decode()
    assert f"<target {other}>" in text
    ElementTree.fromstring(text.encode())


def test_xliff_2_gets_metadata_and_notes(tmp_path):
    path = write(tmp_path, "a.xlf", examples.XLIFF2)
    text = check_round_trip(path, tmp_path).decode()
    assert (
        '    <note>A button</note>\n    <note category="tertium" appliesTo="target" priority="2">'
    ) in text
    assert (
        '   <mda:metadata xmlns:mda="urn:oasis:names:tc:xliff:metadata:2.0">\n'
        '    <mda:metaGroup category="tertium"><mda:meta type="chrf">54.321</mda:meta>'
    ) in text
    assert '<mda:metaGroup category="segment s2">' in text


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16", "iso-8859-1"])
def test_findings_quote_the_markup_of_the_file(tmp_path, encoding):
    path = write(tmp_path, "a.xlf", examples.XLIFF1.replace("UTF-8", encoding), encoding)
    catalog = read_catalog(path)
    target = catalog.units[0].target or ""
    edits = FileEdits(Path(path).read_bytes(), catalog.encoding)
    expected = {
        "nen &": "nen &amp;",
        "<g1>sich": '<g id="1">sich',
        "{2}": '<x id="2"/>',
        target[1:]: 'ffnen &amp; <g id="1">sichern</g> <x id="2"/>',
    }
    for part, quoted in expected.items():
        start = target.index(part)
        description = edits.describe(Span(start, start + len(part)), target)
        assert description == f"error (bad) [translation: {quoted}]"


def test_tmx_gets_properties_and_po_comments(tmp_path):
    text = check_round_trip(write(tmp_path, "a.tmx", examples.TMX), tmp_path).decode()
    assert '\n  <prop type="x-tertium-scores">chrf: 54.321; qe: 0.75</prop>\n' in text
    assert '\n  <prop type="x-tertium-finding">tags (major): ' in text
    text = check_round_trip(write(tmp_path, "a.po", examples.PO), tmp_path).decode()
    assert "\n# tertium: chrf: 54.321; qe: 0.75\n# tertium: tags (major):" in text
    assert "# tertium: [2] chrf: 54.321; qe: 0.75\n# tertium: [2] tags (major):" in text


def rows(testset: TestSet, make: Callable[[str, int], Annotation]) -> dict[str, list[Annotation]]:
    return {system: [make(system, n) for n in range(len(testset))] for system in testset.systems}


def test_a_project_is_written_to_a_folder(tmp_path):
    paths = [write(tmp_path, "a.xlf", examples.XLIFF2), write(tmp_path, "b.xlf", examples.XLIFF1)]
    project = read_project(paths)
    testset = project.testset
    folder = tmp_path / "scored"
    notes = rows(testset, lambda _, n: Annotation({"x": float(n)}))
    written = annotate_files(project, str(folder), notes)
    assert [Path(path).name for path in written] == ["a.xlf", "b.xlf"]
    texts = [Path(path).read_text() for path in written]
    assert [text.count('<mda:meta type="x">') for text in texts] == [3, 0]
    assert '<mda:meta type="x">2</mda:meta>' in texts[0]
    assert [n for n in range(10) if f">x: {n}</note>" in texts[1]] == [3, 4]
    assert "1: x: 6</note>" in texts[1]


def test_each_system_is_written_to_its_file(tmp_path):
    paths = [write(tmp_path, f"{n}.xlf", examples.XLIFF2.replace("Eins", n)) for n in "ab"]
    project = read_project(paths)
    testset = project.testset
    (tmp_path / "out").mkdir()
    notes = rows(testset, lambda system, _: Annotation({system: 1.0}))
    written = annotate_files(project, str(tmp_path / "out"), notes)
    assert ['type="b.xlf"' in Path(path).read_text() for path in written] == [False, True]


def test_findings_in_the_text_of_a_source_file_are_quoted(tmp_path):
    source = write(tmp_path, "en.po", 'msgid "key"\nmsgstr "Open it"\n')
    path = write(tmp_path, "de.po", 'msgid "key"\nmsgstr "Öffnen"\n')
    project = read_project([path], source)
    finding = Span(0, 4, side="source", severity="minor", category="x")
    notes = rows(project.testset, lambda *_: Annotation(findings=[finding]))
    [copy] = annotate_files(project, str(tmp_path / "out.po"), notes)
    assert Path(copy).read_text().startswith("# tertium: x (minor) [source: Open]\n")


def test_files_that_cannot_be_kept_are_refused(tmp_path):
    path = write(tmp_path, "a.xlf", examples.XLIFF2)
    project = read_project([path])
    notes = rows(project.testset, lambda *_: Annotation())
    with pytest.raises(UsageError, match="is an input file: give another name"):
        annotate_files(project, path, notes)
    with pytest.raises(UsageError, match="is a file; give a folder for several files"):
        annotate_files(replace(project, paths=(path, path)), path, notes)
    with pytest.raises(UsageError, match="two files have the same name"):
        annotate_files(replace(project, paths=(path, path)), str(tmp_path / "x"), notes)
    with pytest.raises(UsageError, match=r"b.json: scores can be written to .mqxliff"):
        check_write_back([str(tmp_path / "b.json")], "x")
    compressed = tmp_path / "b.xlf"
    compressed.write_bytes(gzip.compress(examples.XLIFF2.encode()))
    with pytest.raises(DataError, match="compressed: unpack it before writing to it"):
        annotate_file(str(compressed), str(tmp_path / "out.xlf"), annotate)
    with pytest.raises(UsageError, match="the result has 1 segments, the project 3"):
        annotate_files(project, str(tmp_path / "out.xlf"), {"a.xlf": [Annotation()]})
    write(tmp_path, "a.xlf", examples.XLIFF2.replace("Eins", "Zwei"))
    with pytest.raises(DataError, match="changed while it was scored"):
        annotate_files(project, str(tmp_path / "out.xlf"), notes)
    assert not (tmp_path / "out.xlf").exists()


def test_workbooks_get_columns(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    workbook = openpyxl.Workbook()
    rows_of_sheet = [("Source", "MT", "note"), ("One & only", 1, None), (), ("Two", "Zwei", "x")]
    for row in rows_of_sheet:
        workbook.active.append(row)
    workbook.create_sheet("other").append(["kept"])
    path = str(tmp_path / "a.xlsx")
    workbook.save(path)
    testset = TestSet.from_records(path)
    assert testset.systems == {"a": ("1", "Zwei")}
    for name in ("b.xlsx", "c.xlsx"):  # the second run replaces the columns of the first
        testset = TestSet.from_records(path)
        annotations = rows(
            testset, lambda _, n: Annotation({"x": n + 0.5}, [Span(0, 1, message="<w>")] * n)
        )
        annotate_files(Project(testset, Languages(), (path,)), str(tmp_path / name), annotations)
        path = str(tmp_path / name)
    sheet, other = openpyxl.load_workbook(path).worksheets
    assert [*sheet.values] == [
        ("Source", "MT", "note", "tertium: x", "tertium: findings"),
        ("One & only", 1, None, 0.5, None),
        (None,) * 5,
        ("Two", "Zwei", "x", 1.5, "error (bad): <w> [translation: Z]"),
    ]
    assert other["A1"].value == "kept"
    assert TestSet.from_records(path).systems == {"c": ("1", "Zwei")}


def test_charts_and_pictures_of_workbooks_are_kept(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    image = pytest.importorskip("PIL.Image")
    from openpyxl.chart import BarChart, Reference
    from openpyxl.worksheet.datavalidation import DataValidation

    workbook = openpyxl.Workbook()
    sheet = workbook.active
    for row in [("source", "translation"), ("One", "Eins"), ("Two", "Zwei")]:
        sheet.append(row)
    chart = BarChart()
    chart.add_data(Reference(sheet, min_col=1, min_row=2, max_row=3))
    sheet.add_chart(chart, "E1")
    picture = io.BytesIO()
    image.new("RGB", (2, 2)).save(picture, "png")
    sheet.add_image(openpyxl.drawing.image.Image(picture), "E20")
    rule = DataValidation(type="list", formula1='"Eins,Zwei"')
    rule.add("B2:B3")
    sheet.add_data_validation(rule)
    path, copy = str(tmp_path / "a.xlsx"), str(tmp_path / "b.xlsx")
    workbook.save(path)
    testset = TestSet.from_records(path)
    annotations = rows(testset, lambda _, n: Annotation({"x": n / 2}))
    annotate_files(Project(testset, Languages(), (path,)), copy, annotations)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(copy) as new:
        assert new.namelist() == old.namelist()
        changed = [name for name in old.namelist() if new.read(name) != old.read(name)]
        text = new.read("xl/worksheets/sheet1.xml").decode()
    assert {"xl/charts/chart1.xml", "xl/media/image1.png"} < {*old.namelist()}
    assert changed == ["xl/worksheets/sheet1.xml"]
    assert "<dataValidation " in text
    assert "<drawing " in text
    assert openpyxl.load_workbook(copy).active["C3"].value == 0.5


def test_a_damaged_member_of_a_workbook_is_refused(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "a.xlsx"
    workbook = openpyxl.Workbook()
    workbook.active.append(["source", "translation"])
    workbook.save(path)
    with zipfile.ZipFile(path) as archive:
        place = archive.getinfo("docProps/app.xml").header_offset + 60
    data = path.read_bytes()
    path.write_bytes(data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :])
    with pytest.raises(DataError, match=r"a.xlsx: damaged Excel workbook"):
        add_columns(str(path), str(tmp_path / "b.xlsx"), {2: {"x": 1.0}})
    assert not (tmp_path / "b.xlsx").exists()
