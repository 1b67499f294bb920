"""Results to characters: tables, figures and pages."""
