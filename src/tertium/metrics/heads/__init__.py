"""Networks over a frozen encoder, trained on human judgments (Mathur, Baldwin, Cohn 2019)."""
