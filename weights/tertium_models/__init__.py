"""The trained models that tertium ships: one folder each, data only."""
