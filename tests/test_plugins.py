"""Metrics, rankers and encoders of other packages: listed, loaded, cached, and never in the way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from tertium import TestSet, rank, score, score_corpus
from tertium.arrays import FloatArray
from tertium.cli import main
from tertium.encoders.encoder import load_encoder
from tertium.errors import MissingResourceError, PluginError, UsageError
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric, SegmentMetric
from tertium.metrics.base.ranker import load_ranker
from tertium.registry import METRICS, RANKERS
from tertium.segment import Segment
from tertium.testing import check_metric

MODULE = '''
"""Length ratio: how close the length of a translation is to that of its nearest reference."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import tertium


@dataclass(frozen=True, kw_only=True)
class LengthRatio(tertium.SegmentMetric):
    """min(h, r) / max(h, r), 0 to 1."""

    name: ClassVar[str] = "length-ratio"
    title: ClassVar[str] = "LengthRatio"
    citation: ClassVar[str] = "@misc{ratio, title={Ratio}}"

    words: bool = True

    def segment_scores(self, segments):
        return np.array([max(self.ratio(s.hypothesis, r) for r in s.references) for s in segments])

    def ratio(self, hypothesis, reference):
        a, b = (len(t.split()) if self.words else len(t) for t in (hypothesis, reference))
        return min(a, b) / max(a, b, 1)


@dataclass(frozen=True, kw_only=True)
class Random(LengthRatio):
    name: ClassVar[str] = "random"

    def segment_scores(self, segments):
        return np.random.default_rng().random(len(segments))


@dataclass(frozen=True, kw_only=True)
class Strange(LengthRatio):
    name: ClassVar[str] = "strange"

    gives: str = "nan"

    def segment_scores(self, segments):
        size = len(segments)
        return {
            "nan": np.array([np.nan, *np.ones(size - 1)]),
            "fewer": np.ones(size - 1),
            "more": np.ones(size + 1),
            "texts": np.array(["good"] * size),
            "generator": (1.0 for _ in segments),
            "nothing": None,
        }[self.gives]


@dataclass(frozen=True, kw_only=True)
class Longer(tertium.Ranker):
    """Prefers the longer one."""

    name: ClassVar[str] = "longer"
    title: ClassVar[str] = "Longer"

    gives: str = "chances"

    def prefer_pairs(self, segments, left, right):
        sizes = np.array([len(s.hypothesis) for s in segments])
        wins = (np.sign(sizes[left] - sizes[right]) + 1) / 2
        others = {"fewer": wins[1:], "percent": 100 * wins, "nothing": None}
        return others.get(self.gives, wins)


@dataclass(frozen=True, kw_only=True)
class Stranger:
    name: ClassVar[str] = "stranger"


chosen = LengthRatio()
object.__setattr__(chosen, "name", "chosen")


def load_nothing(name, **chosen):
    return Stranger()


def load_in_vain(name, **chosen):
    raise OSError("no such server\\nat all")


def load(name, **chosen):
    from tertium.encoders.encoder import EncoderName
    from tertium.encoders.toy_encoder import load

    return load(EncoderName("toy"), **chosen)
'''


def install(folder: Path, package: str, entries: str, module: str = "") -> None:
    """A package as pip leaves it: a module, and what the distribution says of itself."""
    about = folder / f"{package}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(entries)
    if module:
        (folder / f"{package}.py").write_text(module)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages on the search path; what is imported from it is forgotten afterwards."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    for module in ("ratios", "broken", "needy"):
        monkeypatch.setitem(sys.modules, module, None)  # so that it is put back as it was
        del sys.modules[module]
    return folder


@pytest.fixture
def ratios(site: Path) -> Path:
    entries = (
        "[tertium.metrics]\nlength-ratio = ratios:LengthRatio\nrandom = ratios:Random\n"
        "strange = ratios:Strange\nbleu = ratios:LengthRatio\n"
        "stranger = ratios:Stranger\nchosen = ratios:chosen\n"
        "[tertium.rankers]\nlonger = ratios:Longer\n[tertium.encoders]\ntoys = ratios:load\n"
        "nothing = ratios:load_nothing\nvain = ratios:load_in_vain\n"
    )
    install(site, "ratios", entries, MODULE)
    return site


@pytest.mark.usefixtures("ratios")
def test_a_plugin_is_a_metric_like_ours(capsys: pytest.CaptureFixture[str]) -> None:
    metric = load_metric("length-ratio:words=false")
    assert metric.spec == "length-ratio:words=false"
    segment = Segment("a cat sat", None, ("the cat",))
    assert metric.score([segment]).system == pytest.approx(7 / 9)
    assert load_ranker("longer").prefer([segment], [Segment("a", None, ("the cat",))]) == [1]
    assert main(["list"]) == 0
    # its module holds two metrics, so each is told by its own words
    assert "LengthRatio: min(h, r) / max(h, r)" in capsys.readouterr().out
    assert main(["list", "length-ratio"]) == 0
    assert "words" in capsys.readouterr().out
    assert main(["cite", "length-ratio"]) == 0
    assert "@misc{ratio" in capsys.readouterr().out


@pytest.mark.usefixtures("ratios")
def test_names_of_ours_go_first() -> None:
    assert type(load_metric("bleu")).__module__ == "tertium.metrics.lexical.bleu"
    assert list(METRICS).count("bleu") == 1
    assert len(METRICS) == len(list(METRICS))
    assert {*RANKERS} - {*RANKERS.builtin} >= {"longer"}


@pytest.mark.usefixtures("ratios")
def test_an_encoder_serves_our_metrics_and_their_cache(capsys: pytest.CaptureFixture[str]) -> None:
    segments = [Segment("the cat sat", None, ("a cat sat down",))]
    theirs, ours = (load_metric(f"smd:encoder={name}").score(segments) for name in ("toys", "toy"))
    assert theirs.system == ours.system
    assert load_encoder("toys").fingerprint("tokens") == load_encoder("toy").fingerprint("tokens")
    assert main(["models"]) == 0
    assert "ratios 1.0" in capsys.readouterr().out


@pytest.mark.usefixtures("ratios")
def test_the_laws_hold_for_plugins_and_find_who_breaks_them() -> None:
    check_metric("length-ratio")
    check_metric("length-ratio:words=false")
    with pytest.raises(AssertionError, match="order of segments does not matter"):
        check_metric("random")


def test_a_metric_of_ones_own_program_ranks_and_is_refused_by_a_corpus(tmp_path: Path) -> None:
    spoken = type("Spoken", (type(load_metric("chrf")),), {"name": "spoken"})()
    testset = TestSet(systems={"a": ["a dog"], "b": ["a cat"]}, references=[["the cat"]])
    assert [record["system"] for record in rank(testset, spoken).records()] == ["b", "a"]
    testset.write(tmp_path / "rows.jsonl")
    with pytest.raises(UsageError, match=r"^spoken is no registered metric, and workers make"):
        score_corpus(tmp_path / "rows.jsonl", spoken, tmp_path / "scored")


@pytest.mark.usefixtures("ratios")
def test_scores_that_do_not_fit_are_refused_and_those_that_are_none_are_counted() -> None:
    segments = [Segment(text, None, ("the cat",)) for text in ("a cat", "a dog", "a cow")]
    for gives in ("fewer", "more", "texts", "generator", "nothing"):
        metric = load_metric(f"strange:gives={gives}")
        with pytest.raises(
            PluginError, match=r"^strange gave .* shape \(3,\), one for each segment"
        ):
            metric.score(segments)
    assert load_metric("strange").score(segments).warnings == {"score that is no number": 1}


@pytest.mark.usefixtures("ratios")
def test_what_is_no_metric_and_no_encoder_is_refused() -> None:
    for name in ("stranger", "chosen"):
        with pytest.raises(PluginError, match=f"^{name} is .*, and no class of metrics"):
            load_metric(name)
    with pytest.raises(
        PluginError, match=r"^encoder nothing is a Stranger, which has no dim: an en"
    ):
        load_encoder("nothing")
    with pytest.raises(
        PluginError, match=r"^encoder 'vain' of ratios 1.0 .*load_in_vain: OSError: no such server;"
    ):
        load_encoder("vain@3")


@pytest.mark.usefixtures("ratios")
def test_chances_that_are_none_are_refused() -> None:
    testset = TestSet(systems={"a": ["dogs", "a"], "b": ["cat", "b"]}, references=[["cat"], ["b"]])
    assert rank(testset, "longer").matrix.values.tolist() == [[1.0, 0.5], [0.0, 0.5]]
    for gives in ("fewer", "percent", "nothing"):
        with pytest.raises(
            PluginError, match=r"^longer gave .* for 2 pairs: .* from 0 to 1 or NaN"
        ):
            rank(testset, f"longer:gives={gives}")
    ranker, segment = load_ranker("longer"), Segment("a", None, ("b",))
    for left in (["a"], segment):
        with pytest.raises(UsageError, match=r"^longer scores .*segments, not "):
            ranker.prefer(left, [segment])  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Words(Metric):
    """A metric of one's own program: words for each segment."""

    name: ClassVar[str] = "words"
    title: ClassVar[str] = "Words"
    citation: ClassVar[str] = "@misc{words, title={Words}}"

    half: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return ("words", "segments")

    def statistics(self, segments: Sequence[Segment]) -> FloatArray:
        return np.array([[len(segment.hypothesis.split()), 1.0] for segment in segments])

    def reduce(self, totals: FloatArray) -> FloatArray:
        words: FloatArray = totals[..., 0] / totals[..., 1]
        return words / 2 if self.half else words


def wrong(*, frozen: bool = True, **changes: Any) -> Metric:
    """A metric like the one above, but for what it breaks; None stands for what it lacks."""
    whole = ("name", "title", "citation", "columns", "statistics", "reduce")
    parts = {part: vars(Words)[part] for part in whole} | {"half": False, **changes}
    made = type("Wrong", (Metric,), {k: v for k, v in parts.items() if v is not None})
    metric: Metric = dataclass(frozen=frozen, kw_only=True)(made)()
    return metric


def test_the_laws_are_tried_on_a_metric_that_is_not_registered() -> None:
    check_metric(Words())
    with pytest.raises(AssertionError, match=r"^words: a perfect translation is better than a wro"):
        check_metric(wrong(higher_is_better=False))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": None}, "^Wrong has no name, as specs name it: write name: ClassVar.str. = "),
        ({"title": None}, "^Wrong has no title, as tables do: write title"),
        ({"needs": "source"}, "^words needs 'source': .* a set .* of references, source, context"),
        ({"needs": frozenset({"refs"})}, r"^words needs frozenset\({'refs'}\): "),
        ({"reduce": lambda self, totals: totals[0] / totals[1]}, "^words: of sums of shape .5, 2."),
        ({"reduce": lambda self, totals: totals.sum()}, "^words: of sums .* scores of shape ()"),
    ],
)
def test_what_breaks_a_promise_of_the_interface_is_taught(
    changes: dict[str, Any], message: str
) -> None:
    segments = [Segment(text, None, ("the cat",)) for text in "abc"]
    with pytest.raises(PluginError, match=message):
        wrong(**changes).score(segments).aggregate(np.ones((5, 3)))


def test_a_class_that_is_no_dataclass_or_no_metric_yet_is_told() -> None:
    bare = type("Bare", (SegmentMetric,), {"segment_scores": lambda self, segments: []})
    with pytest.raises(PluginError, match=r"^Bare is no dataclass: write @dataclass\(frozen=True"):
        bare()
    testset = TestSet(systems={"a": ["a dog"]}, references=[["the cat"]])
    for given in (Words, [Words]):
        with pytest.raises(UsageError, match=r"^Words is a class: make a metric of it, Words\(\)"):
            score(testset, given)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match=r"^words: .*: it is not frozen"):
        check_metric(wrong(frozen=False))


def test_what_is_broken_says_so_in_a_line_and_stops_nobody_else(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(
        site,
        "broken",
        "[tertium.metrics]\nworse = broken:Metric\nodd = json:dumps\n",
        "raise RuntimeError('no luck\\nat all')\n",
    )
    install(site, "needy", "[tertium.metrics]\nneedy = needy:Metric\n", "import sklearn.nothing\n")
    with pytest.raises(PluginError, match=r"^metric 'worse' of broken 1.0 .*Error: no luck; mend"):
        load_metric("worse")
    with pytest.raises(PluginError, match=r"^metric 'odd' of broken 1.0 is json:dumps, which does"):
        load_metric("odd")
    with pytest.raises(MissingResourceError, match=r"^metric 'needy' of needy 1.0 needs scikit"):
        load_metric("needy")
    assert main(["list"]) == 0
    listed = capsys.readouterr().out
    assert "cannot be used: metric 'worse' of broken 1.0" in listed
    assert " bleu " in listed
    assert main(["list", "worse"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("tertium: error: metric 'worse' of broken 1.0")
    assert error.count("\n") == 1


def test_a_name_of_two_packages_is_refused(ratios: Path) -> None:
    install(ratios, "others", "[tertium.metrics]\nlength-ratio = ratios:LengthRatio\n")
    both = "registered by others 1.0 and ratios 1.0: uninstall all but one"
    with pytest.raises(PluginError, match=both):
        load_metric("length-ratio")
    assert isinstance(load_metric("chrf"), Metric)


def test_plugins_are_not_imported_before_they_are_used(site: Path) -> None:
    install(site, "broken", "[tertium.metrics]\nworse = broken:Metric\n", "raise RuntimeError\n")
    code = (
        f"import sys; sys.path.insert(0, {str(site)!r}); import tertium.cli; "
        "tertium.cli.make_parser(); tertium.load_metric('chrf'); tertium.load_metric('bleu'); "
        "from tertium.registry import METRICS; assert 'worse' in METRICS; "
        "assert 'broken' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
