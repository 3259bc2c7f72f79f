"""The command line: judges manifests in files, without a cluster and without Pulumi."""
