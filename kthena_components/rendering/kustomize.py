"""Kustomizations, built by kustomize or by kubectl, which has it built in.

Kustomize takes files from below the folder of a kustomization alone, starts no plugins and inflates
no charts unless it is told to, and it is not told to. Each one is built through a kustomization of
ours, outside of the checkout, that has the file of each object written into it.
Source: sigs.k8s.io/kustomize/api v0.20, types/kustomization.go (BuildMetadata), resource/origin.go.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kthena_components.core.values.read import mapping
from kthena_components.reading.files import Unreadable
from kthena_components.reading.maps import parse_map
from kthena_components.rendering.cage import Cage

PROGRAMS = ("kustomize", "kubectl")
ORIGIN = "config.kubernetes.io/origin"
_COMMANDS = {"kustomize": "build", "kubectl": "kustomize"}
_FILE = "kustomization.yaml"
_AROUND = re.compile(r".*recursed accumulation of path '[^']*': ")
"""What Kustomize says of each folder on the way to the one that is wrong."""


def build(program: str, folder: str, cage: Cage, output: Path) -> str:
    """Build a kustomization.

    Args:
        program: Path of kustomize or kubectl.
        folder: Real path of the kustomization's folder.
        cage: Where it runs.
        output: Where the objects go. A folder of the same name is made beside it.

    Returns:
        Why it could not be built; nothing if it was.
    """
    around = _around(output)
    around.mkdir()
    below = os.path.relpath(folder, around)
    stated = {"resources": [below], "buildMetadata": ["originAnnotations"]}
    (around / _FILE).write_text(json.dumps(stated))
    why = cage.run([program, _COMMANDS[Path(program).name], str(around)], output)
    return _AROUND.sub("", why)


def origin_of(body: Mapping[str, Any], output: Path) -> str | None:
    """Give the real path of the file that an object was built from; None where none is named."""
    stated = mapping(mapping(body.get("metadata")).get("annotations")).get(ORIGIN)
    origin = parse_map(stated, ORIGIN) if isinstance(stated, str) else {}
    if isinstance(origin, Unreadable) or "repo" in origin:
        return None
    path = origin.get("path", origin.get("configuredIn"))
    if not isinstance(path, str) or "\0" in path:
        return None
    return os.path.realpath(_around(output) / path)


def _around(output: Path) -> Path:
    return output.with_name(f"{output.name}.d")
