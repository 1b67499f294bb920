"""Localization files: read their units as translations, and write scores and findings back."""
