"""What the package says of Kthena, Volcano and Kubernetes, held against the real programs.

Each module of PARTS tries one kind of thing in a sandbox of its own. None is part of `make test`:
they need a cluster, and minutes.
"""
