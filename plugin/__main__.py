"""Serves the provider when Pulumi runs this folder. The components are in the package."""

from kthena_components.provider.host import run

run()
