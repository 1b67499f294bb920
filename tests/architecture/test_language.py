"""Names and prose use plain technical English.

The word lists below hold habits that made the project hard to read for newcomers: archaic verbs,
participles used as names, and metaphors in place of the field's terms. A listed word fails a test.

`python -m tests.architecture.test_language` lists all identifiers by frequency and marks those
that a list names.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
THIS = Path(__file__).resolve()
CODE = ("src", "tests", "papers", "recipes", "benchmarks")

# A part of a snake_case name, wherever it stands.
BANNED_PARTS = frozenset(
    "anew apart astray beside dealt dear foresee foretell foretold kin lesson lessons mend mended "
    "mends mending parted sentinel sentinels stray strays stranger strangers vain wherein".split()
)
# A whole name. Participles say that something happened, not what the value is.
BANNED_NAMES = frozenset(
    "all_said asked doubt doubts found given goes_on heard held how judged kept known made meant "
    "named others said seen shown some spent taken told tried turned upward what which who whose "
    "whole".split()
)
# The stem of a module. The file tree should read as a table of contents.
BANNED_MODULES = frozenset(
    "apart beside blank body doubts gathering hooked keeping making meeting telling".split()
)
# A phrase in a docstring, comment, message or page: pattern and what to write instead.
BANNED_PHRASES = {
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\banew\b": "again",
    r"\bastray\b": "wrong language",
    r"\bforetell|\bforetold|\bforesee": "predict",
    r"\bparted\b": "split, separated",
    r"\b(is|are|was|were) none\b": "is missing, is not valid, there is no ...",
    r"\bheld against\b": "compared with",
    r"\btold by\b": "detected from, reported by",
    r"\bdeal(s|t)? out\b|\bdealt\b": "distribute",
    r"\bbeside\b": "next to, in addition to, compared with",
    r"\bin vain\b": "without result",
    r"\bturned over\b": "negated",
    r"\bnothing is known of\b": "unrecognized argument",
    r"\bthe house\b|\brooms?\b of|\bin the rooms?\b": "package, module",
    r"\bwhat (is|was|were) said\b|\bsays of\b|\bsaid of\b": "predicted, output",
    r"\bwhat (learned|ships)\b": "trained metrics, bundled models",
    r"\bby the source alone\b": "source-only",
    r"\bis dear\b|\bare dear\b": "is expensive",
    r"\bjudgement": "judgment",
}
# Words that are data: function words of a language, published names and quoted text.
ALLOWED: dict[str, tuple[str, ...]] = {}


def tracked(*suffixes: str) -> list[Path]:
    """The files under version control with one of these suffixes, without this one."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    paths = (ROOT / line for line in output.stdout.splitlines())
    return sorted(p for p in paths if p.suffix in suffixes and p.is_file() and p != THIS)


@lru_cache(maxsize=1)
def code_files() -> list[Path]:
    return [p for p in tracked(".py") if p.relative_to(ROOT).parts[0] in CODE]


@lru_cache(maxsize=1)
def identifiers() -> dict[str, list[str]]:
    """Every name that the code defines, with the places that define it."""
    places: dict[str, list[str]] = {}
    for path in code_files():
        relative = path.relative_to(ROOT)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for name in defined_names(node):
                places.setdefault(name, []).append(f"{relative}:{getattr(node, 'lineno', 1)}")
    return places


def defined_names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.id if isinstance(node, ast.Name) else node.attr


def words_of(name: str) -> list[str]:
    """The lower-case words of a snake_case or CamelCase name.

    >>> words_of("_ScoreMatrix"), words_of("read_TSV_rows")
    (['score', 'matrix'], ['read', 'tsv', 'rows'])
    """
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)
    return [part.lower() for part in parts]


def is_banned(name: str) -> bool:
    is_test = name.startswith("test_")  # a sentence in snake_case
    words = words_of(name)
    return bool(BANNED_PARTS & {*words}) or (not is_test and "_".join(words) in BANNED_NAMES)


def test_no_identifier_is_on_the_word_lists() -> None:
    banned = {name: places for name, places in identifiers().items() if is_banned(name)}
    lines = [f"{name}: {', '.join(places[:4])}" for name, places in sorted(banned.items())]
    assert not lines, "rename these identifiers:\n" + "\n".join(lines)


def test_module_names_state_their_subject() -> None:
    banned = [str(p.relative_to(ROOT)) for p in code_files() if p.stem in BANNED_MODULES]
    assert banned == []


def prose_lines(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """Line numbers and text: comments and strings of Python files, all lines of others."""
    if path.suffix != ".py":
        yield from enumerate(text.splitlines(), start=1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            for offset, line in enumerate(token.string.splitlines()):
                yield token.start[0] + offset, line


@lru_cache(maxsize=1)
def suspicious_lines() -> list[tuple[str, int, str]]:
    """The lines that match any of the phrases; files without a match are not tokenized."""
    any_phrase = re.compile("|".join(f"(?:{pattern})" for pattern in BANNED_PHRASES), re.I)
    files = [*code_files(), *tracked(".md", ".html", ".js", ".css", ".toml", ".yml", ".cff")]
    return [
        (str(path.relative_to(ROOT)), number, line)
        for path in files
        if any_phrase.search(text := path.read_text(encoding="utf-8"))
        for number, line in prose_lines(path, text)
        if any_phrase.search(line)
    ]


@pytest.mark.parametrize("pattern", BANNED_PHRASES)
def test_no_phrase_is_on_the_list(pattern: str) -> None:
    phrase = re.compile(pattern, re.IGNORECASE)
    uses = [
        f"{place}:{number}: {line.strip()[:100]}"
        for place, number, line in suspicious_lines()
        if (match := phrase.search(line)) and match.group() not in ALLOWED.get(place, ())
    ]
    advice = f"write {BANNED_PHRASES[pattern]!r} instead of {pattern!r}"
    assert not uses, advice + "\n" + "\n".join(uses[:40])


def main() -> None:
    """Print all identifiers by frequency, with a mark where a list names them."""
    for name, count in Counter({n: len(p) for n, p in identifiers().items()}).most_common():
        print(f"{count:6} {'!' if is_banned(name) else ' '} {name}")


if __name__ == "__main__":
    main()
