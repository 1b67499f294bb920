"""Trained models: checkpoints, training data, options and the training loop."""
