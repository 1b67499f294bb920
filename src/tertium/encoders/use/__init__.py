"""The Universal Sentence Encoder, multilingual v3."""
