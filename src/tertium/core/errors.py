"""All errors that a user can fix.

    TertiumError                         the command line prints its message and exits with 2
    ├── UsageError                       an invalid call, option or spec
    │   ├── UnknownNameError             an unknown metric, encoder, field ...; with suggestions
    │   └── MissingInputError            a metric needs a source or references that are missing
    │       └── UnsupportedLanguageError texts in a language that the metric does not support
    ├── DataError                        a file or value that cannot be used
    │   ├── LengthError                  parallel inputs of different length
    │   └── WriteError                   a file that cannot be written
    ├── MissingResourceError             weights, a package or a dictionary is not installed
    ├── ModelError                       a damaged or incompatible checkpoint
    └── PluginError                      a metric, ranker or encoder of another package fails

A message states what is wrong, where, and how to fix it. Any other exception is a bug in tertium
and keeps its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class TertiumError(Exception):
    """Base class of all errors that a user can fix."""

    exit_code = 2


class UsageError(TertiumError):
    """An invalid call, option or spec."""


class UnknownNameError(UsageError):
    """An unknown name, with similar names that exist.

    >>> raise UnknownNameError("metric", "blue", ["bleu"])
    Traceback (most recent call last):
        ...
    tertium.core.errors.UnknownNameError: unknown metric 'blue': did you mean 'bleu'? (known: bleu)
    """

    def __init__(self, kind: str, name: str, known_names: Iterable[str]) -> None:
        self.kind = kind
        self.name = name
        self.known_names = tuple(sorted(known_names))
        similar = _similar_names(str(name).lower(), self.known_names)
        hint = f": did you mean {' or '.join(map(repr, similar))}?" if similar else ""
        listing = f"(known: {', '.join(self.known_names) or 'none'})"
        super().__init__(f"unknown {kind} {name!r}{hint} {listing}")

    def __reduce__(self) -> tuple[type[UnknownNameError], tuple[str, str, tuple[str, ...]]]:
        """Support pickling: a process pool hangs on an exception that cannot be unpickled."""
        return type(self), (self.kind, self.name, self.known_names)


def _similar_names(name: str, known_names: Sequence[str]) -> list[str]:
    """Return names with a similar spelling, else names with this prefix.

    >>> _similar_names("goood", ["fair", "good"]), _similar_names("nobody", ["fair", "good"])
    (['good'], [])
    >>> _similar_names("tok", ["lowercase", "tokenize"])
    ['tokenize']
    """
    similar = difflib.get_close_matches(name, known_names, n=3, cutoff=0.65)
    return (
        similar
        or [option for option in known_names if name and option.lower().startswith(name)][:3]
    )


class MissingInputError(UsageError):
    """A metric needs an input that the segments do not have."""


class UnsupportedLanguageError(MissingInputError):
    """The segments are complete, but most are in a language that the metric does not support."""


class DataError(TertiumError):
    """A file or value that cannot be used as it is."""


class LengthError(DataError):
    """Parallel inputs differ in length; they are never truncated to the shorter one."""


class WriteError(DataError):
    """A file cannot be written."""


class MissingResourceError(TertiumError):
    """Weights, a package or a dictionary is not installed; the message tells how to install it."""


class ModelError(TertiumError):
    """A checkpoint is damaged, incomplete or incompatible."""


class PluginError(TertiumError):
    """A plugin of another package cannot be used; the message names the package and the reason."""


def short_repr(value: object, width: int = 40) -> str:
    """Format a value for an error message, shortened; a multi-line `repr` becomes the type name.

    >>> short_repr("a cat"), short_repr([0] * 9, 12)
    ("'a cat'", '[0, 0, 0, 0,...')
    """
    try:
        text = repr(value)
    except ValueError:  # an integer of more than 4,300 digits
        text = "\n"
    if "\n" in text:
        return f"a {type(value).__name__}"
    return text if len(text) <= width else f"{text[:width]}..."
