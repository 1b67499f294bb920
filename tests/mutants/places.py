"""Places of small faults in the code: chosen at random, found again in later commits, switched on.

A place is described by its function, kind and statement, not by its line. It is found again in a
later commit if the function moves; if the function or statement changed, the place is gone.
"""

from __future__ import annotations

import ast
import copy
import json
import random
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

PLACES = Path(__file__).parent / "places.jsonl"
SEED, COUNT = 20_260_601, 300
KINDS = ("comparison", "constant", "branch", "boolean")
SWAPS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Code that runs at import, and code whose faults no test should notice.
IGNORED_NODES = (ast.JoinedStr, ast.pattern, ast.arguments, ast.Raise, ast.Assert)
IGNORED_FIELDS = {"annotation", "returns", "decorator_list", "type_params"}
IGNORED_KEYWORDS = {"strict"}  # zip(strict=True) only guards against mistakes


@dataclass(frozen=True)
class Place:
    """One mutant of one expression, as far as it does not depend on lines and files."""

    file: str
    function: str
    kind: str
    change: str
    statement: str
    ordinal: int = 0  # among equal places of the function

    @property
    def key(self) -> tuple[str, ...]:
        return self.function, self.kind, self.change, self.statement, str(self.ordinal)

    @property
    def package(self) -> str:
        """The package, with the family for metrics."""
        parts = Path(self.file).parts[:-1]
        return "/".join(parts[: 2 if parts[:1] == ("metrics",) else 1])


@dataclass(frozen=True)
class Site:
    """A place in a parsed file, where its expression is, and the node that replaces it."""

    place: Place
    parent: ast.AST
    field: str
    index: int | None
    build: Callable[[], ast.expr]

    def insert_switch(self, number: int) -> None:
        """Replace the expression by `mutant if __mutant__(number) else expression`."""
        current = getattr(self.parent, self.field)
        original = current if self.index is None else current[self.index]
        call = ast.Call(ast.Name("__mutant__", ast.Load()), [ast.Constant(number)], [])
        switch = ast.IfExp(call, self.build(), original)
        if self.index is None:
            setattr(self.parent, self.field, switch)
        else:
            current[self.index] = switch


def find_sites(file: str, tree: ast.Module) -> list[Site]:
    """Return all mutants of all functions, outer expressions before inner ones."""
    sites: list[Site] = []
    counts: Counter[Place] = Counter()
    for site in _walk(file, "", "", tree):
        ordinal = counts[site.place]
        counts[site.place] += 1
        place = Place(**{**asdict(site.place), "ordinal": ordinal})
        sites.append(Site(place, site.parent, site.field, site.index, site.build))
    return sites


def _walk(file: str, function: str, statement: str, parent: ast.AST) -> Iterator[Site]:
    for name, value in ast.iter_fields(parent):
        if name in IGNORED_FIELDS:
            continue
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(node, ast.AST) or isinstance(node, IGNORED_NODES):
                continue
            if isinstance(node, ast.keyword) and node.arg in IGNORED_KEYWORDS:
                continue
            inner, text = function, statement
            if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                inner = f"{function}.{node.name}".lstrip(".")
                inner += "()" if isinstance(node, FUNCTIONS) else ""
            elif isinstance(node, ast.stmt):
                text = ast.unparse(node).partition("\n")[0]
            elif isinstance(node, ast.expr) and function.endswith(")"):
                is_condition = (isinstance(parent, ast.If | ast.IfExp) and name == "test") or (
                    isinstance(parent, ast.comprehension) and name == "ifs"
                )
                for kind, change, build in mutate(node, is_condition=is_condition):
                    place = Place(file, function, kind, change, text)
                    yield Site(place, parent, name, index, build)
            yield from _walk(file, inner, text, node)


def mutate(
    node: ast.expr, *, is_condition: bool = False
) -> Iterator[tuple[str, str, Callable[[], ast.expr]]]:
    """Yield kind, description and builder of each mutant of an expression without its parts."""
    text = ast.unparse(node)
    if is_condition:
        yield "branch", f"{text} to False", lambda: ast.Constant(False)
    if isinstance(node, ast.Compare):
        for number, operator in enumerate(node.ops):
            swap = SWAPS[type(operator)]()

            def compare(number: int = number, swap: ast.cmpop = swap) -> ast.expr:
                mutant = copy.deepcopy(node)
                mutant.ops[number] = swap
                return mutant

            yield "comparison", f"{text} to {ast.unparse(compare())}", compare
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        value = not node.value if isinstance(node.value, bool) else node.value + 1
        yield "constant", f"{text} to {value}", lambda: ast.Constant(value)
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        change = f"{text} with {type(other).__name__.lower()}"
        yield "boolean", change, lambda: ast.BoolOp(other, copy.deepcopy(node.values))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "boolean", f"{text} without not", lambda: copy.deepcopy(node.operand)


def parse(package: Path) -> dict[str, ast.Module]:
    """Return the modules of a package by file."""
    return {
        path.relative_to(package).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(package.rglob("*.py"))
    }


def choose_places(package: Path, count: int = COUNT) -> list[Place]:
    """Choose places at random, equally many of each kind, and return them in random order."""
    generator, trees = random.Random(SEED), parse(package)
    places = [site.place for file, tree in trees.items() for site in find_sites(file, tree)]
    sample: list[Place] = []
    for kind in KINDS:
        of_kind = [place for place in places if place.kind == kind]
        sample += generator.sample(of_kind, count // len(KINDS))
    return generator.sample(sample, len(sample))


def read_places() -> list[Place]:
    return [Place(**json.loads(line)) for line in PLACES.read_text("utf-8").splitlines()]


def find_again(places: Iterable[Place], sites: Iterable[Site]) -> dict[int, Site]:
    """Return the sites of places by number, without places that are gone.

    A function that is in several files is the one in the same file, else in a file of the same
    name; if there is none, the place is gone.
    """
    by_key = defaultdict(list)
    for site in sites:
        by_key[site.place.key].append(site)
    again = {}
    for number, place in enumerate(places):
        candidates = by_key[place.key]
        for is_same in (lambda a, b: a == b, lambda a, b: Path(a).name == Path(b).name):
            same = [site for site in candidates if is_same(site.place.file, place.file)]
            candidates = same or candidates
        if len(candidates) == 1:
            again[number] = candidates[0]
    return again


def insert_switches(package: Path, places: list[Place]) -> set[int]:
    """Compile the mutants into a package, and return the numbers of places that are not gone."""
    trees = parse(package)
    sites = [site for file, tree in trees.items() for site in find_sites(file, tree)]
    again = find_again(places, sites)
    numbers = {id(site): number for number, site in again.items()}
    for site in reversed(sites):  # inner expressions first
        if id(site) in numbers:
            site.insert_switch(numbers[id(site)])
    for file in {site.place.file for site in again.values()}:
        body = trees[file].body
        line = ast.parse("from tertium.mutant_switch import is_on as __mutant__").body
        body[_count_first_lines(body) : 0] = line
        (package / file).write_text(ast.unparse(ast.fix_missing_locations(trees[file])), "utf-8")
    shutil.copy(Path(__file__).parent / "switch.py", package / "mutant_switch.py")
    return {*again}


def _count_first_lines(body: list[ast.stmt]) -> int:
    """Return how many statements are the docstring and imports from __future__."""
    return sum(
        isinstance(node, ast.Expr) or getattr(node, "module", "") == "__future__"
        for node in body[:2]
    )
