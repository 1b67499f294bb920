"""Files to values: text, tables, test sets and human judgements. Knows nothing of scoring.

What is judged: `testset` (systems over segments), `candidates` (N-best lists). What people said of
it: `judgements` (a score of a translation, `ratings` makes it of raw ones), `preferences` (the
better of two; `win_rates` makes systems' standings of them), `sentence_pairs` (how alike two
sentences mean), `mqm` (marked errors); `people` is one of these, `evidence` reads whichever a file
holds, `sets` are what can be learned from. What metrics said: `metric_scores`. As others publish
it: `mtme`, `wmt`, `wmt_rankings`. A whole folder of it: `collection`, in numbers `summary`, packed
`archive`. `leaks` keeps tested segments out of training. Below all: `formats`.
"""
