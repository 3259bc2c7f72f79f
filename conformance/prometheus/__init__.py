"""Prometheus and its operator, against what `monitoring: true` writes."""
