"""Extract the commands and snippets of a Markdown page, in order.

Conventions (docs/index.md explains them to readers):

- ```console: lines after `$ ` are commands, followed by their output.
- ```bash or ```sh: one command per line, without output.
- ```python: all blocks of a page run in one namespace. A ```text block directly after it is its
  output.
- A block of any language with title="PATH" is a file that the reader creates.
- `...` in an output matches anything; white space and blank lines are ignored.
- A trailing backslash continues a command, `# ...` after it is a comment. A command whose comment
  says `takes hours`, `takes minutes`, `needs the network`, `needs judgments`, `needs answers` or
  `runs until you stop it` is only parsed, by the real parser.
- `<!-- setup` ... `-->` is hidden Python that defines names used by the snippets of the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "examples" / "README.md",
    *sorted(page for page in DOCS.rglob("*.md")),
]
_DECIMAL, _ESCAPED_DECIMAL = re.compile(r"\d+\.\d+"), re.compile(r"\d+\\\.\d+")
NOT_RUN = re.compile(
    r"takes (hours|minutes)|needs (the network|judgments|answers)|runs until you stop it"
)
_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<kind>\w*)"
    r'(?: title="(?P<title>[^"\n]+)")?[^\n]*\n'
    r"(?P<body>.*?)^(?P=indent)```\s*$"
    r"|^<!-- setup\n(?P<setup>.*?)^-->\s*$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text and the line it starts on."""

    kind: str
    body: str
    line: int
    joined: bool = False  # directly after the previous block
    title: str = ""  # path of the file, if the block is one


@dataclass(frozen=True)
class Step:
    """Something to run, and its expected output (None if the page shows none)."""

    kind: str  # "shell", "python" or "file: PATH"
    code: str
    line: int
    expected: str | None = None
    run: bool = True


def blocks(text: str) -> list[Block]:
    """Return all fenced blocks and setup blocks of a page."""
    result: list[Block] = []
    end = 0
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        joined = bool(result) and not text[end : match.start()].strip()
        if match["setup"] is not None:
            result.append(Block("setup", match["setup"], line, joined))
        else:
            result.append(Block(match["kind"], match["body"], line, joined, match["title"] or ""))
        end = match.end()
    return result


def steps(text: str) -> list[Step]:
    """Return everything on a page that can be run, in order."""
    result: list[Step] = []
    before = ""
    for block in blocks(text):
        if block.title:
            result.append(Step(f"file: {block.title}", block.body, block.line))
        elif block.kind in ("python", "setup"):
            result.append(Step("python", block.body, block.line))
        elif block.kind in ("bash", "sh"):
            result += _commands(block)
        elif block.kind == "console":
            result += _session(block)
        elif block.kind == "text" and block.joined and before == "python":
            last = result.pop()
            result.append(Step("python", last.code, last.line, block.body))
        before = block.kind
    return result


def _commands(block: Block) -> Iterator[Step]:
    lines = iter(enumerate(block.body.splitlines(), start=block.line + 1))
    for number, line in lines:
        while line.rstrip().endswith("\\"):
            line = line.rstrip()[:-1] + next(lines)[1]
        command, comment = split_comment(line)
        if command:
            yield Step("shell", command, number, run=not NOT_RUN.search(comment))


def _session(block: Block) -> Iterator[Step]:
    for part in re.split(r"^(?=\$ )", block.body, flags=re.MULTILINE):
        if not part.startswith("$ "):
            continue
        lines = part[2:].splitlines()
        line = lines.pop(0)
        while line.rstrip().endswith("\\"):
            line = line.rstrip()[:-1] + lines.pop(0)
        command, comment = split_comment(line)
        output = "\n".join(lines)
        yield Step(
            "shell",
            command,
            block.line,
            output if output.strip() else None,
            run=not NOT_RUN.search(comment),
        )


def split_comment(line: str) -> tuple[str, str]:
    """Split a command from its comment; a hash inside a word or quotes is not a comment."""
    quote = ""
    for place, character in enumerate(line):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "#" and (place == 0 or line[place - 1].isspace()):
            return line[:place].strip(), line[place + 1 :].strip()
    return line.strip(), ""


def matches(expected: str, printed: str, tolerance: float = 0.0) -> bool:
    """Return whether an output matches a page, ignoring white space; `...` matches anything.

    With a tolerance, decimal numbers may differ by it, or by it relative to their value: networks
    in int8 give slightly different scores on other kinds of processors.

    >>> matches("score 0.596 ...", "score 0.598 of 3"), matches("0.596", "0.598", tolerance=0.03)
    (False, True)
    """
    parts = [re.escape(" ".join(part.split())) for part in expected.split("...")]
    pattern, text = r"\s*.*?\s*".join(parts), " ".join(printed.split())
    if re.fullmatch(pattern, text, re.DOTALL):
        return True
    numbers = [float(number) for number in _DECIMAL.findall(expected)]
    pattern = _ESCAPED_DECIMAL.sub(lambda _: r"(\d+\.\d+)", pattern)
    found = re.fullmatch(pattern, text, re.DOTALL) if tolerance else None
    return found is not None and all(
        abs(float(own) - number) <= tolerance * max(1.0, number)
        for own, number in zip(found.groups(), numbers, strict=True)
    )
