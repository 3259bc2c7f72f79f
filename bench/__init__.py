"""Measures the cost of the package as a ratio to plain Pulumi, both in the same run.

This is not part of the wheel, and no test asserts a time.
"""
