"""Compiles a user's input to plans and manifests."""
