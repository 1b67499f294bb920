"""Shared by all metric families: metric and ranker interfaces, loading, matching, features."""
