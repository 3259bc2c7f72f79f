"""The command `size`: its options, its question and its output."""
