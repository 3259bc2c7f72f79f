"""Kthena: its controllers, against the backends `native`, `kthena` and `booster`."""
