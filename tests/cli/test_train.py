"""`tertium train` and `tertium meta disagreement` end to end, on the toy encoder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tertium.cli import main
from tertium.metrics.regression.regression_metrics import BLEUR
from tertium.models.trained_model import load_checkpoint
from tertium.models.training_options import Epoch

torch = pytest.importorskip("torch")
DISAGREEMENT = ["meta", "disagreement", "--human"]
WORDS = "the a cat dog sat ran on mat under big red small house tree blue sky moon".split()


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def write_judgments(file: Path, count: int, seed: int, most_wrong: int = 3) -> Path:
    """A user's own table: source, reference, hypothesis and score, worse where words are wrong."""
    rng = np.random.default_rng(seed)
    lines = ["source\treference\thypothesis\tscore"]
    for n in range(count):
        reference = rng.choice(WORDS, 6)
        hypothesis, wrong = reference.copy(), n % (most_wrong + 1)
        hypothesis[:wrong] = "wrong"
        texts = (" ".join(t) for t in (reference[::-1], reference, hypothesis))
        lines.append("\t".join([*texts, str(1.0 - wrong)]))
    file.write_text("\n".join(lines) + "\n")
    return file


def write_preferences(file: Path, count: int) -> Path:
    header = "item\tsystem_a\tsystem_b\tpreference\treference\thypothesis_a\thypothesis_b"
    rows = [f"{n}\tA\tB\ta\tthe {w} sat\tthe {w} sat\twrong" for n, w in enumerate(WORDS[:count])]
    file.write_text("\n".join([header, *rows]) + "\n")
    return file


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    return {
        "train": str(write_judgments(tmp_path / "train.tsv", 16, 0)),
        "dev": str(write_judgments(tmp_path / "dev.tsv", 8, 1)),
        "constant": str(write_judgments(tmp_path / "constant.tsv", 16, 2, most_wrong=0)),
        "preferences": str(write_preferences(tmp_path / "pref.tsv", 5)),
        "out": str(tmp_path / "model"),
    }


def test_head_is_trained_logged_and_used(
    files: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    code = main(
        [
            "train",
            "esim:encoder=toy,hidden=4,dropout=0",
            "--train",
            files["train"],
            "--dev",
            files["dev"],
            "--train",
            files["preferences"],
            "--epochs",
            "2",
            "--patience",
            "9",
            "--comparison-epochs",
            "1",
            "--after",
            "1",
            "-o",
            files["out"],
        ]
    )
    assert code == 0
    out = capsys.readouterr().out
    assert out == f"ESIM: saved to {files['out']}; use it with -m {files['out']}\n"
    epochs = [line.partition(":")[0] for line in caplog.messages if ": loss" in line]
    assert epochs == ["comparisons, epoch 1", "scores, epoch 1", "scores, epoch 2"]
    log = (Path(files["out"]) / "log.tsv").read_text().splitlines()
    assert log[0].startswith("stage\tnumber\tloss\tdev")
    assert len(log) == 4
    (tmp_path / "h.txt").write_text("the cat sat\n")
    (tmp_path / "r.txt").write_text("the cat sat down\n")
    arguments = ["-t", str(tmp_path / "h.txt"), "-r", str(tmp_path / "r.txt"), "-f", "json"]
    assert main(["score", *arguments, "-m", files["out"]]) == 0
    matches = json.loads(capsys.readouterr().out)
    assert matches["name"] == "ESIM"
    assert main(["score", *arguments, "-m", files["out"] + ":references=mean,long=window"]) == 0
    assert json.loads(capsys.readouterr().out)["spec"].endswith("references=mean,long=window")
    assert main(["score", *arguments, "-m", files["out"] + ":lang=window"]) == 2
    assert "unknown field of esim 'lang': did you mean 'long'" in capsys.readouterr().err
    assert "against:reference" in matches["signature"]


def test_interrupted_training_is_explained_and_continued(
    files: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(epoch: Epoch) -> None:
        if epoch.number == 2:
            raise KeyboardInterrupt

    command = ["train", "esim:encoder=toy,hidden=2", "--train", files["train"], "--epochs", "3"]
    command += ["--dev", files["dev"], "-o", files["out"]]
    with monkeypatch.context() as patch:
        patch.setattr("tertium.evaluation.train_command._report_epoch", interrupt)
        assert main(command) == 130
    message = f"{files['out']} holds the finished epochs: run the same command again to continue"
    assert caplog.messages[-1] == message
    assert capsys.readouterr().err == "tertium: interrupted\n"
    load_checkpoint(files["out"])
    assert "its training was interrupted or is still running" in caplog.text
    caplog.clear()
    assert main(command) == 0
    load_checkpoint.cache_clear()
    load_checkpoint(files["out"])
    assert "interrupted" not in caplog.text


def test_interrupted_training_without_epochs_saves_nothing(
    files: dict[str, str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tertium.metrics.regression.linear_metric.fit_ridge", interrupt)
    assert main(["train", "bleu-r", "--train", files["train"], "-o", files["out"]]) == 130
    assert f"nothing was saved to {files['out']}" in caplog.messages
    assert not Path(files["out"]).exists()


def test_training_replaces_weights_of_a_killed_process(files: dict[str, str]) -> None:
    """A process that is killed while it saves a new model leaves weights without a config.json."""
    command = ["train", "bleu-r", "--train", files["train"], "-o", files["out"]]
    Path(files["out"]).mkdir()
    (Path(files["out"]) / "weights.safetensors").write_bytes(b"incomplete")
    (Path(files["out"]) / ".tertium-0123456789abcdef.part").write_bytes(b"incomplete")
    assert main(command) == 0  # was refused
    assert BLEUR.load(files["out"]).coefficients


def test_svr_is_trained(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--train", files["train"], "--folds", "3", "-o", files["out"]]
    assert main(["train", "svr:encoders=toy", *arguments]) == 0
    header, _, *rows = capsys.readouterr().out.strip().splitlines()
    assert header.split() == ["C", "epsilon", "gamma", "R^2"]
    assert rows.index("") == 10  # the ten best settings, then a blank line
    config = json.loads((Path(files["out"]) / "config.json").read_text())
    assert config["metric"] == "svr"
    assert config["config"]["encoders"] == ["toy"]
    assert len(config["training"]["search"]) == 64
    alone = ["--c", "1", "--epsilon", "0", "--gamma", ".1"]
    assert main(["train", "svr:encoders=toy", *arguments, *alone, "--overwrite"]) == 0
    assert capsys.readouterr().out.startswith("SVR: saved to")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["chrf", "--train", "{train}"], "chrf cannot be trained"),
        (["esim"], "no training data: give --train"),
        (["--train", "{train}", "bleu-r"], "no METRIC: give it first"),
        (["esmi", "--train", "{train}"], "did you mean 'esim'"),
        (["models/mine", "--train", "{train}"], "models/mine is a folder: give a metric to train"),
        (["esim:hiden=3", "--train", "{train}"], "unknown field of esim 'hiden'"),
        (["esim:encoder=toi", "--train", "{train}"], "unknown encoder 'toi'"),
        (["esim:encoder=toy", "--train", "{train}", "--epochs", "0"], "epochs=0"),
        (["esim:encoder=toy", "--train", "missing.tsv"], "missing.tsv"),
        (["svr:encoders=toy", "--train", "{preferences}"], "comparison"),
        (["bleu-r", "--train", "{train}", "--train", "{preferences}"], "cannot use"),
        (["bleu-r", "--train", "{train}", "--dev", "{preferences}"], "cannot use"),
        (["bleu-r", "--train", "{train}", "--epochs", "3"], "unrecognized arguments: --epochs 3"),
        (["bleu-r", "--train", "{train}", "--strenths", "3"], "did you mean --strengths"),
        (
            ["esim:encoder=toy", "--train", "{preferences}", "--epochs", "3"],
            "does not use --epochs",
        ),
        (["esim:encoder=toy", "--train", "{train}", "--items", "3", "--mixed"], "--items, --mixed"),
        (
            ["pairwise:features=bleu", "--train", "{preferences}", "--kendall-rate", ".1"],
            "pairwise does not use --kendall-rate with these settings",
        ),
        (["svr:encoders=toy", "--train", "{train}", "--c", "many"], "c=many is not a number"),
        (["svr:encoders=toy", "--train", "{train}", "--folds", "0"], "folds=0: expected"),
        (["svr:encoders=toy", "--train", "{train}", "--c", "1+0"], "c=1.0+0.0: expected above 0"),
        (["svr:encoders=toy", "--train", "{train}", "--gamma=-1"], "gamma=-1.0: expected above 0"),
        (["svr:encoders=toy", "--train", "{train}", "--epsilon=-1"], "expected at least 0"),
        (["svr:encoders=toy", "--train", "{train}", "--seed", "-1"], "seed=-1: expected"),
        (["bleu-r", "--train", "{train}", "--strengths", "0"], "strengths=0.0: expected above 0"),
        (["bleu-r", "--train", "{train}", "--strengths", "inf"], "strengths=inf: expected above 0"),
        (["bleu-r", "--train", "{train}", "--strengths", ""], "--strengths: the value is empty"),
        (["bleu-r", "--train", "{train}", "{train}"], "train.tsv is given twice"),
        (
            ["bleu-r", "--train", "{train}", "--dev", "{train}"],
            "every reference also occurs",
        ),
        (["bleu-r:model=mine", "--train", "{train}"], "model= names a trained model"),
        (["bleu-r", "--train", "{constant}"], "all 16 human scores are 1"),
        (["esim:encoder=toy", "--train", "{train}", "--patience", "-1"], "patience=-1"),
        (["esim:encoder=toy", "--train", "{train}", "--dev", "{train}"], "nothing is left"),
    ],
)
def test_errors_are_one_line_with_exit_code_2(
    files: dict[str, str], arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    filled = [argument.format(**files) for argument in arguments]
    assert main(["train", *filled, "-o", files["out"], "-q"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1


def test_nonempty_folder_is_not_overwritten(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("x")
    arguments = ["esim:encoder=toy", "--train", files["train"], "-o", str(tmp_path / "full")]
    assert main(["train", *arguments]) == 2
    assert "has no trained metric" in capsys.readouterr().err


def test_leftovers_of_a_killed_training_are_accepted(files: dict[str, str]) -> None:
    """Files of a process killed while it wrote its first snapshot."""
    Path(files["out"]).mkdir()
    (Path(files["out"]) / ".tertium-0123456789abcdef.part").write_bytes(b"half")
    arguments = ["train", "bleu-r", "--train", files["train"], "-o", files["out"], "-q"]
    assert main(arguments) == 0


def test_trained_metric_is_replaced_only_with_overwrite(
    files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["train", "bleu-r", "--train", files["train"], "-o", files["out"], "-q"]
    assert main(arguments) == 0
    weights = Path(files["out"]) / "weights.safetensors"
    before = weights.read_bytes()
    changed = [*arguments, "--strengths", "1"]
    assert main(changed) == 2
    assert f"{files['out']} already has a trained metric" in capsys.readouterr().err
    assert weights.read_bytes() == before
    assert main([*changed, "--overwrite"]) == 0
    assert weights.read_bytes() != before


def test_interrupted_training_resumes_without_overwrite(
    files: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupt(epoch: object) -> None:
        raise KeyboardInterrupt

    options = ["--train", files["train"], "--epochs", "2", "--patience", "9", "-o", files["out"]]
    arguments = ["train", "esim:encoder=toy,hidden=4,dropout=0", *options]
    with monkeypatch.context() as once:
        once.setattr("tertium.evaluation.train_command._report_epoch", interrupt)
        assert main(arguments) == 130
    assert (Path(files["out"]) / "config.json").is_file()
    shutil.copytree(files["out"], tmp_path / "copy")
    assert main(arguments) == 0
    assert main(arguments) == 2
    other = ["train", "bleu-r", "--train", files["train"], "-o", str(tmp_path / "copy"), "-q"]
    before = (tmp_path / "copy" / "config.json").read_text()
    assert main(other) == 2  # which cannot resume it
    assert "copy already has an interrupted training" in capsys.readouterr().err
    assert (tmp_path / "copy" / "config.json").read_text() == before
    assert main([*other, "--overwrite"]) == 0
    assert {file.name for file in (tmp_path / "copy").iterdir()} == {
        "README.md", "config.json", "weights.safetensors",
    }  # fmt: skip


def test_gold_selects_the_score_column(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("train", "dev"):
        header, *rows = Path(files[name]).read_text().splitlines()
        both = [f"{header.replace('score', 'adequacy')}\tscore", *(f"{row}\t1" for row in rows)]
        Path(files[name]).write_text("\n".join(both))
    plain = ["train", "bleu-r", "-q", "--train", files["train"]]
    assert main([*plain, "-o", files["out"]]) == 2  # all scores are equal
    capsys.readouterr()
    chosen = ["--dev", files["dev"], "--gold", "adequacy", "--held-out", files["dev"]]
    assert main([*plain, *chosen, "-o", files["out"]]) == 0
    assert "- data: train adequacy 16" in (Path(files["out"]) / "README.md").read_text()
    assert main([*plain, "--gold", "fluency", "-o", str(tmp_path / "b")]) == 2
    assert "no score (looked for fluency; found " in capsys.readouterr().err
    analyse = [*DISAGREEMENT, files["train"], "-m", "chrf", "bleu", "-f", "json", "--count", "4"]
    counts = []
    for gold in ([], ["--gold", "adequacy"]):
        assert main([*analyse, *gold]) == 0
        counts.append(json.loads(capsys.readouterr().out)["counts"])
    assert counts[0] != counts[1]


@pytest.mark.parametrize("command", ["train", "meta disagreement"])
def test_a_file_given_twice_is_refused(
    command: str, files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two names of one file: its rows would count twice."""
    (tmp_path / "again.tsv").symlink_to(files["train"])
    twice = [files["train"], str(tmp_path / "again.tsv")]
    train = ["train", "bleu-r", "--train", *twice, "-o", files["out"]]
    call = train if command == "train" else [*DISAGREEMENT, *twice, "-m", "chrf", "bleu"]
    assert main(call) == 2
    assert "again.tsv is given twice" in capsys.readouterr().err


def test_published_recipe_has_no_prior(files: dict[str, str]) -> None:
    coefficients = []
    for number, options in enumerate(([], ["--recipe", "published"], ["--no-prior"])):
        folder = f"{files['out']}-{number}"
        assert main(["train", "bleu-r", "--train", files["train"], "-o", folder, *options]) == 0
        coefficients.append(BLEUR.load(folder).coefficients)
    assert coefficients[1] == coefficients[2]


def test_disagreement_counts_what_only_one_metric_rates_high(
    files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*DISAGREEMENT, files["train"], "-m", "chrf", "bleu"]
    assert main([*arguments, "-f", "json"]) == 0
    counts = json.loads(capsys.readouterr().out)["counts"]
    assert sum(counts["all"].values()) == 4  # a fifth of 16, and a tie
    assert main([*arguments, "--count", "1"]) == 0
    assert "only chrF" in capsys.readouterr().out
    assert main([*arguments, "--count", "2", "-f", "json"]) == 0
    examples = json.loads(capsys.readouterr().out)["examples"]
    assert {name: len(scores_file) for name, scores_file in examples.items()} == {
        name: min(counts["all"][name], 2) for name in ("only first", "only second")
    }
    assert main([*arguments, "--count", "-1"]) == 2
    assert "--count" in capsys.readouterr().err
    assert main([*DISAGREEMENT, files["train"], "-m", "chrf", "chrf:beta=1"]) == 0
    assert "only chrf:beta=1" in capsys.readouterr().out


def test_disagreement_prints_warnings(
    files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    table = Path(files["train"])
    lines = table.read_text().splitlines()
    *texts, _, score = lines[1].split("\t")
    table.write_text("\n".join([lines[0], "\t".join([*texts, "", score]), *lines[2:]]) + "\n")
    assert main([*DISAGREEMENT, files["train"], "-m", "chrf", "bleu", "-f", "json"]) == 0
    message = capsys.readouterr()
    assert "warning: chrF: empty hypothesis: 1" in message.err
    assert json.loads(message.out)["warnings"]["BLEU"] == {"empty hypothesis": 1}


def test_invalid_output_folder_fails_early(
    files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    output = f"{files['train']}/model"
    assert main(["train", "bleu-r", "--train", "missing.tsv", "-o", output]) == 2
    assert f"{files['train']} is not a writable folder" in capsys.readouterr().err


def help_of(arguments: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit):
        main(["train", *arguments.split(), "--help"])
    return " ".join(capsys.readouterr().out.split())


def test_general_help_refers_to_that_of_each_metric(capsys: pytest.CaptureFixture[str]) -> None:
    printed = help_of("", capsys)
    assert "`tertium train METRIC --help` shows them with their defaults" in printed
    assert "--recipe NAME" in printed
    assert "--epochs" not in printed


def test_metric_help_has_its_own_options_and_defaults(
    capsys: pytest.CaptureFixture[str],
) -> None:
    head, ranker, regression = (help_of(name, capsys) for name in ("bilstm", "pairwise", "rte-r"))
    assert help_of("-o models/mine --recipe ours bilstm", capsys) == head
    assert "maximum number of epochs on scores (published: 30, ours: 12)" in head
    assert "difference=absolute,input_dropout=0.0" in head
    assert "--kendall-rate" not in head
    assert "learning rate of Adagrad (published: 0.01, ours: 0.1)" in ranker
    assert "comparisons per step (published: 30, ours: 100)" in ranker
    assert "--kendall-rate N" in ranker
    assert "--comparison-rate" not in ranker
    assert "--strengths N+N" in regression
    assert "rte-r learns from scores. Settings in the spec, rte-r:FIELD=VALUE,...:" in regression
    assert "pairwise learns from comparisons." in ranker
    assert "sampled for selecting the epoch (0: all) (published: 5000, ours: 0)" in ranker
    assert "tertium train pairwise:cost=logistic --recipe published" in ranker
    assert "tertium train rte-r --train da/wmt15" in regression
    assert "tertium train esim" not in ranker + regression + head
    assert "--epochs" not in regression.partition("examples:")[0]


def test_recipe_sets_the_options(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--train", files["train"], "--epochs", "1", "-q"]
    for recipe, difference in (("ours", "absolute"), ("published", "signed")):
        folder = f"{files['out']}-{recipe}"
        spec = "bilstm:encoder=toy,hidden=2"
        assert main(["train", spec, *arguments, "--recipe", recipe, "-o", folder]) == 0
        config = json.loads((Path(folder) / "config.json").read_text())
        assert config["config"]["difference"] == difference
        assert config["training"]["options"]["epochs"] == 1
    assert main(["train", "bilstm", *arguments, "--recipe", "mine", "-o", files["out"]]) == 2
    assert "unknown recipe 'mine'" in capsys.readouterr().err


def test_comparisons_and_named_options_reach_a_ranker(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dev = tmp_path / "dev-pref.tsv"
    text = write_preferences(tmp_path / "more.tsv", 9).read_text().splitlines()
    dev.write_text("\n".join([text[0], *text[6:]]) + "\n")
    code = main(
        [
            "train",
            "pairwise:features=chrf,cost=logistic+kendall",
            "--train",
            files["preferences"],
            "--dev",
            str(dev),
            "--kendall-rate",
            "0.5",
            "--decay",
            "0.1",
            "--order",
            "given",
            "-o",
            files["out"],
        ]
    )
    assert code == 0, capsys.readouterr().err
    options = json.loads((Path(files["out"]) / "config.json").read_text())["training"]["options"]
    assert (options["kendall_rate"], options["decay"], options["order"]) == (0.5, 0.1, "given")
    assert (options["batch_size"], options["rate"]) == (100, 0.1)  # the recipe's
    assert main(["train", "pairwise", "--train", files["preferences"], "-o", "x"]) == 2
    assert "give some with dev= or --dev" in capsys.readouterr().err


def write_ratings(file: Path, *, scores: bool = False) -> Path:
    """Rows of four systems in six documents, with scores of another metric on request."""
    rng = np.random.default_rng(4)
    rows = []
    for n in range(48):
        item, system = divmod(n, 4)
        reference = [*np.random.default_rng(item).choice(WORDS, 6), str(item)]
        wrong = int(rng.integers(0, 4))
        row = {
            "lp": "de-en", "doc": f"d{item // 2}", "segment": str(item), "system": "ABCD"[system],
            "source": f"x {item}", "reference": " ".join(reference),
            "hypothesis": " ".join(["wrong"] * wrong + reference[wrong:]),
            "score": round(90 - 20 * wrong + rng.normal(0, 5), 1),
        }  # fmt: skip
        rows.append({**row, "scores": {"chrf": row["score"]}} if scores else row)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_blend_is_trained_compared_and_used(tmp_path, capsys):
    data, folder = write_ratings(tmp_path / "mine.jsonl"), str(tmp_path / "blend")
    assert main(["train", "blend", "-m", "chrf", "ter", "--human", str(data), "-o", folder]) == 0
    out = capsys.readouterr().out
    expected = "Weights of normalized scores; Pearson r; acc_eq*; SPA; p-values"
    for text in (*expected.split("; "), f"use it with -m {folder}"):
        assert text in out
    (tmp_path / "t.txt").write_text("the cat sat\n")
    (tmp_path / "r.txt").write_text("the cat ran\n")
    texts = ["-t", str(tmp_path / "t.txt"), "-r", str(tmp_path / "r.txt")]
    assert main(["score", *texts, "-m", folder, "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "Blend"
    assert main(["explain", *texts, "--segment", "1", "-m", folder]) == 0
    assert "an average translation scores" in capsys.readouterr().out


def test_blend_uses_the_scores_of_rows(tmp_path, capsys):
    data = write_ratings(tmp_path / "mine.jsonl", scores=True)
    spec = "blend:metrics=chrf+ter,normalization=rank"
    assert main(["train", spec, "--train", str(data), "-o", str(tmp_path / "m"), "-q"]) == 0
    weights = json.loads((tmp_path / "m" / "config.json").read_text())["training"]["weights"]
    assert weights["chrf"] > 2 * weights["ter"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["bleu-r", "-m", "chrf", "bleu"], "-m is for blend"),
        (["blend:metrics=chrf+bleu", "-m", "chrf", "ter"], "give them once"),
        (["blend"], "blend needs the metrics to combine: give them with -m"),
        (["blend", "-m", "chrf"], "a blend has at least 2 metrics, not 1"),
        (["blend", "-m", "chrf", "bluu"], "did you mean 'bleu'"),
    ],
)
def test_invalid_blends_are_one_line_errors(argv, message, tmp_path, capsys):
    data = write_ratings(tmp_path / "mine.jsonl")
    assert main(["train", *argv, "--train", str(data), "-o", str(tmp_path / "m")]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_blend_of_one_segment_is_not_cross_validated(tmp_path, capsys):
    rows = [json.loads(line) for line in write_ratings(tmp_path / "a.jsonl").open()]
    text = "".join(json.dumps({**row, "doc": "one"}) + "\n" for row in rows)
    (tmp_path / "a.jsonl").write_text(text)
    argv = ["blend", "-m", "chrf", "ter", "--train", str(tmp_path / "a.jsonl")]
    assert main(["train", *argv, "-o", str(tmp_path / "m")]) == 0
    assert "not cross-validated: cross-validation needs at least two" in capsys.readouterr().out
