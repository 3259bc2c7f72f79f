"""Writes the file with which `pulumi import` takes existing objects into a stack."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kthena_components.convert.conversion import Converted
from kthena_components.core import naming
from kthena_components.core.plan.manifest import Manifest

IMPORTS = "import.json"
COMMAND = f"pulumi import --file {IMPORTS} --generate-code=false --protect=false"
"""Without code, because the program is there, and unprotected like all objects of the program."""


def write_imports(
    servings: Sequence[tuple[str, Converted]], there: Sequence[Sequence[str]], version: str
) -> str:
    """Write the entries of all objects that exist.

    Args:
        servings: The servings with the Pulumi names of their components.
        there: For each serving, the titles of the objects that exist.
        version: Version of the Kubernetes provider, which decides the types of its resources.
    """
    entries: list[Mapping[str, Any]] = []
    for (component, serving), titles in zip(servings, there, strict=True):
        found = [made for made in serving.compiled.manifests if made.title in titles]
        if found:
            entries.append({"type": naming.MODEL_SERVING, "name": component, "component": True})
        for made in found:
            name = naming.resource_name(component, serving.compiled.plan.name, made.name)
            entries.append(_entry(component, name, made, version))
    return json.dumps({"resources": entries}, indent=4) + "\n"


def _entry(component: str, name: str, made: Manifest, version: str) -> dict[str, Any]:
    return {
        "type": made.type_token,
        # Of its own in the whole file, where objects of several kinds may have one name.
        "name": f"{name} {made.kind}",
        "logicalName": name,
        "id": "/".join(filter(None, (made.body["metadata"].get("namespace"), made.name))),
        "parent": component,
        "version": version,
    }
