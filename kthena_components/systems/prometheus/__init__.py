"""The Prometheus Operator: its objects, and those that `monitoring: true` adds to a serving."""
