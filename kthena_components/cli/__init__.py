"""The command line `kthena-components`. It does not import Pulumi."""
