"""Write the tables of custom resources' fields anew, from the CRDs that their projects published.

A maintainer's command: `make crd-tables`. Users and CI read the tables, never this.
"""
