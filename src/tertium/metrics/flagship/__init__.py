"""The metrics that tertium ships as its own."""
