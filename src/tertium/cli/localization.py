"""Localization files as input of commands, and `--write-back`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tertium.cli.parser import CommandParser
from tertium.data.testset import TestSet
from tertium.errors import UsageError
from tertium.localization.catalogs import is_localization_file, is_sgml, suffix_of
from tertium.localization.units import Languages
from tertium.text.language_codes import find_language_code

if TYPE_CHECKING:
    from tertium.evaluation.checking import CheckReport
    from tertium.evaluation.evaluation import Evaluation
    from tertium.localization.projects import Project
    from tertium.metrics.base.metric import Metric


def add_write_back(parser: CommandParser) -> None:
    """Add --write-back."""
    parser.groups["Output"].add_argument(
        "--write-back",
        metavar="FILE",
        help="also write a copy of the localization file of -t (XLIFF, TMX, PO, .xlsx) with scores "
        "and findings; a folder for several files",
    )


def check_write_back_option(args: argparse.Namespace) -> None:
    """Check before the work that scores can be written to a copy of the input."""
    if args.write_back:
        from tertium.localization.write_back import check_write_back

        check_write_back(args.translations, args.write_back)


def is_localization(args: argparse.Namespace) -> bool:
    """Tell whether -t names localization files; a mixture with other files is an error.

    Of a test set in SGML, the outputs may be plain text.
    """
    if _has_sgml(args):
        return True
    files = args.translations
    localized = [file for file in files if _is_localization_file(file, args.sources)]
    unlocalized = [file for file in files if file not in localized]
    if localized and unlocalized:
        raise UsageError(
            f"{localized[0]} is a localization file, {unlocalized[0]} is not: give one kind"
        )
    return bool(localized)


def _has_sgml(args: argparse.Namespace) -> bool:
    return any(map(is_sgml, (*args.translations, *args.references, args.sources)))


def _is_localization_file(path: str, sources: str | None) -> bool:
    if sources and suffix_of(path) == ".json":  # records have sources of their own
        return True
    return suffix_of(path) == ".xml" or is_localization_file(path)


def read_localization(args: argparse.Namespace, *, keep_untranslated: bool) -> TestSet:
    """Read localization files; set the languages that they declare unless options name them."""
    if args.documents or args.fields:
        raise UsageError(
            "localization files name their documents and have no columns: omit --documents and "
            "--fields"
        )
    from tertium.localization.projects import read_project

    writes_back = bool(getattr(args, "write_back", None))
    wanted = (getattr(args, f"{side}_language", None) or "" for side in ("source", "target"))
    project = _read_wmt(args) or read_project(
        args.translations,
        args.sources,
        args.references,
        names=args.names or None,
        languages=Languages(*wanted),
        keep_untranslated=keep_untranslated,
        for_write_back=writes_back,
    )
    if writes_back:
        args.project = project
    source, target = (find_language_code(code) for code in project.languages)
    if getattr(args, "target_language", "") is None and target:
        args.target_language = target
    if getattr(args, "source_language", "") is None and args.target_language:
        args.source_language = source or None
    return project.testset


def _read_wmt(args: argparse.Namespace) -> Project | None:
    """Read a test set of WMT, if -t is one."""
    from tertium.localization.projects import Project
    from tertium.localization.wmt_sgml import read_wmt_sgml
    from tertium.localization.wmt_xml import ROOTS, read_wmt_xml
    from tertium.localization.xml_elements import root_element

    [path, *more] = args.translations
    languages = Languages()
    if _has_sgml(args):
        testset = read_wmt_sgml(
            args.translations, args.sources, args.references, args.names or None, languages
        )
        return Project(testset, languages, tuple(args.translations))
    if suffix_of(path) != ".xml" or root_element(path).local not in ROOTS:
        return None
    if more or args.sources or args.references or args.names:
        raise UsageError(
            f"{path} is a test set with sources, references and systems: give it alone, without "
            "-s, -r and --names"
        )
    return Project(read_wmt_xml(path, languages), languages, (path,))


def write_back_result(
    args: argparse.Namespace, result: Evaluation | CheckReport, metrics: Sequence[Metric] = ()
) -> None:
    """Write scores or findings to copies of the input files, if --write-back is given."""
    if args.write_back:
        from tertium.evaluation.writing_back import write_back
        from tertium.localization.projects import Project

        workbook = Project(result.testset, Languages(), tuple(args.translations))
        project = getattr(args, "project", workbook)
        write_back(project, result, args.write_back, metrics=metrics)
