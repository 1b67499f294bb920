"""Wrong calls of all commands: exit code 2, one line that says what to do, and no file changed.

Messages that are part of a recorded transcript (`tests/golden/scripts.py`) are not repeated here.
"""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest
from tests.builders import read_cases, write_jsonl, write_lines

from tertium.cli import main

ERRORS = """
# names of commands and options
scor => unknown command 'scor': did you mean 'score'
score -t x -f xml => -f/--format: invalid choice: 'xml'
score -t x --widht 3 => unrecognized arguments: --widht 3; did you mean --wi
score -t x --resample 5 --confidnce => --confidnce; did you mean --confidence
score -t x --unknown_option => unrecognized argument: --unknown-option
score -t x --xyzzy => unrecognized argument: --xyzzy (see `tertium score
score -t x -m chrf -b bleu => unrecognized argument: bleu; give it after an option
train bleu-r mine.tsv -o m --train x => mine.tsv; give it after an option
train esim -o x --train a --epohcs 3 => --epohcs 3; did you mean --epochs
train bleu-r --train judgments.jsonl --strenths 3 -o x => did you mean --strengths
meta challenge x -q y -m chrf ter => unrecognized argument: y; give it after an option
corpus -m chrf systems.jsonl -o x => no INPUT: give files before -m
rank candidates lists.jsonl -r a.txt => unrecognized arguments: -r
rank -m chrf ter -t a.txt b.txt -r r1.txt => unrecognized argument: ter
route fit --human judged.jsonl -m chrf -t x => unrecognized arguments: -t x
route aply => unknown command 'route aply': did you mean 'route apply'
route -t judged.jsonl apply r.json => give `tertium route fit` or `tertium route apply`
# missing and repeated values
gate => --baseline and --candidate missing
check => -t is missing: give system outputs
route fit -m chrf -o r.json => arguments are required: --human
route fit --human judged.jsonl -o r.json => needs one metric
route apply => arguments are required: ROUTE
plan convert campaign.json => required: -o
setup install => arguments are required: NAME (see `tertium setup install --help`)
setup cache limit => arguments are required
meta disagreement -m chrf bleu => required: --human
meta disagreement --human ratings.csv => expected two metrics: give -m METRIC METRIC
meta disagreement --human ratings.csv -m chrf bleu ter => expected two metrics
meta disagreement --human ratings.csv -m chrf chrf => metric 'chrf' is given twice
score -t x -s a --sources b => -s/--sources: given twice, 'a' and
rank -t x -w 4 -w 2 => -w/--width: given twice, 4 and 2
rank -m chrf -m ter -t a.txt b.txt -r r1.txt => give it once
train pairwise -o x --choose-on 3 --choose_on 4 => given twice
score -t x -o "" => -o/--output: the value is empty
score -t a.txt -o => -o/--output: expected at least one argument
meta challenge damage --output= => --output: the value is empty
list "" => METRIC: the value is empty
score -t systems.jsonl -m chrf --by length length => --by length is given twice
compare -t a b --by d=x d=y => --by d is given twice
report -t a b --by length --by length => length is given twice
meta --human x.tsv --by length length => length is given twice
score -t - -r - -m chrf => - (standard input) is given twice
rank -m chrf -t a.txt -r - --documents - => is given twice
# files
score -t folder -r r1.txt => is a directory
score -t empty.txt -r r1.txt -m bleu => is empty
score -t bytes.txt -r r1.txt -m bleu => not UTF-8
score -t nul.txt -r r1.txt -m bleu => NUL byte
meta --human nofile.tsv -m chrf => nofile.tsv: no such file or folder
meta --human judgments.jsonl --scores nowhere.tsv => nowhere.tsv: no such file
check -t missing.xliff => missing.xliff: no such file
check -s en.json -t broken.json => broken.json: not JSON
check -s src.txt -t a.txt --config missing.toml => missing.toml: no such file
route apply r.json -t judged.jsonl => r.json: no such file
route apply judged.jsonl => judged.jsonl
agree none.csv => none.csv
rank candidates - -m chrf => standard input: cannot be read
rank candidates text.jsonl -m chrf => line 1: `candidates` must be a list
rank candidates no-texts.jsonl -m chrf
    => `candidates` must be a list of at least one text, got []
rank candidates unnamed.jsonl -m chrf => no candidates (looked for cand
rank candidates scored.jsonl -m chrf => line 1: the field 'scores' exists
rank candidates lists.jsonl -m chrf => chrf needs references, and segment 2 has none
list data da/wmt15 --data human => did you mean 'da/wmt16'
list data da/wmt16 --data folder => no sets of human judgments
list data => set TERTIUM_DATA
meta -m chrf --data human --human da/wmt17 => unknown set 'da/wmt17': did you mean 'da/wmt16'
list models/nope => unknown metric 'models/nope'
check -t app.xliff a.txt => is a localization file, a.txt is not: give one kind
check -t de.json --write-back x.json => scores can be written to
check -t a.txt --write-back x.txt => scores can be written to
# metrics
score -t systems.jsonl -m blue => did you mean 'bleu'
score -t systems.jsonl -m bleu:smoth=exp => unknown field of bleu
score -t systems.jsonl -m chr++ => 'chrf++'
score -t systems.jsonl -m bleu,chrf => separate metrics with spaces, not commas: bleu chrf
score -t systems.jsonl -m pairwise => pairwise is a ranker
score -t systems.jsonl -m chrf:beta=1e200 => beta must be from 0 to 1000
score -t systems.jsonl -m bleu:smooth_method=floor,smooth_value=1e308 => from 0 to 1000
score -t a.txt => tertium-multi) needs references, sources or both: give -r
rank -m parwise -t a.txt b.txt -r r1.txt => did you mean 'pairwise'
explain --text -t a -r b -m pairwise => pairwise compares translations: give two or more
explain --text -t "The red car stopped." => needs references, the source or both
explain --text -m tertium-small -s Halt. -t Stop. => needs references
explain --text -m sss:encoder=toy,against=reference -s a -t a => has none: give -r, a column
explain --text -m sss:encoder=toy,against=source -r a -t a => has none: give -s, a column
list bleuu => did you mean 'bleu'
list chrf++:beta=-1 => beta must be from 0 to 1000
list citations chrf bleu:nonsense=3 => unknown field of bleu 'nonsense'
list citations bleu:tokenize=13b => unknown tokenizer '13b'
setup install mpnett => did you mean 'mpnet'
# options that do not fit the input or each other
score -t a.txt -r r1.txt -m bleu -dl => needs document ids
score -t a.txt -r r1.txt --fields a,b => --fields is for a file of records, such as .jsonl or .tsv
score -t systems.jsonl --fields a,b => --fields is for a .tsv or .csv file
score -t systems.jsonl --fields hypothesis=mt gold
    => --fields gold: expected NAME=COLUMN for each field
score -t systems.jsonl --fields hypothesis=mt hypothesis=ref => --fields hypothesis is given twice
score -t systems.jsonl --fields hypothesis= => --fields hypothesis=: expected NAME=COLUMN
score -t systems.jsonl --fields =mt => --fields =mt: expected NAME=COLUMN
corpus systems.jsonl -m chrf -o x --fields src,mt => --fields is only for .tsv or .csv
corpus systems.jsonl -m chrf -o x --shards jsonl => output files are Parquet
corpus systems.jsonl -m chrf -o x --worker-gpus 1 => add --ray HOST:PORT
score -t a.txt -r r1.txt --device cpu --gpus 1 => given twice, 'cpu' and 'cuda'
score -t a.txt -r r1.txt --device tpu => unknown device 'tpu'
score -t a.txt -r r1.txt --device cuda:x => unknown device 'cuda:x'
score -t a.txt -r r1.txt --paired-bs => at least two systems
score -t a.txt -r a.txt --names " " => a system has a blank name
score -t a.txt -r r1.txt --with-texts => --with-texts adds texts to segment scores: give -sl
score -t a.txt b.txt -r r1.txt -m chrf --paired-bs -sl
    => -b, -sl, -dl, --only-system, --confidence and --write-back are
score -t a.txt b.txt -r r1.txt -m chrf --paired-ar --confidence
    => not available with a paired test: omit them
score -t a.txt b.txt -r r1.txt -m chrf --paired-bs --only-system
    => not available with a paired test: omit them
score -t a.txt b.txt -r r1.txt -m chrf --paired-bs --paired-ar
    => --paired-bs and --paired-ar: give only one of them
score -t a.txt -r r1.txt -m chrf --confidence --confidence-n 0
    => resamples must be an integer from 1 to 1,000,000, got 0
score -t a.txt -r r1.txt -m chrf --dry-run => --dry-run is for the metric judge
score -t a.txt -s src.txt -m sss:encoder=toy --source-language de
    => --source-language de needs --target-language
score -t a.txt -s src.txt -m sss:encoder=toy --source-language de --target-language klingon
    => 'klingon' is not an ISO 639-1 language code
score -t wmt.xml -s app.xliff -m chrf => give it alone, without other files, -s, -r
compare -t a.txt b.txt -r r1.txt -m chrf --seed -1 => --seed: -1: expected 0 or more
compare -t a.txt b.txt -r r1.txt -m chrf --alpha 7
    => must be a number between 0 and 1, got 7.0
compare -t a.txt b.txt -r r1.txt -m chrf -w -1 => number of decimals
check -s src.txt -t a.txt --select placeholder
    => unknown check 'placeholder': did you mean 'placeholders'
worst -t a.txt -r r1.txt -m chrf --per document=2 => needs document names
report -t a.txt -r r1.txt -m chrf --human docs.txt => docs.txt
report -t a.txt -r r1.txt -m chrf --human ratings.csv => --names
explain -t a.txt -r r1.txt => 6 segments: choose one with --segment N
explain -t a.txt -r r1.txt --segment 7 => 6 segments: choose one
explain --text -r x => no translation: give it with -t TEXT
explain --text -t a -r b --count -3 => --count: -3: expected 0 or more
gate --baseline a.txt --candidate a.txt -r r1.txt -m chrf --margin chrf=1
    => two systems are named 'a.txt'
gate --baseline a.txt --candidate short.txt -r r1.txt -m chrf --margin chrf=1 => short.txt
gate --baseline a.txt --candidate b.txt -r r1.txt -m chrf --margin chrf
    => --margin chrf: expected NAME=VALUE
gate -t systems.jsonl --baseline a.txt --candidate b.tx -m chrf --margin chrf=1
    => did you mean 'b.txt'
# plan and agree
plan => nothing to plan: give --difference
plan --time 8x => '8x' is not a time
plan --difference 3 --time 8h => either a difference
plan --difference 0 => a difference of 0
plan --segments 3 -o x.json => -o needs the texts
plan -s src.txt -t a.txt b.txt -o x.json => how many segments
plan -s src.txt -t a.txt b.txt --segments 5 --raters a a -o x.json => occurs twice
plan -t x -o power.svg => nothing to plan: give --difference
agree ratings.csv --exclude x => unknown rater 'x'
agree ratings.csv --answers x => --answers is for a campaign
agree ratings.csv -o x.jsonl => judgments of a campaign
# meta
meta --human judgments.jsonl => no metric to evaluate: give --scores
meta --human ratings.csv -m chrf => the judgments have no texts
meta --human judgments.jsonl -m chrf --statistic acc-eq --level system => acc-eq at system level
meta --human judgments.jsonl -m chrf --statistic tau-strict => needs human comparisons
meta --human judgments.jsonl -m chrf --statistic tie-aware => unknown statistic 'tie-aware'
meta --human judgments.jsonl -m chrf --statistic kendal => did you mean 'kendall'
meta --human judgments.jsonl -m chrf --statistic kendall kendall => kendall is given twice
meta --human judgments.jsonl judgments.jsonl -m chrf => judgments.jsonl is given twice
meta --human judgments.jsonl -m chrf --grouping item --test williams
    => does not support test=williams
meta --human judgments.jsonl --scores scores.tsv --lower-better other
    => --lower-better other: no such metric
meta --human judgments.jsonl -m chrf --lower-better chrf
    => --lower-better chrf: no such metric in --scores
meta --human judgments.jsonl --scores strange.tsv => none of the systems scored by strange (X)
meta --human judgments.jsonl -m chrf --lps de-en ru-en => available: de-en
meta --human judgments.jsonl -m chrf --exclude Z => unknown system of de-en 'Z'
meta --human judgments.jsonl -m chrf --gold mqm => no score (looked for mqm; found lp, system
meta --human judgments.jsonl -m chrf --confidence --resamples 0 => but --resamples is 0
meta --human judgments.jsonl -m chrf --pairs --resamples 0 => but --resamples is 0
meta --human two-pairs.jsonl --scores lost.tsv
    => no unique set of judgments matches the scores of lost
meta protocol wmt23 --human judgments.jsonl -m chrf => invalid choice: 'wmt23'
meta decisions --human judgments.jsonl -m chrf => required: --good-score
meta protocol wmt24 --human judgments.jsonl -m chrf --level system
    => unrecognized arguments: --level
meta protocol wmt24 --human judgments.jsonl -m chrf --statistic pearson
    => unrecognized arguments: --statistic
meta spans --human judgments.jsonl -m chrf --alpha 0.01 => unrecognized argument: --alpha
meta spans --human judgments.jsonl -m chrf --scores x.tsv => unrecognized argument: --scores
meta thresholds --human judgments.jsonl -m chrf --resamples 9
    => unrecognized arguments: --resamples
meta decisions --good-score 50 --human judgments.jsonl -m chrf --resamples 0
    => unrecognized arguments: --resamples
meta --human high.jsonl => scores of a: the score 'high' is not a number
meta --human gemba.jsonl --scores-from-rows gembo => did you mean 'gemba'
meta --human listed.jsonl --scores-from-rows => no judgment of listed has metric scores
meta --human none.jsonl => no metric to evaluate
meta --human twice.jsonl --scores-from-rows -m chrf => scores of chrf are given twice
# removed options name their replacement
score -t a --to_json=x.json => --to-json was removed: use -o FILE.json
score -t a --to-xlsx x.xlsx => --to-xlsx was removed: use -o FILE.xlsx
score -t a --to-spans x.tsv => --to-spans was removed: use -o spans:FILE
score -t a --excel => --excel was removed: use -o FILE.xlsx, or -f csv
score -t a --statistics => --statistics was removed: give `gate --baseline`
score -t a --report x.html => --report was removed: use -o FILE.html
compare -t a b --report x.html => --report was removed: use -o FILE.html
rank -t a b --report x.html => --report was removed: use -o FILE.html
gate --junit x.xml => --junit was removed: use -o FILE.xml
gate --sarif x.sarif => --sarif was removed: use -o FILE.sarif
gate --markdown x.md => --markdown was removed: use -f md >> FILE
gate calibrate --report x.html => --report was removed: use -o FILE.html
meta --human a --plot x.svg => --plot was removed: use -o FILE.svg
meta --human a --protocol wmt24 => use `tertium meta protocol NAME`
meta --human a --spans b => --spans was removed: use `tertium meta spans FILES`
meta --human a --decisions 5 => use `tertium meta decisions --good-score X`
meta --human a --thresholds => removed: use `tertium meta thresholds`
meta --human a --threshold 9 => was removed: use threshold= in Python
report -t a --ranker chrf => --ranker was removed: use `tertium rank`
report -t a --curves x.json => --curves was removed: reports show no learning curves
corpus a -m chrf -o x --worker-cpus 2 => was removed: leave it out: an actor has one CPU
setup install glove --agree => --agree was removed: leave it out
models => `tertium models` was removed: use `tertium
data => `tertium data` was removed: use `tertium
cite bleu => `tertium cite` was removed: use `tertium
reproduce all -o docs/papers
    => `tertium reproduce` was removed: run `python -m papers` in a checkout
# caches
setup cache clear row => did you mean 'rows'
setup cache rows => rows
# an output never replaces an input, whatever option names it
score -t a.txt -r r1.txt -m chrf -o a.txt => -o a.txt is also an input file: give another name
score -t a.txt -r r1.txt -m chrf -o ./a.txt => -o ./a.txt is also an input file
score -t a.txt -r r1.txt -m chrf -o spans:r1.txt => -o r1.txt is also an input file
score -t a.txt -r r1.txt -m chrf -o link.txt => -o link.txt is also an input file
score -t a.txt -r r1.txt -m chrf --by topic=docs.txt -o ./docs.txt => is also an input file
compare -t a.txt b.txt -r r1.txt -m chrf -o r1.txt => -o r1.txt is also an input file
check -t a.txt -s src.txt -o findings:a.txt => -o a.txt is also an input file
check -t a.txt -s src.txt --terms terms.csv -o terms.csv => is also an input file
check app.xliff -o app.xliff => -o app.xliff is also an input file
check -t app.xliff --write-back app.xliff => is also an input file: give another name
gate --baseline a.txt --candidate b.txt -r r1.txt -m chrf --margin chrf=50 -o b.txt
    => -o b.txt is also an input file
worst -t a.txt -r r1.txt -m chrf -o r1.txt => is also an input file
report -t a.txt -r r1.txt -m chrf -o link.txt => -o link.txt is also an input file
report -t a.txt -r r1.txt -m chrf --human docs.txt -o docs.txt => is also an input file
route fit --human a.txt -m chrf -o a.txt => is also an input file
meta challenge chart.svg -m chrf -o ./chart.svg => ./chart.svg is also an input file
# two outputs, one file
score -t a.txt -r r1.txt -m chrf -o new.json ./new.json
    => -o and -o both write new.json: give two files
score -t a.txt -r r1.txt -m chrf -o new.json -o results:new.json => both write new.json
check -t a.txt -s src.txt -o new.xlsx --write-back new.xlsx => both write new.xlsx
# places of outputs
score -t a.txt -r r1.txt -m chrf -o -
    => -o -: expected a file name; use /dev/stdout for stdout
score -t a.txt -r r1.txt -m chrf -o no/folder/x.json => the folder no/folder does not exist
score -t a.txt -r r1.txt -m chrf -o spans:no/folder/x.jsonl => the folder no/folder does not exist
report -t a.txt -r r1.txt -m chrf -o no/folder/x.html => the folder no/folder does not exist
check -t a.txt -s src.txt --write-back no/folder/x.xliff => the folder no/folder does not exist
train bleu-r --train missing.tsv -o a.txt/model => a.txt is not a writable folder
train esim:encoder=toy --train judgments.jsonl -o human => has no trained metric
# suffixes and kinds of outputs
score -t a.txt -r r1.txt -m chrf -o x.doc => x.doc: expected a name that ends in .json, .jsonl, .tsv
score -t a.txt -r r1.txt -m chrf -o x => x: expected a name that ends in .json
score -t a.txt -r r1.txt -m chrf -o x.svg => x.svg: expected a name that ends in .json
score -t a.txt -r r1.txt -m chrf -o spans:x.jsonl
    => chrf cannot mark error spans; add a metric that can
score -t a.txt -s src.txt -m checks -o spans:x.xml => x.xml: expected a name that ends in .json
score -t a.txt -s src.txt -m checks -o x.tsv
    => .tsv files hold scores or spans; give -o scores:x.tsv or -o spans:x.tsv
score -t a.txt -r r1.txt -m chrf -o findings:x.xlsx
    => .xlsx files hold scores; give -o scores:x.xlsx
score -t a.txt -s src.txt -m checks -o junit:x.json
    => .json files hold results or spans; give -o results:x.json or -o spans:x.json
compare -t a.txt b.txt -r r1.txt -m chrf -o spans:x.tsv
    => .tsv files hold scores; give -o scores:x.tsv
compare -t a.txt b.txt -r r1.txt -m chrf -o junit:x.xml => x.xml: expected a name that ends in .json
check -t a.txt -s src.txt -o scores:x.jsonl => .jsonl files hold findings; give -o findings:x.jsonl
gate --baseline a.txt --candidate b.txt -r r1.txt -m chrf --margin chrf=50 -o findings:x.xml
    => .xml files hold junit; give -o junit:x.xml
gate --baseline a.txt --candidate b.txt -r r1.txt -m chrf --margin chrf=50 -o junit:x.sarif
    => .sarif files hold findings; give -o findings:x.sarif
agree judgments.jsonl -o spans:x.jsonl => .jsonl files hold results; give -o results:x.jsonl
list -o scores:x.tsv => .tsv files hold results; give -o results:x.tsv
check -t a.txt -s src.txt -o x.xml => x.xml: expected a name that ends in .json, .jsonl, .tsv
worst -t a.txt -r r1.txt -m chrf -o w.txt
    => w.txt: expected a name that ends in .json, .jsonl, .tsv
meta --human judgments.jsonl -m chrf -o x.png => expected a name that ends in .json,
route fit --human judged.jsonl -m chrf -o r.txt => r.txt: expected a name that ends in .json
route apply r.json -t judged.jsonl -o x.txt => x.txt: expected a name that ends in
"""
LONG = "x" * 9000
# what a line of the table cannot hold
UNUSUAL = [
    (["score", "-t", "no\nsuch", "-m", "chrf"], "no\u240asuch: no such file"),
    (["score", "-t", LONG, "-m", "chrf"], "cannot be read (File name too long)"),
    (["score", "-t", "a/" * 9000, "-m", "chrf"], "(File name too long)"),
    (["score", "-t", "no\0such", "-m", "chrf"], "not a path (embedded null byte)"),
    (["score", "-t", "a.txt", "--bo\ngus"], "unrecognized argument: --bo\u240agus"),
    (["score", "-t", "systems.jsonl", "-m", LONG], "unknown metric 'xxx"),
    (["score", "-t", "systems.jsonl", "-m", "\udcffmodel"], "not UTF-8 (byte 0xff)"),
    (["score", "-t", "a.txt", "-r", "r1.txt", "-o", LONG], "the file name is too long"),
    (["compare", "-t", "a.txt", "b.txt", "-r", "r1.txt", "-o", "x" * 300 + ".tsv"], "(304 bytes"),
    (["report", "-t", "a.txt", "-r", "r1.txt", "-o", LONG], "the file name is too long"),
    (["explain", "--text", "-t", "x", "-r", "y", "-r", "gr\udcfcn"], "reference 2: not UTF-8 ("),
]
CASES = [(shlex.split(command), message) for command, message in read_cases(ERRORS)]


@pytest.fixture(scope="module")
def files(prepared_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that no wrong call may change."""
    folder = tmp_path_factory.mktemp("errors") / "files"
    shutil.copytree(prepared_files, folder)
    (folder / "folder").mkdir()
    (folder / "link.txt").symlink_to("a.txt")
    (folder / "empty.txt").touch()
    (folder / "bytes.txt").write_bytes(b"\xff\xfe\n" * 6)
    (folder / "nul.txt").write_bytes(b"a\0b\n" * 6)
    write_lines(folder / "broken.json", ['{"a": }'])
    write_lines(folder / "chart.svg", ["x"])
    shutil.copy(folder / "app.xliff", folder / "wmt.xml")
    (folder / "wmt.xml").write_text("<dataset id='x'><doc id='d'></doc></dataset>")
    write_jsonl(folder / "text.jsonl", [{"candidates": "not a list"}])
    write_jsonl(folder / "no-texts.jsonl", [{"candidates": []}])
    write_jsonl(folder / "unnamed.jsonl", [{"ref": "a", "hyps": ["a", "b"]}])
    texts = ["a", "b"]
    lists = [{"reference": "a", "candidates": texts}, {"candidates": texts}]
    write_jsonl(folder / "lists.jsonl", lists)
    scored = {"reference": "a", "candidates": texts, "scores": [-0.1, -0.2]}
    write_jsonl(folder / "scored.jsonl", [scored])
    write_lines(folder / "strange.tsv", ["item\tsystem\tscore", "1\tX\t1.0"])
    shutil.copy(folder / "strange.tsv", folder / "lost.tsv")
    row = {"system": "A", "segment": "1", "mt": "a", "ref": "a", "score": 1}
    write_jsonl(folder / "two-pairs.jsonl", [{**row, "lp": lp} for lp in ("de-en", "fi-en")])
    row_scores = {
        "high": {"a": "high"}, "gemba": {"gemba": 1}, "listed": [1, 2], "none": None,
        "twice": {"chrf": 1},
    }  # fmt: skip
    for name, scores in row_scores.items():
        rows = [{**row, "system": system, "scores": scores} for system in "AB"]
        write_jsonl(folder / f"{name}.jsonl", rows)
    return folder


@pytest.mark.parametrize(("words", "message"), [*CASES, *UNUSUAL], ids=lambda p: str(p)[:60])
def test_errors_are_one_line(
    words: list[str],
    message: str,
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(files)
    monkeypatch.delenv("TERTIUM_DATA", raising=False)
    before = list_states(files)
    assert main(words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert len(printed.err) < 2100
    assert list_states(files) == before


def list_states(folder: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of change of all files."""
    return {
        path.as_posix(): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }
