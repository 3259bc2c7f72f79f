"""The sandbox itself, and its page."""
