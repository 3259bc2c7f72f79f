"""The rule leader-selected, for all objects of a cluster: first pods and workers are there."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.checker.leader_selected import needs_workers
from kthena_components.core.facts.split_engines import (
    EnginePart,
    group_of_worker,
    is_head,
    is_other,
    may_have_ranks,
    spreads_copies,
    starts_first,
    template_of,
)
from kthena_components.core.facts.split_objects import SplitObjects
from kthena_components.core.findings import Finding, not_checked, refuse
from kthena_components.core.values.display import display
from kthena_components.core.values.read import group_kind, mapping, name_of
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown

_RULE = "leader-selected"
_OF_SET = regex(r"[a-z0-9-]+-\d+\.([a-z0-9-]+)")
"""The name of a StatefulSet's pod. Otherwise the end may be a namespace."""
_WITHOUT_PODS = frozenset(
    {
        *("Service", "ConfigMap", "Secret", "PersistentVolumeClaim", "PersistentVolume"),
        *("Namespace", "ServiceAccount", "Ingress", "HTTPRoute", "Gateway", "PodDisruptionBudget"),
        *("NetworkPolicy", "Role", "RoleBinding", "StorageClass", "PriorityClass", "PodGroup"),
        *("Queue", "ServiceMonitor", "PodMonitor", "ClusterRole", "ClusterRoleBinding"),
    }
)
"""Kinds that make no pods."""


def leader_alone(objects: SplitObjects) -> Iterator[Finding]:
    """Report first pods without workers, and workers without a first pod.

    Nothing is reported if an object that is not read here may have the others. The rule is
    documented in checker/leader_selected.py.
    """
    read = {(part.kind, part.namespace, part.name) for part in objects.parts}
    if any(_key(body) not in read and _may_have_ranks(body) for body in objects.named.values()):
        return
    unclear = {part.namespace for part in objects.parts if _may_be_first(part)}
    for part in objects.parts:
        shown = display(part.name)
        if _lacks_workers(objects, part):
            more = "needs more GPUs than its pod has"
            if part.pod.command is not None and spreads_copies(part.pod.command):
                more = "counts more copies than its pod starts"
            seen = f"starts the first rank of {shown}, which {more}, but no object has its other "
            seen += "ranks"
            yield refuse(part.pod.command_path, seen, "add pods with the other ranks", _RULE)
        elif part.namespace in unclear or not part.asks:
            continue
        elif _lacks_first(objects, part) and _asks_inside(objects, part):
            seen = f"looks for its first rank at {display(part.asks)}, but no object has it"
            yield refuse(part.pod.command_path, seen, "add a pod with the first rank", _RULE)


def leader_elsewhere(objects: SplitObjects) -> Iterator[Finding]:
    """Say of workers without a first pod that the objects may not be all of the cluster.

    The rule is documented in checker/leader_selected.py.
    """
    unclear = {part.namespace for part in objects.parts if _may_be_first(part)}
    for part in objects.parts:
        if part.namespace in unclear or not part.asks or not _lacks_first(objects, part):
            continue
        if _asks_inside(objects, part):
            why = f"it looks for its first rank at {display(part.asks)}, and no object here has it"
            yield not_checked(part.pod.command_path, Unknown(why), _RULE)


def _lacks_workers(objects: SplitObjects, part: EnginePart) -> bool:
    if not (is_head(part) and needs_workers(part)) or next(objects.workers_of(part), None):
        return False
    command = part.pod.command
    joins = (each for each in objects.parts if each is not part and _may_join(each))
    return command is None or not spreads_copies(command) or next(joins, None) is None


def _may_join(part: EnginePart) -> bool:
    """Return whether a part may have copies of an engine in another object."""
    return not part.commands or any(command.headless is not False for command in part.commands)


def _lacks_first(objects: SplitObjects, part: EnginePart) -> bool:
    group = group_of_worker(part)
    return is_other(part) and (group is None or not objects.heads_of(group))


def _may_be_first(part: EnginePart) -> bool:
    """Return whether it is unclear if a part has the first copies of an engine."""
    return any(
        command.engine == "vllm"
        and command.headless is not True
        and command.data_local is not None
        and not starts_first(part)
        for command in part.commands
    )


def _asks_inside(objects: SplitObjects, part: EnginePart) -> bool:
    """Return whether a part surely asks for something in its own namespace."""
    asked = objects.asked_by(part)
    if asked is not None:
        return asked.namespace == part.namespace
    found = _OF_SET.fullmatch(part.asks)
    return found is not None and found[1] not in objects.namespaces


def _key(body: Mapping[str, Any]) -> tuple[str, str, str]:
    space = mapping(body.get("metadata")).get("namespace")
    return group_kind(body)[1], str(space or ""), name_of(body)


def _may_have_ranks(body: Mapping[str, Any]) -> bool:
    """Return whether an object may have pods of an engine."""
    made = template_of(body)
    if made is None:
        return group_kind(body)[1] not in _WITHOUT_PODS
    return may_have_ranks(made)
