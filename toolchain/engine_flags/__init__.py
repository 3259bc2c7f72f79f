"""Updates the tables of the engines' options from the published releases of the engines.

This is a maintainer's command: `make engine-tables`. Users and CI only read the tables.
"""
