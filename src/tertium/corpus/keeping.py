"""Which rows are kept: a small language of comparisons over columns, read by a parser of its own.

    tertium-small >= 0.7 and not ('truncated' in tertium-small.warnings or lang in ('de', 'fr'))

Names of columns stand bare or in backquotes, texts in quotes; `length(name)` is a text's length in
characters. Everything is computed by pyarrow.compute; nothing is executed. A value that is missing
compares to nothing, so that its row is not kept unless `is null` asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tertium.errors import UsageError

Columns = Callable[[str], Any]  # a name to an array of pyarrow
Value = Callable[[Columns], Any]

COMPARISONS = {
    "==": "equal",
    "=": "equal",
    "!=": "not_equal",
    ">=": "greater_equal",
    "<=": "less_equal",
    ">": "greater",
    "<": "less",
}
WORDS = frozenset({"and", "or", "not", "in", "is", "null", "true", "false", "length"})
QUOTING = "texts stand in quotes, a column such as `chrf:word_order=2` in backquotes"
_TOKEN = re.compile(
    r"\s*(?:(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<text>'[^']*'|\"[^\"]*\")"
    r"|`(?P<quoted>[^`]+)`"
    r"|(?P<name>[^\W\d][\w.+-]*)"
    r"|(?P<mark>==|!=|>=|<=|[=<>(),]))"
)


@dataclass(frozen=True)
class Keep:
    """An expression: its text, the columns it names, and how it judges rows."""

    text: str
    names: tuple[str, ...]
    judge: Value = field(compare=False)

    def mask(self, columns: Columns) -> Any:
        """True for each row that is kept, as an array of pyarrow without nulls."""
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            judged = _typed(self.judge(lambda name: _decode(columns(name))), pa.bool_())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            reason = str(error).splitlines()[0]
            raise UsageError(f"--keep {self.text}: cannot be computed ({reason})") from None
        if not pa.types.is_boolean(judged.type):
            raise UsageError(f"--keep {self.text}: is no comparison, such as chrf >= 50")
        return pc.fill_null(judged, False)


def parse_keep(text: str) -> Keep:
    """Read an expression.

    >>> parse_keep("tertium-small>=0.7 and not lang in ('de', 'fr')").names
    ('tertium-small', 'lang')
    >>> parse_keep("chrf >")
    Traceback (most recent call last):
        ...
    tertium.errors.UsageError: --keep chrf >: expected a value at the end
    """
    return _Parser(text).parse()


class _Parser:
    """Recursive descent: or, and, not, comparison, value."""

    def __init__(self, text: str) -> None:
        self.text, self.names = text, dict[str, None]()
        self.tokens = list(self._split())
        self.place = 0

    def _split(self) -> Iterator[tuple[str, str, int]]:
        place = 0
        while self.text[place:].strip():
            match = _TOKEN.match(self.text, place)
            if match is None:
                bad = self.text[place:].lstrip()
                raise UsageError(f"--keep {self.text}: cannot read {bad[:20]!r} ({QUOTING})")
            kind = str(match.lastgroup)
            word = match[kind]
            if kind == "name" and word.lower() in WORDS:
                kind, word = "word", word.lower()
            yield ("name" if kind == "quoted" else kind), word, place
            place = match.end()

    def parse(self) -> Keep:
        judge = self._either()
        if self.place < len(self.tokens):
            raise self._wrong("and, or, or the end")
        if not self.names:
            raise UsageError(f"--keep {self.text}: names no column ({QUOTING})")
        return Keep(self.text, tuple(self.names), judge)

    def _wrong(self, expected: str) -> UsageError:
        rest = self.text[self.tokens[self.place][2] :] if self.place < len(self.tokens) else ""
        where = f"before {rest.strip()[:20]!r}" if rest.strip() else "at the end"
        return UsageError(f"--keep {self.text}: expected {expected} {where}")

    def _peek(self) -> tuple[str, str]:
        return self.tokens[self.place][:2] if self.place < len(self.tokens) else ("", "")

    def _take(self, *words: str) -> str:
        """The next token, where it is one of these words or marks; else empty."""
        kind, word = self._peek()
        if kind not in ("word", "mark") or word not in words:
            return ""
        self.place += 1
        return word

    def _need(self, word: str) -> None:
        if not self._take(word):
            raise self._wrong(f"{word!r}")

    def _either(self) -> Value:
        left = self._both()
        while self._take("or"):
            left = _combine("or_kleene", left, self._both(), kind="bool")
        return left

    def _both(self) -> Value:
        left = self._negation()
        while self._take("and"):
            left = _combine("and_kleene", left, self._negation(), kind="bool")
        return left

    def _negation(self) -> Value:
        if self._take("not"):
            return _combine("invert", self._negation(), kind="bool")
        if self._take("("):
            inner = self._either()
            self._need(")")
            return inner
        return self._comparison()

    def _comparison(self) -> Value:
        begins_with, left = self._peek()[0], self._value()
        mark = self._take(*COMPARISONS)
        if mark:
            return _combine(COMPARISONS[mark], left, self._value())
        if self._take("is"):
            function = "is_valid" if self._take("not") else "is_null"
            self._need("null")
            return _combine(function, left)
        negated = bool(self._take("not"))
        if self._take("in"):
            found = self._membership(left, begins_with == "text")
            return _combine("invert", found) if negated else found
        if negated:
            raise self._wrong("'in'")
        return left

    def _membership(self, left: Value, is_text: bool) -> Value:
        """`lang in ('de', 'fr')`, or a part of a text: `'cut' in chrf.warnings`."""
        if not self._take("("):
            if not is_text:
                raise self._wrong("a list such as ('de', 'fr')")
            right = self._value()
            return lambda columns: _contains(right(columns), left(columns).as_py())
        values = [self._constant()]
        while self._take(","):
            values.append(self._constant())
        self._need(")")
        return lambda columns: _is_listed(left(columns), values)

    def _constant(self) -> Any:
        kind, word = self._peek()
        if kind not in ("number", "text"):
            raise self._wrong("a number or a text in quotes")
        self.place += 1
        whole = word.lstrip("+-").isdecimal()
        return word[1:-1] if kind == "text" else int(word) if whole else float(word)

    def _value(self) -> Value:
        import pyarrow as pa

        kind, word = self._peek()
        if kind in ("number", "text"):
            constant = pa.scalar(self._constant())
            return lambda columns: constant
        if self._take("true", "false"):
            truth = pa.scalar(word == "true")
            return lambda columns: truth
        if self._take("length"):
            self._need("(")
            inner = self._value()
            self._need(")")
            return _combine("utf8_length", inner, kind="string")
        if kind != "name":
            raise self._wrong("a value")
        self.place += 1
        self.names[word] = None
        return lambda columns: columns(word)


def _combine(function: str, *values: Value, kind: str = "") -> Value:
    """A function of pyarrow over values, of which those that lack a kind are taken for this."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def call(columns: Columns) -> Any:
        found = [value(columns) for value in values]
        if kind:
            found = [_typed(value, pa.type_for_alias(kind)) for value in found]
        return pc.call_function(function, found)

    return call


def _contains(texts: Any, part: str) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.match_substring(_typed(texts, pa.string()), part)


def _is_listed(found: Any, values: list[Any]) -> Any:
    """Which values are in a list; what is missing is neither in it nor outside."""
    import pyarrow as pa
    import pyarrow.compute as pc

    listed = pa.array(values)
    is_in = pc.is_in(_typed(found, listed.type), value_set=listed)
    return pc.if_else(pc.is_valid(found), is_in, pa.scalar(None, pa.bool_()))


def _typed(values: Any, kind: Any) -> Any:
    """The same values; those of a column that is missing in all rows at hand get a kind."""
    import pyarrow as pa

    return values.cast(kind) if pa.types.is_null(values.type) else values


def _decode(column: Any) -> Any:
    """A column as plain values where it is stored as numbers of categories."""
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
