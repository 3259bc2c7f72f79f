"""The command `convert`: its options, its sources and its output."""
