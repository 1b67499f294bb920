"""tertium-small: the shipped weights, the laws of its score, and what it notices."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tertium.arrays import FloatArray
from tertium.data.testset import TestSet
from tertium.encoders.encoder_network import BATCH_OVERHEADS
from tertium.errors import ModelError, UsageError
from tertium.execution import runtime
from tertium.metrics.flagship import bundled_model, tertium_small
from tertium.metrics.flagship.bundled_model import BundledModel
from tertium.metrics.flagship.tertium_small import MODEL, SmallSettings, TertiumSmall
from tertium.models.checkpoint import bundled_models_folder
from tertium.segment import Segment
from tertium.text import language_identification
from tertium.text.language_identification import may_be_english

REFERENCE = "On Tuesday, Mr Smith said that he could not take 1,250 euros for the house in Berlin."
SOME = 6  # segments of the example


@pytest.fixture(scope="module")
def metric() -> TertiumSmall:
    return TertiumSmall()


def score(metric: TertiumSmall, hypothesis: str, reference: str = REFERENCE) -> float:
    return float(metric.segment_scores([Segment(hypothesis, None, (reference,))])[0])


def test_a_copy_of_the_reference_scores_one_and_nothing_else_does(metric: TertiumSmall) -> None:
    assert score(metric, REFERENCE) == 1.0
    near = score(metric, REFERENCE.replace("house", "home"))
    assert 0.5 < near < 1.0


@pytest.mark.parametrize(
    "damaged",
    [
        REFERENCE.replace("1,250", "1,950"),
        REFERENCE.replace("could not", "could"),
        REFERENCE.replace("he ", "she "),
        REFERENCE.replace("Smith", "Kowalski"),
        REFERENCE.lower(),
        REFERENCE.replace(" ", ""),
        " ".join(sorted(REFERENCE.split())),
        REFERENCE + " The weather was fine and the children were asleep.",
        "",
    ],
)
def test_damage_costs(metric: TertiumSmall, damaged: str) -> None:
    assert score(metric, damaged) < score(metric, REFERENCE)


def test_paraphrase_beats_word_salad_and_negation_beats_neither(metric: TertiumSmall) -> None:
    paraphrase = "Mr Smith said on Tuesday he could not take 1,250 euros for the Berlin house."
    salad = "Tuesday take Smith euros could in the 1,250 Berlin said he house that not for on"
    assert score(metric, paraphrase) > score(metric, salad) + 0.1


def test_calibration_is_strictly_increasing_and_inside_zero_and_one(metric: TertiumSmall) -> None:
    raw = np.linspace(-12, 12, 2001)
    mapped = metric.human_scale.calibrate(raw)
    assert (np.diff(mapped) > 0).all()
    assert 0 < mapped[0] < mapped[-1] < 1


def test_percentile_and_uncertainty_are_sensible(metric: TertiumSmall) -> None:
    levels = np.array([0.1, 0.5, 0.9])
    percent = metric.percentile(levels)
    assert (np.diff(percent) >= 0).all()
    assert percent[0] < 30 < percent[-1]
    assert (metric.uncertainty(levels) > 0.05).all()


def test_several_references_are_reduced_by_best_or_mean() -> None:
    segment = Segment("a small house", None, ("a little house", "an entirely different matter"))
    parts = [
        float(TertiumSmall().segment_scores([Segment("a small house", None, (r,))])[0])
        for r in segment.references
    ]
    assert TertiumSmall().segment_scores([segment])[0] == pytest.approx(max(parts), abs=1e-5)
    mean = TertiumSmall(references="mean").segment_scores([segment])[0]
    assert mean == pytest.approx(np.mean(parts), abs=1e-5)


def test_pairs_judged_together_have_the_scores_they_have_alone(
    metric: TertiumSmall, example: TestSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a GPU does, here on a CPU: padded passes of many pairs, within rounding."""
    monkeypatch.setitem(BATCH_OVERHEADS, "cpu", 2048)  # lengths mix
    references = [texts[0] for texts in example.references][:SOME]
    left = [
        *example.systems["good"][:SOME],
        *example.systems["poor"][:SOME],
        "",
        "a cat",
        "",
        "long words " * 50,
    ]
    right = [*references, *references, "a cat", "", "", "long words, " * 60]
    with runtime(cache=False, memory=0, device="cpu"):
        alone = metric.run_network(left, right)
        network = small._network(metric.model, "cpu")
        for choices in ({"token_budget": 8192}, {"batch_size": 3}):
            with runtime(**choices):
                together = small.LateScorer(network, metric.reader).score_on_gpu(left, right)
            assert np.abs(together - alone).max() < 1e-5
    assert len({*alone}) > len(references)


def test_pairs_dealt_to_threads_have_the_scores_of_kept_vectors(
    metric: TertiumSmall, example: TestSet
) -> None:
    """To the last bit, whichever pairs share a thread."""
    references = [texts[0] for texts in example.references][:SOME]
    good, fair = (example.systems[name][:SOME] for name in ("good", "fair"))
    left = [*good, *fair, "", "a cat", "long words " * 50]
    right = [*references, *references, "a cat", "", "long words, " * 60]
    run_network = small.LateScorer(small._network(metric.model, "cpu"), metric.reader)
    with runtime(cache=False, device="cpu"):
        kept = judge.score_in_chunks(left, right)
    for threads in (1, 3):
        with runtime(cache=False, memory=0, device="cpu", threads=threads):
            assert judge.score_in_batches(left, right).tolist() == kept.tolist()


def test_other_languages_are_refused_with_advice() -> None:
    german = "Die Katze sitzt auf der Matte, und der Hund liegt seit gestern vor der Tür."
    with pytest.raises(UsageError, match=r"into English.*chrf.*sentsim"):
        TertiumSmall().score([Segment(german, None, (f"{german} {n}",)) for n in "abcde"])
    # references of several systems count once: few words are few however often they stand there
    assert len(TertiumSmall().score([Segment(german, None, (german,))] * 5).segments) == 5
    assert may_be_english(["Yes."])
    few = TertiumSmall().score([Segment("今天公园里天气很好。", None, ("今天公园里天气很好。",))])
    assert few.warnings["reference not English"] == 1


def test_words_of_references_are_counted_once(
    metric: TertiumSmall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To refuse them, and once for all systems to count those in other languages."""
    read: list[str] = []
    pattern = language_identification.WORD_PATTERN

    class Counting:
        def findall(self, text: str) -> list[str]:
            read.append(text)
            return pattern.findall(text)

    monkeypatch.setattr(language_identification, "WORD", Counting())
    references = [f"the {n} cats are sitting on the mat in front of the house" for n in range(50)]
    segments = [Segment(text, None, (text,)) for text in references]
    metric.check(segments)
    assert read == references
    for _ in range(3):
        assert "reference not English" not in metric.warnings(segments)
    assert len(read) < 2 * len(references) + 15


def test_some_references_in_other_languages_are_counted(metric: TertiumSmall) -> None:
    """Words of them all are English enough not to be refused."""
    english = "The cat is sitting on the mat, and the dog has been in front of the door for days."
    others = ("Die Katze sitzt auf der Matte, der Hund vor der Tür.", "猫坐在垫子上，狗在门前。")
    texts = [f"{english} {n}" for n in range(8)] + [*others]
    segments = [Segment(text, None, (text,)) for text in texts]
    assert metric.score(segments).warnings == {"reference not English": 2}


def test_it_explains_which_words_found_no_partner(metric: TertiumSmall) -> None:
    found = metric.explain(Segment("the red car stopped", None, ("the blue car stopped",)))
    links = [link for link in found.comparisons[0].links if link.direction == "recall"]
    weakest = min(links, key=lambda link: link.similarity)
    assert found.comparisons[0].other_pieces[weakest.other] == "blue"
    values = set(found.comparisons[0].values)
    assert values == {"score", "uncertainty", "percentile", "MQM points"}


def test_an_explanation_asks_once_what_the_network_says(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def run_network(
        _: TertiumSmall, hypotheses: Sequence[str], references: Sequence[str]
    ) -> FloatArray:
        asked.append(len(references))
        return np.zeros(len(references))

    monkeypatch.setattr(TertiumSmall, "judge", judge)
    with runtime(cache=False, memory=0):
        TertiumSmall().explain(Segment("a red car", None, ("a blue car", "the blue car")))
    assert asked == [2]


def test_the_example_is_ordered(metric: TertiumSmall, example: TestSet) -> None:
    good, fair, poor = (metric.score(example.segments(name)).system for name in example.systems)
    assert good > fair > poor


def test_a_damaged_model_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / MODEL
    shutil.copytree(bundled_models_folder() / MODEL, folder)
    data = bytearray((folder / "weights.safetensors").read_bytes())
    data[-1] ^= 1
    (folder / "weights.safetensors").write_bytes(data)
    with pytest.raises(ModelError, match="damaged"):
        _ = BundledModel(folder).hash
    (folder / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(ModelError, match=r"config\.json cannot be read"):
        _ = BundledModel(folder).config


def test_longer_references_cost_what_the_settings_say(metric: TertiumSmall) -> None:
    """By hand: what the network says, less the cost of words, as many as count."""
    left = ["He said it.", "She said it.", "It.", "He said so on Tuesday."]
    right = [REFERENCE, REFERENCE, "It is.", " ".join([REFERENCE] * 9)]
    length = metric.settings.length
    words = [17, 17, length.least, length.most]
    expected = metric.run_network(left, right) - length.cost * np.log(words)
    assert metric.raw_scores(left, right) == pytest.approx(expected, abs=1e-6)
    free = TertiumSmall(length="free")
    assert free.raw_scores(left, right) == pytest.approx(metric.run_network(left, right), abs=1e-6)


def test_a_cost_of_length_keeps_the_order_within_a_segment_and_is_signed(
    metric: TertiumSmall, example: TestSet
) -> None:
    free = TertiumSmall(length="free")
    for reference in [texts[0] for texts in example.references][:6]:
        outputs = [texts[0] for texts in example.systems.values()] + ["", reference[:-9]]
        ranks = [
            np.argsort([score(one, text, reference) for text in outputs]).tolist()
            for one in (metric, free)
        ]
        assert ranks[0] == ranks[1]
    assert f"@{metric.model.hash[:8]}+length0.25|" in metric.signature(())
    assert f"@{metric.model.hash[:8]}|" in free.signature(())
    assert metric != free


def test_no_copy_is_kept_that_could_be_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A zeroed matrix of a copy in the cache once changed scores in silence."""
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path / "cache"))
    small._encoder.cache_clear()
    with runtime(cache=False):
        assert score(TertiumSmall(), "He said it on Tuesday.") > 0
    assert not list(tmp_path.rglob("*.safetensors"))


def test_a_cache_that_cannot_be_written_changes_nothing(
    metric: TertiumSmall, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = score(metric, "He said on Tuesday that the house is his.")
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path / "file"))
    small._encoder.cache_clear()
    assert score(TertiumSmall(), "He said on Tuesday that the house is his.") == known


@pytest.mark.parametrize("file", ["encoder/tokenizer.json", "encoder/config.json"])
def test_a_damaged_file_of_the_encoder_is_refused(file: str, tmp_path: Path) -> None:
    folder = tmp_path / MODEL
    shutil.copytree(bundled_models_folder() / MODEL, folder)
    model = BundledModel(folder)
    files = model.settings(SmallSettings).encoder_files
    assert model.encoder_weights(files).folder == folder / "encoder"
    (folder / file).write_bytes((folder / file).read_bytes() + b" ")
    with pytest.raises(ModelError, match=f"{file} is damaged"):
        model.encoder_weights(files)
    (folder / file).unlink()
    with pytest.raises(ModelError, match=f"{file} cannot be read"):
        model.encoder_weights(files)


def test_damaged_weights_are_refused_also_where_assertions_are_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").write_text('{"weights_sha256": "00"}', encoding="utf-8")
    (tmp_path / "weights.safetensors").write_bytes(b"anything")
    file = str(packaged.__file__)
    optimised = ModuleType("optimised")  # a process of its own would compile all packages anew
    monkeypatch.setitem(sys.modules, optimised.__name__, optimised)
    exec(compile(Path(file).read_text(encoding="utf-8"), file, "exec", optimize=1), vars(optimised))
    with pytest.raises(ModelError, match="is damaged"):
        _ = optimised.BundledModel(tmp_path).weights


def test_the_package_stays_small() -> None:
    assert (bundled_models_folder() / MODEL / "weights.safetensors").stat().st_size < 25_000_000
