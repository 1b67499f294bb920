"""Users of sacrebleu, COMET and evaluate change one import, and find the same numbers or keys."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import sacrebleu as peer
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

import tertium
from tertium.compat import comet, evaluate, sacrebleu
from tertium.compat.sacrebleu import metrics
from tertium.data.testset import TestSet
from tertium.errors import DataError, LengthError, UnknownNameError, UsageError

SYSTEMS = ("good", "fair", "poor")


def texts(example: TestSet, system: str) -> tuple[list[str], list[list[str]]]:
    """Hypotheses and reference streams."""
    streams = [list(stream) for stream in zip(*example.references, strict=True)]
    return list(example.systems[system]), streams


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(
    ("function", "options"),
    [
        ("corpus_bleu", {}),
        ("corpus_bleu", {"lowercase": True, "tokenize": "intl", "smooth_method": "floor"}),
        ("corpus_bleu", {"use_effective_order": True}),
        ("corpus_chrf", {}),
        ("corpus_chrf", {"word_order": 2, "remove_whitespace": False}),
        ("corpus_ter", {}),
        ("corpus_ter", {"normalized": True, "case_sensitive": True}),
    ],
)
def test_corpus_functions_equal_sacrebleu(
    example: TestSet, system: str, function: str, options: dict[str, Any]
) -> None:
    hypotheses, streams = texts(example, system)
    theirs = getattr(peer, function)(hypotheses, streams, **options)
    ours = getattr(sacrebleu, function)(hypotheses, streams, **options)
    assert ours.score == theirs.score
    assert str(ours) == str(theirs)
    for name in ("counts", "totals", "precisions", "bp", "sys_len", "ref_len", "num_edits", "beta"):
        if hasattr(theirs, name):
            assert getattr(ours, name) == getattr(theirs, name), name


@pytest.mark.parametrize("function", ["sentence_bleu", "sentence_chrf", "sentence_ter"])
def test_sentence_functions_equal_sacrebleu(example: TestSet, function: str) -> None:
    for hypothesis, references in zip(example.systems["fair"], example.references, strict=True):
        theirs = getattr(peer, function)(hypothesis, list(references))
        ours = getattr(sacrebleu, function)(hypothesis, list(references))
        assert ours.score == theirs.score


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (sacrebleu.BLEU, BLEU),
        (sacrebleu.CHRF, CHRF),
        (sacrebleu.TER, TER),
    ],
)
def test_classes_equal_sacrebleu(example: TestSet, ours: Any, theirs: Any) -> None:
    hypotheses, streams = texts(example, "fair")
    mine, other = ours(), theirs()
    assert (
        mine.corpus_score(hypotheses, streams).score
        == other.corpus_score(hypotheses, streams).score
    )
    assert "nrefs:2" in mine.get_signature()
    one = mine.sentence_score(hypotheses[0], [stream[0] for stream in streams])
    assert one.score == other.sentence_score(hypotheses[0], [s[0] for s in streams]).score
    kept = ours(references=streams).corpus_score(hypotheses, None)
    assert kept.score == mine.corpus_score(hypotheses, streams).score


def test_streams_may_lack_references() -> None:
    streams: list[list[str | None]] = [["a b c d", "x y z w"], ["a b c e", None]]
    hypotheses = ["a b c e", "x y z"]
    assert sacrebleu.corpus_bleu(hypotheses, streams).score == pytest.approx(
        BLEU().corpus_score(hypotheses, streams).score
    )


@pytest.mark.parametrize("function", ["sentence_bleu", "sentence_chrf", "sentence_ter"])
def test_a_sentence_may_lack_a_reference_and_a_score_shows_itself(function: str) -> None:
    given: Any = ("the cat sat", ["the cat sat down", None])
    ours, theirs = getattr(sacrebleu, function)(*given), getattr(peer, function)(*given)
    assert (ours.score, repr(ours)) == (theirs.score, repr(theirs))


def test_what_sacrebleu_has_and_we_do_not_is_refused() -> None:
    with pytest.raises(UsageError, match="confidence=1000"):
        sacrebleu.BLEU().corpus_score(["a"], [["a"]], n_bootstrap=100)
    with pytest.raises(UsageError, match="no references"):
        sacrebleu.BLEU().corpus_score(["a"], None)
    with pytest.raises(UsageError, match="wrap it"):
        sacrebleu.sentence_bleu("a", "a")
    with pytest.raises(UsageError, match="score something first"):
        sacrebleu.BLEU().get_signature()
    with pytest.raises(LengthError):
        sacrebleu.corpus_bleu(["a", "b"], [["a"]])
    with pytest.raises(AttributeError, match="precisions"):
        _ = sacrebleu.corpus_ter(["a"], [["a"]]).precisions


def test_a_score_is_copied_and_sent_to_processes() -> None:
    score = sacrebleu.corpus_bleu(["the cat sat"], [["the cat sat down"]])
    for other in (copy.copy(score), copy.deepcopy(score), pickle.loads(pickle.dumps(score))):
        assert other == score
        assert other.precisions == score.precisions


def test_metrics_are_where_sacrebleu_has_them() -> None:
    assert (metrics.BLEU, metrics.CHRF, metrics.TER) == (
        sacrebleu.BLEU,
        sacrebleu.CHRF,
        sacrebleu.TER,
    )


def test_references_that_are_no_streams_are_refused() -> None:
    # sacrebleu reads a flat list as two streams of letters
    with pytest.raises(UsageError, match=r"one list for each set .* give \[references\]"):
        sacrebleu.corpus_bleu(["a", "b"], ["a", "b"])  # type: ignore[list-item]
    with pytest.raises(UsageError, match=r"give \[references\]"):
        sacrebleu.CHRF(references=["a"]).corpus_score(["a"], None)  # type: ignore[list-item]


def test_a_missing_hypothesis_is_named() -> None:
    lacking: Any = ["a", None]
    with pytest.raises(DataError, match="hypotheses: hypothesis 2 is None"):
        sacrebleu.corpus_bleu(lacking, [["a", "b"]])
    with pytest.raises(DataError, match="the hypothesis of a segment is None"):
        sacrebleu.sentence_bleu(lacking[1], ["a"])
    for name in ("chrf", "nist"):
        with pytest.raises(DataError, match="predictions: prediction 2 is None"):
            evaluate.load(name).compute(predictions=lacking, references=["a", "b"])
    with pytest.raises(DataError, match="item 2: no translation"):
        comet.load_from_checkpoint("chrf").predict([DATA[0], {**DATA[1], "mt": None}], gpus=0)


DATA: list[dict[str, Any]] = [
    {"src": "Hallo Welt", "mt": "hello world", "ref": "hello world"},
    {"src": "Guten Tag", "mt": "good evening", "ref": "good day"},
]


@pytest.mark.parametrize("spec", ["chrf", "bertscore:encoder=toy"])
def test_comet_predicts(spec: str) -> None:
    model = comet.load_from_checkpoint(comet.download_model(spec))
    found = model.predict(DATA, batch_size=8, gpus=0, progress_bar=False)
    expected = tertium.load_metric(spec).predict(DATA)
    assert found.scores == expected.scores == found["scores"]
    assert found.system_score == expected.system_score == found["system_score"]


def test_comet_is_told_of_an_accelerator_that_is_none_here() -> None:
    model = comet.load_from_checkpoint("chrf")
    assert model.predict(DATA, accelerator="cpu").scores == model.predict(DATA).scores
    with pytest.raises(UnknownNameError, match="unknown accelerator 'tpu'"):
        model.predict(DATA, accelerator="tpu")


def test_comets_own_checkpoints_are_not_stood_in_for() -> None:
    with pytest.raises(UsageError, match="does not carry those"):
        comet.download_model("Unbabel/wmt22-comet-da")
    with pytest.raises(UnknownNameError, match="did you mean 'chrf'"):
        comet.download_model("chrff")
    model = comet.load_from_checkpoint("chrf")
    with pytest.raises(UsageError, match="one GPU at most"):
        model.predict(DATA, gpus=4)
    with pytest.raises(UsageError, match="mc_dropout"):
        model.predict(DATA, mc_dropout=30)
    with pytest.raises(UsageError, match="no hparams"):
        comet.load_from_checkpoint("chrf", hparams="x")


def test_evaluate_gives_the_numbers_of_sacrebleu(example: TestSet) -> None:
    hypotheses, streams = texts(example, "fair")
    rows = [list(row) for row in example.references]
    bleu = evaluate.load("sacrebleu").compute(predictions=hypotheses, references=rows)
    theirs = peer.corpus_bleu(hypotheses, streams)
    assert bleu["score"] == theirs.score
    assert set(bleu) == {"score", "counts", "totals", "precisions", "bp", "sys_len", "ref_len"}
    chrf = evaluate.load("chrf").compute(predictions=hypotheses, references=rows, word_order=2)
    assert chrf["score"] == CHRF(word_order=2).corpus_score(hypotheses, streams).score
    assert chrf["word_order"] == 2
    ter = evaluate.load("ter").compute(
        predictions=hypotheses, references=rows, ignore_punct=True, case_sensitive=True
    )
    peer_ter = TER(no_punct=True, case_sensitive=True).corpus_score(hypotheses, streams)
    assert (ter["score"], ter["num_edits"]) == (peer_ter.score, peer_ter.num_edits)


def test_evaluate_bertscore_and_comet_have_their_keys() -> None:
    hypotheses, references = ["the cat sat", "a dog"], ["the cat sat down", "the dog"]
    found = evaluate.load("bertscore").compute(
        predictions=hypotheses, references=references, model_type="toy"
    )
    scores = tertium.load_metric("bertscore:encoder=toy").compute(
        predictions=hypotheses, references=references
    )
    assert found["f1"] == pytest.approx(scores["scores"])
    assert len(found["precision"]) == len(found["recall"]) == 2
    assert "BERTScore" in found["hashcode"]
    module = evaluate.load("comet", "chrf")
    done = module.compute(predictions=hypotheses, references=references, sources=["x", "y"], gpus=0)
    assert set(done) == {"mean_score", "scores"}


def test_evaluate_takes_rows_one_by_one_and_any_metric() -> None:
    module = evaluate.load("chrf")
    module.add(prediction="a cat sat", reference="a cat sat")
    module.add_batch(predictions=["a dog"], references=["a cat"])
    whole = module.compute()
    direct = evaluate.load("chrf").compute(
        predictions=["a cat sat", "a dog"], references=["a cat sat", "a cat"]
    )
    assert whole == direct
    assert evaluate.load("nist").compute(predictions=["a b"], references=[["a b"]])["score"] > 0


def test_evaluate_scores_what_was_added_together_with_what_is_given() -> None:
    module = evaluate.load("chrf")
    module.add(prediction="a cat sat", reference="a cat sat")
    both = module.compute(predictions=["a dog"], references=["a cat"])
    assert both == evaluate.load("chrf").compute(
        predictions=["a cat sat", "a dog"], references=["a cat sat", "a cat"]
    )
    module.add(prediction="a cat sat", reference="a cat sat")
    assert module.compute(predictions=None, references=None)["score"] == 100


def test_what_evaluate_has_and_we_do_not_is_refused() -> None:
    for name in evaluate.REFUSED:
        with pytest.raises(UsageError, match="not stood in for"):
            evaluate.load(name)
    with pytest.raises(UsageError, match="no configurations"):
        evaluate.load("chrf", "large")
    with pytest.raises(UsageError, match="unexpected keyword"):
        evaluate.load("ter").compute(predictions=["a"], references=["a"], no_such_option=1)
    with pytest.raises(LengthError, match="2 references for 1 predictions"):
        evaluate.load("chrf").compute(predictions=["a"], references=["a", "b"])
    with pytest.raises(LengthError, match="same number"):
        evaluate.load("chrf").compute(predictions=["a", "b"], references=[["a"], ["b", "c"]])
    with pytest.raises(UsageError, match="lang='en'"):
        evaluate.load("bertscore").compute(predictions=["a"], references=["a"])
    with pytest.raises(UsageError, match="no predictions"):
        evaluate.load("chrf").compute(references=["a"])
    with pytest.raises(UsageError, match=r"no references; give references=\[...\]"):
        evaluate.load("chrf").compute(predictions=["a"])
    with pytest.raises(UsageError, match="no references"):
        evaluate.load("sacrebleu").compute(predictions=["a"], references=None)
    with pytest.raises(UsageError, match="no sources"):
        evaluate.load("comet", "chrf").compute(predictions=["a"], references=["a"])
    with pytest.raises(UsageError, match="a model of Hugging Face is 'hf/roberta-large'"):
        evaluate.load("bertscore").compute(
            predictions=["a"], references=["a"], model_type="roberta-large"
        )
