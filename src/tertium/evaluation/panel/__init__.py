"""Doubts about a metric, asked of any metric on any evidence; `panel.ask_doubts` asks them all."""
