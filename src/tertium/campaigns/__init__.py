"""Annotation campaigns: what human raters judge, who judges it, their answers and agreement."""
