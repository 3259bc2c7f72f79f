"""Draws servings on their cluster: groups, engines, pods, nodes and racks, in three forms."""
