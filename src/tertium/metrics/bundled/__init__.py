"""The bundled tertium metrics: neural networks calibrated to human scores."""
