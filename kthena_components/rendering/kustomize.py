"""Finds kustomizations that may build a serving, and builds them with kustomize or kubectl.

By default, Kustomize reads only files below the folder of a kustomization, starts no plugins and
renders no charts. Each kustomization is built through another one, outside the checkout, which asks
for annotations with the file of each object.
Source: sigs.k8s.io/kustomize/api v0.20, types/kustomization.go (BuildMetadata), resource/origin.go.
"""

import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kthena_components.core.values.read import group_kind, mapping, sequence
from kthena_components.reading.documents import Document, read_documents
from kthena_components.reading.files import Unreadable, read_text
from kthena_components.reading.kustomization import Kustomization
from kthena_components.reading.maps import parse_kube_map
from kthena_components.rendering.cage import Cage
from kthena_components.systems import find_kind

PROGRAMS = ("kustomize", "kubectl")
ORIGIN = "config.kubernetes.io/origin"
_COMMANDS = {"kustomize": "build", "kubectl": "kustomize"}
_FILE, _OBJECTS = "kustomization.yaml", "objects.yaml"
NO_FIELDS: Mapping[str, Any] = {}
_AROUND = re.compile(r".*recursed accumulation of path '[^']*': ")
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


# Finds out from the files of a kustomization whether it may build a serving.
#
# Kustomize needs seconds for each megabyte of definitions that it patches, as in the repository
# of a controller. If nothing serves a model, its objects are checked as they are in the files.


_HINTS = ("gpu", "neuron", "gaudi", "vllm", "sglang", "trtllm", "tensorrt", "huggingface")
"""Signs of an engine or its devices, in a Kubernetes workload or a patch of one."""
_SHORT_HINT = re.compile(r"[^a-z](?:[tn]pu|ray\s+start)")
_DEFINITION, _SCHEMA = "CustomResourceDefinition", "openAPIV3Schema"
_OF_DEFINITIONS = (_DEFINITION, _SCHEMA)
"""Words in a patch of a definition, which names everything that it defines."""
_OWN_GROUPS = frozenset({"", "apps", "batch"})


def may_serve(made: Iterable[Kustomization], known: dict[str, bool]) -> bool:
    """Return whether one of some kustomizations may build a serving, or must not be built.

    Args:
        made: The kustomizations.
        known: The results for files, which overlays share. New results are added.
    """
    return any(each.problem or _files_may_serve(each, known) for each in made)


def _files_may_serve(made: Kustomization, known: dict[str, bool]) -> bool:
    for files, test in ((made.objects, holds_serving), (made.parts, _part_may_serve)):
        for file in files:
            if file not in known:
                known[file] = test(file)
            if known[file]:
                return True
    return False


def _part_may_serve(file: str) -> bool:
    text = read_text(file, named=False)
    if isinstance(text, Unreadable):
        return Path(file).exists()  # Kustomize reports it
    if not is_hinted(text):
        return False
    if not any(word in text for word in _OF_DEFINITIONS):
        return True
    documents = read_documents(text, file, lambda *_: True)
    return not all(_is_of_a_definition(document) for document in documents)


def _is_of_a_definition(document: Document | Unreadable) -> bool:
    """Return whether a document is a part of a CustomResourceDefinition."""
    if isinstance(document, Unreadable):
        return False
    changes = [mapping(each) for each in sequence(document.body)]  # a JSON patch
    if changes:
        return all(_SCHEMA in str(each.get("path")) for each in changes)
    return document.body is None or group_kind(document.body)[1] == _DEFINITION


def is_hinted(text: str) -> bool:
    """Return whether a text has a sign of an engine or its devices."""
    lower = text.lower()
    return any(hint in lower for hint in _HINTS) or _SHORT_HINT.search(lower) is not None


def holds_serving(file: str) -> bool:
    """Return whether a file may have an object that serves a model."""
    text = read_text(file, named=False)
    if isinstance(text, Unreadable):
        return text.is_object
    for document in read_documents(text, file, lambda *_: False):
        if isinstance(document, Unreadable):
            return True
        group, name = group_kind(document.body)
        kind = find_kind((group, name))
        is_judged = name.endswith("List") or (kind is not None and kind.is_judged)
        if is_judged and (group not in _OWN_GROUPS or is_hinted(text)):
            return True
    return False
