"""Text to analysis: what words and sentences mean, before any score is computed."""
