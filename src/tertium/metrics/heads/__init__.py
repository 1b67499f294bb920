"""Networks over a frozen encoder, trained on judgments (Mathur, Baldwin, Cohn 2019)."""
