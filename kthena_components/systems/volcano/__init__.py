"""Volcano: PodGroup, Queue, HyperNode and Job."""
