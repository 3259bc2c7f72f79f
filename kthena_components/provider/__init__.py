"""The components as a Pulumi provider, for programs in TypeScript, Go, .NET, Java and YAML.

`schema.py` writes what these languages see, `names.py` translates between their names and ours, and
`host.py` answers the engine. The components and their checks are those of `resources`.
"""
