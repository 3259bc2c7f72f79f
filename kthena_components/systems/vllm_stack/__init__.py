"""Releases of the Helm charts vllm-stack and llm-d-modelservice."""
