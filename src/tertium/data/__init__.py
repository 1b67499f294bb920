"""Files to values: text, tables, test sets and human judgements. Knows nothing of scoring."""
