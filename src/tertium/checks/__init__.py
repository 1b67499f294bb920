"""Deterministic checks of translations: each finds one kind of error without a model."""
