"""Names and prose use plain technical English.

The word lists below hold habits that made the project hard to read for newcomers: archaic verbs,
participles used as names, and metaphors in place of the field's terms. A listed word fails a test.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
THIS = Path(__file__).resolve()
CODE = ("src", "tests", "papers", "recipes", "benchmarks")

# A part of a snake_case name, wherever it stands.
BANNED_PARTS = frozenset(
    "anew apart astray beside dealt dear foresee foretell foretold kin lesson lessons mend mended "
    "mends mending parted stray strays stranger strangers vain wherein".split()
)
# A whole name. Participles say that something happened, not what the value is.
BANNED_NAMES = frozenset(
    "all_said asked doubt doubts goes_on heard held how judged kept meant said spent taken told "
    "tried turned upward what which who whose".split()
)
# Whole names that only tests may use.
BANNED_OUTSIDE_TESTS = frozenset("found given known made named others shown some whole".split())
# The stem of a module. The file tree should read as a table of contents.
BANNED_MODULES = frozenset(
    "apart beside blank body doubts gathering hooked keeping making meeting telling".split()
)
# Names that are keys of a file format, with the file that declares them.
FILE_FORMAT_NAMES = {
    ("apart", "src/tertium/metrics/bundled/row_scorer.py"),
    ("whole", "src/tertium/metrics/bundled/scales.py"),
    ("kept", "src/tertium/corpus/summary.py"),
    ("kept", "src/tertium/corpus/worker.py"),
}
# A phrase in a docstring, comment, message or page: pattern and what to write instead.
BANNED_PHRASES = {
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\banew\b": "again",
    r"\bastray\b(?!:)": "wrong language",  # signatures contain astray:0.3
    r"\bforetell|\bforetold|\bforesee": "predict",
    r"\bparted\b": "split, separated",
    r"(?<!there )(?<!--test )\b(is|are|was|were) none\b": "is missing, is not valid",
    r"\bheld against\b": "compared with",
    r"\btold by\b": "detected from, reported by",
    r"\bdeal(s|t)? out\b|\bdealt\b": "distribute",
    r"\bbeside\b": "next to, in addition to, compared with",
    r"\bin vain\b": "without result",
    r"\bturned over\b": "negated",
    r"\bnothing is known of\b": "unrecognized argument",
    r"\bwhat (is|was|were) said\b|\bsays of\b|\bsaid of\b": "predicted, output",
    r"\bwhat (learned|ships)\b": "trained metrics, bundled models",
    r"\bby the source alone\b": "source-only",
    r"\b(is|are) dear\b": "is expensive",
    # published file names and saved keys have the British spelling
    r"(?<![.-])\bjudgement(?!s\.tsv|s_left_out|s[\"'`/]|s: \d)": "judgment",
}
NAME = re.compile(r"[A-Za-z_]\w*")
STRING_OR_COMMENT = re.compile(
    r'("""|\'\'\')(?:\\.|.)*?\1|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*', re.DOTALL
)
# Words in a file that are data: keys of saved files, signatures and quoted texts.
ALLOWED: dict[str, tuple[str, ...]] = {
    "CHANGELOG.md": ("astray",),
    "docs/guides/route.md": ("beside",),  # a wrong translation of "side effects"
    "papers/trained_metrics.py": ("anew",),  # part of a cache key
    "src/tertium/metrics/base/explanation.py": ("beside",),
    "src/tertium/metrics/embedding/embedding_metric.py": ("astray",),
    "tests/metrics/embedding/test_embedding.py": ("astray",),
}


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


def banned_identifiers() -> dict[str, list[str]]:
    """Every banned name that the code defines, with the places that define it.

    Files that use no banned name are omitted; parsing all files takes seconds.
    """
    places: dict[str, list[str]] = {}
    for path in code_files():
        relative = path.relative_to(ROOT)
        text = path.read_text(encoding="utf-8")
        names = {*NAME.findall(STRING_OR_COMMENT.sub(" ", text))}
        if not any(is_banned(name, str(relative)) for name in names):
            continue
        for node in ast.walk(ast.parse(text)):
            for name in filter(lambda name: is_banned(name, str(relative)), defined_names(node)):
                places.setdefault(name, []).append(f"{relative}:{getattr(node, 'lineno', 1)}")
    return places


def defined_names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.id if isinstance(node, ast.Name) else node.attr


@cache
def words_of(name: str) -> list[str]:
    """The lower-case words of a snake_case or CamelCase name.

    >>> words_of("_ScoreMatrix"), words_of("read_TSV_rows")
    (['score', 'matrix'], ['read', 'tsv', 'rows'])
    """
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)
    return [part.lower() for part in parts]


def is_banned(name: str, place: str) -> bool:
    path = place.partition(":")[0]
    words = words_of(name)
    if BANNED_PARTS & {*words} and (name, path) not in FILE_FORMAT_NAMES:
        return True
    if name.startswith("test_") or (name, path) in FILE_FORMAT_NAMES:  # a test is a sentence
        return False
    banned = BANNED_NAMES if path.startswith("tests/") else BANNED_NAMES | BANNED_OUTSIDE_TESTS
    return "_".join(words) in banned


def test_no_identifier_is_on_the_word_lists() -> None:
    lines = [f"{name}: {', '.join(places[:4])}" for name, places in banned_identifiers().items()]
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


def contains_any(text: str, parts: list[str]) -> bool:
    lower = text.replace("None", "").lower()
    return any(part in lower for part in parts)


def compile_phrase(pattern: str) -> re.Pattern[str]:
    """Match a phrase in any case, except that None is a Python value."""
    return re.compile(pattern.replace(" none", " (?-i:none)"), re.IGNORECASE)


def required_texts(pattern: str) -> list[str]:
    """The longest text outside of groups of each alternative; each match contains one of them.

    >>> required_texts(r"\\bdeal(s|t)? out\\b|\\bdealt\\b")
    ['deal', 'dealt']
    """
    alternatives = re.sub(r"\([^()]*\)\??", "\0", pattern.replace("\\b", "")).split("|")
    return [max(alternative.split("\0"), key=len) for alternative in alternatives]


@lru_cache(maxsize=1)
def suspicious_lines() -> list[tuple[str, int, str]]:
    """The lines that match any of the phrases; files without a match are not tokenized."""
    any_phrase = compile_phrase("|".join(f"(?:{pattern})" for pattern in BANNED_PHRASES))
    required = [text for pattern in BANNED_PHRASES for text in required_texts(pattern)]
    files = [*code_files(), *tracked(".md", ".html", ".js", ".css", ".toml", ".yml", ".cff")]
    return [
        (str(path.relative_to(ROOT)), number, line)
        for path in files
        if contains_any(text := path.read_text(encoding="utf-8"), required)
        and any_phrase.search(text)
        for number, line in prose_lines(path, text)
        if any_phrase.search(line)
    ]


@pytest.mark.parametrize("pattern", BANNED_PHRASES)
def test_no_phrase_is_on_the_list(pattern: str) -> None:
    phrase = compile_phrase(pattern)
    uses = [
        f"{place}:{number}: {line.strip()[:100]}"
        for place, number, line in suspicious_lines()
        if (match := phrase.search(line)) and match.group() not in ALLOWED.get(place, ())
    ]
    advice = f"write {BANNED_PHRASES[pattern]!r} instead of {pattern!r}"
    assert not uses, advice + "\n" + "\n".join(uses[:40])
