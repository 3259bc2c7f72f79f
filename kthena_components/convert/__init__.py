"""Describes existing objects as servings, and writes them for another backend."""
