"""Options of commands: a command is a function, and its parameters and dataclasses are its options.

A field of a dataclass or a parameter of a function becomes an option: its type says what it takes,
its default what happens without it, and the docstring what it means. `Option` in an annotation adds
what types cannot say. Dataclasses of options that have effects of their own, such as a device, have
a method `applied` that returns a context manager; the runner enters it before the command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from tertium.core.errors import UsageError
from tertium.core.result import Result, suffix_error
from tertium.core.runtime import runtime

MAX_DECIMALS = 17  # the precision of a double
FILE_KINDS = ("scores", "spans", "findings", "junit", "results")


class Option:
    """How an option is written, as far as its name, type and default do not say it.

    Parameters
    ----------
    names
        The option strings, the long one included; by default the name of the field.
    metavar
        What the help calls the value.
    group
        The group of the help, by default that of the dataclass.
    file
        "read" if the value names files to read, "write" if it names files to write. Both are
        compared before the work, so that no input is overwritten. A "folder" may exist.
    type
        A function that returns the value of a text, or raises `UsageError`; by default the type of
        the annotation. Other values are also those of `argparse.ArgumentParser.add_argument`.
    """

    def __init__(self, *names: str, **values: Any) -> None:
        self.values = {"names": names, **values} if names else values


class LateOptions:
    """Options that depend on the words of the command line, such as those of one metric.

    `choose` returns the dataclass of the options, given the words. The parameter has the type
    `Annotated[Any, LateOptions(choose)]`.
    """

    def __init__(self, choose: Callable[[Sequence[str]], type[Any]]) -> None:
        self.choose = choose


InFile = Annotated[str, Option(metavar="FILE", file="read")]
InFiles = Annotated[tuple[str, ...], Option(metavar="FILE", file="read")]
OutFile = Annotated[str, Option(metavar="FILE", file="write")]
Names = Annotated[tuple[str, ...], Option(metavar="NAME")]
LanguagePairs = Annotated[tuple[str, ...], Option(metavar="LP")]
Specs = Annotated[tuple[str, ...], Option(metavar="METRIC")]


@dataclass(eq=False)
class EarlyResult(Exception):
    """Ends a command with another result than that of its function, such as a plan of the work."""

    result: Result


def parse_decimals(text: str) -> int:
    """Parse the value of -w."""
    if not text.isdecimal() or int(text) > MAX_DECIMALS:
        raise UsageError(f"{text!r} is not a number of decimals, expected 0 to {MAX_DECIMALS}")
    return int(text)


@dataclass(frozen=True, kw_only=True)
class Display:
    """What a command prints; the runner gives every command these options.

    Attributes
    ----------
    format
        Output format.
    width
        Number of decimals in tables (default: by metric).
    quiet
        No progress bars, no warnings.
    """

    group: ClassVar[str] = "Output"
    format: Annotated[
        Literal["text", "json", "tsv", "csv", "md", "latex"], Option("-f", "--format")
    ] = "text"
    width: Annotated[int | None, Option("-w", "--width", metavar="N", type=parse_decimals)] = None
    quiet: Annotated[bool, Option("-q", "--quiet")] = False


@dataclass(frozen=True, kw_only=True)
class Output:
    """The files of a result.

    Attributes
    ----------
    output
        Also write results to files, in the format of the suffix. KIND: selects what to write, if
        the suffix allows more than one kind: scores, spans, findings, junit or results.
    """

    group: ClassVar[str] = "Output"
    output: Annotated[
        tuple[str, ...], Option("-o", "--output", metavar="[KIND:]FILE", file="write")
    ] = ()

    def paths(self, result: type[Result]) -> list[str]:
        """Return the files, after a check that results of a class can be written to them."""
        return self.split(result)[0]

    def split(self, *results: type[Result]) -> list[list[str]]:
        """Return the files of each class of results, after a check that they can be written."""
        files: list[list[str]] = [[] for _ in results]
        for text in self.output:
            kind, path = split_kind(text)
            chosen = _find_result(kind, path, results)
            chosen.check_paths(path)
            files[results.index(chosen)].append(path)
        return files


def split_kind(text: str) -> tuple[str, str]:
    """Split a value of -o into kind and path; the kind may be empty.

    >>> split_kind("spans:errors.tsv"), split_kind("c:/errors.tsv")
    (('spans', 'errors.tsv'), ('', 'c:/errors.tsv'))
    """
    kind, colon, path = text.partition(":")
    return (kind, path) if colon and kind in FILE_KINDS else ("", text)


def _find_result(kind: str, path: str, results: Sequence[type[Result]]) -> type[Result]:
    """Return the class of the results that a file holds, by its kind and suffix.

    The first class that can be written to the file has "results", the default kind.
    """
    suffix = Path(path).suffix
    possible = [result for result in results if suffix in result.suffixes()]
    if not possible:
        raise suffix_error(path, dict.fromkeys(chain(*(result.suffixes() for result in results))))
    kinds = {result.file_kind(suffix): result for result in possible}
    if kind == "results" or (not kind and (len(kinds) == 1 or "results" in kinds)):
        return possible[0]
    if kind not in kinds:
        choices = " or ".join(f"-o {name}:{path}" for name in kinds)
        raise UsageError(f"-o {path}: {suffix} files hold {' or '.join(kinds)}; give {choices}")
    return kinds[kind]


@dataclass(frozen=True, kw_only=True)
class Resampling:
    """How often results are resampled.

    Attributes
    ----------
    resamples
        Resamples of tests and intervals.
    seed
        Random seed.
    """

    group: ClassVar[str] = "Statistics"
    resamples: int = 1000
    seed: int = 12345


@dataclass(frozen=True, kw_only=True)
class Significance(Resampling):
    """How significance is tested.

    Attributes
    ----------
    alpha
        Significance level of marks and ranks.
    """

    alpha: float = 0.05


def parse_device(text: str) -> str:
    """Return a device; 0 and 1 are numbers of GPUs, as in COMET's `--gpus`.

    >>> parse_device("cuda:1"), parse_device("0"), parse_device("1")
    ('cuda:1', 'cpu', 'cuda')
    """
    return {"0": "cpu", "1": "cuda"}.get(text, text)


@dataclass(frozen=True, kw_only=True)
class Device:
    """Where networks run.

    Attributes
    ----------
    device
        Device: cpu, cuda, cuda:N, mps or auto (default: auto); --gpus 0 is cpu, --gpus 1 is cuda.
    threads
        CPU threads (default: all cores).
    """

    group: ClassVar[str] = "Runtime"
    device: Annotated[
        str | None, Option("--device", "--gpus", metavar="NAME", type=parse_device)
    ] = None
    threads: int | None = None

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Run the block with these settings."""
        changes: dict[str, Any] = {"device": self.device, "threads": self.threads}
        with runtime(**{name: value for name, value in changes.items() if value is not None}):
            yield


@dataclass(frozen=True, kw_only=True)
class Compute(Device):
    """How metrics run.

    Attributes
    ----------
    batch_size
        Texts per batch (default: by text length).
    cache
        Do not read or write the cache.
    """

    batch_size: int | None = None
    cache: bool = True

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Run the block with these settings."""
        changes: dict[str, Any] = {"batch_size": self.batch_size} if self.batch_size else {}
        with super().applied(), runtime(cache=self.cache, **changes):
            yield
