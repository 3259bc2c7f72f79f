"""Builds kustomizations with kustomize, or with kubectl, which contains it.

By default, Kustomize reads only files below the folder of a kustomization, starts no plugins and
renders no charts. Each kustomization is built through another one, outside the checkout, which asks
for annotations with the file of each object.
Source: sigs.k8s.io/kustomize/api v0.20, types/kustomization.go (BuildMetadata), resource/origin.go.
"""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kthena_components.core.values.read import mapping
from kthena_components.core.values.regex import regex
from kthena_components.reading.files import Unreadable
from kthena_components.reading.settings import parse_kube_map
from kthena_components.rendering.isolation import Cage

PROGRAMS = ("kustomize", "kubectl")
ORIGIN = "config.kubernetes.io/origin"
_COMMANDS = {"kustomize": "build", "kubectl": "kustomize"}
_FILE, _OBJECTS = "kustomization.yaml", "objects.yaml"
NO_FIELDS: Mapping[str, Any] = {}
_AROUND = regex(r".*recursed accumulation of path '[^']*': ")
"""The part of an error that repeats for each base."""


def build(
    program: str, folder: str, cage: Cage, output: Path, fields: Mapping[str, Any] = NO_FIELDS
) -> str:
    """Build a kustomization.

    Args:
        program: Path of kustomize or kubectl.
        folder: Real path of the kustomization's folder.
        cage: The cage for the program.
        output: The file for the objects. A folder is created beside it.
        fields: Further fields of the kustomization around it, which name no files.

    Returns:
        The error; empty if the program succeeded.
    """
    around = _around(output)
    around.mkdir()
    below = os.path.relpath(folder, around)
    stated = {**fields, "resources": [below], "buildMetadata": ["originAnnotations"]}
    return _AROUND.sub("", _run(program, stated, cage, output))


def change(program: str, objects: Path, fields: Mapping[str, Any], cage: Cage, output: Path) -> str:
    """Apply fields of a kustomization to the objects in a file. Returns the error, or nothing."""
    around = _around(output)
    around.mkdir()
    shutil.copyfile(objects, around / _OBJECTS)
    return _run(program, {**fields, "resources": [_OBJECTS]}, cage, output)


def _run(program: str, stated: Mapping[str, Any], cage: Cage, output: Path) -> str:
    around = _around(output)
    (around / _FILE).write_text(json.dumps(stated))
    return cage.run([program, _COMMANDS[Path(program).name], str(around)], output)


def origin_of(body: Mapping[str, Any], output: Path) -> str | None:
    """Return the real path of the file that an object was built from; None if unknown."""
    stated = mapping(mapping(body.get("metadata")).get("annotations")).get(ORIGIN)
    origin = parse_kube_map(stated, ORIGIN) if isinstance(stated, str) else {}
    if isinstance(origin, Unreadable) or "repo" in origin:
        return None
    path = origin.get("path", origin.get("configuredIn"))
    if not isinstance(path, str) or "\0" in path:
        return None
    return os.path.realpath(_around(output) / path)


def _around(output: Path) -> Path:
    return output.with_name(f"{output.name}.d")
