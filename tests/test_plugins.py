"""Plugins: metrics, rankers and encoders of other packages."""

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
from tertium.cli import main
from tertium.core.arrays import FloatArray
from tertium.core.errors import MissingResourceError, PluginError, UsageError
from tertium.core.registry import METRICS, RANKERS
from tertium.core.segment import Segment
from tertium.encoders.encoder import load_encoder
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric, SegmentMetric
from tertium.metrics.base.ranker import load_ranker
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
class NotAMetric:
    name: ClassVar[str] = "not-a-metric"


chosen = LengthRatio()
object.__setattr__(chosen, "name", "chosen")


def load_nothing(name, **chosen):
    return NotAMetric()


def load_with_error(name, **chosen):
    raise OSError("no such server\\nat all")


def load(name, **chosen):
    from tertium.encoders.encoder import EncoderName
    from tertium.encoders.toy_encoder import load

    return load(EncoderName("toy"), **chosen)
'''


def install(folder: Path, package: str, entries: str, module: str = "") -> None:
    """Install a package as pip does: a module and its metadata."""
    metadata = folder / f"{package}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(entries)
    if module:
        (folder / f"{package}.py").write_text(module)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a folder of packages on the search path; its modules are unloaded afterwards."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    for module in ("ratios", "broken", "needy"):
        monkeypatch.setitem(sys.modules, module, None)  # restored after the test
        del sys.modules[module]
    return folder


@pytest.fixture
def ratios(site: Path) -> Path:
    entries = (
        "[tertium.metrics]\nlength-ratio = ratios:LengthRatio\nrandom = ratios:Random\n"
        "strange = ratios:Strange\nbleu = ratios:LengthRatio\n"
        "not-a-metric = ratios:NotAMetric\nchosen = ratios:chosen\n"
        "[tertium.rankers]\nlonger = ratios:Longer\n[tertium.encoders]\ntoys = ratios:load\n"
        "nothing = ratios:load_nothing\nfailing = ratios:load_with_error\n"
    )
    install(site, "ratios", entries, MODULE)
    return site


@pytest.mark.usefixtures("ratios")
def test_a_plugin_is_a_metric_like_built_in_ones(capsys):
    metric = load_metric("length-ratio:words=false")
    assert metric.spec == "length-ratio:words=false"
    segment = Segment("a cat sat", None, ("the cat",))
    assert metric.score([segment]).system == pytest.approx(7 / 9)
    assert load_ranker("longer").prefer([segment], [Segment("a", None, ("the cat",))]) == [1]
    assert main(["list", "all"]) == 0
    # The module has two metrics, so each is described by its own docstring.
    assert "LengthRatio: min(h, r) / max(h, r)" in capsys.readouterr().out
    assert main(["list", "length-ratio"]) == 0
    assert "words" in capsys.readouterr().out
    assert main(["list", "citations", "length-ratio"]) == 0
    assert "@misc{ratio" in capsys.readouterr().out


@pytest.mark.usefixtures("ratios")
def test_a_plugin_encoder_works_with_built_in_metrics_and_the_cache(capsys):
    segments = [Segment("the cat sat", None, ("a cat sat down",))]
    theirs, ours = (load_metric(f"smd:encoder={name}").score(segments) for name in ("toys", "toy"))
    assert theirs.system == ours.system
    assert load_encoder("toys").fingerprint("tokens") == load_encoder("toy").fingerprint("tokens")
    assert main(["list", "models"]) == 0
    assert "ratios 1.0" in capsys.readouterr().out


@pytest.mark.usefixtures("ratios")
def test_built_in_names_take_precedence():
    assert type(load_metric("bleu")).__module__ == "tertium.metrics.lexical.bleu_metric"
    assert list(METRICS).count("bleu") == 1
    assert {*RANKERS} - {*RANKERS.builtin} >= {"longer"}


@pytest.mark.usefixtures("ratios")
def test_the_conformance_checks_work_for_plugins():
    check_metric("length-ratio")
    check_metric("length-ratio:words=false")
    with pytest.raises(AssertionError, match="Scores do not depend on the order of segments"):
        check_metric("random")


def test_an_unregistered_metric_can_rank_but_not_score_a_corpus(tmp_path):
    metric = type("Spoken", (type(load_metric("chrf")),), {"name": "spoken"})()
    testset = TestSet(systems={"a": ["a dog"], "b": ["a cat"]}, references=[["the cat"]])
    assert [record["system"] for record in rank(testset, metric).records()] == ["b", "a"]
    testset.write(tmp_path / "rows.jsonl")
    with pytest.raises(UsageError, match=r"^spoken is not a registered metric, and workers load"):
        score_corpus(tmp_path / "rows.jsonl", metric, tmp_path / "scored")


@pytest.mark.usefixtures("ratios")
def test_scores_of_the_wrong_shape_raise_errors_and_nan_is_counted():
    segments = [Segment(text, None, ("the cat",)) for text in ("a cat", "a dog", "a cow")]
    for gives in ("fewer", "more", "texts", "generator", "nothing"):
        metric = load_metric(f"strange:gives={gives}")
        with pytest.raises(
            PluginError, match=r"^strange: segment_scores returned .* shape \(3,\), one per segment"
        ):
            metric.score(segments)
    assert load_metric("strange").score(segments).warnings == {"score is not a number": 1}


def test_finite_scores_whose_sum_would_overflow_raise_an_error():
    @dataclass(frozen=True, kw_only=True)
    class Huge(SegmentMetric):
        name: ClassVar[str] = "huge"
        title: ClassVar[str] = "Huge"

        def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
            return np.full(len(segments), -1.7e308)

    with pytest.raises(PluginError, match=r"statistic -1.7e\+308: expected at most 1e\+100"):
        score({"a": ["x", "y"]}, Huge(), references=["x", "y"])


@pytest.mark.parametrize(
    ("load", "name", "message"),
    [
        (load_metric, "not-a-metric", "metric 'not-a-metric' is .*: expected a subclass of Metric"),
        (load_metric, "chosen", "metric 'chosen' is .*: expected a subclass of Metric"),
        (load_encoder, "nothing", "encoder nothing is a NotAMetric, which has no dim: an en"),
        (load_encoder, "failing@3", "encoder 'failing' of ratios 1.0 .*: OSError: no such server;"),
    ],
)
@pytest.mark.usefixtures("ratios")
def test_objects_that_are_not_metrics_or_encoders_raise_errors(load, name, message):
    with pytest.raises(PluginError, match=f"^{message}"):
        load(name)


@pytest.mark.usefixtures("ratios")
def test_invalid_probabilities_raise_errors():
    testset = TestSet(systems={"a": ["dogs", "a"], "b": ["cat", "b"]}, references=[["cat"], ["b"]])
    assert rank(testset, "longer").matrix.values.tolist() == [[1.0, 0.5], [0.0, 0.5]]
    for gives in ("fewer", "percent", "nothing"):
        with pytest.raises(
            PluginError,
            match=r"^longer: prefer_pairs returned .* \(0 to 1 or NaN\) of shape \(2,\)",
        ):
            rank(testset, f"longer:gives={gives}")
    ranker, segment = load_ranker("longer"), Segment("a", None, ("b",))
    for left in (["a"], segment):
        with pytest.raises(UsageError, match=r"^longer expects .*segments"):
            ranker.prefer(left, [segment])


@dataclass(frozen=True, kw_only=True)
class Words(Metric):
    """An unregistered metric: words per segment."""

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


def make_invalid_metric(*, frozen: bool = True, **changes: Any) -> Metric:
    """Make a variant of `Words` with changed attributes; None removes an attribute."""
    attributes = ("name", "title", "citation", "columns", "statistics", "reduce")
    parts = {part: vars(Words)[part] for part in attributes} | {"half": False, **changes}
    cls = type("Wrong", (Metric,), {k: v for k, v in parts.items() if v is not None})
    metric: Metric = dataclass(frozen=frozen, kw_only=True)(cls)()
    return metric


def test_the_conformance_checks_work_for_unregistered_metrics():
    check_metric(Words())
    with pytest.raises(AssertionError, match=r"^words: A perfect translation scores better"):
        check_metric(make_invalid_metric(higher_is_better=False))
    check_metric(make_invalid_metric(citation=None))
    with pytest.raises(AssertionError, match="`citation` must be a BibTeX entry, or be omitted"):
        check_metric(make_invalid_metric(citation="Me, 2026"))


def test_citations_name_metrics_without_one(ratios, capsys, caplog):
    file = ratios / "ratios.py"
    file.write_text(file.read_text().replace("    citation: ", "    paper: "))
    assert main(["list", "citations", "length-ratio", "chrf"]) == 0
    assert capsys.readouterr().out.startswith("@")
    assert caplog.messages == ["length-ratio names no paper to cite"]


@pytest.mark.parametrize(("changes", "message"), [
    ({"name": None}, "^Wrong has no name \\(used in specs\\): add name: ClassVar"),
    ({"title": None}, "^Wrong has no title \\(shown in tables\\): add title"),
    ({"required_inputs": "source"},
     "^words: required_inputs is 'source': expected a set .* references, source, context"),
    ({"required_inputs": frozenset({"refs"})}, r"^words: required_inputs is frozenset\({'refs'}"),
    ({"reduce": lambda self, totals: totals[0] / totals[1]}, "maps sums of shape .5, 2."),
    ({"reduce": lambda self, totals: totals.sum()}, "maps sums .* scores of shape ()"),
])  # fmt: skip
def test_violations_of_the_metric_interface_are_explained(changes, message):
    segments = [Segment(text, None, ("the cat",)) for text in "abc"]
    with pytest.raises(PluginError, match=message):
        make_invalid_metric(**changes).score(segments).aggregate(np.ones((5, 3)))


def test_plain_classes_and_metric_classes_raise_errors():
    bare = type("Bare", (SegmentMetric,), {"segment_scores": lambda self, segments: []})
    with pytest.raises(
        PluginError, match=r"^Bare is not a dataclass: decorate it with @dataclass\(frozen=True"
    ):
        bare()
    testset = TestSet(systems={"a": ["a dog"]}, references=[["the cat"]])
    for metrics in (Words, [Words]):
        with pytest.raises(UsageError, match=r"^Words is a class: create a metric with Words\(\)"):
            score(testset, metrics)
    with pytest.raises(AssertionError, match=r"^words: .* it is not frozen"):
        check_metric(make_invalid_metric(frozen=False))


def test_a_broken_plugin_raises_a_one_line_error_and_affects_nothing_else(site, capsys):
    install(
        site,
        "broken",
        "[tertium.metrics]\nworse = broken:Metric\nodd = json:dumps\n",
        "raise RuntimeError('no luck\\nat all')\n",
    )
    install(site, "needy", "[tertium.metrics]\nneedy = needy:Metric\n", "import sklearn.nothing\n")
    with pytest.raises(PluginError, match=r"^metric 'worse' of broken 1.0 .*Error: no luck; fix"):
        load_metric("worse")
    with pytest.raises(PluginError, match=r"^metric 'odd' of broken 1.0 is json:dumps, which has"):
        load_metric("odd")
    with pytest.raises(MissingResourceError, match=r"^metric 'needy' of needy 1.0 needs scikit"):
        load_metric("needy")
    assert main(["list", "all"]) == 0
    listed = capsys.readouterr().out
    assert "cannot be loaded: metric 'worse' of broken 1.0" in listed
    assert " bleu " in listed
    assert main(["list", "worse"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("tertium: error: metric 'worse' of broken 1.0")
    assert error.count("\n") == 1


def test_a_name_registered_by_two_packages_raises_an_error(ratios):
    install(ratios, "others", "[tertium.metrics]\nlength-ratio = ratios:LengthRatio\n")
    both = "registered by others 1.0 and ratios 1.0: uninstall all but one"
    with pytest.raises(PluginError, match=both):
        load_metric("length-ratio")
    assert isinstance(load_metric("chrf"), Metric)


def test_plugins_are_not_imported_before_they_are_used(site):
    install(site, "broken", "[tertium.metrics]\nworse = broken:Metric\n", "raise RuntimeError\n")
    code = (
        f"import sys; sys.path.insert(0, {str(site)!r}); import tertium.cli; "
        "tertium.cli.describe_commands(); "
        "tertium.load_metric('chrf'); tertium.load_metric('bleu'); "
        "from tertium.core.registry import METRICS; assert 'worse' in METRICS; "
        "assert 'broken' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("entries", ["no section = at all", "[tertium.metrics]\nnot a pair\n"])
def test_a_malformed_file_of_any_package_affects_no_built_in_name(
    entries, ratios, monkeypatch, caplog
):
    install(ratios, "malformed", entries)
    with monkeypatch.context() as patch:
        patch.setattr("tertium.core.registry.list_plugins", None)  # is not called
        assert load_metric("bleu").name == "bleu"
        assert load_metric("chrf++").name == "chrf"
        assert load_metric("bertscore:encoder=toy").name == "bertscore"
        load_encoder("toy")
    assert load_metric("length-ratio").name == "length-ratio"
    if caplog.text:
        assert "plugins of the package malformed are ignored" in caplog.text
    with pytest.raises(UsageError, match="unknown metric 'bluu'"):
        load_metric("bluu")
