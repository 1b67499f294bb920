"""Networks over a frozen encoder, trained on judgements (Mathur, Baldwin, Cohn 2019)."""
