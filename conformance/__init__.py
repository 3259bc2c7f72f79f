"""Compares the package with the real Kthena, Volcano and Kubernetes.

Each module of PARTS tests one subject in its own sandbox. `make test` does not run them, because
they need a cluster and take minutes.
"""
