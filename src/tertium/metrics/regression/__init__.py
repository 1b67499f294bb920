"""Metrics that are regressions on features: lexical scores, entailment, sentence vectors."""
