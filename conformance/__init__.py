"""Compares the package with the real Kthena, Volcano and Kubernetes.

Each system or subject has a folder, and PARTS in `__main__.py` lists the modules that run: each of
them tests in its own sandbox. `make test` does not run them, because they need a cluster and take
minutes.
"""
