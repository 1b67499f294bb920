"""Regressions on named features: lexical scores, entailment, sentence vectors."""
