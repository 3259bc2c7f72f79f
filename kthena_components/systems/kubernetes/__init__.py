"""Kubernetes' own workloads, and the objects that they reference."""
