"""grove."""
