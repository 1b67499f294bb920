"""The version of tertium, printed in every signature."""

__version__ = "0.2.0"
