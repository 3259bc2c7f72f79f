"""Kthena: ModelServing and ModelBooster; a backend for plans."""
