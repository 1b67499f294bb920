"""The own tests of sacrebleu and bert-score, with `tertium.compat` in their imports.

The tests are not part of this repository; they are looked for where `tests/data/
test_published_files.py` looks for samples. Tests that need the network are not run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.data.test_published_files import SAMPLES

SUITES = SAMPLES / "sacrebleu-tests"
# test modules of sacrebleu with their number of tests that need no network
SACREBLEU_MODULES = {
    "test_api": 3,
    "test_bleu": 27,
    "test_chrf": 25,
    "test_sentence_bleu": 30,
    "test_ter": 7,
    "test_tokenizer_ter": 11,
}
# They download test sets, as do all tests of test_dataset.
SACREBLEU_NETWORK_TESTS = ("test_api_get_source", "test_api_get_reference")
# The other tests of bert-score download roberta-large or compare with its scores.
BERT_SCORE_TESTS = ("test_multi_refs", "test_multi_refs_working")
IMPORTS = {
    r"^import (sacrebleu|bert_score)$": r"from tertium.compat import \1",
    r"^(from|import) sacrebleu\.": r"\1 tertium.compat.sacrebleu.",
}

pytestmark = pytest.mark.skipif(not SUITES.is_dir(), reason="needs the tests of other packages")


def run_suite(package: str, folder: Path, *arguments: str) -> str:
    """Run tests of a package on its equivalent in `tertium.compat`; return pytest's summary."""
    shutil.copytree(SUITES / package, folder, dirs_exist_ok=True)
    for file in folder.rglob("*.py"):
        text = file.read_text()
        for pattern, replacement in IMPORTS.items():
            text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
        file.write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "SACREBLEU": str(folder / "home")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:]
    return done.stdout.splitlines()[-1]


def test_offline_tests_of_sacrebleu_pass(tmp_path: Path) -> None:
    paths = [f"test/{module}.py" for module in SACREBLEU_MODULES]
    selection = " and ".join(f"not {name}" for name in SACREBLEU_NETWORK_TESTS)
    summary = run_suite("sacrebleu", tmp_path, "-k", selection, *paths)
    assert f" {sum(SACREBLEU_MODULES.values())} passed" in summary


@pytest.mark.slow  # 360,000 resamples of 3,000 segments
def test_significance_tests_of_sacrebleu_pass(tmp_path: Path) -> None:
    assert " 30 passed" in run_suite("sacrebleu", tmp_path, "test/test_significance.py")


def test_offline_tests_of_bert_score_pass(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    summary = run_suite("bert_score", tmp_path, "-k", " or ".join(BERT_SCORE_TESTS), "tests")
    assert " 4 passed" in summary
