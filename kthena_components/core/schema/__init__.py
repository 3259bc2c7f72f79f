"""Schemas of objects, and the check of values against them."""
