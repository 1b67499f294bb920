"""Recipes for language identification profiles and language-specific encoder statistics."""
