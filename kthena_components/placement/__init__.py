"""Answers whether groups of pods fit into a cluster, where, and if not why. Nothing is applied."""
