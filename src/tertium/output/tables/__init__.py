"""Tables of results as text, Markdown, LaTeX, TSV, HTML, CSV or Excel."""
