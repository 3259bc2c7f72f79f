"""knative."""
