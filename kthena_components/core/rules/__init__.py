"""Rules over facts, independent of the system."""
