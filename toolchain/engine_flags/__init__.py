"""Write the tables of the engines' options anew, from what the engines' projects have published.

A maintainer's command: `make engine-tables`. Users and CI read the tables, never this.
"""
