"""Results as tables: text, Markdown, LaTeX, TSV, HTML."""
