"""Measure the size of the package, what commands import, and how often they build objects.

`budgets.toml` holds the limit of each measure; `test_budgets.py` compares both. After a change that
makes a measure smaller, lower the limits:

    python -m tests.architecture.shape          # list measures and limits
    python -m tests.architecture.shape --lower  # write smaller measures into budgets.toml
    python -m tests.architecture.shape --raise  # write larger measures, too (say why)
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import tokenize
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import tertium
from tertium.cli import COMMANDS
from tertium.cli import main as run_tertium
from tertium.core import segment
from tertium.data import records, testset

PACKAGE = Path(tertium.__file__).parent
ROOT = Path(__file__).parents[2]
BUDGETS = Path(__file__).with_name("budgets.toml")

COUNTED_TOKENS = {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}
# From Python 3.12 on, an f-string is several tokens; before, it is one.
FSTRING_START = getattr(tokenize, "FSTRING_START", -1)
FSTRING_END = getattr(tokenize, "FSTRING_END", -1)
DEFINITIONS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
MAX_PARAMETERS = 10  # calls of other tools (`compat`) and sizes of networks may have more
HEAVY_MODULES = ("scipy", "pandas", "rich", "asyncio", "torch")
# Functions that reject values that are not texts, in whichever module they are.
TEXT_CHECKS = {"check_texts", "check_surrogates"}

Measures = dict[str, dict[str, float]]


@dataclass(frozen=True)
class FileShape:
    """Counts of one file."""

    package: str
    lines: int
    tokens: int
    long_comprehensions: int
    long_signatures: int


@cache
def file_shapes() -> tuple[FileShape, ...]:
    """Return the counts of all files of the package."""
    return tuple(_measure_file(path) for path in sorted(PACKAGE.rglob("*.py")))


def _measure_file(path: Path) -> FileShape:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    package = _package_of(path)
    long_comprehensions = long_signatures = 0
    for node in ast.walk(tree):
        if isinstance(node, COMPREHENSIONS):
            long_comprehensions += len(node.generators) > 2
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and package != "compat":
            long_signatures += _count_parameters(node.args) > MAX_PARAMETERS
        if isinstance(node, ast.ClassDef) and "nn.Module" in map(ast.unparse, node.bases):
            for own in node.body:
                if isinstance(own, ast.FunctionDef) and own.name == "__init__":
                    long_signatures -= _count_parameters(own.args) > MAX_PARAMETERS
    tokens = count_tokens(text, _docstring_lines(tree))
    return FileShape(package, text.count("\n"), tokens, long_comprehensions, long_signatures)


def _docstring_lines(tree: ast.AST) -> set[int]:
    return {
        node.body[0].lineno
        for node in ast.walk(tree)
        if isinstance(node, DEFINITIONS) and ast.get_docstring(node, clean=False) is not None
    }


def _package_of(path: Path) -> str:
    """Return the package of a file; each family of metrics counts as a package."""
    parts = path.relative_to(PACKAGE).parts
    if len(parts) == 1:
        return "core (modules)"
    if parts[0] == "metrics" and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0]


def _count_parameters(arguments: ast.arguments) -> int:
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def count_tokens(text: str, docstring_lines: set[int]) -> int:
    """Count names, operators, numbers and strings, without docstrings and comments."""
    count = depth = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == FSTRING_START:
            count += depth == 0
            depth += 1
        elif token.type == FSTRING_END:
            depth -= 1
        elif depth == 0 and token.type in COUNTED_TOKENS:
            is_docstring = token.type == tokenize.STRING and token.start[0] in docstring_lines
            count += not is_docstring
    return count


def measure_tokens() -> dict[str, float]:
    """Return the tokens of each package and of all."""
    tokens: Counter[str] = Counter()
    for shape in file_shapes():
        tokens[shape.package] += shape.tokens
    return {**tokens, "all": tokens.total()}


def measure_code() -> dict[str, float]:
    """Return measures of density and of names."""
    shapes = file_shapes()
    lines = sum(shape.lines for shape in shapes)
    stems = Counter(path.stem for path in PACKAGE.rglob("*.py"))
    repeated = [s for s, n in stems.items() if n > 1 and s not in ("__init__", "__main__")]
    return {
        "tokens per line": round(sum(shape.tokens for shape in shapes) / lines, 2),
        "stems that occur more than once": len(repeated),
        "comprehensions with more than two for": sum(s.long_comprehensions for s in shapes),
        "functions with more than 10 parameters": sum(s.long_signatures for s in shapes),
    }


def measure_commands() -> dict[str, int]:
    """Return the tokens of `cli`, and of the other code of commands by file and name.

    Besides the functions of `COMMANDS` these are

    - dataclasses of options that only commands use: they have a `group` of the help, or derive
      from one that has. Those that the Python API uses, too, are code of their package.
    - private functions of the same file that only this code calls.
    """
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}
    functions = set()
    for target, _ in COMMANDS.values():
        module, _, function = target.partition(":")
        functions.add((PACKAGE / f"{module.replace('.', '/')}.py", function))
    files = {path for path, _ in functions}
    options = _option_classes(trees)
    private = set()
    for path in files:
        for node in trees[path].body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("_"):
                private.add((path, node.name))
    counted = functions | options | private
    previous: set[tuple[Path, str]] = set()
    while counted != previous:  # drop what other code uses, too
        previous = counted
        used = _used_names(trees, counted)
        everywhere = {name for names in used.values() for name in names}
        shared = {(path, name) for path, name in options if name in everywhere}
        shared |= {(path, name) for path, name in private if name in used[path]}
        counted = functions | (previous - shared)
    tokens = {"cli": int(measure_tokens()["cli"])}
    for path, tree in trees.items():
        if path.parent.name == "cli":
            continue
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        for node in tree.body:
            if not isinstance(node, ast.FunctionDef | ast.ClassDef):
                continue
            if (path, node.name) in counted:
                start = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
                docstrings = {line - start for line in _docstring_lines(node)}
                code = "".join(lines[start : node.end_lineno])
                tokens[f"{path.stem}.{node.name}"] = count_tokens(code, docstrings)
    return tokens


def _option_classes(trees: Mapping[Path, ast.Module]) -> set[tuple[Path, str]]:
    """Return the dataclasses whose fields are options, by file and name."""
    classes = {
        (path, node.name): node
        for path, tree in trees.items()
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    found: dict[tuple[Path, str], ast.ClassDef] = {}
    for key, node in classes.items():
        fields = [field for field in node.body if isinstance(field, ast.AnnAssign)]
        if any(ast.unparse(field).startswith("group: ClassVar[str] =") for field in fields):
            found[key] = node
    size = 0
    while size != len(found):
        size = len(found)
        names = {name for _, name in found}
        found |= {k: n for k, n in classes.items() if names & {*map(ast.unparse, n.bases)}}
    return {*found}


def _used_names(
    trees: Mapping[Path, ast.Module], counted: Collection[tuple[Path, str]]
) -> dict[Path, set[str]]:
    """Return the names that code uses which is not of commands, by file; imports use nothing."""
    used: dict[Path, set[str]] = {path: set() for path in trees}
    for path, tree in trees.items():
        for statement in tree.body:
            is_counted = (path, getattr(statement, "name", "")) in counted
            if not is_counted and path.parent.name != "cli":
                used[path] |= {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
    return used


def measure_imports() -> Measures:
    """Return how many of our modules, and which heavy ones, commands import."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "a.txt")
        file.write_text("a cat\nthe dog ran\n")
        score = ["score", "-t", str(file), "-r", str(file), "-m", "chrf", "-q"]
        return {
            "imports of score": _count_imports(score),
            "imports of help": _count_imports(["--help"]),
        }


def _count_imports(command: Sequence[str]) -> dict[str, float]:
    modules = list_imports(command)
    ours = [name for name in modules if name.partition(".")[0] == "tertium"]
    return {
        "tertium": len(ours),
        "tertium.cli": len([name for name in ours if name.startswith("tertium.cli.")]),
        **{name: int(name in modules) for name in HEAVY_MODULES},
    }


def list_imports(command: Sequence[str]) -> set[str]:
    """Return all modules that a new process imports for a command."""
    program = (
        "import contextlib, io, json, sys\n"
        "from tertium.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    main(sys.argv[1:])\n"
        "print(json.dumps([*sys.modules]))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(
        [sys.executable, "-c", program, *command],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return set(json.loads(done.stdout))


def measure_options() -> dict[str, float]:
    """Return the number of commands, of their options, and of different names of options."""
    from tests.docs.cli_reference import command_parsers

    parsers = command_parsers()
    options = [
        action
        for parser in parsers.values()
        for action in parser._actions
        if action.option_strings and action.dest != "help"
    ]
    long_names = {
        name for action in options for name in action.option_strings if name.startswith("--")
    }
    return {"commands": len(parsers), "options": len(options), "long names": len(long_names)}


@dataclass
class ObjectCounts:
    """How often a command builds objects, checks texts and opens a file."""

    segments: int = 0
    testsets: int = 0
    text_checks: int = 0
    opened: int = 0


@contextlib.contextmanager
def count_objects(texts: Sequence[str] = (), file: Path | None = None) -> Iterator[ObjectCounts]:
    """Count what the commands in a `with` block do; `texts` are ASCII texts."""
    counts, wanted = ObjectCounts(), frozenset(texts)
    open_file = open

    def watch_calls(frame: FrameType, event: str, _: Any) -> None:
        """Count texts that are passed to a function that checks them, singly or in a list.

        In a list, ASCII texts are not passed on one by one, so nothing is counted twice.
        """
        if event != "call" or frame.f_code.co_name not in TEXT_CHECKS:
            return
        value = frame.f_locals[frame.f_code.co_varnames[0]]
        values = [value] if isinstance(value, str) else value
        counts.text_checks += sum(isinstance(v, str) and v in wanted for v in values)

    def count_opening(path: Any, *args: Any, **kwargs: Any) -> Any:
        if file is not None and isinstance(path, str | os.PathLike):
            counts.opened += Path(path).resolve() == file.resolve()
        return open_file(path, *args, **kwargs)

    def count_calls(cls: type, name: str) -> Any:
        build = cls.__init__

        def count_and_build(self: Any, *args: Any, **kwargs: Any) -> None:
            setattr(counts, name, getattr(counts, name) + 1)
            build(self, *args, **kwargs)

        return mock.patch.object(cls, "__init__", count_and_build)

    build_checked = segment.checked_segment

    def count_checked(*args: Any, **kwargs: Any) -> Any:
        counts.segments += 1
        return build_checked(*args, **kwargs)

    with (
        count_calls(tertium.Segment, "segments"),
        mock.patch.object(segment, "checked_segment", count_checked),
        mock.patch.object(testset, "checked_segment", count_checked),
        mock.patch.object(records, "checked_segment", count_checked),
        count_calls(tertium.TestSet, "testsets"),
        mock.patch.object(builtins, "open", count_opening),
        mock.patch.object(io, "open", count_opening),
    ):
        previous = sys.getprofile()
        if wanted:
            sys.setprofile(watch_calls)
        try:
            yield counts
        finally:
            sys.setprofile(previous)


def measure_objects() -> Measures:
    """Return how many objects commands build for each translation."""
    commands = {
        "score": "score -t one.txt -r reference.txt -m chrf -q",
        "score, 2 systems, 2 metrics": "score -t one.txt two.txt -r reference.txt -m chrf bleu -q",
        "compare": "compare -t one.txt two.txt -r reference.txt -m chrf -q",
        "gate": "gate --baseline one.txt --candidate two.txt -r reference.txt -m chrf "
        "--margin chrf=5 -q",
    }
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        systems = {}
        for name in ("one", "two", "reference"):
            systems[name] = [f"{name} says that {n} cats sat on the mat" for n in range(12)]
            Path(f"{name}.txt").write_text("\n".join(systems[name]) + "\n")
        measured = {}
        for name, command in commands.items():
            texts = systems["one"] + (systems["two"] if "two" in command else [])
            with count_objects(texts) as counts:
                run_quietly(command.split())
            measured[name] = {
                "segments per translation": counts.segments / len(texts),
                "checks per translation": counts.text_checks / len(texts),
                "test sets": counts.testsets,
            }
    return measured


def measure_localization() -> Measures:
    """Return how often `check` opens an XLIFF file, and how many segments it builds of it."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        file = Path("app.xliff")
        file.write_bytes((ROOT / "examples/localization/app.de.xliff").read_bytes())
        measured = {}
        for name, options in {
            "check": "",
            "check with write-back": "--write-back new.xliff",
            "check with write-back and SARIF": "--write-back other.xliff -o found.sarif",
        }.items():
            with count_objects(file=file) as counts:
                run_quietly(["check", "-t", str(file), *options.split()])
            measured[name] = {
                "file opened": float(counts.opened),
                "segments": float(counts.segments),
            }
    return measured


def run_quietly(command: Sequence[str]) -> None:
    """Run a command of `tertium` in this process."""
    nowhere = io.StringIO()
    with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        code = run_tertium(list(command))
    assert code in (0, 1, 3), f"{command}: {nowhere.getvalue()}"


def measure_everything() -> Measures:
    """Return all measures by table and name, as in the data file."""
    return {
        "tokens": measure_tokens(),
        "code": measure_code(),
        **measure_imports(),
        "options": measure_options(),
        **measure_objects(),
        **measure_localization(),
    }


def read_budgets() -> Measures:
    """Return the limits by table and name."""
    return tomllib.loads(BUDGETS.read_text(encoding="utf-8"))


def write_budgets(limits: Measures) -> None:
    """Write limits; the comments at the start of the file stay."""
    lines = []
    for line in BUDGETS.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line)
    for table, values in limits.items():
        lines += ["", f"[{json.dumps(table)}]"]
        lines += [f"{json.dumps(name)} = {value:.12g}" for name, value in values.items()]
    BUDGETS.write_text("\n".join(lines) + "\n", encoding="utf-8")


def format_number(value: float) -> str:
    return f"{value:,.12g}"


def main(arguments: Sequence[str]) -> None:
    """List all measures with their limits, or change the limits to the measures."""
    measured, limits = measure_everything(), read_budgets()
    new_limits: Measures = {}
    for table, values in measured.items():
        new_limits[table] = {}
        for name, value in values.items():
            limit = limits.get(table, {}).get(name)
            if limit is None or "--raise" in arguments:
                new_limits[table][name] = value
            else:
                new_limits[table][name] = min(limit, value)
            shown = "no limit" if limit is None else f"limit {format_number(limit)}"
            print(f"{table}: {name}: {format_number(value)} ({shown})")
    if {"--lower", "--raise"} & {*arguments}:
        write_budgets(new_limits)


if __name__ == "__main__":
    main(sys.argv[1:])
