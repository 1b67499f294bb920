"""Files to values: text, tables, test sets and human judgements. Knows nothing of scoring.

What is judged: `testset` (systems over segments, lists of candidates). What people said of it:
`judgements` (scores of translations, which `ratings` makes of raw ones, and what all evidence
has in common), `preferences` (the better of two; `win_rates` makes systems' standings of them),
`markings` (errors, as `campaigns` publish them); `evidence` reads any of these from whichever file.
What metrics said: `metric_scores`. As others publish it: `mtme`, `wmt`, `qe`. A whole folder of it:
`collection`, packed `archive`. `leaks` keeps tested segments out of training. Below all: `formats`.
"""
