"""The facts of NIMServices, whose sizes are from the object, its variables, or a NIM's profile."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.single_container import MOUNTED, SHARED_MEMORY, read_single
from kthena_components.core.objects.object import Object
from kthena_components.core.values.read import mapping, name_of, sequence
from kthena_components.core.values.unknown import MaybeInt, Unknown, is_unresolved
from kthena_components.systems.nim.view import GPU, Nim, Nims

_TENSOR, _PIPELINE = "NIM_TENSOR_PARALLEL_SIZE", "NIM_PIPELINE_PARALLEL_SIZE"
_PROFILE = Unknown("the NIM chooses its profile by the GPUs that it finds")
_FIELDS = ("args", "command", "env", "resources")
_DIGITS = 4


def facts(view: Nims) -> ServingFacts:
    """Return the facts of all NIMs."""
    found = view.object
    return ServingFacts(
        path=found.at("spec"),
        name=name_of(found.body),
        engines=tuple(_engine(found, nim) for nim in view.services),
        # The operator makes a LeaderWorkerSet of it, and says nothing of gangs.
        gang_expected=any(nim.fields.get("schedulerName") == "volcano" for nim in view.services),
    )


def _engine(found: Object, nim: Nim) -> EngineFacts:
    pod = _pod(found, nim)
    return EngineFacts(
        path=found.at(nim.path),
        name=nim.name,
        pods=nim.stages,
        replicas=nim.replicas,
        entry=pod,
        worker=None,
    )


def _pod(found: Object, nim: Nim) -> PodFacts:
    image = mapping(nim.fields.get("image"))
    parts = [image.get(key) for key in ("repository", "tag")]
    stated = mapping(mapping(nim.fields.get("resources")).get("requests")).get(GPU)
    requests = {} if stated is None else {"requests": {GPU: stated}}
    gpus = {} if nim.gpus is None else {"limits": {GPU: nim.gpus}, **requests}
    container: dict[str, Any] = {
        **{key: nim.fields[key] for key in _FIELDS if key in nim.fields},
        "name": "nim",
        "resources": gpus,
        "volumeMounts": [MOUNTED],
        **({"image": ":".join(map(str, parts))} if all(parts) else {}),
    }
    pod = read_single(
        container, _places(nim), found.at, volumes=[SHARED_MEMORY], context=found.context
    )
    command = _command(nim, pod)
    if command is None or (pod.command is not None and pod.command.engine is not None):
        return replace(pod, gap=None)
    return replace(
        pod,
        command=command,
        command_path=found.at(_where(nim)),
        container="nim",
        gap=None,
    )


def _places(nim: Nim) -> Mapping[str, str]:
    own = {field: f"{nim.path}.{field}" for field in _FIELDS}
    return {**own, "image": f"{nim.path}.image.tag", "": nim.path}


def _where(nim: Nim) -> str:
    return nim.path if nim.tensor is None else f"{nim.path}.multiNode.parallelism"


def _command(nim: Nim, pod: PodFacts) -> CommandFacts | None:
    """Return the sizes of a NIM; None if they follow from its profile, like its GPUs.

    Its own variables take precedence over those of the operator.
    """
    env = [mapping(item) for item in sequence(nim.fields.get("env"))]
    tensor = _size(_TENSOR, env)
    pipeline = _size(_PIPELINE, env)
    if is_unresolved(nim.fields.get("env")):
        tensor = Unknown("its variables are not known yet")
    if tensor is None and nim.tensor is None:
        if nim.gpus is None:
            return None
        tensor = 1 if pod.gpus == 1 else _PROFILE
    return CommandFacts(
        engine="nim",
        tensor=nim.tensor or 1 if tensor is None else tensor,
        pipeline=nim.stages if pipeline is None else pipeline,
    )


def _size(name: str, env: Sequence[Mapping[str, Any]]) -> MaybeInt | None:
    """Return the size in a variable; None if there is none."""
    for item in env:
        value = item.get("value")
        if item.get("name") == name:
            known = isinstance(value, str) and value.isdecimal() and 0 < len(value) <= _DIGITS
            return int(str(value)) if known else Unknown(f"the value of {name} is not a number")
    return None
