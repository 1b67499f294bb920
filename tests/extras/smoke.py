"""Smoke test in an environment with some extras: commands work, or name the missing extra.

    python -I smoke.py neural models

A plain script, since pytest is not installed there. A command whose extras are installed must
succeed; any other may fail only with one line that names a missing extra.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import re
import sys
from pathlib import Path

from tertium.cli import main
from tertium.core.registry import METRICS

BUNDLED = "tertium-models"  # the package of bundled models, not an extra
NEURAL = {"neural", "models"}
WORDNET = {"wordnet"}  # not in any extra
ENTAILMENT = {"models", "linguistics", "wordnet", BUNDLED}

# Requirements of each metric; metrics that are not listed have none.
NEEDS = {
    **dict.fromkeys(("bertr", "bertscore", "smd", "sss", "wmd", "wmdo", "sentsim"), NEURAL),
    **{key: {*NEURAL, BUNDLED} for key in ("bilstm", "bilstm-attention", "esim", "svr")},
    **{key: {BUNDLED} for key in ("bleu-r", "nist-r", "ter-r")},
    **{key: {*WORDNET, BUNDLED} for key in ("meteor-r", "mt-r")},
    "meteor": WORDNET,
    **dict.fromkeys(("rte-r", "mt-rte-r"), ENTAILMENT),
    "tertium-multi": {"neural", BUNDLED},
    "tertium-small": {"neural", BUNDLED},
    "tertium-base": {"neural", "mpnet", BUNDLED},  # its weights are not in any extra
}
MPNET_COMMAND = "tertium setup install mpnet"

RECORDS = [
    {"system": system, "src": "Der Hund schläft im Garten.", "mt": text, "ref": reference}
    for reference in ("The dog is sleeping in the garden.", "The old man sold his car today.")
    for system, text in (("a", reference), ("b", "The dog sleeps in a car."))
]
JUDGMENTS = [
    {"mt": f"The dog is {n} years old.", "ref": f"The dog is {n % 7} years old.", "score": n % 7}
    for n in range(24)
]


def commands() -> dict[str, set[str]]:
    """Return command lines and the extras that each of them needs."""
    plain: dict[str, set[str]] = {
        "score -t texts.jsonl -q": set(),
        "score -t texts.jsonl -m chrf -o x.tsv": set(),
        "score -t texts.jsonl -m chrf -o x.jsonl": set(),
        "score -t texts.jsonl -m chrf -o x.parquet": {"frames"},
        "corpus texts.jsonl -m chrf -o scored -q": {"frames"},
        "score -t texts.jsonl -m judge:model=some --dry-run": set(),
        "compare -t texts.jsonl -m chrf bleu": set(),
        "rank -t texts.jsonl": set(),
        "rank -t texts.jsonl -m chrf": set(),
        "report -t texts.jsonl -m chrf -o x.html": set(),
        "explain --text -r Dogs. -t Dog.": ENTAILMENT,
        "explain --text -s Hunde. -t Dogs.": NEURAL,
        "meta --human judgments.jsonl -m chrf": set(),
        "meta --human judgments.jsonl -m chrf -o x.svg": set(),
        "train bleu-r --train judgments.jsonl -o trained -q": set(),
        "train blend -m chrf bleu --train judgments.jsonl -o b -q": set(),
        "score -t texts.jsonl -m blend:metrics=chrf+bleu": set(),
        "train svr --train judgments.jsonl -o svr -q": {"learn", *NEURAL},
        "list": set(),
        "list models": set(),
        "list citations bleu": set(),
        "setup": set(),
        "setup cache": set(),
    }
    unusual = ("blend", "judge", "tertium-multi-adapted")  # need training or a server
    for name in METRICS.builtin:
        if name not in unusual:
            plain[f"score -t texts.jsonl -m {name}"] = NEEDS.get(name, set())
    return plain


def find_problem(command: str, needs: set[str], here: set[str]) -> str:
    """Describe what is wrong with the outcome of a command; empty if nothing."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(command.split())
    except SystemExit as error:
        code = int(error.code or 0)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    lines = [line for line in err.getvalue().splitlines() if "error:" in line]
    if code == 0:
        return ""
    if needs <= here:
        return f"failed although all extras are installed: {err.getvalue().strip()}"
    if len(lines) != 1 or len(err.getvalue().splitlines()) != 1:
        return f"{len(err.getvalue().splitlines())} lines: {err.getvalue().strip()}"
    named_extras = {
        extra
        for extras in re.findall(r"tertium\[([\w,]+)\]", lines[0])
        for extra in extras.split(",")
    }
    named_extras |= {BUNDLED} if f"package {BUNDLED}" in lines[0] else set()
    named_extras |= WORDNET if "tertium setup install wordnet" in lines[0] else set()
    if MPNET_COMMAND in lines[0] and importlib.util.find_spec(
        "torch"
    ):  # also installed by the extra models
        return ""
    if not named_extras or not named_extras <= needs - here:
        return f"names {sorted(named_extras)} where {sorted(needs - here)} is missing: {lines[0]}"
    return ""


def write(file: str, records: list[dict[str, object]]) -> None:
    Path(file).write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")


if __name__ == "__main__":
    write("texts.jsonl", RECORDS)
    write("judgments.jsonl", JUDGMENTS)
    table, here = commands(), {*sys.argv[1:]}
    here |= {BUNDLED} if importlib.util.find_spec("tertium_models") else set()
    problems = {c: find_problem(c, needs, here) for c, needs in table.items()}
    for command, problem in problems.items():
        if problem:
            print(f"tertium {command}: {problem}", file=sys.stderr)
    if any(problems.values()):
        sys.exit(1)
    print(f"{len(table)} commands passed")
