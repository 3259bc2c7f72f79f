"""Helpers that several rules share. No rule is here."""
