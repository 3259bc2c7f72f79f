"""The rules of vllm_stack: one file for each rule or family of rules."""
