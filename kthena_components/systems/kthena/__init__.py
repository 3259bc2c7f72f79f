"""kthena."""
