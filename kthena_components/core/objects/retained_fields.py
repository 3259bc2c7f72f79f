"""Reduces an object to what the rules over a cluster read.

Many objects are kept until all are read. Command lines, probes and values of Secrets are not
compared, so they are dropped; only the words of a router and of a script that waits are kept.
Indices stay valid: dropped items of a list before a kept one become null.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kthena_components.core.facts.wait_loops import may_wait
from kthena_components.core.values.read import is_map, mapping, sequence
from kthena_components.core.values.unknown import Unknown

_LONGEST = 256
"""Maximum length of a kept label or annotation. No valid one is longer."""
_LONG = Unknown(f"it has more than {_LONGEST} characters")
_METADATA = frozenset({"name", "generateName", "namespace", "labels", "annotations"})
_POD = frozenset(
    {
        *("containers", "initContainers", "volumes", "imagePullSecrets", "resourceClaims"),
        *("nodeSelector", "affinity", "nodeName", "tolerations", "schedulerName", "resources"),
        *("enableServiceLinks", "hostNetwork", "hostAliases", "hostname", "dnsConfig"),
        *("serviceAccountName", "topologySpreadConstraints", "restartPolicy"),
    }
)
_CONTAINER = frozenset({"name", "image", "resources", "restartPolicy", "envFrom"})
_WAITING = ("command", "args", "env", "lifecycle", "readinessProbe", "startupProbe")
"""What else is kept of a container whose script may wait for something."""
_VARIABLES = frozenset({"VLLM_PORT"})
"""Variables whose names are kept, without their values."""
_ROUTING = (
    *("--service-discovery", "--static-backends", "--worker-urls", "--pool-name"),
    *("--endpoint-selector", "--pd-disaggregation"),
)
"""Words that only the command line of a router has, or of a gateway's endpoint picker."""
_VOLUME = frozenset({"persistentVolumeClaim", "secret", "projected"})


def reduced(
    body: Mapping[str, Any], content: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> dict[str, Any]:
    """Return a small copy of an object with which the rules over a cluster report the same.

    Args:
        content: Returns what is kept besides its identity: a function below, or of a system.
    """
    metadata = body.get("metadata")
    if is_map(metadata):
        metadata = {key: _short(metadata[key]) for key in metadata if key in _METADATA}
    kept = {
        "apiVersion": _kept(body.get("apiVersion")),
        "kind": _kept(body.get("kind")),
        "metadata": metadata,
    }
    return {**kept, **content(body)}


def kept_name(_: Mapping[str, Any]) -> Mapping[str, Any]:
    """Keep only what identifies an object."""
    return {}


def kept_spec(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Keep the whole spec."""
    return {"spec": _kept(body.get("spec"))}


def kept_pods(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Keep the spec, with pod templates reduced to what the rules compare."""
    return {"spec": _pruned(body.get("spec"))}


def _pruned(value: Any) -> Any:
    """Copy a value with pod specs, reduced to what is compared."""
    if isinstance(value, dict):
        if isinstance(value.get("containers"), list):
            on_host = value.get("hostNetwork") is True
            value = {key: value[key] for key in value if key in _POD}
            if on_host:
                value["containers"] = [*map(_on_host, value["containers"])]
        pruned: dict[Any, Any] = {}
        for key, inside in value.items():
            known = sys.intern(key) if type(key) is str else _kept(key)
            if type(inside) is str and key not in _FIELDS:  # the usual value, and quicker to tell
                pruned[known] = sys.intern(inside)
            else:
                pruned[known] = _FIELDS.get(key, _pruned)(inside)
        return pruned
    return [_pruned(item) for item in value] if isinstance(value, list) else _kept(value)


def _on_host(container: Any) -> Any:
    """State the ports of the node that a container takes by hostNetwork."""
    ports = [
        {**port, "hostPort": port.get("hostPort") or port.get("containerPort")}
        for port in map(mapping, sequence(mapping(container).get("ports")))
    ]
    return {**container, "ports": ports} if ports else container


def _containers(value: Any) -> Any:
    return [_container(item) for item in value] if isinstance(value, list) else _pruned(value)


def _volumes(value: Any) -> Any:
    if not isinstance(value, list):
        return _pruned(value)
    return _trimmed([_kept(only(item, _VOLUME)) or None for item in value])


def _nothing(_value: Any) -> None:
    return None


def _container(value: Any) -> Any:
    """Keep the fields of a container that rules read; its command only if it waits or routes."""
    if not is_map(value):
        return value
    kept = {key: _kept(value[key]) for key in value if key in _CONTAINER}
    if "ports" in value and (ports := _host_ports(value["ports"])):
        kept["ports"] = ports
    if may_wait(value):
        return kept | {key: _kept(value[key]) for key in _WAITING if key in value}
    words = (*sequence(value.get("command")), *sequence(value.get("args")))
    if _routes(words):
        kept.update({key: _kept(value[key]) for key in ("command", "args") if key in value})
    env = value.get("env")
    if isinstance(env, list):
        kept["env"] = _trimmed([_variable(item) for item in env])
    return kept


def _host_ports(ports: Any) -> list[Any]:
    """Keep the ports of a node; with hostNetwork, the API server adds hostPort to each port."""
    return _trimmed(
        [_kept(item) if mapping(item).get("hostPort") else None for item in sequence(ports)]
    )


def _routes(words: Sequence[object]) -> bool:
    text = "\n".join([word for word in words if isinstance(word, str)])
    return any(map(text.__contains__, _ROUTING))


def _variable(item: Any) -> Any:
    """Keep the name of a variable that rules know, and its reference to a Secret."""
    fields = mapping(item)
    taken = mapping(fields.get("valueFrom")).get("secretKeyRef")
    kept: dict[str, Any] = {}
    if taken is not None:
        kept["valueFrom"] = {"secretKeyRef": _kept(taken)}
    name = fields.get("name")
    if isinstance(name, str) and name in _VARIABLES:
        kept["name"] = name
    return kept or None


def _trimmed(listed: list[Any]) -> list[Any]:
    while listed and listed[-1] is None:
        listed.pop()
    return listed


def only(value: Any, words: frozenset[str]) -> Any:
    """Keep some fields of a map."""
    if not is_map(value):
        return value
    return {key: _kept(value[key]) for key in value if key in words}


def _short(value: Any) -> Any:
    """Drop strings that are longer than a name, such as a whole manifest in an annotation."""
    if not is_map(value):
        return _kept(value)
    short: dict[Any, Any] = {}
    for key, item in value.items():
        known = sys.intern(key) if type(key) is str else _kept(key)
        if type(item) is str and len(item) <= _LONGEST:  # most of them, and quicker to tell
            short[known] = sys.intern(item)
        else:
            short[known] = _LONG if isinstance(item, str) and len(item) > _LONGEST else _kept(item)
    return short


def _kept(value: Any) -> Any:
    """Copy a value, and share equal strings between all objects."""
    kind = type(value)
    if kind is str:
        return sys.intern(value)
    if kind is dict:
        return {
            sys.intern(key) if type(key) is str else key: _kept(item) for key, item in value.items()
        }
    return [_kept(item) for item in value] if kind is list else value


_FIELDS: Mapping[object, Callable[[Any], Any]] = {
    "containers": _containers,
    "initContainers": _containers,
    "volumes": _volumes,
    "labels": _short,
    "annotations": _short,
    "dependsOn": _kept,
    **dict.fromkeys(("status", "managedFields", "volumeClaimTemplates"), _nothing),
}
"""How fields with these names are copied, wherever they stand."""
