"""What public functions return: results that declare their tables, charts and findings once.

A `Table` has rows of any type and columns that read them. `Result` derives everything else from
its tables: printed text, HTML in notebooks, records, frames and files. Writers belong to higher
layers and are named in `WRITERS` by the suffix of a file; they are imported when a file is written.

Frames are pandas frames. pandas is optional and imported only when a frame is created; tables of
texts may also come from polars or Arrow.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, UsageError
from tertium.core.extras import explain_missing, require_modules
from tertium.core.segment import Segment
from tertium.core.spans import Side, Span

if TYPE_CHECKING:
    from pandas import DataFrame

    from tertium.core.charts import Chart
    from tertium.core.findings import Finding, Suites


Value = float | int | str | None
Emphasis = Literal["", "best", "good", "bad", "dim"]


@dataclass(frozen=True)
class Cell:
    """A shown cell: its text, its full value, a style, and the length of a bar from -1 to 1.

    "best" is bold, "good" green, "bad" red and "dim" gray.
    """

    text: str
    value: Any = None
    emphasis: Emphasis = ""
    bar: float | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, and what it shows of a row.

    Attributes
    ----------
    name
        The heading.
    get
        A function that returns the full value of a row, or the attribute that holds it, such as
        "name" or "span.side" (the key, if rows are dictionaries); by default the attribute with the
        name of the column.
    decimals
        Decimals of the printed number, or a function that returns them for a row. Text columns
        have none and are aligned left.
    show
        False for a column that is only in files.
    mark
        A function that returns the style of a row's cell.
    bar
        A function that returns the length of a bar from -1 to 1, which pages draw next to a number.
    text
        A function of a row and its decimals that returns the printed text, if this is not the
        rounded value.
    group
        Columns of the same group stay together in a narrow terminal. In files, the group precedes
        a name that other columns have, too.
    adjustable
        Whether the reader may choose the decimals.
    max_length
        Characters of the text that a terminal shows; 0 is any number.
    """

    name: str
    get: Callable[[Any], Any] | str = ""
    decimals: int | Callable[[Any], int] | None = None
    show: bool = True
    mark: Callable[[Any], Emphasis] | None = None
    bar: Callable[[Any], float] | None = None
    text: Callable[[Any, int], str] | None = None
    group: str = ""
    adjustable: bool = False
    max_length: int = 0

    @property
    def is_text(self) -> bool:
        """Whether the cells are aligned left."""
        return self.decimals is None

    def value(self, row: Any) -> Any:
        """Return the full value of a row."""
        if callable(self.get):
            return self.get(row)
        key = self.get or self.name
        return row[key] if isinstance(row, dict) else attrgetter(key)(row)

    def cell(self, row: Any) -> Cell:
        """Return the shown cell of a row."""
        value = self.value(row)
        decimals = self.decimals(row) if callable(self.decimals) else self.decimals or 0
        if self.text is not None:
            text = self.text(row, decimals)
        elif isinstance(value, float) or (isinstance(value, int) and not self.is_text):
            text = format_number(value, decimals)
        else:
            text = "" if value is None else str(value)
        bar = None if self.bar is None else self.bar(row)
        return Cell(text, value, self.mark(row) if self.mark else "", bar=bar)


def format_number(value: float, decimals: int) -> str:
    """Round a number; NaN is a dash, and a rounded zero has no sign.

    >>> format_number(2 / 3, 2), format_number(-0.001, 2), format_number(float("nan"), 2)
    ('0.67', '0.00', '–')
    """
    return "–" if value != value else f"{value:z.{decimals}f}"


def field_values(value: Any, *omitted: str) -> dict[str, Any]:
    """Return the fields of a dataclass by name, except the omitted ones.

    >>> field_values(Cell("1.0", 1), "emphasis")
    {'text': '1.0', 'value': 1, 'bar': None}
    """
    names = [field.name for field in dataclasses.fields(value)]
    return {name: getattr(value, name) for name in names if name not in omitted}


def count_column(name: str, get: Callable[[Any], Any] | str = "", **more: Any) -> Column:
    """Return a column of counts, which are shown with separators of thousands; None is blank."""
    return _formatted_column(name, get, "{:,}".format, more)


def percent_column(name: str, get: Callable[[Any], Any] | str = "", **more: Any) -> Column:
    """Return a column of shares, which are shown in percent; None is blank."""
    return _formatted_column(name, get, lambda share: f"{100 * share:.0f} %", more)


def _formatted_column(
    name: str,
    get: Callable[[Any], Any] | str,
    format_value: Callable[[Any], str],
    more: Mapping[str, Any],
) -> Column:
    def text(row: Any, _: int) -> str:
        value = column.value(row)
        return "" if value is None else format_value(value)

    column = Column(name, get, 0, text=text, **more)
    return column


def bound_columns(name: str, get: Callable[[Any], tuple[Any, Any]]) -> list[Column]:
    """Return two columns for files with the bounds of an interval, named `NAME low` and `high`."""
    prefix = f"{name} " if name else ""
    return [
        Column(f"{prefix}low", lambda row: get(row)[0], 0, show=False),
        Column(f"{prefix}high", lambda row: get(row)[1], 0, show=False),
    ]


def interval_columns(
    name: str, get: Callable[[Any], tuple[float, float, float]], decimals: int = 3, **more: Any
) -> list[Column]:
    """Return a column of values with their intervals in brackets, and the bounds for files.

    `get` returns the value of a row and its bounds, NaN if there are none.
    """

    def text(row: Any, decimals: int) -> str:
        value, low, high = get(row)
        number = format_number(value, decimals)
        return number if low != low else f"{number} [{low:z.{decimals}f}, {high:z.{decimals}f}]"

    options = {"adjustable": True, **more}
    column = Column(name, lambda row: get(row)[0], decimals, text=text, **options)
    return [column, *bound_columns(name, lambda row: get(row)[1:])]


@dataclass(frozen=True)
class MarkedLine:
    """A line of text with marked errors; a cell of a page may hold several lines.

    `side` says what the text is; notes are about the translation.
    """

    text: str
    spans: Sequence[Span] = ()
    side: Side | Literal["reference", "note"] = "hypothesis"


def mark_texts(segment: Segment, spans: Sequence[Span], notes: str = "") -> list[MarkedLine]:
    """Return the texts of a segment with marked errors, and notes about it."""
    lines = [MarkedLine(segment.hypothesis, spans)]
    if segment.source is not None:
        lines.append(MarkedLine(segment.source, spans, "source"))
    lines += [MarkedLine(text, side="reference") for text in segment.references]
    return [*lines, MarkedLine(notes, side="note")] if notes else lines


@dataclass(frozen=True)
class Table:
    """Rows and the columns that show them, with a title, cautions above and notes below.

    The `verdict` says what to conclude; it follows the cautions, and is printed without them, too.
    Rows of the `footer` are cells: they follow the others and are not written to files. `filters`
    are names of columns by which the reader of a page selects rows.
    """

    columns: Sequence[Column]
    rows: Sequence[Any]
    title: str = ""
    notes: Sequence[str] = ()
    cautions: Sequence[str] = ()
    footer: Sequence[Sequence[Cell]] = ()
    filters: Sequence[str] = ()
    verdict: str = ""

    @property
    def headlines(self) -> list[str]:
        """The lines above the table: cautions and the verdict."""
        return [*self.cautions, *([self.verdict] if self.verdict else [])]

    @classmethod
    def from_values(cls, values: Mapping[str, Sequence[Any]], **more: Any) -> Table:
        """Return a table of full values, for files."""
        columns = [Column(name, itemgetter(n)) for n, name in enumerate(values)]
        return cls(columns, [*zip(*values.values(), strict=True)], **more)

    @property
    def visible(self) -> list[Column]:
        """The columns to print."""
        return [column for column in self.columns if column.show]

    @property
    def header(self) -> list[str]:
        """The names of the columns to print."""
        return [column.name for column in self.visible]

    def cells(self) -> list[list[Cell]]:
        """Return the cells to print, without the footer."""
        visible = self.visible
        return [[column.cell(row) for column in visible] for row in self.rows]

    def values(self) -> dict[str, list[Any]]:
        """Return the full values of all columns by their names in files."""
        header = self.header
        values = {}
        for column in self.columns:
            is_repeated = column.show and header.count(column.name) > 1
            name = f"{column.group} {column.name}" if is_repeated else column.name
            values[name] = [column.value(row) for row in self.rows]
        return values

    def records(self) -> list[dict[str, Any]]:
        """Return a dictionary of full values for each row."""
        values = self.values()
        return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]

    def shortened(self) -> Table:
        """Return the table with long texts in one line, cut to the length that a terminal shows."""
        columns = [_shorten(column) if column.max_length else column for column in self.columns]
        return dataclasses.replace(self, columns=columns)

    def with_decimals(self, decimals: int | None) -> Table:
        """Return the table with so many decimals in adjustable columns, if a number is given."""
        if decimals is None:
            return self
        columns = [
            dataclasses.replace(column, decimals=decimals) if column.adjustable else column
            for column in self.columns
        ]
        return dataclasses.replace(self, columns=columns)


def _shorten(column: Column) -> Column:
    length = column.max_length

    def text(row: Any, _: int) -> str:
        line = str(column.value(row) or "").replace("\n", " ")
        return line if len(line) <= length else f"{line[: length - 1]}…"

    return dataclasses.replace(column, text=text)


def suffix_error(path: PathLike, suffixes: Iterable[str]) -> UsageError:
    """Return the error of a file whose suffix is not one of these."""
    *first, last = suffixes
    expected = f"{', '.join(first)} or {last}" if first else last
    return UsageError(f"{path}: expected a name that ends in {expected}")


@dataclass(frozen=True)
class Section:
    """Texts, lists of texts, tables, marked lines, charts and sections under a title.

    The reader of a page expands a collapsed section.
    """

    title: str
    contents: Sequence[Any]
    is_collapsed: bool = False


class Result:
    """What a public function returns; subclasses declare tables and, if they have any, charts.

    `tables` are printed, `file_table` is written to tables such as `.tsv` and `.xlsx`, `records`
    are written as JSON. Results that are more than tables have other `contents`.
    """

    __slots__ = ()
    is_spreadsheet = False  # whether CSV files are for Excel

    def tables(self) -> Sequence[Table]:
        """Return the tables to print."""
        raise NotImplementedError

    def contents(self) -> Sequence[Any]:
        """Return what is printed and shown in notebooks: by default the tables."""
        return self.tables()

    def file_table(self, suffix: str = "") -> Table:
        """Return the table that a file with this suffix holds: by default the first one."""
        return self.tables()[0]

    def records(self) -> Any:
        """Return all results as plain values, for JSON."""
        return self.file_table().records()

    def lines(self) -> Iterable[Mapping[str, Any]]:
        """Return the records of a JSONL file."""
        return self.file_table(".jsonl").records()

    @property
    def page_title(self) -> str:
        """The title of a page: by default the name of the class."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(self).__name__).capitalize()

    @property
    def page_subtitle(self) -> str:
        """What is below the title of a page, such as the number of rows."""
        return ""

    def sections(self) -> Sequence[Section]:
        """Return the sections of a page: by default one with the tables and charts."""
        return [Section(self.page_title, [*self.tables(), *self.charts()])]

    def charts(self) -> Sequence[Chart]:
        """Return charts, for pages and `.svg` files; most results have none."""
        return ()

    def findings(self) -> Iterable[Finding]:
        """Return findings, for `.sarif` files; most results have none."""
        return ()

    def suites(self) -> Suites:
        """Return what was tested, for JUnit files; only results of tests have suites."""
        raise NotImplementedError

    def warning_lines(self) -> Sequence[str]:
        """Return what a command prints to stderr if its output has no room for notes."""
        return ()

    @property
    def exit_code(self) -> int:
        """The exit code of a command that returns this result."""
        return 0

    def to_frame(self) -> DataFrame:
        """Return a pandas frame of `file_table`."""
        return make_frame(self.file_table().values())

    @classmethod
    def check_paths(cls, *paths: PathLike) -> None:
        """Raise an error if a result of this class cannot be written to a file of such a name."""
        for path in paths:
            writer = cls._find_writer(path)
            if writer.modules:
                require_modules(*writer.modules, purpose=str(path), hint="or write .tsv or .jsonl")

    def write(self, *paths: PathLike) -> None:
        """Write the result to files, each in the format of its suffix."""
        self.check_paths(*paths)
        for path in paths:
            resolve_name(self._find_writer(path).target)(self, path)

    @classmethod
    def suffixes(cls) -> list[str]:
        """Return the suffixes of files to which results of this class can be written."""
        return [suffix for suffix, writer in WRITERS.items() if writer.is_for(cls)]

    @classmethod
    def file_kind(cls, suffix: str) -> str:
        """Return what a file with this suffix holds: "results", or a part or view of them."""
        return WRITERS[suffix].kind

    @classmethod
    def _find_writer(cls, path: PathLike) -> Writer:
        suffixes = cls.suffixes()
        suffix = Path(path).suffix
        if suffix not in suffixes:
            raise suffix_error(path, suffixes)
        return WRITERS[suffix]

    def __str__(self) -> str:
        text: str = resolve_name("tertium.output.text:render_result")(self)
        return text

    def _repr_html_(self) -> str:  # called by Jupyter
        html: str = resolve_name("tertium.output.html:render_result")(self)
        return html


@dataclass(frozen=True, kw_only=True, eq=False)
class Listing(Result):
    """A table below some lines of text; JSON may have other values than the table."""

    table: Table
    heading: str = ""
    json: Any = None

    def tables(self) -> Sequence[Table]:
        return [self.table]

    def contents(self) -> Sequence[Any]:
        return [self.heading, self.table] if self.heading else [self.table]

    def records(self) -> Any:
        return self.table.records() if self.json is None else self.json


@dataclass(frozen=True, kw_only=True, eq=False)
class View(Result):
    """What a command prints of a result, and the files it writes.

    A command that returns `Annotated[View, Kind]` prints the view, and writes its result of this
    kind to the files of -o.

    `contents` are printed as text, Markdown or LaTeX, `table` as TSV or CSV, `json` as JSON: by
    default those of the result. `files` are results with the paths to which they are written.
    `then` is called when everything is printed, such as a server that runs until it is stopped.
    """

    result: Result
    printed: Sequence[Any] = ()
    table: Table | None = None
    json: Any = None
    files: Sequence[tuple[Result, str]] = ()
    warnings: Sequence[str] | None = None
    bare: str | None = None
    code: int | None = None
    warns_aside: bool = False
    then: Callable[[], None] | None = None

    def tables(self) -> Sequence[Table]:
        return [part for part in self.contents() if isinstance(part, Table)]

    def contents(self) -> Sequence[Any]:
        return self.printed or self.result.contents()

    def file_table(self, suffix: str = "") -> Table:
        return self.table or self.result.file_table(suffix)

    def records(self) -> Any:
        return self.result.records() if self.json is None else self.json

    def warning_lines(self) -> Sequence[str]:
        return self.result.warning_lines() if self.warnings is None else self.warnings

    @property
    def exit_code(self) -> int:
        return self.result.exit_code if self.code is None else self.code


@dataclass(frozen=True)
class Writer:
    """A function `write(result, path)`, as `module:function`, and what it needs.

    `method` is a method of results that returns what is written, if only some have it. `kind` says
    what files hold.
    """

    target: str
    method: str = ""
    modules: tuple[str, ...] = ()
    kind: str = "results"

    def is_for(self, cls: type[Result]) -> bool:
        """Whether results of a class have what is written."""
        if not self.method:
            return True
        return getattr(cls, self.method) is not getattr(Result, self.method)


WRITERS: Mapping[str, Writer] = {
    ".json": Writer("tertium.output.files:write_json"),
    ".jsonl": Writer("tertium.output.files:write_jsonl"),
    ".tsv": Writer("tertium.output.files:write_tsv"),
    ".csv": Writer("tertium.output.files:write_csv"),
    ".parquet": Writer("tertium.output.files:write_parquet", modules=("pandas", "pyarrow")),
    ".xlsx": Writer("tertium.output.files:write_xlsx", modules=("openpyxl",)),
    ".md": Writer("tertium.output.text:write_markdown"),
    ".tex": Writer("tertium.output.text:write_latex"),
    ".html": Writer("tertium.output.html:write"),
    ".sarif": Writer("tertium.output.files:write_sarif", "findings", kind="findings"),
    ".xml": Writer("tertium.output.files:write_junit", "suites", kind="junit"),
    ".svg": Writer("tertium.output.charts.draw:write", "charts"),
}


# Pages that show more than one result, by name.
PAGES: Mapping[str, str] = {
    "scores": "tertium.output.page.report:report_results",
    "agreement": "tertium.output.page.report:report_meta_evaluation",
}


def make_page(name: str, *results: Any, **more: Any) -> Result:
    """Return a page of `PAGES` about results."""
    page: Result = resolve_name(PAGES[name])(*results, **more)
    return page


def make_frame(columns: Mapping[str, Any], **attributes: Any) -> DataFrame:
    """Create a pandas frame; non-empty `attributes` go into `frame.attrs`, which Parquet stores."""
    with explain_missing("a frame or Parquet file"):
        import pandas
    frame = pandas.DataFrame(dict(columns))
    frame.attrs.update({key: value for key, value in attributes.items() if value not in ("", None)})
    return frame


def is_frame(value: Any) -> bool:
    """Tell whether a value is a table of pandas, polars or Arrow."""
    return hasattr(value, "columns") and hasattr(value, "shape")


def unwrap_arrow_column(values: Any) -> Any:
    """Convert an Arrow column to a list; return any other value unchanged."""
    return values.to_pylist() if hasattr(values, "to_pylist") else values


def is_missing(value: Any) -> bool:
    """Tell whether a value is None, NaN, or a missing value of pandas.

    >>> is_missing(None), is_missing(float("nan")), is_missing("")
    (True, True, False)
    """
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")  # of pandas


def frame_to_records(frame: Any) -> list[dict[str, Any]]:
    """Convert a table to one dictionary per row; missing values become None."""
    names = [str(name) for name in getattr(frame, "column_names", frame.columns)]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise DataError(f"the table has two columns {repeated!r}: give them different names")
    if hasattr(frame, "to_pylist"):  # Arrow
        rows = frame.to_pylist()
    elif hasattr(frame, "to_dicts"):  # polars
        rows = frame.to_dicts()
    else:
        rows = frame.astype(object).where(frame.notna(), None).to_dict(orient="records")
    return [dict(zip(names, row.values(), strict=True)) for row in rows]


def format_name(value: str | int | float) -> str:
    """Format the name of a system or item as text, without surrounding whitespace.

    7.0 becomes 7, because tables with gaps store whole numbers as floats.

    >>> format_name(7.0), format_name(" 7.0"), format_name(7.5)
    ('7', '7.0', '7.5')
    """
    is_integral = isinstance(value, float) and value.is_integer()
    return str(int(value) if is_integral else value).strip()
