"""Everything that can go wrong and is the caller's to mend.

    TertiumError                 one clear sentence; the command line prints it and exits 2
    ├── UsageError               a call, option or spec that makes no sense
    │   ├── UnknownNameError     no such metric, encoder, field ...; carries suggestions
    │   └── NeedsError           a metric requires a source or references that are not there
    │       └── LanguageError    texts that are together in a language which a metric does not know
    ├── DataError                a file or value that cannot be used
    │   ├── LengthError          parallel inputs of different length; the command line exits 1
    │   └── WriteError           a file that cannot be written
    ├── MissingResourceError     weights, a package or a dictionary that is not installed
    ├── ModelError               a checkpoint that is damaged or does not fit
    └── PluginError              a metric, ranker or encoder of another package that cannot be used

An error says what was wrong, where, and what to do. Anything that is not a `TertiumError` is a bug
in tertium and keeps its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class TertiumError(Exception):
    """The root of all errors a user can mend."""

    exit_code = 2


class UsageError(TertiumError):
    """A call, option or spec that makes no sense."""


class UnknownNameError(UsageError):
    """A name that nothing answers to, with the closest ones that exist.

    >>> raise UnknownNameError("metric", "blue", ["bleu", "chrf"])
    Traceback (most recent call last):
        ...
    tertium.errors.UnknownNameError: unknown metric 'blue': did you mean 'bleu'? (known: bleu, chrf)
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, tuple(sorted(known))
        close = _similar(str(name).lower(), self.known)  # Python's users give anything
        hint = f": did you mean {' or '.join(repr(c) for c in close)}?" if close else ""
        listing = f"(known: {', '.join(self.known) or 'none'})"
        super().__init__(f"unknown {kind} {name!r}{hint} {listing}")

    def __reduce__(self) -> tuple[type[UnknownNameError], tuple[str, str, tuple[str, ...]]]:
        """What pickles it: a pool whose worker raised what cannot be read back waits for ever."""
        return type(self), (self.kind, self.name, self.known)


def _similar(name: str, known: Sequence[str]) -> list[str]:
    """What may have been meant: names that are nearly the same, else those that begin so.

    >>> _similar("goood", ["fair", "good"]), _similar("nobody", ["fair", "good"])
    (['good'], [])
    >>> _similar("tok", ["lowercase", "tokenize"])
    ['tokenize']
    """
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.65)
    return close or [one for one in known if name and one.lower().startswith(name)][:3]


class NeedsError(UsageError):
    """A metric requires something the segments do not have."""


class LanguageError(NeedsError):
    """Segments have all that is needed, and are together in a language the metric does not know."""


class DataError(TertiumError):
    """A file or value that cannot be used as it is."""


class LengthError(DataError):
    """Parallel inputs of different length; never cut to the shorter."""

    exit_code = 1


class WriteError(DataError):
    """A file that cannot be written, and why."""


class MissingResourceError(TertiumError):
    """Weights, a package or a dictionary that is not installed; says what would install it."""


class ModelError(TertiumError):
    """A checkpoint that is damaged, incomplete or made for something else."""


class PluginError(TertiumError):
    """What another package registered cannot be used; says which package and why."""


def one_line(value: object, width: int = 40) -> str:
    """A value as an error quotes it: cut, and by its kind where its text has several lines.

    >>> one_line("a cat"), one_line([0] * 9, 12)
    ("'a cat'", '[0, 0, 0, 0,...')
    """
    text = repr(value)
    if "\n" in text:
        return f"a {type(value).__name__}"
    return text if len(text) <= width else f"{text[:width]}..."
