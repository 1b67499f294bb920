"""sacrebleu's own tests, with `sacrebleu` replaced by `tertium.compat.sacrebleu` in the imports.

The tests are not part of this repository; they are looked for where `tests/data/
test_published_files.py` looks for samples. Tests that download test sets are not run.
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

SUITE = SAMPLES / "sacrebleu-tests" / "sacrebleu"
# modules with their number of tests that need no network
MODULES = {
    "test_api": 3,
    "test_bleu": 27,
    "test_chrf": 25,
    "test_sentence_bleu": 30,
    "test_ter": 7,
    "test_tokenizer_ter": 11,
}
NEED_NETWORK = ("test_api_get_source", "test_api_get_reference")  # and all tests of test_dataset
IMPORTS = {
    r"^import sacrebleu$": "from tertium.compat import sacrebleu",
    r"^(from|import) sacrebleu\.": r"\1 tertium.compat.sacrebleu.",
}

pytestmark = pytest.mark.skipif(not SUITE.is_dir(), reason="needs the tests of sacrebleu")


def run_suite(folder: Path, modules: list[str]) -> str:
    """Run test modules of sacrebleu on tertium's classes and return pytest's summary."""
    shutil.copytree(SUITE, folder, dirs_exist_ok=True)
    for file in (folder / "test").glob("*.py"):
        text = file.read_text()
        for pattern, replacement in IMPORTS.items():
            text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
        file.write_text(text)
    paths = [f"test/{module}.py" for module in modules]
    selection = " and ".join(f"not {name}" for name in NEED_NETWORK)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", selection, *paths]
    environment = {**os.environ, "SACREBLEU": str(folder / "home")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:]
    return done.stdout.splitlines()[-1]


def test_offline_tests_of_sacrebleu_pass(tmp_path: Path) -> None:
    summary = run_suite(tmp_path, list(MODULES))
    assert f" {sum(MODULES.values())} passed" in summary


@pytest.mark.slow  # 360,000 resamples of 3,000 segments
def test_significance_tests_of_sacrebleu_pass(tmp_path: Path) -> None:
    assert " 30 passed" in run_suite(tmp_path, ["test_significance"])
