"""Options for the texts that commands read: plain files, records or localization files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from tertium.core.errors import UsageError
from tertium.core.fields import check_unique_names
from tertium.core.options import InFile, InFiles, Names, Option
from tertium.data.testset import TestSet
from tertium.data.text_files import RECORD_SUFFIXES, read_lines
from tertium.files.catalogs import is_localization_file, is_sgml, suffix_of
from tertium.text.language_codes import check_language_code, find_language_code

if TYPE_CHECKING:
    from tertium.core.findings import Locate
    from tertium.files.projects import Project

STDIN = "-"


@dataclass(frozen=True, kw_only=True)
class LanguageOptions:
    """The languages of the texts.

    Attributes
    ----------
    source_language
        Language of the sources, such as de; needs --target-language (default: detected).
    target_language
        Language of the translations, for meteor, tertium-small and the tokenizer of bleu and nist;
        with --source-language also for metrics that read the source (default: detected).
    """

    group: ClassVar[str] = "Input"
    source_language: Annotated[str | None, Option(metavar="CODE", group="Metrics")] = None
    target_language: Annotated[str | None, Option(metavar="CODE", group="Metrics")] = None

    def __post_init__(self) -> None:
        for code in filter(None, (self.source_language, self.target_language)):
            check_language_code(code)

    @property
    def language_pair(self) -> str:
        """The language pair of the options, empty if they are not given."""
        source = self.source_language
        target = self.target_language
        if bool(source) != bool(target):
            raise UsageError("give both --source-language and --target-language, or a column lp")
        return f"{source}-{target}" if source else ""


@dataclass(frozen=True)
class InputTexts:
    """A test set that was read from files, with its languages and the places of its texts.

    The languages are those of the options, else those that localization files declare.
    """

    testset: TestSet
    files: TextFiles
    source_language: str = ""
    target_language: str = ""
    project: Project | None = field(default=None, repr=False)

    def to_project(self) -> Project:
        """Return the files to write scores to; a workbook is read as records."""
        from tertium.files.projects import Project
        from tertium.files.units import Languages

        return self.project or Project(self.testset, Languages(), self.files.translations)

    def locate(self) -> Locate:
        """Return a function that finds the texts in their files."""
        from tertium.data.record_files import locate_lines, locate_records

        files = self.files.translations
        if self.project is not None:
            return self.project.locate
        systems = self.testset.systems
        if len(files) == 1 and RECORD_SUFFIXES & set(Path(files[0]).suffixes):
            from tertium.data.record_files import parse_fields

            fields = parse_fields(self.files.fields)
            return locate_records(files[0], systems, self.testset.sources, fields)
        return locate_lines(dict(zip(systems, files, strict=True)), self.files.sources)


@dataclass(frozen=True, kw_only=True)
class TextFiles(LanguageOptions):
    """Files with translations and their sources.

    Attributes
    ----------
    translations
        System outputs, one segment per line (also .gz), one file of records (.jsonl, .tsv, .csv,
        .xlsx, .parquet), or localization files (.xliff, .po, .json, ...); - reads standard input.
    sources
        Source texts (- for stdin).
    names
        System names (default: the file names).
    fields
        Columns of records: NAME=COLUMN says which column holds hypothesis, source, reference or
        another field (such as hypothesis=output); A,B,... are the column names of a TSV or CSV file
        without a header.
    """

    translations: Annotated[InFiles, Option("-t", "--translations", "-i", "--input")] = ()
    sources: Annotated[InFile | None, Option("-s", "--sources")] = None
    names: Names = ()
    fields: Annotated[tuple[str, ...], Option(metavar="NAME=COLUMN")] = ()
    # options of `InputFiles` only: other commands need no references
    references: ClassVar[InFiles] = ()
    documents: ClassVar[InFile | None] = None

    def read(self, *, by: Sequence[str] = (), keep_untranslated: bool = False) -> InputTexts:
        """Read the texts, with the labels of `by` (NAME=FILE) as columns.

        `keep_untranslated` keeps strings of localization files that have no translation.
        """
        if not self.translations:
            raise UsageError("-t is missing: give system outputs")
        check_unique_names("--by", column_names(by))  # before files are read
        files = [*self.translations, *self.references, self.sources, self.documents]
        if files.count(STDIN) > 1:
            raise UsageError("- (standard input) is given twice: only one option can read it")
        texts = self._read(keep_untranslated)
        labels: dict[str, list[str]] = {}
        for column in by:
            name, equals, file = column.partition("=")
            if equals:
                labels[name] = read_lines(file)
        if not labels:
            return texts
        return replace(texts, testset=texts.testset.with_columns(labels))

    def _read(self, keep_untranslated: bool) -> InputTexts:
        files = self.translations
        unlocalized = [file for file in files if not self._is_localization_file(file)]
        if self._has_sgml() or not unlocalized:  # outputs of a test set in SGML may be plain text
            return self._read_localization(keep_untranslated)
        if len(unlocalized) < len(files):
            localized = next(file for file in files if file not in unlocalized)
            raise UsageError(
                f"{localized} is a localization file, {unlocalized[0]} is not: give one kind"
            )
        records = [file for file in files if RECORD_SUFFIXES & set(Path(file).suffixes)]
        if records:
            from tertium.data.record_files import parse_fields

            self._check_alone(records[0])
            testset = TestSet.from_records(files[0], parse_fields(self.fields))
        elif self.fields:
            raise UsageError("--fields is for a file of records, such as .jsonl or .tsv")
        else:
            testset = TestSet.read(
                files, self.references, self.sources, self.documents, self.names or None
            )
        return InputTexts(testset, self, self.source_language or "", self.target_language or "")

    def _check_alone(self, path: str) -> None:
        """Raise an error if a file with all texts is not the only one."""
        options = self.sources, self.references, self.documents, self.names
        if len(self.translations) > 1 or any(options):
            raise UsageError(
                f"{path} has sources, references and systems: give it alone, without other files, "
                "-s, -r, --documents and --names"
            )

    def _has_sgml(self) -> bool:
        return any(map(is_sgml, (*self.translations, *self.references, self.sources)))

    def _is_localization_file(self, path: str) -> bool:
        suffix = suffix_of(path)
        has_messages = suffix == ".json" and self.sources  # records have sources of their own
        return suffix == ".xml" or bool(has_messages) or is_localization_file(path)

    def _read_localization(self, keep_untranslated: bool) -> InputTexts:
        from tertium.files.projects import read_project
        from tertium.files.units import Languages

        if self.documents or self.fields:
            raise UsageError(
                "localization files name their documents and have no columns: omit --documents "
                "and --fields"
            )
        source = self.source_language or ""
        target = self.target_language or ""
        project = self._read_wmt() or read_project(
            self.translations,
            self.sources,
            self.references,
            names=self.names or None,
            languages=Languages(source, target),
            keep_untranslated=keep_untranslated,
        )
        declared = [find_language_code(code) or "" for code in project.languages]
        target = target or declared[1]
        source = source or (declared[0] if target else "")
        return InputTexts(project.testset, self, source, target, project)

    def _read_wmt(self) -> Project | None:
        """Read a test set of WMT, if -t is one."""
        from tertium.files.projects import Project
        from tertium.files.units import Languages
        from tertium.files.wmt import XML_ROOTS, read_wmt_sgml, read_wmt_xml
        from tertium.files.xml_elements import root_element

        files = self.translations
        languages = Languages()
        if self._has_sgml():
            testset = read_wmt_sgml(
                files, self.sources, self.references, self.names or None, languages
            )
        elif suffix_of(files[0]) == ".xml" and root_element(files[0]).local in XML_ROOTS:
            self._check_alone(files[0])
            testset = read_wmt_xml(files[0], languages)
        else:
            return None
        return Project(testset, languages, files)


@dataclass(frozen=True, kw_only=True)
class InputFiles(TextFiles):
    """Files with translations, sources and references.

    Attributes
    ----------
    references
        One or more references (- for stdin).
    documents
        A document id for each segment.
    """

    references: Annotated[InFiles, Option("-r", "--references")] = ()  # type: ignore[misc]
    documents: InFile | None = None  # type: ignore[misc]


@dataclass(frozen=True, kw_only=True)
class WriteBack:
    """A copy of the input with what a command reports.

    Attributes
    ----------
    write_back
        Also write a copy of the localization file of -t (XLIFF, TMX, PO, .xlsx) with scores and
        findings; a folder for several files.
    """

    group: ClassVar[str] = "Output"
    write_back: Annotated[str | None, Option(metavar="FILE", file="folder")] = None

    def check(self, files: Sequence[str]) -> None:
        """Raise an error if a copy of these files cannot be written."""
        if self.write_back:
            from tertium.files.write_back import check_write_back

            check_write_back(files, self.write_back)


def column_names(by: Sequence[str]) -> list[str]:
    """Return the names of the columns of --by; NAME=FILE is the column NAME.

    >>> column_names(["domain", "topic=topics.txt"])
    ['domain', 'topic']
    """
    return [column.partition("=")[0] for column in by]
