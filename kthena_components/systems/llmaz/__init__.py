"""llmaz."""
