"""Pulumi components on top of the plans and manifests of the other packages.

Only this package registers resources.
"""
