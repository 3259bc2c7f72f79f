"""KubeRay's rules about fault tolerance of the head. A rule's docstring documents it."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, refuse
from kthena_components.core.remedies import either, remove
from kthena_components.core.values.read import (
    mapping,
    require_known,
    sequence,
    text,
    unknown_inside,
)
from kthena_components.systems.ray.rules.autoscaler import env_of
from kthena_components.systems.ray.view import RayView

_FIELD = "gcsFaultToleranceOptions"
_ENABLED, _NAMESPACE = "ray.io/ft-enabled", "ray.io/external-storage-namespace"
_ADDRESS, _PASSWORD, _USER = "RAY_REDIS_ADDRESS", "REDIS_PASSWORD", "REDIS_USERNAME"
_OF_REDIS = ("redisAddress", "redisUsername", "redisPassword", "externalStorageNamespace")
_OF_CLAIM = ("size", "storageClassName", "accessModes")
_OF_ROCKSDB = ("RAY_gcs_storage", "RAY_gcs_storage_path")
_VOLUME, _MOUNT = "gcs-storage", "/data/gcs"


def ray_fault_tolerance(view: RayView) -> Iterator[Finding]:
    """Fault tolerance of the head is configured in gcsFaultToleranceOptions only.

    It excludes the annotation ray.io/ft-enabled and variables of Redis, and contains only fields
    of its backend.

    Pass: gcsFaultToleranceOptions.redisAddress redis:6379; the annotation ray.io/ft-enabled
    "true" with the variable RAY_REDIS_ADDRESS.
    Fail: both; RAY_REDIS_ADDRESS alone; backend rocksdb with redisAddress.
    Level: mandatory. KubeRay creates no pods for it.
    Source: ray-project/kuberay v1.7.0 ray-operator/controllers/ray/utils/validation.go
    ValidateRayClusterSpec, validateGcsFaultToleranceBackend.
    """
    notes = mapping(mapping(view.object.body.get("metadata")).get("annotations"))
    options, container = view.fields.get(_FIELD), view.head.container
    enabled, namespace = text(notes.get(_ENABLED), ""), text(notes.get(_NAMESPACE), "")
    if view.head.stated is None:
        return
    variables = env_of(container)
    stated = (view.head.fields.get("rayStartParams"), container.get("env"), *variables)
    require_known(f"{view.path}.{_FIELD}", unknown_inside(options), enabled, namespace, *stated)
    at = f"{view.head.path}.template.spec.containers[0].env"
    told = f"{view.head.path}.rayStartParams"
    on = options is not None
    found = {
        f"metadata.annotations.{_ENABLED}": on and enabled != "",
        f"metadata.annotations.{_NAMESPACE}": on and namespace != "",
        f"{at}: {_ADDRESS}": _ADDRESS in variables and (on or str(enabled).lower() != "true"),
        f"{at}: {_PASSWORD}": on and _PASSWORD in variables,
        f"{told}.redis-password": on and view.head.params.get("redis-password") not in (None, ""),
        f"{told}.redis-username": view.head.params.get("redis-username") not in (None, ""),
        f"{at}: {_USER}": _USER in variables,
    }
    for place, is_wrong in found.items():
        if is_wrong:
            path, _, variable = place.partition(": ")
            seen = f"have {variable}" if variable else "is given"
            why = "beside" if on else "without"
            remedy = remove() if on else f"write it in {view.path}.{_FIELD}"
            yield refuse(path, f"{seen} {why} {_FIELD}, which replaces it", remedy)
    if on:
        yield from _backend(view, mapping(options), variables)


def _backend(
    view: RayView, options: Mapping[str, Any], variables: Mapping[Any, Any]
) -> Iterator[Finding]:
    path, storage = f"{view.path}.{_FIELD}", mapping(options.get("storage"))
    at = f"{view.head.path}.template.spec"
    if options.get("backend") != "rocksdb":
        if options.get("storage") is not None:
            seen = "is given, but only the backend rocksdb has storage of its own"
            yield refuse(f"{path}.storage", seen, either(remove(), "write backend: rocksdb"))
        return
    for name in _OF_REDIS:
        if options.get(name) not in (None, ""):
            seen = "is given, but the backend rocksdb does not use Redis"
            yield refuse(f"{path}.{name}", seen, remove())
    given = [name for name in _OF_CLAIM if storage.get(name) not in (None, [])]
    if storage.get("claimName") not in (None, "") and given:
        seen = f"is given beside {', '.join(given)}"
        yield refuse(f"{path}.storage.claimName", seen, "remove the one or the other")
    for name in _OF_ROCKSDB:
        if name in variables:
            seen = f"have {name}, which KubeRay sets itself"
            yield refuse(f"{at}.containers[0].env", seen, remove())
    yield from _volumes(view, at)


def _volumes(view: RayView, at: str) -> Iterator[Finding]:
    for index, mount in enumerate(map(mapping, sequence(view.head.container.get("volumeMounts")))):
        if mount.get("mountPath") == _MOUNT or mount.get("name") == _VOLUME:
            where = f"{at}.containers[0].volumeMounts[{index}]"
            seen = f"is of {_VOLUME}, or at {_MOUNT}, which KubeRay mounts itself"
            yield refuse(where, seen, either(remove(), "use another name and path"))
    for index, volume in enumerate(map(mapping, sequence(view.head.pod_spec.get("volumes")))):
        if volume.get("name") == _VOLUME:
            seen = f"is {_VOLUME}, which KubeRay adds itself"
            yield refuse(f"{at}.volumes[{index}].name", seen, "use another name")
