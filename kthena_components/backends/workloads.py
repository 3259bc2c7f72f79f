"""Read Kubernetes' own workloads: Pod, Deployment, StatefulSet, ReplicaSet, DaemonSet, Job.

These may be ours or anyone's. One object shows one pod template; how many pods make one engine is
read from what the pods are told (GROUP_SIZE, --nnodes, ray_cluster_size), never guessed.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.backends import volcano
from kthena_components.core import naming
from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts import (
    EngineFacts,
    GangFacts,
    NameFacts,
    PodFacts,
    ServingFacts,
    as_count,
    as_list,
    as_map,
    read_pod,
)
from kthena_components.core.known import MaybeInt, Unknown

TEMPLATED = {
    "apps": {"Deployment", "StatefulSet", "ReplicaSet", "DaemonSet"},
    "batch": {"Job"},
}
_SIZE = re.compile(r"[1-9][0-9]{0,8}")
NOT_STATED = Unknown("nothing in this object says how many pods make one engine")


def _kind(body: Mapping[str, Any]) -> tuple[str, str]:
    version = str(body.get("apiVersion", ""))
    return (version.split("/", maxsplit=1)[0] if "/" in version else ""), str(body.get("kind", ""))


def read(body: Mapping[str, Any], path: str = "") -> ServingFacts | None:
    """Read the facts of one workload; None for anything else."""
    group, kind = _kind(body)
    name = str(as_map(body.get("metadata")).get("name", ""))
    if (group, kind) == ("", "Pod"):
        template, at, spec = body, path, as_map(None)
    elif kind in TEMPLATED.get(group, ()):
        spec = as_map(body.get("spec"))
        template, at = as_map(spec.get("template")), _join(path, "spec.template")
    else:
        return None
    engine = _engine(name, template, at, spec)
    gang_expected = as_map(template.get("spec")).get("schedulerName") == "volcano"
    names = _names(kind, name, path)
    if engine is None:
        return ServingFacts(path=path, name=name, engines=(), gang_expected=True, names=names)
    return ServingFacts(
        path=path, name=name, engines=(engine,), gang_expected=gang_expected, names=names
    )


def _names(kind: str, name: str, path: str) -> tuple[NameFacts, ...]:
    if kind != "StatefulSet":
        return ()
    at = _join(path, "metadata.name")
    limit = naming.STATEFUL_SET_NAME
    return (NameFacts(path=at, name=name, limit=limit, what="StatefulSet"),)


def _join(path: str, rest: str) -> str:
    return f"{path}.{rest}" if path else rest


def _engine(
    name: str, template: Mapping[str, Any], path: str, spec: Mapping[str, Any]
) -> EngineFacts | None:
    """Read the engine that a template starts; None when it starts none, or only joins one."""
    pod = read_pod(template, path)
    command = pod.command
    if command is None or command.engine is None:
        return None
    labels = as_map(as_map(template.get("metadata")).get("labels"))
    ours = labels.get(naming.ROLE)
    pods = _pods_of(template, command)
    if command.headless is True or naming.WORKER in labels:
        # A worker runs the entry's command too; the entry's object judges them both.
        return None
    return EngineFacts(
        path=path,
        name=str(ours or name),
        pods=pods,
        replicas=1 if pods != 1 else as_count(spec.get("replicas"), "replicas", 1),
        entry=pod,
        worker=None,
    )


def _pods_of(template: Mapping[str, Any], command: CommandFacts) -> MaybeInt:
    for container in as_list(as_map(template.get("spec")).get("containers")):
        for item in as_list(as_map(container).get("env")):
            entry = as_map(item)
            value = entry.get("value")
            stated = entry.get("name") == naming.GROUP_SIZE and isinstance(value, str)
            if stated and _SIZE.fullmatch(str(value)):
                return int(str(value))
    if command.ray_cluster_size is not None:
        return command.ray_cluster_size
    if command.nnodes is not None:
        return command.nnodes
    if command.mpi_ranks is not None or command.ray_role is not None:
        return NOT_STATED
    if command.data_start_rank is not None or command.data_mode != "internal":
        return NOT_STATED
    return NOT_STATED if command.executor == "ray" else 1


def read_group(bodies: Iterable[Mapping[str, Any]]) -> list[ServingFacts]:
    """Put what was emitted natively together again: one ServingFacts for each ServingGroup.

    This is the inverse of backends/native.py: entry and worker StatefulSets of an engine become
    one engine, and the PodGroup becomes the gang. Everything else is ignored.
    """
    engines: dict[str, dict[tuple[str, str], EngineFacts]] = {}
    gangs: dict[str, GangFacts] = {}
    servings: dict[str, str] = {}
    for body in bodies:
        labels = as_map(as_map(body.get("metadata")).get("labels"))
        group, kind = labels.get(naming.GROUP_NAME), _kind(body)
        if not isinstance(group, str):
            continue
        servings[group] = str(labels.get(naming.NAME, ""))
        if kind == ("scheduling.volcano.sh", "PodGroup"):
            gangs[group] = volcano.read_gang(body)
        elif kind == ("apps", "StatefulSet"):
            _add(engines.setdefault(group, {}), body, labels)
    return [
        ServingFacts(
            path="",
            name=servings[group],
            engines=_by_role(list(found.values())),
            gang=gangs.get(group),
            gang_expected=group in gangs,
        )
        for group, found in sorted(engines.items())
    ]


def _add(
    found: dict[tuple[str, str], EngineFacts], body: Mapping[str, Any], labels: Mapping[str, Any]
) -> None:
    key = (str(labels.get(naming.ROLE)), str(labels.get(naming.ROLE_ID)))
    spec = as_map(body.get("spec"))
    template = as_map(spec.get("template"))
    pod = read_pod(template, "spec.template")
    selector = as_map(as_map(spec.get("selector")).get("matchLabels"))
    known = found.get(key)
    if naming.WORKER in selector:
        entry = (
            known.entry
            if known
            else PodFacts(devices=(), command=None, gpus_path="", command_path="")
        )
        workers = as_count(spec.get("replicas"), "replicas", 1)
        pods = workers if isinstance(workers, Unknown) else workers + 1
        worker: PodFacts | None = pod
    else:
        entry, pods = pod, known.pods if known else 1
        worker = known.worker if known else None
    found[key] = EngineFacts(
        path="spec.template", name=key[0], pods=pods, replicas=1, entry=entry, worker=worker
    )


def _by_role(engines: list[EngineFacts]) -> tuple[EngineFacts, ...]:
    """Count equal engines of one role as its replicas."""
    counted: dict[EngineFacts, int] = {}
    for engine in engines:
        counted[engine] = counted.get(engine, 0) + 1
    return tuple(replace(engine, replicas=count) for engine, count in counted.items())
