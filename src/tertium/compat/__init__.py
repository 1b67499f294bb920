"""The interfaces of sacrebleu, COMET, evaluate and bert-score, so that one import changes.

    from tertium.compat import sacrebleu          # sacrebleu.corpus_bleu(hyps, [refs]).score
    from tertium.compat import comet              # comet.load_from_checkpoint(...).predict(data)
    from tertium.compat import evaluate           # evaluate.load("chrf").compute(...)
    from tertium.compat import bert_score         # bert_score.score(cands, refs, lang="en")

Each is a thin layer over `Metric`. BLEU, chrF and TER are sacrebleu's numbers to the last
bit; COMET's own weights are not here, so a COMET user chooses one of tertium's metrics, or names a
folder of weights (`comet_metric`, registered as a package of somebody else would be). An option
that has no meaning here is refused, never ignored, unless it only silences or speeds something up.
"""
