"""aibrix."""
