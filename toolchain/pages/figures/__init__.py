"""The figures of the documentation, each drawn from what the package itself states."""
