"""tertium-multi: the shipped weights against the network that was trained, views, and warnings."""

from __future__ import annotations

import dataclasses
import io
import json
import shutil
from collections.abc import Sequence
from contextlib import redirect_stdout
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.short_windows import ROOM, short_windows

from tertium.arrays import Float32Array, FloatArray
from tertium.cache.vector_cache import clear_memory
from tertium.cli.explain import show
from tertium.errors import MissingInputError, ModelError, UsageError
from tertium.execution import runtime
from tertium.metrics.base.explanation import Explanation
from tertium.metrics.base.loading import load_metric
from tertium.metrics.flagship.bundled_model import BundledModel
from tertium.metrics.flagship.error_spans import LOGITS, WRONG
from tertium.metrics.flagship.row_scorer import (
    READOUT_COLUMN,
    MultiSettings,
    RowScorer,
    piece_errors,
)
from tertium.metrics.flagship.score_correction import Row
from tertium.metrics.flagship.tertium_multi import (
    INPUT_MODES,
    MODEL,
    TertiumMulti,
    build_rows,
    mode_of_row,
)
from tertium.metrics.flagship.tertium_small import TertiumSmall
from tertium.models.checkpoint import bundled_models_folder
from tertium.segment import Segment

if TYPE_CHECKING:
    from recipes.multi.columns import Looking

torch = pytest.importorskip("torch")
SOURCE = "Der Zug nach Hamburg fährt heute nicht um 14 Uhr ab."
REFERENCE = "The train to Hamburg is not leaving at 2 pm today."
GOOD = "The train to Hamburg does not leave at 14:00 today."
GOLDEN = Path(__file__).parents[2] / "golden" / "multi.json"
# int8 rows move raw scores by up to .06 and logits by up to .2 on these rows
SCORE_TOLERANCE, LOGIT_TOLERANCE = 0.08, 0.25


@pytest.fixture(scope="module")
def metric() -> TertiumMulti:
    return TertiumMulti()


@pytest.fixture(scope="module")
def looking(metric: TertiumMulti) -> Looking:
    """The recipe's own network, padded and flat, with the very weights that ship."""
    from recipes.multi.columns import Looking

    return Looking(metric.model).eval()


def network_scores(metric: TertiumMulti, rows: Sequence[Row]) -> FloatArray:
    """What the network says before it is corrected, (rows, 2)."""
    return np.array(
        [said[: READOUT_COLUMN.start] for said in metric.raw_outputs(rows)], dtype=np.float64
    )


def test_the_network_says_what_it_said_when_it_was_trained(metric: TertiumMulti) -> None:
    rows = json.loads(GOLDEN.read_text(encoding="utf-8"))["rows"]
    said = network_scores(metric, [tuple(row["row"]) for row in rows])
    np.testing.assert_allclose(said[:, 0], [row["score"] for row in rows], atol=SCORE_TOLERANCE)
    np.testing.assert_allclose(said[:, 1], [row["clean"] for row in rows], atol=LOGIT_TOLERANCE)


def test_the_network_reads_as_the_recipe_does(metric: TertiumMulti, looking: Looking) -> None:
    from recipes.multi.evaluate import error_chance, judge
    from recipes.multi.network import Multi

    weights = looking.state_dict()
    with torch.device("meta"):  # so that no weight is drawn, all being there
        apart = metric.model.settings(MultiSettings).shape.apart
        network = Multi(len(weights["words.weight"]), apart=apart, dropout=0.0)
    for kind, whole in network.head.last.named_parameters():
        last = torch.zeros(whole.shape)  # of which the first and the last row ship
        last[[0, -1]] = weights[f"head.last.{kind}"]
        weights[f"head.last.{kind}"] = last
    network.load_state_dict(weights, assign=True)
    rows = [(GOOD, SOURCE, REFERENCE), (GOOD, None, REFERENCE), ("", SOURCE, None)]
    tokenizer = metric.reader._tokenizer
    numbers = [
        tuple(None if t is None else np.array(tokenizer([t])[0].ids, np.int32) for t in row)
        for row in rows
    ]
    expected = judge(network, numbers, "cpu", with_tags=True)
    said = network_scores(metric, rows)
    np.testing.assert_allclose(said[:, 0], expected.scores[:, 0], atol=1e-4)
    np.testing.assert_allclose(said[:, 1], expected.clean, atol=1e-4)
    for one, logits in zip(metric.raw_outputs(rows), expected.tags, strict=True):
        chances = piece_errors(one)[:, [WRONG[way] for way in LOGITS]]
        np.testing.assert_allclose(chances, error_chance(logits), atol=1e-4)


def test_a_second_reading_is_that_of_what_the_head_sees(
    metric: TertiumMulti, looking: Looking
) -> None:
    """The recipe, whose network takes rows together and padded, learned it from that."""
    from recipes.multi.network import make_layout, send_batch

    rows = [(GOOD, SOURCE, REFERENCE), ("train leaves not", None, REFERENCE), ("", SOURCE, None)]
    tokenizer = metric.reader._tokenizer
    numbers = [
        tuple(None if t is None else np.array(tokenizer([t])[0].ids, np.int32) for t in row)
        for row in rows
    ]
    readouts, expected = metric.reader._network.readouts, []
    for row, one in zip(rows, numbers, strict=True):
        looking.view = mode_of_row(row)
        with torch.no_grad():
            looking(send_batch(make_layout([one]), "cpu"))
            expected.append(readouts[INPUT_MODES.index(looking.view)](looking.found)[0])
    said = np.array([one[READOUT_COLUMN] for one in metric.raw_outputs(rows)])
    np.testing.assert_allclose(said, torch.stack(expected), atol=1e-4)
    assert np.abs(said).min() > 0.05


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_neighbors_threads_and_blocks_change_no_bit(
    precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    metric = TertiumMulti(precision=precision)  # type: ignore[arg-type]
    rows = [
        (t, s, r)
        for t in (GOOD, "train leaves not", "", "word " * 40)
        for s, r in ((SOURCE, REFERENCE), (SOURCE, None), (None, REFERENCE))
    ]
    alone = []
    for row in rows:
        clear_memory()
        with runtime(cache=False, memory=0, threads=1):
            alone.append(metric.raw_scores([row])[0])
    monkeypatch.setattr("tertium.metrics.flagship.row_scorer.PIECES_AT_ONCE", 90)
    monkeypatch.setattr("tertium.metrics.flagship.row_scorer.PIECES_A_PASS", 200)
    clear_memory()
    with runtime(cache=False, memory=0, threads=2):
        together = metric.raw_scores(rows[::-1])[::-1]
    assert (together == np.array(alone)).all()


@pytest.mark.parametrize("view", INPUT_MODES)
@pytest.mark.parametrize(
    "damaged", ["The train to Hamburg leaves at 14:00 today.", "train leaves not", "", SOURCE]
)
def test_damage_costs_in_every_view(metric: TertiumMulti, view: str, damaged: str) -> None:
    judge = dataclasses.replace(metric, against=view)  # type: ignore[arg-type]
    segments = [Segment(text, SOURCE, (REFERENCE,)) for text in (GOOD, damaged)]
    whole, broken = judge.assess(segments).score
    assert whole > broken
    chances = judge.assess(segments).clean
    assert chances[0] > chances[1]


def test_views_follow_what_is_given(metric: TertiumMulti) -> None:
    both = Segment(GOOD, SOURCE, (REFERENCE,))
    for view, segment in (
        ("both", both),
        ("source", Segment(GOOD, SOURCE)),
        ("reference", Segment(GOOD, None, (REFERENCE,))),
    ):
        asked = dataclasses.replace(metric, against=view)  # type: ignore[arg-type]
        assert metric.view([segment]) == view
        assert metric.score([segment]).system == asked.score([both]).system
    assert not metric.required_inputs
    assert load_metric("tertium-multi:against=both").required_inputs == {"source", "references"}
    assert "|against:source+reference|" in metric.score([both]).signature
    with pytest.raises(MissingInputError, match="segment 2 has no references and others have"):
        metric.score([both, Segment(GOOD, SOURCE)])
    with pytest.raises(MissingInputError, match="neither"):
        metric.score([Segment(GOOD)])


def test_several_references_are_reduced_by_best_or_mean(metric: TertiumMulti) -> None:
    references = (REFERENCE, "Something else altogether was said there.")
    segment = Segment(GOOD, None, references)
    parts = [metric.segment_scores([Segment(GOOD, None, (r,))])[0] for r in references]
    assert metric.segment_scores([segment])[0] == max(parts)
    mean = TertiumMulti(references="mean").segment_scores([segment])[0]
    assert mean == pytest.approx(np.mean(parts))
    assert metric.segment_scores([Segment(REFERENCE, None, references)])[0] == 1.0


def test_scales_are_increasing_and_inside_zero_and_one(metric: TertiumMulti) -> None:
    raw = np.linspace(-12, 12, 2001)
    for view in INPUT_MODES:
        scale = getattr(metric.settings.scales, view)
        mapped = scale.calibrate(raw)
        assert (np.diff(mapped) > 0).all()
        assert 0 < mapped[0] < mapped[-1] < 1
        assert (scale.deviation(np.array([0.2, 0.8])) > 0.05).all()
        percent = scale.percentile(np.array([0.05, 0.5, 0.95]))
        assert percent[0] < 20 < 80 < percent[-1]


def test_a_long_text_is_read_in_windows_that_are_averaged_by_length(metric: TertiumMulti) -> None:
    row = (f"{GOOD} " * 6, f"{SOURCE} " * 5, None)
    with short_windows():
        judge = metric.reader
        windows = judge._windows([row])[0]
        assert len(windows) > 1
        assert all(len(ids) <= ROOM for window in windows for _, ids in window)
        whole = [tuple(i for window in windows for i in window[side][1]) for side in (0, 1)]
        assert whole == [judge._tokenizer([text])[0].ids for text in row[:2]]
        parts = list(judge._run(windows))
        sizes = [len(window[0][1]) for window in windows]
        [said] = metric.raw_outputs([row])
    for place in (0, *range(READOUT_COLUMN.start, READOUT_COLUMN.stop)):
        mean = np.average([part[place] for part in parts], weights=sizes)
        assert said[place] == pytest.approx(mean, abs=1e-6)
    assert said[1] == min(part[1] for part in parts)
    assert len(piece_errors(said)) == sum(sizes) == len(metric.piece_places([row[0]])[0])


def test_a_paragraph_in_windows_scores_near_its_sentences(metric: TertiumMulti) -> None:
    """Its translation in the other order of sentences would not: windows lie side by side."""
    paragraph = Segment(f"{GOOD} " * 6, f"{SOURCE} " * 6)
    short = Segment(GOOD, SOURCE)
    wrong = Segment("The weather stays fine until Sunday evening. " * 9, f"{SOURCE} " * 6)
    with short_windows():
        fine, one, bad = metric.segment_scores([paragraph, short, wrong])
    assert abs(fine - one) < 0.2
    assert fine > bad + 0.05


def test_errors_are_marked_from_the_pass_that_scores(
    metric: TertiumMulti, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments = [
        Segment("A Hund sits on the table.", "Ein Hund sitzt auf dem Tisch."),
        Segment("", SOURCE),
        Segment("Der 🚆 fährt nicht", SOURCE),
    ]
    clear_memory()
    with runtime(cache=False):
        scores = metric.score(segments)
        monkeypatch.setattr(RowScorer, "__call__", lambda *_: pytest.fail("a second pass"))
        spans = metric.mark_errors(segments)
    assert np.isfinite(scores.segments).all()
    assert not spans[1]
    assert spans[0]
    assert spans[2]
    for segment, marked in zip(segments, spans, strict=True):
        for span in marked:
            part = span.of(segment.hypothesis)
            assert part == part.strip() != ""
            assert span.severity in ("minor", "major")
            assert span.chance is not None
            assert span.chance >= metric.settings.spans.mqm.source.wrong
        assert all(a.end <= b.start for a, b in pairwise(marked))


def test_each_row_is_read_once_also_where_nothing_is_kept(
    metric: TertiumMulti, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Row] = []
    judge = RowScorer.__call__

    def note(self: RowScorer, rows: Sequence[Row]) -> list[Float32Array]:
        read.extend(rows)
        return judge(self, rows)

    monkeypatch.setattr(RowScorer, "__call__", note)
    clear_memory()
    with runtime(cache=False, memory=0):
        metric.score([Segment("Es regnet.", None, ("It rains.",)), Segment("", None, ("Rain.",))])
    assert len(read) == len(set(read)) == 2


def test_marks_follow_the_way_and_the_best_reference(metric: TertiumMulti) -> None:
    words = dataclasses.replace(metric, marks="words")
    assert {s.severity for s in words.spans([Segment(GOOD, SOURCE)])[0]} <= {"bad"}
    assert load_metric("tertium-multi:marks=esa") == dataclasses.replace(metric, marks="esa")
    others = (REFERENCE, "Something else altogether was said there.")
    beside_best = metric.spans([Segment(GOOD, None, (REFERENCE,))])
    assert metric.spans([Segment(GOOD, None, others)]) == beside_best
    assert metric.spans([Segment(REFERENCE, None, others)]) == [()]


def test_a_model_without_tags_marks_nothing(
    metric: TertiumMulti, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / MODEL
    shutil.copytree(bundled_models_folder() / MODEL, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "spans": None}))
    monkeypatch.setattr(
        "tertium.metrics.flagship.calibrated_metric.load_bundled_model",
        lambda _: BundledModel(folder),
    )
    assert not metric.can_mark_errors
    with pytest.raises(UsageError, match="marks no errors: its weights have no tags"):
        metric.mark_errors([Segment(GOOD, SOURCE)])


def test_long_texts_and_unknown_languages_are_counted(metric: TertiumMulti) -> None:
    short = Segment(GOOD, SOURCE)
    windowed = metric.score([Segment("der Zug " * 400, SOURCE), short]).warnings
    assert windowed["long text, read in windows"] == 1
    assert "truncated text" not in windowed
    cut = metric.warnings([Segment("der Zug " * 2500, SOURCE), short])
    assert cut["truncated text"] == 1
    assert "long text, read in windows" not in cut
    kind = f"language unknown to {MODEL}"
    assert kind not in metric.score([Segment(GOOD, SOURCE)]).warnings
    tibetan = Segment("བོད་སྐད་ནི་བོད་མིའི་སྐད་ཡིག་ཡིན།", SOURCE)
    assert metric.score([tibetan]).warnings[kind] == 1
    named = TertiumMulti(lp="en-yo").score([Segment(GOOD, SOURCE)])
    assert named.warnings[kind] == 1
    assert metric.score([Segment(GOOD, " ")]).warnings["empty source"] == 1
    with pytest.raises(UsageError, match="language pair"):
        TertiumMulti(lp="en")


def test_a_translation_into_another_language_than_asked_for_is_noticed() -> None:
    french = "Le train pour Hambourg ne part pas aujourd'hui à 14 heures."
    copy = f"{SOURCE} Er fährt morgen."
    segments = [Segment(text, SOURCE) for text in (GOOD, french, copy, "Hamburg")]
    asked = TertiumMulti(lp="de-en")
    said, unasked = asked.assess(segments), TertiumMulti().assess(segments)
    assert said.score[0] == unasked.score[0]
    assert said.score[3] == unasked.score[3]
    assert (said.score[1:3] < unasked.score[1:3]).all()
    assert (said.score[1:3] < 0.5 * said.score[0]).all()
    assert (said.clean[1:3] < 0.03).all()
    scores = asked.score(segments)
    assert scores.warnings["translation not in en"] == 2
    assert json.loads(json.dumps(scores.warnings)) == scores.warnings
    assert "|lp:de-en|" in scores.signature
    assert asked.segment_scores([Segment(french, None, (french,))])[0] == 1.0


def test_names_in_a_translation_do_not_count_for_its_language() -> None:
    texts = ("Microsoft Azure DevOpsを使う", "Microsoft Azure DevOps", "IBM", "#TrainsAndTracks")
    segments = [Segment(text, "Use Microsoft Azure DevOps") for text in texts]
    said, unasked = TertiumMulti(lp="en-ja").assess(segments), TertiumMulti().assess(segments)
    assert (said.score == unasked.score).tolist() == [True, False, True, True]
    assert (said.clean == unasked.clean).tolist() == [True, False, True, True]


def told(explained: Explanation) -> str:
    with redirect_stdout(io.StringIO()) as shown:
        show(explained, top=1)
    return shown.getvalue()


def test_all_windows_of_long_texts_are_explained(metric: TertiumMulti) -> None:
    [part] = metric.explain(Segment("the train " * 300, "der Zug " * 300)).comparisons
    assert part.hypothesis_pieces == ("▁the", "▁train") * 300
    assert {link.hypothesis for link in part.links} == set(range(600))


def test_what_cannot_be_scored_is_not_assessed(metric: TertiumMulti) -> None:
    for ask in (metric.assess, metric.mqm_points, TertiumSmall().mqm_points):
        with pytest.raises(MissingInputError, match="segment 1 has n"):
            ask([Segment(GOOD)])  # was judged beside an empty source, or not at all


def test_it_explains_with_what_it_read(metric: TertiumMulti) -> None:
    found = metric.explain(Segment(GOOD, SOURCE, (REFERENCE, "A train.")))
    assert [c.side for c in found.comparisons] == ["source", "reference", "reference"]
    values = found.comparisons[1].values
    assert set(values) == {"score", "uncertainty", "percentile", "no error", "MQM points"}
    source = found.comparisons[0]
    assert source.values == {}  # no score is of the source alone
    assert [c.combined_with for c in found.comparisons] == ["", "source", "source"]
    assert "reference 'A train.': with the source, score" in told(found)
    assert "counts in the score beside each reference" in told(found)
    alone = metric.explain(Segment(GOOD, SOURCE)).comparisons[0]
    assert (set(alone.values), alone.combined_with) == (set(values), "")
    partner = {
        source.hypothesis_pieces[k.hypothesis]: source.other_pieces[k.other]
        for k in source.links
        if k.direction == "precision"
    }
    assert partner["▁Hamburg"] == "▁Hamburg"
    assert partner["▁train"] == "▁Zug"


def test_rows_hold_what_a_view_reads() -> None:
    segment = Segment("a", "A", ("x", "y"))
    assert build_rows([segment], "reference")[1] == [("a", None, "x"), ("a", None, "y")]


def test_a_damaged_model_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / MODEL
    shutil.copytree(bundled_models_folder() / MODEL, folder)
    model = BundledModel(folder)
    settings = model.settings(MultiSettings)
    file = folder / "encoder" / "tokenizer.json"
    file.write_bytes(file.read_bytes() + b" ")
    with pytest.raises(ModelError, match=r"tokenizer\.json is damaged"):
        model.encoder_weights(settings.encoder_files)
    config = json.loads((folder / "config.json").read_text())
    config["shape"]["apart"] = 13
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="apart is the number 13, expected from 0 to 12"):
        BundledModel(folder).settings(MultiSettings)


def test_the_package_stays_small() -> None:
    files = [f for f in (bundled_models_folder() / MODEL).rglob("*") if f.is_file()]
    assert sum(file.stat().st_size for file in files) < 60_000_000
