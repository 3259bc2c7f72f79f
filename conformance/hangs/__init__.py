"""Pairs of objects that never start, update or drain, and what our remedies make of them."""
