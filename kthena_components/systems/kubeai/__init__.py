"""kubeai."""
