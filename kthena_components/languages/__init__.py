"""What programs in other languages see of the components, without Pulumi.

`schema.json` is what their SDKs are generated from, `names.py` translates between their names and
ours, and `typescript.py` writes values as TypeScript.
"""
