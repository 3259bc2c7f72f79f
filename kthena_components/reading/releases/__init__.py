"""Reads what other files state about the deployment of charts and kustomizations."""
