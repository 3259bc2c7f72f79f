"""Values that may be unknown, quantities, and values in messages."""
