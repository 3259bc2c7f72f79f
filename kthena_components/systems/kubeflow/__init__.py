"""kubeflow."""
