"""Mutants are found, switched on one at a time, and found again after a move."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from tests.mutants.__main__ import choose_tests
from tests.mutants.places import IGNORED_KEYWORDS, Site, find_again, find_sites, insert_switches

CODE = '''
LIMIT = 3


class Counter:
    def count(self, words, limit=5):
        """Count."""
        if words and not len(words) < 2:
            return sum(word != "a" for word in words if word in "abc")
        raise ValueError(0)
'''


def sites_of(code: str, file: str = "data/words.py") -> list[Site]:
    return find_sites(file, ast.parse(code))


def test_mutants_of_a_function() -> None:
    changes = [(site.place.kind, site.place.change) for site in sites_of(CODE)]
    assert changes == [
        ("branch", "words and (not len(words) < 2) to False"),
        ("boolean", "words and (not len(words) < 2) with or"),
        ("boolean", "not len(words) < 2 without not"),
        ("comparison", "len(words) < 2 to len(words) <= 2"),
        ("constant", "2 to 3"),
        ("comparison", "word != 'a' to word == 'a'"),
        ("branch", "word in 'abc' to False"),
        ("comparison", "word in 'abc' to word not in 'abc'"),
    ]
    assert {site.place.function for site in sites_of(CODE)} == {"Counter.count()"}


@pytest.mark.parametrize("keyword", sorted(IGNORED_KEYWORDS))
def test_keywords_without_mutants(keyword: str) -> None:
    assert not sites_of(f"def pairs(a, b):\n    return zip(a, b, {keyword}=True)")


@pytest.mark.parametrize(
    ("number", "words", "expected"),
    [
        (None, "abd", 1),  # only b counts: it is neither a nor out of the alphabet
        (0, "abd", ValueError),
        (1, "a", 0),
        (2, "abd", ValueError),
        (3, "ab", ValueError),
        (4, "ab", ValueError),
        (5, "abd", 1),
        (6, "abd", 0),
        (7, "abdd", 2),
    ],
)
def test_one_mutant_is_on(number: int | None, words: str, expected: Any) -> None:
    tree = ast.parse(CODE)
    for index, site in reversed([*enumerate(find_sites("words.py", tree))]):
        site.insert_switch(index)
    names: dict[str, Any] = {"__mutant__": lambda index: index == number}
    exec(compile(ast.fix_missing_locations(tree), "words.py", "exec"), names)
    if expected is ValueError:
        with pytest.raises(ValueError, match="0"):
            names["Counter"]().count(words)
    else:
        assert names["Counter"]().count(words) == expected


def test_a_place_is_found_again_after_a_move() -> None:
    places = [site.place for site in sites_of(CODE)]
    reformatted = '"""Moved."""\n\n' + CODE.replace("words and not", "words and \\\n  not")
    again = find_again(places, sites_of(reformatted, "text/word_counts.py"))
    assert [site.place.key for _, site in sorted(again.items())] == [p.key for p in places]


def test_a_place_of_a_changed_statement_is_gone() -> None:
    places = [site.place for site in sites_of(CODE)]
    again = find_again(places, sites_of(CODE.replace("< 2", "<= 2")))
    assert sorted(again) == [5, 6, 7]


def test_equal_functions_of_several_files() -> None:
    places = [site.place for site in sites_of(CODE)]
    copies = [*sites_of(CODE, "data/words.py"), *sites_of(CODE, "text/words.py")]
    again = find_again(places, copies)
    assert {site.place.file for site in again.values()} == {"data/words.py"}
    moved = [*sites_of(CODE, "core/words.py"), *sites_of(CODE, "text/letters.py")]
    assert {site.place.file for site in find_again(places, moved).values()} == {"core/words.py"}
    ambiguous = [*sites_of(CODE, "core/a.py"), *sites_of(CODE, "core/b.py")]
    assert not find_again(places, ambiguous)


def test_a_package_with_switches(tmp_path: Path) -> None:
    file = tmp_path / "words.py"
    file.write_text(f'"""Words."""\n\nfrom __future__ import annotations\n{CODE}', "utf-8")
    places = [site.place for site in sites_of(CODE, "words.py")]
    assert insert_switches(tmp_path, places[1:3]) == {0, 1}
    lines = file.read_text("utf-8").splitlines()
    assert lines[2] == "from tertium.mutant_switch import is_on as __mutant__"
    assert sum("__mutant__(0)" in line and "__mutant__(1)" in line for line in lines) == 1


def test_specific_and_fast_tests_come_first() -> None:
    places_of = {"a[1]": {1}, "a[2]": {1}, "b": {1, 2}, "c": {1, 2}, "slow": {1}, "other": {2}}
    seconds = {"a[1]": 2.0, "a[2]": 1.0, "b": 4.0, "c": 3.0, "slow": 60.0, "other": 1.0}
    chosen = choose_tests(1, places_of, seconds, budget=9)
    assert [test for test, _ in chosen] == ["a[2]", "c", "b"]
    assert choose_tests(1, places_of, {"slow": 60.0}, budget=9) == [("slow", 60.0)]
