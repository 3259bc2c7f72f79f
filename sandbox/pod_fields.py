"""Reads the fields and types of a pod template from a running API server.

`python -m sandbox.pod_fields FOLDER` writes the table that core/schema/pod.py reads.
"""

import json
import sys
from pathlib import Path
from typing import Any

from kthena_components.cluster.client import Cluster
from kthena_components.core.schema.pod import ROOT_TYPE, TABLE
from sandbox.cluster import opened

_KEYS = "x-kubernetes-list-map-keys"
_SPECIAL = {"Quantity": "quantity", "IntOrString": "int-or-string", "Time": "string"}


def read_fields(api: Cluster) -> dict[str, dict[str, Any]]:
    """Return the fields of each type in a pod template, by the type's name.

    `keys` has the lists in which the values of some fields must be unique.
    """
    defined = api.ask("GET", "/openapi/v2")["definitions"]
    by_name = {name.rpartition(".")[2]: name for name in defined if _is_plain(name)}
    found: dict[str, dict[str, Any]] = {}
    waiting = [ROOT_TYPE]
    while waiting:
        name = waiting.pop()
        schema = defined[by_name[name]]
        properties = schema.get("properties", {})
        fields = {key: _type(value) for key, value in properties.items()}
        keys = {key: value[_KEYS] for key, value in properties.items() if _KEYS in value}
        required = sorted(schema.get("required", []))
        found[name] = {"fields": fields, "required": required, "keys": keys}
        used = {kind.rpartition("]")[2].removeprefix("{}") for kind in fields.values()}
        waiting += sorted(kind for kind in used if kind in by_name and kind not in found)
    return dict(sorted(found.items()))


def _is_plain(name: str) -> bool:
    return name.startswith(("io.k8s.api.core.v1.", "io.k8s.apimachinery.pkg."))


def _type(schema: dict[str, Any]) -> str:
    """Write a type: `string`, `Probe`, `[]EnvVar`, `[set]int32`, `{}quantity`."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition(".")[2]
        return _SPECIAL.get(name, name)
    kind = schema["type"]
    if kind == "array":
        many = "[set]" if schema.get("x-kubernetes-list-type") == "set" else "[]"
        return f"{many}{_type(schema['items'])}"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"{{}}{_type(values)}" if values else "object"
    return str(schema.get("format", "int64") if kind == "integer" else kind)


if __name__ == "__main__":
    table = read_fields(opened(Path(sys.argv[1])).api)
    TABLE.write_text(json.dumps(table, indent=1) + "\n")
