"""A stand-in for the Python language host that no Go module brings."""
