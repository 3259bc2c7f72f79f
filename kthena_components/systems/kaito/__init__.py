"""kaito."""
