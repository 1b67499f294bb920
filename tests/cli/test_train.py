"""`tertium train` end to end on the toy encoder, and `tertium meta disagreement` on its data."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.builders import read_cases, write_jsonl, write_tsv
from tests.cli.conftest import Run

from tertium.cli import main
from tertium.metrics.regression.regression_metrics import BLEUR
from tertium.models.trained_model import load_checkpoint
from tertium.models.training_options import Epoch

torch = pytest.importorskip("torch")
WORDS = "the a cat dog sat ran on mat under big red small house tree blue sky moon".split()


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def write_judgments(file: str, count: int, seed: int, most_wrong: int = 3) -> None:
    """A user's own table: source, reference, hypothesis and score, worse where words are wrong."""
    rng = np.random.default_rng(seed)
    rows = []
    for n in range(count):
        reference = rng.choice(WORDS, 6)
        hypothesis, wrong = reference.copy(), n % (most_wrong + 1)
        hypothesis[:wrong] = "wrong"
        rows.append([*map(" ".join, (reference[::-1], reference, hypothesis)), 1.0 - wrong])
    write_tsv(file, "source reference hypothesis score", rows)


def write_preferences(file: str, words: list[str]) -> None:
    header = "item system_a system_b preference reference hypothesis_a hypothesis_b"
    rows = [(n, *"ABa", f"the {w} sat", f"the {w} sat", "wrong") for n, w in enumerate(words)]
    write_tsv(file, header, rows)


def write_ratings(file: str, *, scores: bool = False, document: str = "") -> None:
    """Rows of four systems in six documents, with scores of another metric on request."""
    rng = np.random.default_rng(4)
    rows = []
    for n in range(48):
        item, system = divmod(n, 4)
        reference = [*np.random.default_rng(item).choice(WORDS, 6), str(item)]
        wrong = int(rng.integers(0, 4))
        row = {
            "lp": "de-en", "doc": document or f"d{item // 2}", "segment": str(item),
            "system": "ABCD"[system], "source": f"x {item}", "reference": " ".join(reference),
            "hypothesis": " ".join(["wrong"] * wrong + reference[wrong:]),
            "score": round(90 - 20 * wrong + rng.normal(0, 5), 1),
        }  # fmt: skip
        rows.append({**row, "scores": {"chrf": row["score"]}} if scores else row)
    write_jsonl(file, rows)


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_judgments("train.tsv", 16, 0)
    write_judgments("dev.tsv", 8, 1)
    write_judgments("constant.tsv", 16, 2, most_wrong=0)
    write_preferences("pref.tsv", WORDS[:5])
    write_preferences("dev-pref.tsv", WORDS[5:9])
    Path("h.txt").write_text("the cat sat\n")
    Path("r.txt").write_text("the cat sat down\n")


def read_config(folder: str = "model") -> Any:
    return json.loads((Path(folder) / "config.json").read_text())


def test_head_is_trained_logged_and_used(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    data = "--train train.tsv --dev dev.tsv --train pref.tsv"
    options = "--epochs 2 --patience 9 --comparison-epochs 1 --after 1"
    command = f"train esim:encoder=toy,hidden=4,dropout=0 {data} {options} -o model"
    assert run(command).out == "ESIM: saved to model; use it with -m model\n"
    epochs = [line.partition(":")[0] for line in caplog.messages if ": loss" in line]
    assert epochs == ["comparisons, epoch 1", "scores, epoch 1", "scores, epoch 2"]
    log = [json.loads(line) for line in Path("model/log.jsonl").read_text().splitlines()]
    assert [entry["stage"] for entry in log] == ["comparisons", "scores", "scores"]
    record = run("score -t h.txt -r r.txt -f json -m model").json
    assert record["name"] == "ESIM"
    assert "against:reference" in record["signature"]
    changed = run("score -t h.txt -r r.txt -f json -m model:references=mean").json
    assert changed["spec"].endswith("references=mean")
    error = run("score -t h.txt -r r.txt -m model:precisions=bf16", code=2).err
    assert "unknown field of esim 'precisions': did you mean 'precision'" in error


def interrupt_in_epoch(number: int, patch: pytest.MonkeyPatch) -> None:
    def interrupt(epoch: Epoch) -> None:
        if epoch.number == number:
            raise KeyboardInterrupt

    patch.setattr("tertium.evaluation.training._report_epoch", interrupt)


def test_interrupted_training_is_explained_and_continued(
    run: Run, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = "esim:encoder=toy,hidden=2"
    command = f"train {spec} --train train.tsv --dev dev.tsv --epochs 3 -o model"
    with monkeypatch.context() as patch:
        interrupt_in_epoch(2, patch)
        assert run(command, code=130).err == "tertium: interrupted\n"
    folder = str(Path("model").absolute())
    load_checkpoint(folder)
    assert "its training was interrupted or is still running" in caplog.text
    shutil.copytree("model", "copy")
    caplog.clear()
    run(command)
    load_checkpoint.cache_clear()
    load_checkpoint(folder)
    assert "interrupted" not in caplog.text
    run(command, code=2)  # finished
    other = "train bleu-r --train train.tsv -o copy -q"
    before = read_config("copy")
    assert "copy already has an interrupted training" in run(other, code=2).err
    assert read_config("copy") == before
    run(f"{other} --overwrite")
    names = {file.name for file in Path("copy").iterdir()}
    assert names == {"README.md", "config.json", "weights.safetensors"}


def test_interrupted_training_without_epochs_saves_nothing(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tertium.metrics.regression.linear_metric.fit_ridge", interrupt)
    run("train bleu-r --train train.tsv -o model", code=130)
    assert not Path("model").exists()


@pytest.mark.parametrize("leftover", ["weights.safetensors", ".tertium-0123456789abcdef.part"])
def test_leftovers_of_a_killed_training_are_replaced(leftover: str, run: Run) -> None:
    """A process that is killed while it saves a new model leaves files without a config.json."""
    Path("model").mkdir()
    (Path("model") / leftover).write_bytes(b"incomplete")
    run("train bleu-r --train train.tsv -o model -q")
    assert BLEUR.load("model").coefficients


def test_svr_is_trained(run: Run) -> None:
    command = "train svr:encoders=toy --train train.tsv --folds 3 -o model"
    assert run(command).out.startswith("SVR: saved to")
    config = read_config()
    assert (config["metric"], config["config"]["encoders"]) == ("svr", ["toy"])
    assert len(config["training"]["search"]) == 64


ERRORS = """
esim => arguments are required: --train/--human
--train train.tsv bleu-r => no METRIC: give it first
esmi --train train.tsv => did you mean 'esim'
models/mine --train train.tsv => models/mine is a folder: give a metric to train
esim:hiden=3 --train train.tsv => unknown field of esim 'hiden'
esim:encoder=toi --train train.tsv => unknown encoder 'toi'
esim:encoder=toy --train train.tsv --epochs 0 => epochs=0
esim:encoder=toy --train missing.tsv => missing.tsv
svr:encoders=toy --train pref.tsv => comparison
bleu-r --train train.tsv --train pref.tsv => cannot use
bleu-r --train train.tsv --dev pref.tsv => cannot use
esim:encoder=toy --train pref.tsv --epochs 3 => does not use --epochs
esim:encoder=toy --train train.tsv --items 3 => does not use --items
pairwise:features=bleu --train pref.tsv --kendall-rate .1
    => pairwise does not use --kendall-rate with these settings
pairwise --train pref.tsv => give some with dev= or --dev
svr:encoders=toy --train train.tsv --c many => c=many is not a number
svr:encoders=toy --train train.tsv --folds 0 => folds=0: expected
svr:encoders=toy --train train.tsv --c 1+0 => c=1.0+0.0: expected above 0
svr:encoders=toy --train train.tsv --gamma=-1 => gamma=-1.0: expected above 0
svr:encoders=toy --train train.tsv --epsilon=-1 => expected at least 0
svr:encoders=toy --train train.tsv --seed -1 => seed=-1: expected
bleu-r --train train.tsv --strengths 0 => strengths=0.0: expected above 0
bleu-r --train train.tsv --strengths inf => strengths=inf: expected above 0
bleu-r --train train.tsv --strengths "" => --strengths: the value is empty
bleu-r --train train.tsv train.tsv => train.tsv is given twice
bleu-r --train train.tsv link.tsv => link.tsv is given twice
bleu-r --train train.tsv --dev train.tsv => every reference also occurs
bleu-r:model=mine --train train.tsv => model= names a trained model
bleu-r --train constant.tsv => all 16 human scores are 1
bleu-r --train train.tsv --gold fluency => no score (looked for fluency; found
bilstm --train train.tsv --recipe mine => unknown recipe 'mine'
esim:encoder=toy --train train.tsv --patience -1 => patience=-1
esim:encoder=toy --train train.tsv --dev train.tsv => nothing is left
bleu-r -m chrf bleu --train train.tsv => -m is for blend
blend --train train.tsv => blend needs the metrics to combine: give them with -m
blend -m chrf --train train.tsv => a blend has at least 2 metrics, not 1
blend -m chrf bluu --train train.tsv => did you mean 'bleu'
"""


@pytest.mark.parametrize(("arguments", "message"), read_cases(ERRORS))
def test_errors_are_one_line_with_exit_code_2(
    arguments: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("link.tsv").symlink_to("train.tsv")
    assert main(["train", *shlex.split(arguments), "-o", "model", "-q"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not Path("model").exists()


def test_trained_metric_is_replaced_only_with_overwrite(run: Run) -> None:
    run("train bleu-r --train train.tsv -o model -q")
    before = Path("model/weights.safetensors").read_bytes()
    changed = "train bleu-r --train train.tsv -o model -q --strengths 1"
    assert "model already has a trained metric" in run(changed, code=2).err
    assert Path("model/weights.safetensors").read_bytes() == before
    run(f"{changed} --overwrite")
    assert Path("model/weights.safetensors").read_bytes() != before


def test_gold_selects_the_score_column(run: Run) -> None:
    for name in ("train.tsv", "dev.tsv"):
        header, *rows = Path(name).read_text().splitlines()
        both = [f"{header.replace('score', 'adequacy')}\tscore", *(f"{row}\t1" for row in rows)]
        Path(name).write_text("\n".join(both))
    run("train bleu-r -q --train train.tsv -o model", code=2)  # all scores are equal
    chosen = "--dev dev.tsv --gold adequacy --held-out dev.tsv"
    run(f"train bleu-r -q --train train.tsv {chosen} -o model")
    assert "- data: train adequacy 16" in Path("model/README.md").read_text()
    analyse = "meta disagreement --human train.tsv -m chrf bleu -f json --count 4"
    counts = [run(f"{analyse} {gold}").json["counts"] for gold in ("", "--gold adequacy")]
    assert counts[0] != counts[1]


def test_published_recipe_has_no_prior(run: Run) -> None:
    coefficients = []
    for number, options in enumerate(("", "--recipe published", "--no-prior")):
        run(f"train bleu-r --train train.tsv -o {number} {options}")
        coefficients.append(BLEUR.load(str(number)).coefficients)
    assert coefficients[1] == coefficients[2]


def test_disagreement_counts_what_only_one_metric_rates_high(run: Run) -> None:
    command = "meta disagreement --human train.tsv -m chrf bleu -f json"
    counts = run(command).json["counts"]
    assert sum(counts["all"].values()) == 4  # a fifth of 16, and a tie
    examples = run(f"{command} --count 2").json["examples"]
    assert {name: len(rows) for name, rows in examples.items()} == {
        name: min(counts["all"][name], 2) for name in ("only first", "only second")
    }
    Path("link.tsv").symlink_to("train.tsv")
    error = run("meta disagreement --human train.tsv link.tsv -m chrf bleu", code=2).err
    assert "link.tsv is given twice" in error


def test_help_has_the_options_of_a_metric_and_their_defaults(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def help_of(words: str) -> str:
        with pytest.raises(SystemExit):
            main(["train", *words.split(), "--help"])
        return " ".join(capsys.readouterr().out.split())

    general = help_of("")
    assert "`tertium train METRIC --help` shows them with their defaults" in general
    assert "--epochs" not in general
    head, ranker, regression = (help_of(name) for name in ("bilstm", "pairwise", "rte-r"))
    assert help_of("-o models/mine --recipe ours bilstm") == head
    assert "maximum number of epochs on scores (published: 30, ours: 12)" in head
    assert "difference=absolute,input_dropout=0.0" in head
    assert "learning rate of Adagrad (published: 0.01, ours: 0.1)" in ranker
    assert "comparisons per step (published: 30, ours: 100)" in ranker
    assert "sampled for selecting the epoch (0: all) (published: 5000, ours: 0)" in ranker
    for text, where in (("--kendall-rate N", ranker), ("--strengths N+N", regression)):
        assert [text in one for one in (head, ranker, regression)].count(True) == 1
        assert text in where
    assert "rte-r learns from scores. Settings in the spec, rte-r:FIELD=VALUE,...:" in regression
    assert "pairwise learns from comparisons." in ranker
    assert "tertium train pairwise:cost=logistic --recipe published" in ranker
    assert "tertium train rte-r --train da/wmt15" in regression
    assert "tertium train esim" not in ranker + regression + head


def test_recipe_sets_the_options(run: Run) -> None:
    for recipe, difference in (("ours", "absolute"), ("published", "signed")):
        options = f"--train train.tsv --epochs 1 -q --recipe {recipe} -o {recipe}"
        run(f"train bilstm:encoder=toy,hidden=2 {options}")
        config = read_config(recipe)
        assert config["config"]["difference"] == difference
        assert config["training"]["options"]["epochs"] == 1


def test_comparisons_and_named_options_reach_a_ranker(run: Run) -> None:
    spec = "pairwise:features=chrf,cost=logistic+kendall"
    options = "--kendall-rate 0.5 --decay 0.1 --order given"
    run(f"train {spec} --train pref.tsv --dev dev-pref.tsv {options} -o model")
    stored = read_config()["training"]["options"]
    assert (stored["kendall_rate"], stored["decay"], stored["order"]) == (0.5, 0.1, "given")
    assert (stored["batch_size"], stored["rate"]) == (100, 0.1)  # the recipe's


def test_blend_is_trained_and_used(run: Run) -> None:
    write_ratings("mine.jsonl")
    printed = run("train blend -m chrf ter --human mine.jsonl -o blend").out
    assert "Weights of normalized scores" in printed
    assert "use it with -m blend" in printed
    assert run("score -t h.txt -r r.txt -m ./blend -f json").json["name"] == "Blend"
    explained = run("explain -t h.txt -r r.txt --segment 1 -m ./blend").out
    assert "an average translation scores" in explained


def test_blend_uses_the_scores_of_rows(run: Run) -> None:
    write_ratings("mine.jsonl", scores=True)
    run("train blend:metrics=chrf+ter,normalization=rank --train mine.jsonl -o model -q")
    weights = read_config()["training"]["weights"]
    assert weights["chrf"] > 2 * weights["ter"]
