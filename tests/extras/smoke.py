"""Run in an environment with the extras named: every command works, or says which extra it lacks.

    python -I smoke.py neural models

A plain script without pytest, since it runs where only tertium is. A command that has all it needs
must succeed; any other may fail only in one line that names an extra which is not here.
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
from tertium.registry import METRICS

SHIPPED = "tertium-models"  # the distribution of the models that ship, no extra
NEURAL = {"neural", "models"}
WORDS = {"wordnet"}  # which no extra brings
MEANING = {"models", "linguistics", "wordnet", SHIPPED}

# what each metric needs; one that is not named here needs nothing
NEEDS = {
    **dict.fromkeys(("bertr", "bertscore", "smd", "sss", "wmd", "wmdo", "sentsim"), NEURAL),
    **{key: {*NEURAL, SHIPPED} for key in ("bilstm", "bilstm-attention", "esim", "svr")},
    **{key: {SHIPPED} for key in ("bleu-r", "nist-r", "ter-r")},
    **{key: {*WORDS, SHIPPED} for key in ("meteor-r", "mt-r")},
    "meteor": WORDS,
    **dict.fromkeys(("rte-r", "mt-rte-r"), MEANING),
    "tertium-multi": {"neural", SHIPPED},
    "tertium-small": {"neural", SHIPPED},
    "tertium-base": {"neural", "mpnet", SHIPPED},  # whose weights no extra brings
}
INSTALLED_APART = "tertium models install mpnet"

RECORDS = [
    {"system": system, "src": "Der Hund schläft im Garten.", "mt": text, "ref": reference}
    for reference in ("The dog is sleeping in the garden.", "The old man sold his car today.")
    for system, text in (("a", reference), ("b", "The dog sleeps in a car."))
]
JUDGMENTS = [
    {"mt": f"The dog is {n} years old.", "ref": f"The dog is {n % 7} years old.", "score": n % 7}
    for n in range(24)
]


def commands() -> dict[tuple[str, ...], set[str]]:
    """Command lines and the extras that each of them needs."""
    texts = ("-t", "texts.jsonl")
    plain: dict[tuple[str, ...], set[str]] = {
        ("score", *texts, "-q"): set(),
        ("score", *texts, "-m", "chrf", "-o", "x.tsv"): set(),
        ("score", *texts, "-m", "chrf", "-o", "x.jsonl"): set(),
        ("score", *texts, "-m", "chrf", "-o", "x.parquet"): {"frames"},
        ("corpus", "texts.jsonl", "-m", "chrf", "-o", "scored", "-q"): {"frames"},
        ("compare", *texts, "-m", "chrf", "bleu"): set(),
        ("rank", *texts): set(),
        ("rank", *texts, "-m", "chrf"): set(),
        ("report", *texts, "-m", "chrf", "-o", "x.html"): set(),
        ("explain", "--reference-text", "The dog sleeps.", "--translation-text", "A dog."): MEANING,
        ("explain", "--source-text", "Der Hund.", "--translation-text", "A dog."): NEURAL,
        ("meta", "--human", "judgments.jsonl", "-m", "chrf"): set(),
        ("meta", "--human", "judgments.jsonl", "-m", "chrf", "--plot", "x.svg"): set(),
        ("train", "bleu-r", "--train", "judgments.jsonl", "-o", "trained", "-q"): set(),
        ("train", "svr", "--train", "judgments.jsonl", "-o", "svr", "-q"): {"learn", *NEURAL},
        ("list",): set(),
        ("models",): set(),
        ("cache", "info"): set(),
        ("cite", "bleu"): set(),
    }
    scored: dict[tuple[str, ...], set[str]] = {
        ("score", *texts, "-m", name): NEEDS.get(name, set()) for name in METRICS.builtin
    }
    return {**plain, **scored}


def fault_of(command: tuple[str, ...], needs: set[str], here: set[str]) -> str:
    """What is wrong with how a command ends; empty where nothing is."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(list(command))
    except SystemExit as error:
        code = int(error.code or 0)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    lines = [line for line in err.getvalue().splitlines() if "error:" in line]
    if code == 0:
        return ""
    if needs <= here:
        return f"failed with all it needs: {err.getvalue().strip()}"
    if len(lines) != 1 or len(err.getvalue().splitlines()) != 1:
        return f"{len(err.getvalue().splitlines())} lines: {err.getvalue().strip()}"
    named = {
        extra
        for found in re.findall(r"tertium\[([\w,]+)\]", lines[0])
        for extra in found.split(",")
    }
    named |= {SHIPPED} if f"package {SHIPPED}" in lines[0] else set()
    named |= WORDS if "tertium models install wordnet" in lines[0] else set()
    if INSTALLED_APART in lines[0] and importlib.util.find_spec("torch"):  # models bring it, too
        return ""
    if not named or not named <= needs - here:
        return f"names {sorted(named)} where {sorted(needs - here)} is missing: {lines[0]}"
    return ""


def write(file: str, records: list[dict[str, object]]) -> None:
    Path(file).write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")


if __name__ == "__main__":
    write("texts.jsonl", RECORDS)
    write("judgments.jsonl", JUDGMENTS)
    table, here = commands(), {*sys.argv[1:]}
    here |= {SHIPPED} if importlib.util.find_spec("tertium_models") else set()
    faults = {c: fault_of(c, needs, here) for c, needs in table.items()}
    for command, fault in faults.items():
        if fault:
            print(f"tertium {' '.join(command)}: {fault}", file=sys.stderr)
    if any(faults.values()):
        sys.exit(1)
    print(f"{len(table)} commands are sound")
