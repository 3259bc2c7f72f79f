"""Kthena's ModelBooster as a backend: from it, Kthena writes the ModelServing and its routing."""
