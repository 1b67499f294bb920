"""Diagnostics of metrics: known failure modes, checked on any metric and judged set."""
