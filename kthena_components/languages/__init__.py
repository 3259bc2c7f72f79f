"""What programs in other languages see of the components, without Pulumi.

`schema.json` is what their SDKs are generated from. `names_and_typescript.py` translates between
their names and ours, and writes values as TypeScript.
"""
