"""What the package costs, measured side by side with plain Pulumi in one run, as ratios.

Nothing here is part of the wheel, and no test asserts a time.
"""
