"""argo_rollouts."""
