"""Releases of the Helm chart vllm-stack."""
