"""`kthena-components fit`: whether pods fit into a cluster, where, and if not why."""
