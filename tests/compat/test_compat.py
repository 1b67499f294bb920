"""Drop-in interfaces of sacrebleu, COMET, evaluate and bert-score."""

from __future__ import annotations

import copy
import inspect
import pickle
import pkgutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import sacrebleu as peer
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

import tertium
from tertium.cli import main
from tertium.compat import bert_score, comet, evaluate, sacrebleu
from tertium.compat.sacrebleu import metrics
from tertium.core.errors import (
    DataError,
    LengthError,
    TertiumError,
    UnknownNameError,
    UsageError,
)
from tertium.core.runtime import current_runtime
from tertium.data.testset import TestSet
from tertium.encoders.encoder import EncoderName
from tertium.encoders.weight_files import locate_weights

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
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
        ("corpus_bleu", {"smooth_method": "add-k", "smooth_value": 0.5}),
        ("raw_corpus_bleu", {}),
        ("raw_corpus_bleu", {"smooth_value": 0.5}),
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
    assert type(ours) is type(theirs)
    assert repr(vars(ours)) == repr(vars(theirs))  # whole numbers are whole here, too


def test_all_names_and_arguments_of_sacrebleu_exist() -> None:
    for name in peer.__all__:
        ours, theirs = getattr(sacrebleu, name), getattr(peer, name)
        if callable(theirs) and ours is not theirs:
            arguments, expected = (inspect.signature(f).parameters.values() for f in (ours, theirs))
            assert [(p.name, p.default) for p in arguments] == [
                (p.name, p.default) for p in expected
            ]


def test_all_modules_of_sacrebleu_exist() -> None:
    modules = [m.name for m in pkgutil.walk_packages(peer.__path__, "sacrebleu.")]
    internal = ("sacrebleu.sacrebleu", "sacrebleu.dataset.")  # the command line, readers of files
    for name in modules:
        if not name.startswith(internal) and "__main__" not in name:
            ours, theirs = import_module(f"tertium.compat.{name}"), import_module(name)
            own = [n for n, value in vars(theirs).items() if is_defined_in(value, name)]
            assert [n for n in own if not hasattr(ours, n) and n[0] != "_"] == []
    tokenizers = import_module("tertium.compat.sacrebleu.tokenizers")
    assert type(sacrebleu.BLEU().tokenizer) is tokenizers.tokenizer_13a.Tokenizer13a


def is_defined_in(value: object, module: str) -> bool:
    """Whether a value of a module is a class or function of that module, or a part of it."""
    return getattr(value, "__module__", getattr(value, "__package__", None)) == module


@pytest.mark.parametrize(
    ("function", "options"),
    [
        ("sentence_bleu", {}),
        ("sentence_bleu", {"smooth_method": "floor", "tokenize": "char"}),
        ("sentence_bleu", {"use_effective_order": False, "lowercase": True}),
        ("sentence_chrf", {}),
        ("sentence_chrf", {"word_order": 2, "eps_smoothing": True}),
        ("sentence_ter", {}),
    ],
)
def test_sentence_functions_equal_sacrebleu(
    example: TestSet, function: str, options: dict[str, Any]
) -> None:
    fair = example.systems["fair"]
    rows = [*zip(fair, example.references, strict=True), ("", ("a",)), ("a", ("", "b"))]
    first = zip(*example.references[:5], strict=True)  # sacrebleu's TER is slow on long texts
    rows.append((" ".join(fair[:5]), tuple(map(" ".join, first))))
    for hypothesis, references in rows:
        theirs = getattr(peer, function)(hypothesis, list(references), **options)
        ours = getattr(sacrebleu, function)(hypothesis, list(references), **options)
        assert repr(vars(ours)) == repr(vars(theirs))


def test_scorer_cache_distinguishes_settings() -> None:
    arguments = ("The cat sat", ["the cat sat down"])
    expected = {low: peer.sentence_bleu(*arguments, lowercase=low).score for low in (False, True)}
    assert expected[False] != expected[True]
    for low in (False, True, False):
        assert sacrebleu.sentence_bleu(*arguments, lowercase=low).score == expected[low]
    with pytest.raises(UsageError, match="lowercase=1: expected True or False"):
        sacrebleu.sentence_bleu(*arguments, lowercase=1)  # type: ignore[arg-type]


def test_signature_counts_references_of_the_last_sentence() -> None:
    scorer = sacrebleu.BLEU(effective_order=True)
    for references in (["a"], ["a", None, "b"]):
        scorer.sentence_score("a", references)
        present = [text for text in references if text is not None]
        assert f"nrefs:{len(present)}|" in str(scorer.get_signature())


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("BLEU", {"smooth_method": "floor", "lowercase": True}),
        ("CHRF", {"word_order": 2}),
        ("TER", {"normalized": True}),
    ],
)
def test_signatures_equal_sacrebleu_and_name_tertium(
    example: TestSet, name: str, settings: dict[str, Any]
) -> None:
    hypotheses, streams = texts(example, "fair")
    mine, other = getattr(sacrebleu, name)(**settings), getattr(peer, name)(**settings)
    ours, theirs = (m.corpus_score(hypotheses, streams, n_bootstrap=40) for m in (mine, other))
    signature, expected = mine.get_signature(), other.get_signature()
    own = f"tertium:{tertium.__version__}|"
    assert own in str(signature)
    assert str(signature).replace(own, "") == str(expected)
    assert signature.format(short=True).replace(own, "") == expected.format(short=True)
    assert signature.info == expected.info | {"tertium": tertium.__version__}
    signature.update("test", "mine")
    assert "test:mine" in str(signature)
    for form in ({}, {"score_only": True}, {"is_json": True}):
        arguments = {"signature": str(expected), **form}
        assert ours.format(**arguments) == theirs.format(**arguments), "with its interval"
    stored = getattr(sacrebleu, name)(references=streams, **settings).get_signature()
    assert "nrefs:2" in str(stored)


def test_signatures_have_settings_that_sacrebleu_omits() -> None:
    scorers = {"order:2": sacrebleu.BLEU(max_ngram_order=2), "beta:3": sacrebleu.CHRF(beta=3)}
    for field, scorer in scorers.items():
        scorer.corpus_score(["a b"], [["a b"]])
        assert field in str(scorer.get_signature())
        assert field in scorer.get_signature().format(short=True)


def test_intervals_work_with_zero_scores() -> None:
    # of 20 samples some have a score of 0, which statistics.mean does not add to numpy's
    streams = [["the cat sat on the mat", "x"]]
    score = sacrebleu.CHRF().corpus_score(["the cat sat on a mat", "y"], streams, n_bootstrap=20)
    assert "(μ = " in str(score)


@pytest.mark.parametrize("kind", ["ar", "bs"])
def test_paired_tests_of_sacrebleu_accept_the_classes(example: TestSet, kind: str) -> None:
    named_outputs = [(system, texts(example, system)[0]) for system in SYSTEMS]
    _, streams = texts(example, "good")
    ours, theirs = (
        sacrebleu.significance.PairedTest(
            named_outputs, {n: getattr(tool, n)() for n in metrics.METRICS}, streams, kind, 100
        )()[1]
        for tool in (sacrebleu, peer)
    )
    assert ours.keys() == theirs.keys()
    for name in ours.keys() - {"System"}:
        for one, other in zip(ours[name], theirs[name], strict=True):
            assert (one.score, one.p_value) == (other.score, other.p_value)


def test_tokenized_hypotheses_cause_a_warning_unless_forced(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tokenized = ["a b c d ."] * 100
    sacrebleu.corpus_bleu(tokenized, [tokenized], force=True)
    sacrebleu.corpus_bleu(tokenized[:99], [tokenized[:99]])
    sacrebleu.corpus_chrf(tokenized, [tokenized])
    assert not caplog.records
    sacrebleu.corpus_bleu(tokenized, [tokenized])
    assert "100 hypotheses end in a tokenized period" in caplog.text


def test_streams_may_have_missing_references() -> None:
    streams: list[list[str | None]] = [["a b c d", "x y z w"], ["a b c e", None]]
    hypotheses = ["a b c e", "x y z"]
    assert sacrebleu.corpus_bleu(hypotheses, streams).score == pytest.approx(
        BLEU().corpus_score(hypotheses, streams).score
    )


@pytest.mark.parametrize("function", ["sentence_bleu", "sentence_chrf", "sentence_ter"])
def test_sentence_may_have_a_missing_reference(function: str) -> None:
    arguments: Any = ("the cat sat", ["the cat sat down", None])
    ours, theirs = getattr(sacrebleu, function)(*arguments), getattr(peer, function)(*arguments)
    assert (ours.score, repr(ours)) == (theirs.score, repr(theirs))


def test_scores_can_be_copied_and_pickled() -> None:
    score = sacrebleu.corpus_bleu(["the cat sat"], [["the cat sat down"]])
    for other in (copy.copy(score), copy.deepcopy(score), pickle.loads(pickle.dumps(score))):
        assert vars(other) == vars(score)


DATA: list[dict[str, Any]] = [
    {"src": "Hallo Welt", "mt": "hello world", "ref": "hello world"},
    {"src": "Guten Tag", "mt": "good evening", "ref": "good day"},
]


@pytest.mark.parametrize("spec", ["chrf", "bertscore:encoder=toy"])
def test_comet_predicts(spec: str) -> None:
    model = comet.load_from_checkpoint(comet.download_model(spec))
    result = model.predict(DATA, batch_size=8, gpus=0, progress_bar=False)
    expected = tertium.load_metric(spec).predict(DATA)
    assert result.scores == expected.scores == result["scores"]
    assert result.system_score == expected.system_score == result["system_score"]


def test_prediction_supports_all_access_styles() -> None:
    model = comet.load_from_checkpoint("chrf").eval()
    assert model.requires_references()
    output = model.predict(DATA, gpus=0)
    assert output[0] == output.scores == output["scores"] == output.to_tuple()[0]
    assert output[:2] == (output.scores, output.system_score)
    assert [*output] == ["scores", "system_score"], "its keys, as COMET has them"
    assert not hasattr(output, "metadata")
    with pytest.raises(AttributeError, match="no metadata: only metrics that mark err"):
        output.metadata  # noqa: B018
    for copied in (copy.copy(output), pickle.loads(pickle.dumps(output))):
        assert (copied, copied.system_score) == (output, output.system_score)


def test_error_spans_have_the_format_of_xcomet() -> None:
    model = comet.load_from_checkpoint("tertium-multi:all_spans=true")
    texts = {"src": "Das blaue Auto hielt an der Ampel an.", "mt": "The red car sang at the song."}
    (errors,) = model.predict([texts], gpus=0).metadata.error_spans
    assert errors
    for error in errors:
        assert error["text"] == texts["mt"][error["start"] : error["end"]]
        assert error["severity"] in ("minor", "major", "critical")
        assert 0 < error["confidence"] <= 1


@pytest.mark.parametrize(
    ("options", "device"),
    [
        ({}, "auto"),
        ({"gpus": 0, "accelerator": "gpu"}, "cpu"),
        ({"gpus": 1}, "cuda"),
        ({"devices": [2]}, "cuda:2"),
        ({"gpus": 1, "devices": (1,)}, "cuda:1"),
        ({"accelerator": "mps"}, "mps"),
    ],
)
def test_comet_uses_the_requested_device(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], device: str
) -> None:
    model = comet.load_from_checkpoint("chrf")
    devices_used: list[str] = []
    monkeypatch.setattr(
        type(model.metric), "predict", lambda *_: devices_used.append(current_runtime().device)
    )
    model.predict(DATA, **options)
    assert devices_used == [device]


@pytest.mark.parametrize(
    "model",
    ["Unbabel/wmt22-comet-da", "wmt22-cometkiwi-da", "comet:model=Unbabel/XCOMET-XL"],
)
@pytest.mark.parametrize("command", ["score", "compare", "rank"])
def test_published_checkpoints_on_the_command_line(
    capsys: pytest.CaptureFixture[str], command: str, model: str
) -> None:
    names = ["good", "fair"]
    outputs = [str(EXAMPLES / f"system-{name}.en.txt") for name in names]
    others = ["-s", str(EXAMPLES / "source.de.txt"), "-r", str(EXAMPLES / "reference-a.en.txt")]
    assert main([command, "--model", model, "-t", *outputs, *others]) == 2
    with pytest.raises(UsageError) as error:
        comet.load_from_checkpoint(model).predict(DATA)
    assert "is a COMET checkpoint, and tertium does not include these" in str(error.value)
    assert capsys.readouterr().err == f"tertium: error: {error.value}\n"


def test_the_folder_of_a_comet_checkpoint_is_not_a_metric(tmp_path: Path) -> None:
    (tmp_path / "hparams.yaml").touch()
    with pytest.raises(UsageError, match=f"write comet:model={tmp_path}"):
        tertium.load_metric(tmp_path)


def test_evaluate_equals_sacrebleu(example: TestSet) -> None:
    hypotheses, streams = texts(example, "fair")
    rows = [list(row) for row in example.references]
    bleu = evaluate.load("sacrebleu").compute(predictions=hypotheses, references=rows)
    theirs = peer.corpus_bleu(hypotheses, streams)
    assert bleu["score"] == theirs.score
    assert set(bleu) == {"score", "counts", "totals", "precisions", "bp", "sys_len", "ref_len"}
    arguments = {"predictions": hypotheses, "references": rows, "tokenize": None}
    assert evaluate.load("sacrebleu", cache_dir=None).compute(**arguments) == bleu
    chrf = evaluate.load("chrf").compute(predictions=hypotheses, references=rows, word_order=2)
    assert chrf["score"] == CHRF(word_order=2).corpus_score(hypotheses, streams).score
    assert chrf["word_order"] == 2
    ter = evaluate.load("ter").compute(
        predictions=hypotheses, references=rows, ignore_punct=True, case_sensitive=True
    )
    peer_ter = TER(no_punct=True, case_sensitive=True).corpus_score(hypotheses, streams)
    assert repr((ter["score"], ter["num_edits"])) == repr((peer_ter.score, peer_ter.num_edits))


def test_evaluate_bertscore_and_comet_have_their_keys() -> None:
    hypotheses, references = ["the cat sat", "a dog"], ["the cat sat down", "the dog"]
    result = evaluate.load("bertscore").compute(
        predictions=hypotheses, references=references, model_type="toy"
    )
    scores = tertium.load_metric("bertscore:encoder=toy").compute(
        predictions=hypotheses, references=references
    )
    assert result["f1"] == pytest.approx(scores["scores"])
    assert len(result["precision"]) == len(result["recall"]) == 2
    assert "BERTScore" in result["hashcode"]
    module = evaluate.load("comet", "chrf")
    done = module.compute(predictions=hypotheses, references=references, sources=["x", "y"], gpus=0)
    assert set(done) == {"mean_score", "scores"}


def test_evaluate_accepts_any_metric_and_leaves_out_missing_inputs() -> None:
    assert evaluate.load("nist").compute(predictions=["a b"], references=[["a b"]])["score"] > 0
    module = evaluate.load("comet", "chrf")
    rows = {"predictions": ["a cat"], "references": ["a cat"], "sources": ["x"]}
    assert module.inputs == ("predictions", "references", "sources")
    assert module.compute(**rows, gpus=None)["scores"] == [100]


def predict(data: Any = None, **options: Any) -> Any:
    return comet.load_from_checkpoint("chrf").predict(data or DATA, **options)


def compute(name: str = "chrf", *configuration: str, **arguments: Any) -> Any:
    return evaluate.load(name, *configuration).compute(**arguments)


def score_bert(**arguments: Any) -> Any:
    return compute("bertscore", **ONE, **arguments)


ONE: dict[str, Any] = {"predictions": ["a"], "references": ["a"]}
TWO = ["a", "b"]
NOT_DEVICES: list[Any] = [0, 1, "auto", [], [0, 1], ["0"], [-1]]
NOT_SIZES: list[Any] = ["8", 2.5, 0]
# values of wrong types
GAP: Any = ["a", None]
MISSING: Any = None
WORD: Any = "no"
Call = Callable[[], Any]
USAGE_ERRORS: list[tuple[Call, str]] = [
    (lambda: sacrebleu.BLEU().corpus_score(["a"], None), "no references"),
    (lambda: sacrebleu.sentence_bleu("a", []), "no references"),
    (lambda: sacrebleu.BLEU(max_ngram_order=0), "max_ngram_order must be from 1"),
    (lambda: sacrebleu.CHRF(lowercase=WORD), "lowercase='no': expected True or False"),
    (lambda: sacrebleu.sentence_bleu("a", "a"), "wrap it"),
    (lambda: sacrebleu.BLEU().get_signature(), "score something first"),
    # sacrebleu reads a flat list as two streams of letters
    (lambda: sacrebleu.corpus_bleu(TWO, TWO), r"one list for each set .* give \[references\]"),
    (lambda: sacrebleu.CHRF(references=["a"]), r"give \[references\]"),
    *((lambda d=d: predict(devices=d), "number of one GPU in a list") for d in NOT_DEVICES),
    *((lambda n=n: predict(batch_size=n), "a whole number of at least 1") for n in NOT_SIZES),
    (lambda: predict(gpus=4), "expected 0 or 1; choose a GPU"),
    (lambda: predict(mc_dropout=30), "mc_dropout"),
    (lambda: comet.download_model("Unbabel/wmt22-comet-da"), "does not include these"),
    (lambda: comet.load_from_checkpoint("wmt22-comet-da"), "does not include these"),
    (lambda: comet.download_model("chrf", saving_directory="x"), "nothing is downloaded or saved"),
    (lambda: comet.load_from_checkpoint(MISSING), "got None"),
    (lambda: compute(predictions="ab", references="ab"), "got a single text"),
    (lambda: compute(predictions=None, references=["a"]), "no predictions"),
    (lambda: compute(references=["a"]), "no predictions"),
    (lambda: compute(predictions=["a"]), r"no references; give references=\[...\]"),
    (lambda: compute("sacrebleu", predictions=["a"]), "no references"),
    (lambda: compute("comet", "chrf", **ONE), "no sources"),
    (lambda: compute("ter", **ONE, no_such_option=1), "unknown argument of ter 'no_such_option'"),
    *((lambda n=n: evaluate.load(n), "is not supported: ") for n in evaluate.UNSUPPORTED),
    (lambda: evaluate.load("chrf", "large"), "no configurations"),
    (lambda: evaluate.load("comet"), "is wmt22-comet-da, which is not included: name a"),
    (lambda: evaluate.load("chrf", module_type="comparison"), "expected 'metric'"),
    (lambda: evaluate.load("chrf", num_process=2), "several processes are not supported"),
    (lambda: evaluate.load("chrf", revision="main"), "load does not support revision"),
    # these were not English, and read by `use`
    (lambda: score_bert(lang="en-sci"), "'en-sci' is not an ISO 639-1 language .*; write en"),
    (lambda: score_bert(lang="eng"), "lang='eng' is not an ISO 639-1 language code .*; write en"),
    (lambda: score_bert(model_type="toy", all_layers=True), "all_layers and baseline_path are not"),
    (
        lambda: score_bert(model_type="toy", baseline_path="x"),
        "and baseline_path are not supported",
    ),
    (lambda: score_bert(), "lang='en'"),
    (lambda: score_bert(model_type="minlm"), "'minilm'.*; for a model of the Hugging Face hub"),
]
OTHER_ERRORS: list[tuple[type[TertiumError], Call, str]] = [
    (UnknownNameError, lambda: sacrebleu.BLEU(tokenize="foo"), "unknown tokenizer 'foo'"),
    (UnknownNameError, lambda: predict(accelerator="tpu"), "unknown accelerator 'tpu'"),
    (UnknownNameError, lambda: comet.download_model("chrff"), "did you mean 'chrf'"),
    (
        UnknownNameError,
        lambda: compute(predictions=["a"], labels=["a"]),
        "argument of chrf 'labels'",
    ),
    (LengthError, lambda: sacrebleu.corpus_bleu(TWO, [["a"]]), "lengths \\[1\\] for 2"),
    (LengthError, lambda: compute(predictions=TWO, references=["a"]), "1 references for 2 predict"),
    (LengthError, lambda: compute(predictions=["a"], references=TWO), "2 references for 1 predict"),
    (LengthError, lambda: compute(predictions=TWO, references=[["a"], TWO]), "same number"),
    # a missing hypothesis is named
    (DataError, lambda: sacrebleu.corpus_bleu(GAP, [TWO]), "hypotheses: hypothesis 2 is None"),
    (DataError, lambda: sacrebleu.sentence_bleu(MISSING, ["a"]), "hypothesis of a segment is None"),
    (DataError, lambda: compute(predictions=GAP, references=TWO), "prediction 2 is None"),
    (DataError, lambda: compute("nist", predictions=GAP, references=TWO), "prediction 2 is None"),
    (DataError, lambda: predict([DATA[0], {**DATA[1], "mt": None}]), "item 2: no translation"),
    (DataError, lambda: compute(predictions=[], references=[]), "nothing to score"),
]


@pytest.mark.parametrize(
    ("kind", "call", "message"), [*((UsageError, *case) for case in USAGE_ERRORS), *OTHER_ERRORS]
)
def test_errors_say_what_to_do(kind: type[TertiumError], call: Call, message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_comet_accepts_the_arguments_of_its_loaders() -> None:
    metric = tertium.load_metric("chrf")
    assert comet.download_model("chrf", local_files_only=True) == "chrf"
    assert comet.load_from_checkpoint("chrf", True, True, True).metric == metric
    assert comet.load_from_checkpoint("comet:model=x").metric.name == "comet"


def test_bert_score_has_the_arguments_of_the_package() -> None:
    pytest.importorskip("torch")
    package = pytest.importorskip("bert_score")
    for ours, theirs in (
        (bert_score.score, package.score),
        (bert_score.BERTScorer, package.BERTScorer),
        (bert_score.BERTScorer.score, package.BERTScorer.score),
    ):
        assert [*inspect.signature(ours).parameters] == [*inspect.signature(theirs).parameters]
    from bert_score.utils import model2layers

    assert bert_score.DEFAULT_LAYERS.items() <= model2layers.items()


def test_bert_score_gives_tensors_and_the_signature() -> None:
    torch = pytest.importorskip("torch")
    texts, references = ["the cat sat", "a dog"], [["the cat sat down", "a cat sat"], ["the dog"]]
    (p, r, f1), field = bert_score.score(texts, references, model_type="toy", return_hash=True)
    assert p.dtype is torch.float32
    scores = tertium.load_metric("bertscore:encoder=toy").corpus_score(texts, references)
    assert [p.tolist(), r.tolist(), f1.tolist()] == [
        pytest.approx(column) for column in scores.statistics[:, :3].T.tolist()
    ]
    assert field == scores.signature
    scorer = bert_score.BERTScorer(lang="en", num_layers=4, rescale_with_baseline=True)
    assert scorer.metric.spec == "bertscore:encoder=minilm@4,rescale=true"
    by_idf = bert_score.BERTScorer("toy", idf=True, device=torch.device("cpu"))
    assert by_idf.score(texts, references)[2].tolist() != f1.tolist()
    with pytest.raises(UsageError, match="give lang='en' or model_type='minilm'"):
        bert_score.score(texts, references)
    with pytest.raises(UsageError, match=r"a dictionary as idf is not supported: .*idf_sents="):
        bert_score.BERTScorer("toy", idf={3: 0.5})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="expected a whole number of at least 1"):
        by_idf.score(texts, references, batch_size=0)


def test_idf_sents_of_bert_score_equal_a_file_of_texts(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    others = ["the dog sat", "the bird flew", "a cat"]
    file = tmp_path / "texts.txt"
    file.write_text("".join(f"{text}\n" for text in others))
    texts, references = ["the cat sat", "a dog"], ["the cat sat down", "the dog"]
    expected = tertium.load_metric("bertscore:encoder=toy,idf=true", idf_texts=str(file))
    scorer = bert_score.BERTScorer("toy", idf=True, idf_sents=others)
    for copied in (scorer, pickle.loads(pickle.dumps(scorer))):
        values, signature = copied.score_array(texts, references)
        scores = expected.corpus_score(texts, [[text] for text in references])
        assert values.tolist() == scores.statistics[:, :3].tolist()
        assert signature == scores.signature
    for invalid in ([], "a text", ["a", None]):
        with pytest.raises((UsageError, DataError), match="idf_sents: "):
            bert_score.BERTScorer("toy", idf=True, idf_sents=invalid)  # type: ignore[arg-type]


def test_idf_sents_equal_the_bert_score_package() -> None:
    weights = locate_weights(EncoderName("minilm")).folder
    package = pytest.importorskip("bert_score")
    texts, references = ["the cat sat", "a dog"], ["the cat sat down", "the dog ran"]
    others = ["the dog sat", "the bird flew down", "a cat"]
    options: dict[str, Any] = {"num_layers": 4, "idf": True, "idf_sents": others}
    theirs = package.BERTScorer(str(weights), nthreads=0, device="cpu", **options)
    ours = bert_score.BERTScorer("minilm", **options)
    for one, other in zip(
        ours.score(texts, references), theirs.score(texts, references), strict=True
    ):
        assert one.tolist() == pytest.approx(other.tolist(), abs=1e-5)


def test_the_encoder_of_a_language_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    lang2model = pytest.importorskip("bert_score.utils").lang2model
    bert_score._warn_about_encoder.cache_clear()
    for lang in ("en", "EN", "en", "zh"):
        bert_score.BERTScorer(lang=lang)
    bert_score.BERTScorer("minilm", lang="en")
    english, chinese = [record.getMessage() for record in caplog.records]
    assert "lang='en' uses tertium's encoder minilm, not bert-score's roberta-large" in english
    assert "uses tertium's encoder use, not bert-score's bert-base-chinese" in chinese
    assert bert_score.DEFAULT_MODELS.items() <= lang2model.items()
    assert lang2model["de"] == bert_score.MULTILINGUAL_MODEL


def test_hub_models_use_the_layer_of_bert_score() -> None:
    assert bert_score.choose_encoder("roberta-large", None, "en") == "hf/roberta-large@17"
    assert bert_score.choose_encoder("microsoft/deberta-xlarge-mnli", 3, None).endswith("-mnli@3")
    assert bert_score.choose_encoder("hf/mine", None, None) == "hf/mine"
    assert bert_score.choose_encoder(None, None, "de") == "use"
    with pytest.raises(UsageError, match=r"^unknown encoder 'someone/model'.*give num_layers=N"):
        bert_score.choose_encoder("someone/model", None, None)
