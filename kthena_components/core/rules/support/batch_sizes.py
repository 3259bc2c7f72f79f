"""Shared by memory-fraction-range and scheduler-sizes."""

POSITIVE = (0, 11, 1)
"""Release of vLLM from which these numbers must be positive."""
"""The first vLLM that rejects sizes and shares of 0 and less."""
