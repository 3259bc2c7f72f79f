"""KAITO: Workspace, InferenceSet and MultiRoleInference."""
