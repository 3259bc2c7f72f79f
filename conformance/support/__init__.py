"""What the parts share: random servings, and how a cluster is watched."""
