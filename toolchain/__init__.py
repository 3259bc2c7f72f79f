"""Find Pulumi and its Kubernetes provider, or build them from Go modules.

An installation from Pulumi's own site is always preferred. Building is for
machines that reach package registries and nothing else.
This package uses the standard library alone: it runs before anything is installed.
"""
