"""Untrusted files and launch scripts that are drawn, without a cluster."""
