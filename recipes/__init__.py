"""How the shipped models were made: each recipe runs end to end, one command per stage."""
