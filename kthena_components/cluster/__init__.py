"""Reads a running cluster for `doctor` and `status`."""
