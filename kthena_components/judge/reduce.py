"""What the rules for a whole stack read of an object, and nothing else.

Many objects are held until all are known. Their command lines, probes and the values of Secrets
are not among what is compared, so they are left out. Places keep their numbers: what is left out
of a list before something that is kept is null.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any

from kthena_components.core.objects.object import GroupKind
from kthena_components.core.values.read import identity, mapping
from kthena_components.core.values.unknown import Unknown
from kthena_components.judge.objects import MAKERS
from kthena_components.judge.scaling import INFERENCE_SERVICE
from kthena_components.systems.kubernetes.stack_secrets import SECRET

_LONGEST = 256
"""Characters of a label or an annotation that is kept. None that is sound is longer."""
_LONG = Unknown(f"it has more than {_LONGEST} characters")
_METADATA = frozenset({"name", "generateName", "namespace", "labels", "annotations"})
_POD = frozenset(
    {
        *("containers", "initContainers", "volumes", "imagePullSecrets"),
        *("nodeSelector", "affinity", "schedulerName"),
    }
)
_CONTAINER = frozenset({"name", "resources", "restartPolicy", "env", "envFrom"})
_VOLUME = frozenset({"persistentVolumeClaim", "secret", "projected"})
_SERVICE = frozenset({"type", "selector", "clusterIP"})


def reduced(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Give a small copy of an object, by which the rules for a whole stack say the same."""
    kind = identity(manifest)
    metadata = manifest.get("metadata")
    if isinstance(metadata, Mapping):
        metadata = {key: _short(metadata[key]) for key in metadata if key in _METADATA}
    kept = {
        "apiVersion": _kept(manifest.get("apiVersion")),
        "kind": _kept(manifest.get("kind")),
        "metadata": metadata,
    }
    return kept | _CONTENT.get(kind, _identity_only if kind[0] == "" else _spec)(manifest)


def _identity_only(_: Mapping[str, Any]) -> dict[str, Any]:
    return {}


def _spec(manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {"spec": _kept(manifest.get("spec"))}


def _pod(manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {"spec": _pruned(manifest.get("spec"))}


def _service(manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {"spec": _only(manifest.get("spec"), _SERVICE)}


def _secret(manifest: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {"type": manifest["type"]} if "type" in manifest else {}
    for field in ("data", "stringData"):
        held = manifest.get(field)
        kept[field] = dict.fromkeys(held) if isinstance(held, Mapping) else held
    return kept


def _status(manifest: Mapping[str, Any]) -> dict[str, Any]:
    words = frozenset({"state", "allocatable", "capacity"})
    return {**_spec(manifest), "status": _only(manifest.get("status"), words)}


def _inference(manifest: Mapping[str, Any]) -> dict[str, Any]:
    worker = mapping(mapping(manifest.get("spec")).get("predictor")).get("workerSpec")
    return {"spec": {"predictor": {"workerSpec": {}}} if worker is not None else {}}


_CONTENT: dict[GroupKind, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    **dict.fromkeys(MAKERS, _pod),
    ("", "Service"): _service,
    ("", "Node"): _status,
    ("", "PersistentVolumeClaim"): _spec,
    ("scheduling.volcano.sh", "Queue"): _status,
    SECRET: _secret,
    INFERENCE_SERVICE: _inference,
}


def _pruned(value: Any) -> Any:
    """Copy what holds pod specs, and of these what is compared."""
    if isinstance(value, dict):
        if isinstance(value.get("containers"), list):
            value = {key: value[key] for key in value if key in _POD}
        return {_kept(key): _field(key, inside) for key, inside in value.items()}
    return [_pruned(item) for item in value] if isinstance(value, list) else _kept(value)


def _field(key: object, value: Any) -> Any:
    match key:
        case "containers" | "initContainers" if isinstance(value, list):
            return [_container(item) for item in value]
        case "volumes" if isinstance(value, list):
            return _trimmed([_kept(_only(item, _VOLUME)) or None for item in value])
        case "labels" | "annotations":
            return _short(value)
        case "status" | "managedFields" | "volumeClaimTemplates":
            return None
        case _:
            return _pruned(value)


def _container(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    kept = {key: _kept(value[key]) for key in value if key in _CONTAINER - {"env"}}
    env = value.get("env")
    if isinstance(env, list):
        kept["env"] = _trimmed([_from_secret(item) for item in env])
    return kept


def _from_secret(item: Any) -> Any:
    taken = mapping(mapping(item).get("valueFrom")).get("secretKeyRef")
    return {"valueFrom": {"secretKeyRef": _kept(taken)}} if taken is not None else None


def _trimmed(listed: list[Any]) -> list[Any]:
    while listed and listed[-1] is None:
        listed.pop()
    return listed


def _only(value: Any, words: frozenset[str]) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {key: _kept(value[key]) for key in value if key in words}


def _short(value: Any) -> Any:
    """Forget texts that are longer than a name, such as a whole manifest in an annotation."""
    if not isinstance(value, Mapping):
        return _kept(value)
    return {
        _kept(key): _LONG if isinstance(item, str) and len(item) > _LONGEST else _kept(item)
        for key, item in value.items()
    }


def _kept(value: Any) -> Any:
    """Copy a value, each text once for all objects."""
    kind = type(value)
    if kind is str:
        return sys.intern(value)
    if kind is dict:
        return {_kept(key): _kept(item) for key, item in value.items()}
    return [_kept(item) for item in value] if kind is list else value
