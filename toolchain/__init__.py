"""Finds Pulumi and its Kubernetes provider, or builds them from Go modules.

An official installation of Pulumi takes precedence. The build is for machines that can reach only
package registries. This package uses only the standard library, because it runs before any package
is installed.
"""
