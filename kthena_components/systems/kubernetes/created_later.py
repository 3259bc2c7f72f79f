"""Finds the pods of an object that a controller creates only when others of it are ready."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.objects.object import Object, PodSet
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.regex import regex

_LWS = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
_CLIQUES = ("grove.io", "PodCliqueSet")
_OWN_NAME = r"\$[({]?(?:HOSTNAME|POD_NAME)[)}]?"
_CLIQUE = regex(r"\.cliques\[(\d{1,4})\]")


def created_later(pods: PodSet, host: str) -> str | None:
    """Explain that the pod with a name is created when the pods of a template are ready.

    Args:
        pods: The pods of the template.
        host: A name in DNS, with variables that are not known as $NAME.

    Source: kubernetes-sigs/lws pkg/controllers/pod_controller.go Reconcile: the StatefulSet of
    the workers, `<name>-<group>`, comes when the leader is ready; ai-dynamo/grove
    operator/initc/internal/wait.go: an init container of each later clique waits until the pods of
    the others are ready, and their names are `<set or group>-<number>-<clique>-<number>`.
    """
    owner, first = pods.owner, host.partition(".")[0]
    if owner.group_kind == _LWS:
        return _of_group(pods, first)
    return _of_cliques(pods, first) if owner.group_kind == _CLIQUES else None


def _of_group(pods: PodSet, first: str) -> str | None:
    owner, template = pods.owner, mapping(pods.owner.spec.get("leaderWorkerTemplate"))
    if owner.spec.get("startupPolicy") != "LeaderReady":
        return None
    if not pods.path.endswith("leaderTemplate") or not mapping(template.get("leaderTemplate")):
        return None
    group = rf"(?:{re.escape(str(owner.name))}-\d+|{_OWN_NAME})"
    worker = re.fullmatch(rf"{group}-[1-9]\d*", first)
    return None if worker is None else "but LWS creates that worker when the leader is ready"


def _of_cliques(pods: PodSet, first: str) -> str | None:
    """Explain that a pod is of a clique that waits for the pods' own clique."""
    found = _CLIQUE.search(pods.path)
    names, before = _cliques(pods.owner)
    if found is None or int(found[1]) >= len(names):
        return None
    own = names[int(found[1])]
    fitting = [n for n in names if re.fullmatch(rf".+-{re.escape(n)}-\d+", first)]
    other = max(fitting, key=len, default=None)
    if other is None or own not in _before(other, before):
        return None
    return f"but Grove starts clique '{other}' when the pods of '{own}' are ready"


def _cliques(owner: Object) -> tuple[list[str], Mapping[str, list[str]]]:
    """Return the names of the cliques, and the cliques that each waits for at once."""
    template = mapping(owner.spec.get("template"))
    cliques = list(map(mapping, sequence(template.get("cliques"))))
    names = [clique.get("name") for clique in cliques]
    if not all(isinstance(name, str) for name in names):
        return [], {}
    given = [str(name) for name in names]
    kind = template.get("cliqueStartupType", "CliqueStartupTypeAnyOrder")
    if kind == "CliqueStartupTypeInOrder":
        return given, {name: given[:at] for at, name in enumerate(given)}
    if kind != "CliqueStartupTypeExplicit":
        return given, {}
    return given, {name: list(_after(clique)) for name, clique in zip(given, cliques, strict=True)}


def _after(clique: Mapping[str, Any]) -> Iterator[str]:
    named = sequence(mapping(clique.get("spec")).get("startsAfter"))
    return (name for name in named if isinstance(name, str))


def _before(name: str, before: Mapping[str, list[str]]) -> set[str]:
    """Return the cliques that one waits for, at once or by others."""
    seen = set[str]()
    left = list(before.get(name, ()))
    while left:
        at = left.pop()
        if at not in seen:
            seen.add(at)
            left += before.get(at, ())
    return seen
