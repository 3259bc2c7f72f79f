"""vllm_stack."""
