"""volcano."""
