"""The default backend: StatefulSets under Volcano."""
