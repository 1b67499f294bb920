"""Networks, losses, the training loop and checkpoints. Knows nothing of metrics."""
