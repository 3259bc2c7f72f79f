"""Objects of a cluster, and what the rules over a stack read of them."""
