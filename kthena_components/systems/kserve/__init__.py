"""KServe: InferenceService, its runtimes, and LLMInferenceService."""
