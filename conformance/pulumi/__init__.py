"""Pulumi: whole updates of stacks on a cluster, with faults, permissions and load."""
