"""Drop-in interfaces of sacrebleu, COMET, evaluate and bert-score: change one import.

    from tertium.compat import sacrebleu          # sacrebleu.corpus_bleu(hyps, [refs]).score
    from tertium.compat import comet              # comet.load_from_checkpoint(...).predict(data)
    from tertium.compat import evaluate           # evaluate.load("chrf").compute(...)
    from tertium.compat import bert_score         # bert_score.score(cands, refs, lang="en")

Each is a thin layer over `Metric`. BLEU, chrF and TER equal sacrebleu's numbers to the last bit.
COMET's weights are not bundled: use one of tertium's metrics, or the folder of a COMET checkpoint
(`comet_metric`, registered through an entry point like any plugin). Options that tertium does not
support raise an error; only options about verbosity or speed are ignored.
"""
