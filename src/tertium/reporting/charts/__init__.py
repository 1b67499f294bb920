"""Results as pictures, drawn as SVG."""
