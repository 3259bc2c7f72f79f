"""Objects of a cluster, and what the rules over a cluster read of them."""
