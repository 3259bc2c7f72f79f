"""Pulumi components over the plans and manifests of the other packages.

The only package that registers resources.
"""
