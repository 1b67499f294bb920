"""Routes: fitted on judged rows, saved, and applied to new rows."""

from __future__ import annotations

import json

import pytest
from tests.decisions.judged_files import make_rows

from tertium import Route, TestSet, apply_route, fit_route
from tertium.core.errors import DataError, ModelError, TertiumError, UsageError
from tertium.data.judgments import read_judgments
from tertium.decide.route import JudgedRows, choose_criteria, read_judged_rows


@pytest.fixture(scope="module")
def judged_rows() -> JudgedRows:
    rows = make_rows(400) + make_rows(300, "en-cs", 2) + make_rows(60, "en-is", 3)
    return read_judged_rows([*_split(rows)])


def _split(rows: list[dict[str, object]]) -> list[object]:
    return [*read_judgments(rows).split_by_language_pair().values()]


@pytest.fixture(scope="module")
def route(judged_rows: JudgedRows) -> Route:
    return fit_route(judged_rows, "chrf", target_precision=0.85, ignore=["wrong-language"])


def test_thresholds_of_pairs(route, judged_rows):
    [stage] = route.stages
    assert set(stage.pairs) == {"en-de", "en-cs"}  # en-is has 60 rows
    own = stage.pairs["en-de"]
    assert own.publish.low >= 0.85
    assert own.publish.score > own.retranslate.score
    shares = {"target_precision": 0.5, "bad_precision": 0.2}
    route = fit_route(judged_rows, "chrf", **shares, bad_score=79, ignore=["wrong-language"])
    for own in route.stages[0].pairs.values():
        assert own.publish.score > own.retranslate.score


def test_published_rows_reach_the_promise(route):
    rows = make_rows(300, seed=9)
    routed = apply_route(route, TestSet.from_records(rows))
    scores = {row["segment"]: row["score"] for row in rows}
    published = [r for r in routed.rows if r.outcome == "publish"]
    good = sum(scores[str(r.row.item)] >= 80 for r in published) / len(published)
    assert len(published) > 30
    assert good >= 0.85
    assert not routed.notes  # no drift, a fitted pair


def test_checks_decide_before_scores(route):
    rows = make_rows(2, seed=4)
    rows[0]["mt"] = ""
    rows[1] |= {"src": f"{rows[1]['src']} {{name}}", "mt": rows[1]["ref"]}
    empty, placeholder = apply_route(route, TestSet.from_records(rows)).rows
    assert (empty.outcome, empty.reason) == ("retranslate", "check empty")
    assert (placeholder.outcome, placeholder.reason) == ("post-edit", "check placeholders")


def test_other_pairs_and_other_scores_are_reported(route):
    rows = make_rows(100, "en-fi", 5) + [
        {**row, "mt": row["ref"]} for row in make_rows(100, "en-de", 6)
    ]
    routed = apply_route(route, TestSet.from_records(rows))
    assert routed.counts()["en-fi"]["publish"] == 0
    notes = routed.notes
    assert any("en-fi: 100 rows, but fewer than 100 judged rows" in note for note in notes)
    assert any("en-fi" in note and "its scores decide nothing" in note for note in notes)
    assert any("en-de: scores of chrf are unlike those of the judged rows" in n for n in notes)


def test_rows_that_do_not_fit_the_route_are_refused(route):
    rows = [{k: v for k, v in row.items() if k != "lp"} for row in make_rows(3)]
    with pytest.raises(UsageError, match="add a column lp"):
        apply_route(route, TestSet.from_records(rows))
    assert apply_route(route, TestSet.from_records(rows), lp="en-de").rows
    rows = [{**row, "ref": [row["ref"], row["mt"]]} for row in make_rows(3)]  # two references
    with pytest.raises(ModelError, match=r"fitted with chrF\|nrefs:1.*but the scores are chrF"):
        apply_route(route, TestSet.from_records(rows))


def test_a_route_is_saved_and_validated(route, tmp_path):
    file = tmp_path / "route.json"
    route.write(file)
    assert Route.load(file) == route
    content = json.loads(file.read_text())
    content["stages"][0]["pairs"]["en-de"]["publish"]["precision"] = 1.2
    file.write_text(json.dumps(content))
    with pytest.raises(ModelError, match=r"publish\.precision is the number 1\.2, expected"):
        Route.load(file)
    with pytest.raises(UsageError, match="no such file"):
        Route.load(tmp_path / "other.json")


def test_too_few_rows_and_unreachable_targets_are_refused(judged_rows):
    few = read_judgments(make_rows(42))
    with pytest.raises(DataError, match=r"too few judged rows for a precision of 0\.95"):
        fit_route(few, "chrf")
    rows = make_rows(80) + make_rows(80, "en-cs", 2)
    with pytest.raises(DataError, match=r"too few judged rows.* 100 of a language pair"):
        fit_route(read_judged_rows([*_split(rows)]), "chrf", target_precision=0.5)
    with pytest.raises(DataError, match=r"no threshold reaches a precision of 0\.99.*The best is"):
        fit_route(judged_rows, "chrf", target_precision=0.99, good_score=95)


def test_a_second_metric_scores_only_undecided_rows(judged_rows):
    route = fit_route(
        judged_rows, "ter", escalate="chrf", target_precision=0.85, ignore=["wrong-language"]
    )
    assert not route.stages[0].higher_is_better
    routed = apply_route(route, TestSet.from_records(make_rows(200, seed=8)))
    [saving] = routed.savings
    assert saving.scored + saving.avoided == sum("ter" in row.scores for row in routed.rows)
    assert 0 < saving.scored < saving.avoided + saving.scored
    assert sum("chrf" in row.scores for row in routed.rows) == saving.scored
    assert {row.outcome for row in routed.rows if "chrf" not in row.scores} != {"post-edit"}


def test_criteria_follow_the_protocol():
    rows = make_rows(20)
    direct = read_judged_rows(read_judgments(rows))
    assert choose_criteria(direct).allow_major  # nobody marked errors
    marked = [
        {**row, "spans": [{"start": 0, "end": 3, "severity": "major"}] * (n % 2)}
        for n, row in enumerate(rows)
    ]
    annotated = read_judged_rows(read_judgments(marked))
    criteria = choose_criteria(annotated)
    assert (criteria.good_score, criteria.bad_score, criteria.allow_major) == (80, 50, False)
    assert not criteria.flag_good(annotated)[1::2].any()
    expert = read_judged_rows(read_judgments([{**r, "score": r["score"] / 4 - 25} for r in rows]))
    assert choose_criteria(expert).good_score == -1
    standardized = read_judged_rows(
        read_judgments([{**row, "score": row["score"] / 50 - 1} for row in rows])
    )
    with pytest.raises(UsageError, match="--good-score"):
        choose_criteria(standardized)
    with pytest.raises(UsageError, match="exchange them"):
        choose_criteria(direct, good_score=60, bad_score=70)


@pytest.mark.parametrize("option", ["target_precision", "bad_precision", "alpha"])
def test_shares_are_checked(judged_rows, option):
    with pytest.raises(TertiumError, match="between 0 and 1"):
        fit_route(judged_rows, "chrf", **{option: 1.0})
