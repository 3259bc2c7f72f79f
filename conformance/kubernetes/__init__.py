"""The API server of Kubernetes, against our rules for pod templates and our YAML."""
