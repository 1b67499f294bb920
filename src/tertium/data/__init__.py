"""Files to values: text, tables, test sets and human judgments. Knows nothing of scoring.

What is judged: `testset` (systems over segments), `candidates` (lists of translations), `challenge`
(a better and a worse one). What people said of it, which has `human` in common: `judgments`
(scores of translations, which `ratings` makes of raw ones), `rankings` (the better of two, read by
`preferences`; `win_rates` makes systems' standings of them), `markings` (errors, as `campaigns`
publish them); `evidence` reads any of these from whichever file. What metrics said:
`metric_scores`. As others publish it: `mtme`, `wmt`, `qe`. A whole folder of it: `collection`, in
numbers `overview`, packed `archive`. `slices` part it, `leaks` keeps tested segments out of
training. Below all: `formats` (files), `records` (names of columns), `items` (names of segments).
"""
