"""BERTScore and BERTR: equal to the bert-score package; idf, rescaling, several references."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from tertium.core.errors import DataError, UsageError
from tertium.core.segment import Segment
from tertium.encoders.toy_encoder import ToyEncoder
from tertium.metrics import load_metric
from tertium.metrics.embedding.bertscore import BERTR, BERTScore, DocumentFrequencies

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden" / "embedding_metrics.json").read_text(encoding="utf-8")
)
PAIRS = [Segment(hypothesis, None, (reference,)) for hypothesis, reference in GOLDEN["pairs"]]


@pytest.mark.parametrize("idf", [False, True])
def test_values_equal_the_bert_score_package(idf: bool) -> None:
    scores = BERTScore(encoder="minilm@4", idf=idf).score(PAIRS)
    np.testing.assert_allclose(
        scores.statistics[:, :3], GOLDEN["idf" if idf else "plain"], atol=1e-5
    )


def test_best_of_several_references_equals_the_package() -> None:
    for case in GOLDEN["several"]:
        segment = Segment(case["hypothesis"], None, tuple(case["references"]))
        values = BERTScore(encoder="minilm@4").score([segment]).statistics[0, :3]
        np.testing.assert_allclose(values, case["best"], atol=1e-5)


def test_f1_of_unrelated_texts_has_no_pole() -> None:
    """Precision just above 0 and recall just below would give an F1 of -1,227 or 5."""
    words = "cat blue null ♥ justice why sings photon unto Tuesday".split()
    texts = [*words, *(f"{a} {b}" for a in words for b in words)]
    segments = [Segment(a, None, (b,)) for a in texts for b in texts[::3]]
    precision, recall, f1, _ = BERTScore(encoder="toy").score(segments).statistics.T
    has_opposite_signs = precision * recall <= 0
    assert 100 < has_opposite_signs.sum() < len(segments) / 2
    assert (f1[has_opposite_signs] == 0).all()
    least, most = np.minimum(precision, recall), np.maximum(precision, recall)
    assert ((least <= f1 + 1e-12) & (f1 <= most + 1e-12)).all()
    np.testing.assert_array_equal(
        f1[~has_opposite_signs],
        (2 * precision * recall / (precision + recall))[~has_opposite_signs],
    )


def test_inverse_document_frequencies() -> None:
    texts = ["the cat", "the dog", "the dog"]
    values = DocumentFrequencies.count(ToyEncoder(), texts)
    assert values.weight("the") == 0.0  # in all three: log(4 / 4)
    assert values.weight("dog") == pytest.approx(math.log(4 / 3))
    assert values.weight("cat") == pytest.approx(math.log(4 / 2))
    assert values.weight("unseen") == pytest.approx(math.log(4))
    assert values.weight("") == 0.0


def test_idf_from_a_file_makes_scores_independent_of_other_segments(tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("the cat\nthe dog\na bird\n", encoding="utf-8")
    metric = BERTScore(encoder="toy", idf=True, idf_texts=str(texts))
    assert not metric.reads_corpus
    assert load_metric(metric.spec) == metric
    segment = Segment("the cat", None, ("the dog",))
    other = Segment("a bird sang", None, ("a bird sang",))
    assert metric.score([segment]).segments[0] == metric.score([segment, other]).segments[0]


def test_idf_file_is_split_at_newlines_only(tmp_path: Path) -> None:
    """U+2028 and similar characters do not end a line."""
    texts, segment = tmp_path / "texts.txt", Segment("the cat sat", None, ("the dog sat down",))
    metric = BERTScore(encoder="toy", idf=True, idf_texts=str(texts))
    scores = []
    for end in (" ", "\u2028", "\x0c", "\x85"):
        texts.write_text(f"the cat{end}the dog\r\na bird sat\n", encoding="utf-8", newline="")
        scores.append(metric.score([segment]).system)
    assert len(set(scores)) == 1
    texts.write_bytes("déjà vu\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"texts\.txt.*UTF-8"):
        metric.score([segment])
    texts.write_bytes(b"")
    with pytest.raises(DataError, match="is empty"):
        metric.score([segment])


def test_idf_texts_must_exist_and_need_idf(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no effect without idf"):
        BERTScore(idf_texts="x.txt")
    metric = BERTScore(encoder="toy", idf=True, idf_texts=str(tmp_path / "absent.txt"))
    with pytest.raises(DataError, match=r"absent\.txt"):
        metric.sentence_score("a", ["b"])


def test_rescaling_needs_a_stored_baseline() -> None:
    with pytest.raises(UsageError, match="baseline"):
        BERTScore(encoder="toy", rescale=True).sentence_score("a", ["b"])


def test_bertr_is_recall_without_special_tokens() -> None:
    recall = BERTScore(encoder="minilm@4", special=False, measure="recall").score(PAIRS).segments
    np.testing.assert_array_equal(BERTR(encoder="minilm@4").score(PAIRS).segments, recall)
