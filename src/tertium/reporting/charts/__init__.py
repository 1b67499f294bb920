"""SVG charts of results."""
