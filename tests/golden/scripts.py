"""The commands of the transcripts in `commands/`, and files that only they read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

TEXT = "-t a.txt b.txt c.txt -r r1.txt r2.txt"
ALL_TEXT = f"-s src.txt {TEXT} --documents docs.txt"
GATE = "--baseline a.txt --candidate b.txt -r r1.txt"
STORED = "gate --baseline stored.json --candidate b.txt -s src.txt -r r1.txt"
FIELDS = "--fields hypothesis=output source=input reference=gold"
UI = "-s ui-source.txt -t ui-target.txt"
LONG = "--baseline long-a.txt --candidate long-b.txt -r long-r.txt"
RULES = "-m chrf --margin chrf=1"
HUMAN = "--human judgments.jsonl"
NAMED = "--names good fair poor --human ratings.csv"
EN_DE = "--source-language en --target-language de"
REPORT = "--count 0 --paired-bs-n 20"
FAST = "--resamples 20"
SYSTEM_LEVEL = "--level system --resamples 0"  # no resampling at system level
FORMATS = "-f {text,tsv,json,md,latex}"

# `{a,b}` stands for one command with each.
SCRIPTS: dict[str, str] = {
    "score": f"""
        score {TEXT} -m bleu chrf {FORMATS}
        score {TEXT} -m bleu chrf -sl --with-texts -f {{text,tsv,json,md,latex,csv}}
        score {ALL_TEXT} -m chrf -dl {FORMATS}
        score {TEXT} -m bleu chrf ter nist meteor chrf++ -b
        score {TEXT} -m bleu chrf -w 1 --names x y z -q
        score {TEXT} -m bleu chrf --confidence {FORMATS}
        score {ALL_TEXT} -m chrf bleu --by document length -f {{text,json}}
        score {TEXT} -m chrf --paired-bs --resamples 100
        score {TEXT} -m chrf --paired-ar --resamples 100 -f json
        score {TEXT} -m chrf -f csv -sl
        score {ALL_TEXT} -m bleu chrf -o all.json
        score {TEXT} -m bleu chrf -o system.json --only-system
        score {TEXT} -m bleu chrf -o scores.{{tsv,csv,jsonl,parquet}}
        score {TEXT} -m bleu chrf -o scores.xlsx
        score {ALL_TEXT} -m bleu chrf -o report.html --by document
        score -s src.txt -t a.txt c.txt -m checks -o spans:spans.{{jsonl,tsv}}
        score -t systems.jsonl -m chrf -sl -f tsv
        score -t systems.jsonl -m tertium-small tertium-multi
        score -s src.txt -t c.txt -m tertium-multi -sl -o spans:errors.jsonl
        score -s src.txt -t c.txt -r r1.txt -m bertscore -sl -f json
        score -t app.xliff -m checks --write-back scored.xliff -sl
        score -t a.txt -r r1.txt -m chrf --dry-run
        score -t a.txt -r r1.txt -m bluu
        score -t a.txt -m chrf
        score -t a.txt -r short.txt -m chrf
        score -t missing.txt -r r1.txt
        score -t a.txt -r r1.txt -m chrf:word_order=x
        score -t a.txt -r r1.txt --no-such-option
        score -s src.txt -t a.txt -m checks -o errors.jsonl
        score -t a.txt -r r1.txt -m chrf --to-json scores.json
    """,
    "compare": f"""
        compare {TEXT} -m bleu chrf {FORMATS}
        compare {TEXT} -m chrf --paired-bs --resamples 200 {FORMATS}
        compare {TEXT} -m chrf --paired-ar --resamples 200 --pairs
        compare {TEXT} -m chrf ter --pairs {FORMATS}
        compare {ALL_TEXT} -m chrf --by document -f {{text,json}}
        compare {TEXT} -m chrf bleu -o compared.json
        compare {TEXT} -m chrf -o compared.html
        compare -t systems.jsonl -m tertium-small chrf
        compare -t a.txt -r r1.txt -m chrf
    """,
    "rank": f"""
        rank {TEXT} -m chrf {FORMATS}
        rank {TEXT} -m chrf -sl -f {{text,tsv,json}}
        rank {TEXT} -sl -o ranked.json
        rank {TEXT} -m chrf -o ranked.{{tsv,html}}
        rank -s src.txt -t a.txt b.txt -m tertium-multi
        rank candidates candidates.jsonl -m chrf -f {{text,tsv,json}}
        rank candidates candidates.jsonl -m chrf -o sorted.jsonl -q
        rank -t a.txt -r r1.txt -m chrf
        rank --nbest -t candidates.jsonl -m chrf
        rank {TEXT} --to-json ranked.json
    """,
    "check": f"""
        check -s src.txt -t c.txt {FORMATS}
        check -t app.xliff {FORMATS}
        check -t app.xliff --summary {FORMATS}
        check -t app.xliff -o found.{{xlsx,html,sarif,tsv,csv,jsonl,parquet}} -q
        check -t app.xliff --write-back checked.xliff
        check -t app.xliff --write-back both.xliff -o both.sarif --fail-on minor
        check -t app.po --fail-on critical --write-back checked.po
        check -s en.json -t de.json --source-language en --target-language de
        check -s src.txt -t a.txt b.txt --select numbers --max-length 80
        check -s src.txt -t a.txt --ignore numbers --terms terms.csv --do-not-translate names.txt
        check app.xliff --summary -q
        check --list-checks
        check -t a.txt
        check -s src.txt -t a.txt --select nothing
    """,
    "explain": """
        explain -m {tertium-small,bertscore,wmd,sentsim,mt-rte-r} -t c.txt -r r1.txt --segment 3
        explain -m tertium-multi -s src.txt -t c.txt --segment 3
        explain -m bertr -t c.txt -r r1.txt r2.txt --segment 3 -f {json,tsv,md}
        explain -m pairwise -t a.txt c.txt -r r1.txt --segment 2
        explain -m chrf -t a.txt c.txt -r r1.txt --segment 2 -f json
        explain --text -r "The blue car stopped." -t "The red car stopped."
        explain -m chrf -t a.txt -r r1.txt --segment 3
        explain -m bertscore -t a.txt -r r1.txt --segment 99
    """,
    "report": f"""
        report {ALL_TEXT} -m bleu chrf -o one.html
        report {ALL_TEXT} -m chrf --human ratings.csv --names good fair poor -o human.html
        report {ALL_TEXT} -m chrf tertium-small --count 3 -o explained.html
        report {TEXT} -m chrf bleu --ranker chrf -o ranker.html
        report -t a.txt
    """,
    "corpus": """
        corpus systems.jsonl -m chrf -o scored
        corpus systems.jsonl -m chrf -o scored --resume -f {json,tsv,md}
        corpus systems.jsonl -m chrf bleu -o again --keep 'chrf >= 50' -q
        corpus systems.jsonl -m chrf -o again
        corpus systems.jsonl -m chrf -o broken --keep 'chrf >='
        corpus missing.jsonl -m chrf -o none
    """,
    "gate": f"""
        gate {GATE} -m chrf --margin chrf=5 -f {{text,tsv,json,md}}
        gate --baseline b.txt --candidate a.txt -r r1.txt -m chrf bleu --margin chrf=5 bleu=5
        gate --baseline a.txt --candidate same.txt -r r1.txt r2.txt -m chrf --margin chrf=1
        gate {GATE} -m chrf --margin chrf=5 -o gate.json gate.html
        gate {GATE} -m chrf --margin chrf=5 -o gate.xml gate.md
        gate {GATE} -s src.txt -m checks --margin checks=1 -o gate.sarif
        gate {GATE} -m chrf --margin chrf=5 --min chrf=40 --max empty=0
        gate {GATE} -m chrf --margin chrf=5 --by document --documents docs.txt
        gate {GATE} -m tertium-small --margin human=5%
        gate {GATE} -m chrf --margin chrf=9 --undecided {{pass,fail}}
        score -s src.txt -t a.txt -r r1.txt -m chrf checks -o stored.json -q
        {STORED} -m checks --margin checks=5
        {STORED} -m chrf --margin chrf=5
        gate calibrate --baseline long-a.txt --candidate long-b.txt -r long-r.txt -m chrf bleu
        gate {GATE} -m chrf
    """,
    "worst": f"""
        worst {ALL_TEXT} -m chrf {FORMATS}
        worst {ALL_TEXT} -m chrf -n 4 -o worst.{{xlsx,csv,jsonl,html}}
        worst -s src.txt -t b.txt c.txt -m tertium-multi -n 5
        worst -t a.txt
    """,
    "route": """
        route fit --human judged.jsonl -m chrf --target-precision 0.6 -o route.json
        route fit --human judged.jsonl -m chrf --target-precision 0.6 -o other.json -f {tsv,json,md}
        route apply route.json -t few.jsonl -o labeled.jsonl
        route apply route.json -t few.jsonl -o labeled.csv -f {tsv,json,md}
        route apply route.json -t systems.jsonl -o labeled.xlsx
        route fit --human few.jsonl -m chrf -o none.json
        route
        route apply route.json -t few.jsonl -m chrf
    """,
    "train": """
        train bleu-r --train judgments.jsonl -o models/bleu-r -q
        train svr:encoders=toy --train judgments.jsonl --folds 2 --c 1 --gamma 0.1 -o models/svr
        score -t a.txt -r r1.txt -m models/bleu-r
        list models/bleu-r
        train bleu-r --train judgments.jsonl -o models/bleu-r
        train pairwise:features=bleucomp+chrf --train pairs.jsonl -o models/ranker
        train pairwise:features=bleucomp+chrf --train preferences.tsv -o models/none
        train blend:metrics=chrf+bleu --train judgments.jsonl -o models/blend
        train chrf --train judgments.jsonl -o models/chrf
        train bleu-r -o models/none
        train bleu-r --train judgments.jsonl -o models/none --epochs 3
    """,
    "meta": """
        meta --human judgments.jsonl -m bleu chrf {FORMATS}
        meta --human judgments.jsonl -m bleu chrf --statistic pearson kendall --grouping item
        meta --human judgments.jsonl -m bleu chrf --level segment system --pairs -f {text,tsv}
        meta --human judgments.jsonl -m bleu chrf --confidence --resamples 100 --standardize
        meta --human judgments.jsonl -m chrf bleu -o meta.json meta.svg
        meta --human judgments.jsonl -m chrf bleu -o meta.html
        meta diagnostics --human judgments.jsonl -m chrf bleu
        meta thresholds --human judgments.jsonl -m chrf bleu
        meta decisions --good-score 70 --human judgments.jsonl -m chrf bleu
        meta --human ratings.csv --scores scores.tsv
        meta --human missing.csv -m chrf
        meta challenge damage -m chrf bleu --lps de-en {FORMATS}
        meta challenge damage -m chrf --lps de-en --select number negation
        meta challenge damage -m chrf bleu --lps en-de -o chart.svg
        meta challenge damage -m chrf --lps xx-yy
        meta disagreement --human judgments.jsonl -m bleu chrf {FORMATS}
        meta disagreement --human judgments.jsonl -m bleu chrf --count 2
        meta disagreement --human judgments.jsonl -m bleu
        challenge damage -m chrf
        analyse judgments.jsonl -m bleu chrf
    """.replace("{FORMATS}", FORMATS),
    "plan": """
        plan --protocol esa --difference 3 {FORMATS}
        plan --protocol mqm --time 8h
        plan --protocol da --difference 2 -o power.svg --systems 3
        plan -s src.txt -t a.txt b.txt --segments 4 --raters x y -o campaign.json
        plan -s src.txt -t a.txt b.txt --segments 4 --raters 2 --protocol mqm -o mqm.json -q
        plan -s src.txt -t a.txt b.txt --segments 4 --raters 2 --choose stratified -o s.json -q
        plan convert campaign.json --as {pearmut,appraise,label-studio} -o converted.json
        plan --protocol nothing
    """.replace("{FORMATS}", FORMATS),
    "agree": """
        agree ratings.csv {FORMATS}
        agree ratings.csv --exclude annotator-1 --resamples 100 -o agree.json
        agree missing.csv
    """.replace("{FORMATS}", FORMATS),
    "annotate": """
        plan -s src.txt -t a.txt b.txt --segments 4 --raters x y -o campaign.json -q
        annotate campaign.json -o judgments.jsonl
        agree campaign.json -o judgments.jsonl
        annotate missing.json
    """,
    "list": """
        list {FORMATS}
        list all {FORMATS}
        list chrf {FORMATS}
        list {bleu,tertium-multi,pairwise,judge,blend}
        list nothing
        list checks {FORMATS}
        list citations bleu
        list citations chrf meteor pairwise tertium-multi
        list citations nothing
        list data --data human {FORMATS}
        list data da/wmt16 --data human -f {text,json}
        list data da/wmt99 --data human
        {cite,data,models} chrf
    """.replace("{FORMATS}", FORMATS),
    "setup": """
        setup install nothing
        setup cache
        setup cache limit 1G
        setup cache clear rows
        setup cache clear
        setup cache limit nothing
        cache clear
    """,
    "general": """
        --version
        scor
        score
    """,
    "score-details": f"""
        score {ALL_TEXT} -m bleu chrf {{-sl,-dl}} -w 1
        score {ALL_TEXT} -m bleu chrf {{-sl,-dl}} -w 1 -b
        score {TEXT} -m bleu chrf -b -w {{0,1,1 --width 1}}
        score {TEXT} -m bleu --confidence --confidence-n 50 --seed {{0,1}} -f json
        score {TEXT} -m bleu --confidence -o scores.json
        score -t a.txt -t b.txt -r r1.txt -m chrf -b
        score -t gap.txt a.txt -r r1.txt -m chrf -f {{text,md,tsv,json}}
        score -t gap.txt a.txt -r r1.txt -m chrf -q -f {{text,json}}
        score -t ours.json -m chrf -b
        score -t one.txt -r one.txt -m bleu chrf --confidence --confidence-n 20
        score -t a.txt -r r1.txt -m chrf --confidence --confidence-n 20
        score -t long-a.txt -r long-r.txt -m chrf --confidence --confidence-n 20
        score -s src.txt -t a.txt -r r1.txt -m chrf -sl --with-texts -f {{csv,tsv}}
        score {TEXT} -m chrf --only_system --batch_size=8 --output underscores.json
        score {TEXT} -m chrf --score_only
        score {ALL_TEXT} -m chrf --by length -o by-length.html -q
        score -t long-a.txt long-b.txt -r long-r.txt -m chrf --by length --by docs=long-a.txt
        score -t app.xliff -r app.xliff -m chrf --by state
        score -t app.xliff -r app.xliff -m chrf -dl
        score -t app.xliff -r app.xliff -m chrf --write-back again.xlf -sl
        score -t out.sgm -r ref.sgm -m chrf -dl
        score -t wmt.xml -m chrf
        score -t rows.tsv {FIELDS} -m chrf -sl --with-texts -f tsv
        score -t rows.tsv {FIELDS} -m chrf --by topic
        score -t rows.tsv --fields hypothesis=output reference=output -m chrf -b
        score -t rows.tsv --fields hypothesis=outputs -m chrf
        score -t bare.tsv --fields src,mt,ref -m chrf -b
        score -t control.jsonl -m chrf -f json
    """,
    "compare-details": f"""
        compare -t a.txt b.txt a.txt --names a b c -r r1.txt r2.txt -m bleu -f {{text,json}}
        compare -t one.txt two.txt -r one.txt -m chrf
        compare -t long-a.txt long-b.txt -r long-r.txt -m chrf
        compare -t gap.txt a.txt -r r1.txt -m chrf -f {{text,md,tsv,json}} -q
        compare -t gap.txt a.txt -r r1.txt -m chrf -f {{text,json}}
        compare {TEXT} -m chrf --by length --pairs --paired-ar-n 20
        compare {TEXT} -m chrf --pairs -f {{md,tsv}}
        compare {TEXT} -m chrf --{{resamples,paired-bs-n,paired_bs_n,paired-ar-n}} 50 -f json
        compare {TEXT} -m bleu chrf -o all.html -f tsv
    """,
    "rank-details": f"""
        rank {TEXT} -m chrf -sl -f tsv -o segments.json
        rank -t gap.txt a.txt -r r1.txt -m chrf -f {{text,json}}
        rank -t gap.txt a.txt -r r1.txt -m chrf -sl
        rank -t gap.txt a.txt -r r1.txt -m chrf -q
        rank candidates lists.jsonl -m chrf
        rank candidates cased.jsonl -m chrf -q
    """,
    "report-details": f"""
        report {ALL_TEXT} -m chrf ter {NAMED} --seed 7 --alpha 0.01 {REPORT} -o h.html
        report {TEXT} --names good fair poor -m chrf --human preferences.tsv {REPORT} -o p.html
        report {TEXT} -m chrf bertscore:encoder=toy --count 2 -o mine.html
        report {TEXT} -m chrf --by length --count 0 -o {{a.html,b.html --paired-ar-n 50}}
        report {TEXT} -m chrf --by length --count 0 --paired-bs --paired-bs-n 60 -o c.html
        meta {HUMAN} -m chrf ter --resamples 50 -o meta.html -q
        meta {HUMAN} -m chrf ter --level system --resamples 0 -o systems.html
        meta --human systems.tsv --scores mine.tsv --lower-better mine {SYSTEM_LEVEL} -o m.html
    """,
    "explain-details": """
        explain --text -m bertscore:encoder=toy -r '' -t 'a cat' -f {text,json}
        explain --text -m chrf -r 'a cat' -t '' -t a
        explain --text -m chrf -r 'a cat sat' -t 'a cat sits' -t 'a dog' -f {text,json}
        explain --text -m wmd -r 'the blue car' -t 'the red car'
        explain --text -m bleu-r -t 'the cat sat' -r 'the cat sat down' -r 'a dog'
        explain -m ter-r -t a.txt -r r1.txt --segment 2 -f json
        explain -m chrf -t a.txt b.txt -r r1.txt --segment 2 -f json
    """,
    "check-details": f"""
        check {UI} --target-language de -f {{text,tsv,json}}
        check {UI} --select empty -f {{text,md,tsv}}
        check {UI} --fail-on critical
        check {UI} --fail-on minor --ignore placeholders
        check {UI} --terms terms.csv --do-not-translate names.txt --max-length 9 --summary -f tsv
        check {UI} -o f.tsv f.html --summary
        check -s ref.sgm -t out.txt -o out.sarif
        check -t rows.tsv {FIELDS} --select empty
    """,
    "gate-details": f"""
        gate -t systems.jsonl --baseline b.txt --candidate a.txt --by length {RULES} -f json
        gate {LONG} --by length --max empty=0 'wrong language=0' {RULES} -o g.xml g.md g.html
        gate -t a.txt b.txt c.txt -s src.txt -r r1.txt --baseline a.txt --candidate c.txt {RULES}
        gate {LONG} -m chrf --margin chrf=11.4 --undecided {{pass,fail}} -o g.xml
    """,
    "meta-details": f"""
        meta {HUMAN} -m bleu chrf --confidence --pairs -f {{text,tsv,md,latex}} {FAST}
        meta {HUMAN} -m bleu chrf --confidence -f tsv {FAST}
        meta {HUMAN} -m bleu chrf --statistic pearson acc-eq* {{,-f tsv}} {FAST}
        meta {HUMAN} -m bleu chrf --statistic acc_eq SPA kendall-tau-b -f json {FAST}
        meta {HUMAN} -m bleu chrf --statistic {{accuracy,spa}} -f json {FAST}
        meta {HUMAN} -m bleu chrf --level system --exclude poor {FAST}
        meta --human judgments.jsonl --scores part.de-en.tsv -o part.json {FAST}
        meta --human constant.jsonl -m chrf bleu {{,-f json}} {FAST}
        meta --human pairs.jsonl -m chrf -f {{text,json}} {FAST}
        meta --human systems.tsv --scores mine.tsv {SYSTEM_LEVEL}
        meta protocol wmt24 {HUMAN} -m chrf bleu -f {{text,tsv,json}} {FAST}
        meta disagreement {HUMAN} -m chrf bleu --count 2 -f json
        meta disagreement {HUMAN} -m chrf chrf:beta=1 --count 1
        meta disagreement --human gap.jsonl -m chrf bleu -f json
    """,
    "route-details": """
        route fit --human judged.jsonl -m chrf --ignore wrong-language {PRECISION} -o route.json
        route apply route.json -t few.jsonl -o labeled.csv -f json
        route apply route.json -t judgments.jsonl -o none.jsonl -f json
    """.replace("{PRECISION}", "--target-precision 0.8"),
    "worst-details": f"""
        worst {UI} -r ui.txt -m chrf {EN_DE} -o w.csv w.xlsx w.html
        worst {UI} -r ui.txt -m chrf {EN_DE} -f {{json,tsv}} -n 1
    """,
    "plan-details": """
        plan --difference 3 -o power.svg -f json
        plan -s src.txt -t a.txt b.txt --segments 4 --raters x y z -o campaign.json -q
        plan convert campaign.json --as pearmut -o theirs.json
        plan convert theirs.json -o again.json
        agree mqm_x_ende.tsv --resamples 20 --pass-mark 90 -q
        agree export.jsonl --resamples 20 -q
    """,
    "list-details": """
        list bertscore -f {tsv,json}
        list data da/wmt16/ --data human -f json
        list citations pairwise chrf++
    """,
}


def _join(*rows: Mapping[str, object] | Sequence[object]) -> str:
    """Return lines: records as JSON, other rows with tabs."""
    lines = (json.dumps(r) if isinstance(r, Mapping) else "\t".join(map(str, r)) for r in rows)
    return "".join(f"{line}\n" for line in lines)


_DOCUMENT = '<doc sysid="ours" docid="page"><seg id="1">Hello there.</seg></doc>'
_JUDGMENT = {"system": "A", "mt": "the cat", "ref": "the cat sat", "score": 1.0, "lp": "de-en"}
_MQM = [
    ("a", "d1", "1", segment, rater, "A cat sat.", target, category, severity)
    for segment, rater, target, category, severity in (
        ("1", "r1", "<v>Eine</v> Katze.", "Accuracy/Mistranslation", "Major"),
        ("1", "r2", "<v>Eine</v> Katze.", "Accuracy/Mistranslation", "Minor"),
        ("2", "r1", "Ein <v>Hund</v>.", "Fluency/Grammar", "Minor"),
        ("2", "r2", "Ein Hund.", "No-error", "No-error"),
    )
]
_EXPORT = {
    "annotation": {"a": {"score": 80, "error_spans": []}, "b": {"score": 60}},
    "item": {"item_id": "1", "src": "A cat.", "tgt": {"a": "Katze.", "b": "Kater."}},
    "item_i": 0,
}
FILES = {
    "gap.txt": "The market opens.\n\na\nb\nc\nd\n",
    "one.txt": "a b c d e\n",
    "two.txt": "a b c\n",
    "ours.json": _join({"mt": "a cat", "ref": "a cat"}),
    "rows.tsv": _join(
        ("input", "output", "gold", "topic"),
        ("ein Hund", "a dog", "the dog", "pets"),
        ("eine Katze", "a cat", "a cat", "pets"),
        ("ein Auto", "a car", "one car", "cars"),
    ),
    "bare.tsv": "ein Hund\ta dog\ta dog\n",
    "control.jsonl": _join({"system": "a\x1b[2J", "segment": 1, "mt": "", "ref": "x"}),
    "out.txt": "Hello {there}.\n",
    "out.sgm": f"<tstset>{_DOCUMENT}</tstset>",
    "ref.sgm": f"<refset>{_DOCUMENT}</refset>",
    "wmt.xml": """<dataset id="x"><doc origlang="de" id="d">
        <src lang="de"><p><seg id="1">Hallo!</seg></p></src>
        <ref lang="en" translator="A"><p><seg id="1">Hello!</seg></p></ref>
        <hyp lang="en" system="ours"><p><seg id="1">Hello.</seg></p></hyp></doc></dataset>""",
    "lists.jsonl": _join(
        {"id": 7, "source": "s", "reference": "a cat sat", "candidates": ["dog", "a cat sat"]},
        {"id": 8, "reference": ["nobody", "no one"], "candidates": ["nobody"]},
        {"reference": "a cat", "candidates": ["", "a cat"]},
    ),
    "cased.jsonl": _join(
        {"Reference": "a cat sat", "NBest": ["dog", "a cat sat"], "cost": float("nan")},
        {"Ref": "a cat", "nbest": ["dog", "a cat"], "NBest": "of another tool"},
    ),
    "systems.tsv": _join(("system", "score"), ("A", 1), ("B", 2), ("C", 3)),
    "mine.tsv": _join(("system", "score"), ("A", 0.3), ("B", 0.2), ("C", 0.1)),
    "part.de-en.tsv": _join(
        ("item", "system", "score"), (1, "good", 1.0), (2, "good", 2.0), (1, "Q", 5)
    ),
    "constant.jsonl": _join(
        *(_JUDGMENT | {"segment": str(n), "system": s} for n in range(4) for s in "AB")
    ),
    "gap.jsonl": _join(
        *(
            _JUDGMENT | {"segment": str(n), "mt": "the cat sat"[:length], "score": float(length)}
            for n, length in enumerate((0, 3, 7, 8, 9, 10, 11))
        )
    ),
    "mqm_x_ende.tsv": _join(
        "system doc doc_id seg_id rater source target category severity".split(), *_MQM
    ),
    "export.jsonl": _join(*({**_EXPORT, "user_id": user} for user in ("anna", "ben"))),
    "ui-source.txt": "You have {count} files.\nIn 1947\nWe met 5 < 6 there.\n",
    "ui-target.txt": "Sie haben {n} Dateien.\n\nWir trafen 5 < 6 dort.\n",
    "ui.txt": "Sie haben {count} Dateien.\nIm Jahr 1947\nWir haben 5 < 6 getroffen.\n",
}
