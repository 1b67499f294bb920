"""The HTML report: results as one page."""
