"""The components as a Pulumi provider, for programs in TypeScript, Go, .NET, Java and YAML.

`host.py` answers the engine, and `schema.py` writes what SDKs are generated from. The components
and their checks are those of `resources`.
"""
