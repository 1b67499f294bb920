"""Filter expressions over columns: the language of `tertium corpus --keep`.

    tertium-small >= 0.7 and not ('truncated' in tertium-small.warnings or lang in ('de', 'fr'))

Column names are written as they are or in backquotes, texts in quotes. `length(name)` is the length
of a text in characters. Expressions are evaluated by pyarrow.compute; no code is executed. A
missing value compares as null, so its row is dropped unless `is null` selects it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tertium.errors import UsageError

Columns = Callable[[str], Any]  # column name -> pyarrow array
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
MAX_DEPTH = 100  # of parentheses and negations
KEYWORDS = frozenset({"and", "or", "not", "in", "is", "null", "true", "false", "length"})
QUOTING = "put texts in quotes and columns such as `chrf:word_order=2` in backquotes"
_TOKEN = re.compile(
    r"\s*(?:(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<text>'[^']*'|\"[^\"]*\")"
    r"|`(?P<quoted>[^`]+)`"
    r"|(?P<name>[^\W\d][\w.+-]*)"
    r"|(?P<mark>==|!=|>=|<=|[=<>(),]))"
)


@dataclass(frozen=True)
class FilterExpression:
    """A parsed expression: its text, the columns it uses, and its evaluation function."""

    text: str
    names: tuple[str, ...]
    evaluate: Value = field(compare=False)

    def mask(self, columns: Columns) -> Any:
        """Return a boolean pyarrow array without nulls: True for each row to keep."""
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            result = _typed(self.evaluate(lambda name: _decode(columns(name))), pa.bool_())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            reason = str(error).splitlines()[0]
            raise UsageError(f"--keep {self.text}: cannot be evaluated ({reason})") from None
        if not pa.types.is_boolean(result.type):
            raise UsageError(f"--keep {self.text}: expected a comparison such as chrf >= 50")
        return pc.fill_null(result, False)


def parse_filter(text: str) -> FilterExpression:
    """Parse an expression.

    >>> parse_filter("tertium-small>=0.7 and not lang in ('de', 'fr')").names
    ('tertium-small', 'lang')
    >>> parse_filter("chrf >")
    Traceback (most recent call last):
        ...
    tertium.errors.UsageError: --keep chrf >: expected a value at the end
    """
    return _Parser(text).parse()


class _Parser:
    """Recursive-descent parser: or, and, not, comparison, value."""

    def __init__(self, text: str) -> None:
        self.text, self.names = text, dict[str, None]()
        self.tokens = list(self._split())
        self.place = self.depth = 0

    def _split(self) -> Iterator[tuple[str, str, int]]:
        place = 0
        while self.text[place:].strip():
            match = _TOKEN.match(self.text, place)
            if match is None:
                bad = self.text[place:].lstrip()
                raise UsageError(f"--keep {self.text}: cannot parse {bad[:20]!r} ({QUOTING})")
            kind = str(match.lastgroup)
            word = match[kind]
            if kind == "name" and word.lower() in KEYWORDS:
                kind, word = "word", word.lower()
            yield ("name" if kind == "quoted" else kind), word, place
            place = match.end()

    def parse(self) -> FilterExpression:
        evaluate = self._disjunction()
        if self.place < len(self.tokens):
            raise self._syntax_error("and, or, or the end")
        if not self.names:
            raise UsageError(f"--keep {self.text}: contains no column name ({QUOTING})")
        return FilterExpression(self.text, tuple(self.names), evaluate)

    def _syntax_error(self, expected: str) -> UsageError:
        tail = self.text[self.tokens[self.place][2] :] if self.place < len(self.tokens) else ""
        where = f"before {tail.strip()[:20]!r}" if tail.strip() else "at the end"
        return UsageError(f"--keep {self.text}: expected {expected} {where}")

    def _peek(self) -> tuple[str, str]:
        return self.tokens[self.place][:2] if self.place < len(self.tokens) else ("", "")

    def _take(self, *words: str) -> str:
        """Consume and return the next token if it is one of `words`; else return ''."""
        kind, word = self._peek()
        if kind not in ("word", "mark") or word not in words:
            return ""
        self.place += 1
        return word

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise self._syntax_error(f"{word!r}")

    def _disjunction(self) -> Value:
        values = [self._conjunction()]
        while self._take("or"):
            values.append(self._conjunction())
        return _fold("or_kleene", values)

    def _conjunction(self) -> Value:
        values = [self._negation()]
        while self._take("and"):
            values.append(self._negation())
        return _fold("and_kleene", values)

    def _negation(self) -> Value:
        if self._take("not"):
            with self._nested():
                return _combine("invert", self._negation(), kind="bool")
        if self._take("("):
            with self._nested():
                inner = self._disjunction()
            self._expect(")")
            return inner
        return self._comparison()

    @contextmanager
    def _nested(self) -> Iterator[None]:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UsageError(
                f"--keep {self.text[:40]}...: nested more than {MAX_DEPTH} deep; remove parentheses"
            )
        yield
        self.depth -= 1

    def _comparison(self) -> Value:
        begins_with, left = self._peek()[0], self._value()
        mark = self._take(*COMPARISONS)
        if mark:
            return _combine(COMPARISONS[mark], left, self._value())
        if self._take("is"):
            function = "is_valid" if self._take("not") else "is_null"
            self._expect("null")
            return _combine(function, left)
        negated = bool(self._take("not"))
        if self._take("in"):
            is_member = self._membership(left, begins_with == "text")
            return _combine("invert", is_member) if negated else is_member
        if negated:
            raise self._syntax_error("'in'")
        return left

    def _membership(self, left: Value, is_text: bool) -> Value:
        """Parse `lang in ('de', 'fr')`, or a substring test: `'cut' in chrf.warnings`."""
        if not self._take("("):
            if not is_text:
                raise self._syntax_error("a list such as ('de', 'fr')")
            right = self._value()
            return lambda columns: _contains(right(columns), left(columns).as_py())
        values = [self._constant()]
        while self._take(","):
            values.append(self._constant())
        self._expect(")")
        return lambda columns: _is_in(left(columns), values)

    def _constant(self) -> Any:
        kind, word = self._peek()
        if kind not in ("number", "text"):
            raise self._syntax_error("a number or a text in quotes")
        self.place += 1
        is_integer = word.lstrip("+-").isdecimal()
        return word[1:-1] if kind == "text" else int(word) if is_integer else float(word)

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
            self._expect("(")
            with self._nested():
                inner = self._value()
            self._expect(")")
            return _combine("utf8_length", inner, kind="string")
        if kind != "name":
            raise self._syntax_error("a value")
        self.place += 1
        self.names[word] = None
        return lambda columns: columns(word)


def _fold(function: str, values: Sequence[Value]) -> Value:
    """Combine truth values from left to right; a loop, because there may be thousands."""
    if len(values) == 1:
        return values[0]

    def call(columns: Columns) -> Any:
        result = values[0](columns)
        for value in values[1:]:
            left, right = result, value(columns)
            result = _combine(function, lambda _: left, lambda _: right, kind="bool")(columns)  # noqa: B023 (at once)
        return result

    return call


def _combine(function: str, *values: Value, kind: str = "") -> Value:
    """Apply a pyarrow compute function; values of null type are cast to `kind` first."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def call(columns: Columns) -> Any:
        arguments = [value(columns) for value in values]
        if kind:
            arguments = [_typed(value, pa.type_for_alias(kind)) for value in arguments]
        return pc.call_function(function, arguments)

    return call


def _contains(texts: Any, part: str) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.match_substring(_typed(texts, pa.string()), part)


def _is_in(column: Any, values: list[Any]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    value_set = pa.array(values)
    is_in = pc.is_in(_typed(column, value_set.type), value_set=value_set)
    return pc.if_else(pc.is_valid(column), is_in, pa.scalar(None, pa.bool_()))


def _typed(values: Any, kind: Any) -> Any:
    import pyarrow as pa

    return values.cast(kind) if pa.types.is_null(values.type) else values


def _decode(column: Any) -> Any:
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
