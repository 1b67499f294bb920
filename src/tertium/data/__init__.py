"""Files to values: text, tables, test sets and human judgements. Knows nothing of scoring.

What is judged: `testset` (systems over segments), `candidates` (N-best lists). What people said of
it: `judgements` (a score of a translation, which `rows` reads and `ratings` makes of raw ones),
`preferences` (the better of two; `win_rates` makes systems' standings of them), `campaigns` (marked
errors); `people` is one of these, `evidence` reads whichever a file holds. What metrics said:
`metric_scores`. As others publish it: `mtme`, `wmt`, `wmt_rankings`, `qe`. A whole folder of it:
`collection`, in numbers `summary`, packed `archive`. `leaks` keeps tested segments out of training.
Below all: `formats`.
"""
