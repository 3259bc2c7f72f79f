"""Reads untrusted files within fixed limits."""
