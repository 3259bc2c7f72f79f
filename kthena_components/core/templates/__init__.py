"""Pod templates: merging, patching and validation."""
