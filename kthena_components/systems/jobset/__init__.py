"""jobset."""
