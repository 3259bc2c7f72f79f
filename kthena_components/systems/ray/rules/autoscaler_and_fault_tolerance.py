"""KubeRay's rules about its autoscaler and fault tolerance of the head."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, advise, not_checked, part_of_rule, refuse
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    first_unknown,
    inside,
    mapping,
    require_known,
    sequence,
    text,
    unknown_inside,
    whole,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.ray.view import Group, RayView

_RULE = "ray-autoscaler"
_SWITCH = "RAY_enable_autoscaler_v2"
_OWN = "KUBERAY_GEN_AUTOSCALER_START_CMD"
_ON = ("1", "true")
_ELSEWHERE = Unknown("another object has the value of a variable")
_NUMBERS = regex(r"\s*v?([0-9]+(?:\.[0-9]+)+)")
_PRIORITY = (2, 56)
"""The first release of Ray with priorities of groups."""


def ray_autoscaler(view: RayView) -> Iterator[Finding]:
    """The autoscaler of a Ray cluster is configured in one place, and features of v2 only with v2.

    With enableInTreeAutoscaling, no group of workers may be suspended, and with v2, pods must not
    restart; workers should not restart with v1 either. idleTimeoutSeconds and priority of a group
    need v2; priority also needs Ray 2.56.

    Pass: enableInTreeAutoscaling, autoscalerOptions.version v2, idleTimeoutSeconds 60.
    Fail: idleTimeoutSeconds 60 of a group without v2; version v2 with restartPolicy Always; the
    variable RAY_enable_autoscaler_v2 beside version.
    Level: mandatory, because KubeRay creates no pods for it; advisory for workers that restart with
    v1.
    Source: ray-project/kuberay v1.7.0 ray-operator/controllers/ray/utils/validation.go
    ValidateRayClusterSpec, validateWorkerGroupIdleTimeout, validateWorkerGroupPriority; Ray
    documentation, KubeRay Autoscaling (restartPolicy).
    """
    options, scaled = view.fields.get("autoscalerOptions"), _scales(view.fields)
    version = text(mapping(options).get("version"))
    variables = env_of(view.head.container)
    switch = variables.get(_SWITCH)
    head = view.head
    template = head.fields.get("template")
    containers = inside(inside(template, "spec"), "containers")
    shown = (head.fields, template, containers, *sequence(containers), head.container.get("env"))
    require_known(
        f"{view.path}.enableInTreeAutoscaling", options, scaled, version, *shown, *variables, switch
    )
    at = f"{view.head.path}.template.spec.containers[0].env"
    if scaled and version is not None and _SWITCH in variables and view.has_since("1.4"):
        seen = f"have {_SWITCH}, beside autoscalerOptions.version {display(version)}"
        yield refuse(at, seen, "keep the latter")
    if not scaled and switch in _ON and view.has_since("1.5"):
        seen = f"have {_SWITCH} {display(switch)}, but enableInTreeAutoscaling is not true"
        yield refuse(at, seen, f"remove {_SWITCH}, or set enableInTreeAutoscaling: true")
    for index, item in enumerate(map(mapping, sequence(mapping(options).get("env")))):
        if item.get("name") == _OWN and view.has_since("1.7"):
            path = f"{view.path}.autoscalerOptions.env[{index}]"
            yield refuse(path, f"is {_OWN}, which KubeRay sets itself", remove())
    if scaled and view.has_since("1.4"):
        yield from _scaled(view, is_second=version == "v2")
    for group in view.workers:
        yield from _second(view, group, has=version == "v2" or switch in _ON)


def _scales(fields: Mapping[str, Any]) -> object:
    stated = fields.get("enableInTreeAutoscaling")
    return stated if first_unknown(stated) else stated is True


def _scaled(view: RayView, *, is_second: bool) -> Iterator[Finding]:
    """Check groups that the autoscaler scales: none suspended, and pods that stay ended."""
    for group in view.groups:
        policy = group.pod_spec.get("restartPolicy")
        if gap := first_unknown(group.fields.get("suspend"), policy):
            yield not_checked(group.path, gap)
        elif group.fields.get("suspend") is True and group is not view.head:
            seen = "is true, but a cluster that scales by itself has no suspended groups"
            remedy = either(remove(), "enableInTreeAutoscaling")
            yield refuse(f"{group.path}.suspend", seen, remedy)
        elif is_second and policy not in (None, "", "Never"):
            seen = f"is {display(policy)}, but with v2 of the autoscaler no pod is restarted"
            path = f"{group.path}.template.spec.restartPolicy"
            yield refuse(path, seen, either(write("Never", "write Never"), remove("leave it out")))
        elif group is not view.head and policy not in (None, "", "Never"):
            seen = f"is {display(policy)}, so an idle worker that the autoscaler ends starts again"
            path = f"{group.path}.template.spec.restartPolicy"
            yield advise(path, seen, either(write("Never", "write Never"), remove("leave it out")))


@part_of_rule
def _second(view: RayView, group: Group, *, has: bool) -> Iterator[Finding]:
    """Check fields of a group that only version 2 of the autoscaler reads."""
    idle, priority = whole(group.fields.get("idleTimeoutSeconds")), group.fields.get("priority")
    require_known(f"{group.path}.idleTimeoutSeconds", idle, priority)
    asked = {"idleTimeoutSeconds": idle is not None and view.has_since("1.6")}
    asked["priority"] = priority not in (None, 0) and view.has_since("1.7")
    for name, is_asked in asked.items():
        if is_asked and not has:
            seen = "is given, but only v2 of the autoscaler knows it"
            remedy = "set autoscalerOptions.version: v2, or remove it"
            yield refuse(f"{group.path}.{name}", seen, remedy)
    if asked["priority"]:
        yield from needs_ray(view, _PRIORITY, f"{group.path}.priority", _RULE)


@part_of_rule
def needs_ray(view: RayView, least: tuple[int, ...], what: str, rule: str) -> Iterator[Finding]:
    """Check that rayVersion is given, and is as new as a field needs."""
    stated, path = text(view.fields.get("rayVersion"), ""), f"{view.path}.rayVersion"
    needed = ".".join(map(str, (*least, 0)))
    require_known(path, stated)
    found = _NUMBERS.match(str(stated))
    numbers = tuple(int(part[:9]) for part in found[1].split(".")) if found else ()
    if numbers < least:
        seen = f"is {display(stated)}" if stated else "is missing"
        yield refuse(path, f"{seen}, but {what} needs {needed}", f"write {needed} or newer", rule)


def env_of(container: Mapping[str, Any]) -> dict[Any, Any]:
    """Return the variables of a container by name. For duplicates, the first counts."""
    found: dict[Any, Any] = {}
    for item in map(mapping, sequence(container.get("env"))):
        late = None if item.get("valueFrom") is None else _ELSEWHERE
        found.setdefault(text(item.get("name")), late or text(item.get("value"), ""))
    return found


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
    message = f"{view.head.path}.rayStartParams"
    on = options is not None
    found = {
        f"metadata.annotations.{_ENABLED}": on and enabled != "",
        f"metadata.annotations.{_NAMESPACE}": on and namespace != "",
        f"{at}: {_ADDRESS}": _ADDRESS in variables and (on or str(enabled).lower() != "true"),
        f"{at}: {_PASSWORD}": on and _PASSWORD in variables,
        f"{message}.redis-password": on
        and view.head.params.get("redis-password") not in (None, ""),
        f"{message}.redis-username": view.head.params.get("redis-username") not in (None, ""),
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
    """Check the options of Redis and of RocksDB against the chosen backend."""
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
        yield refuse(f"{path}.storage.claimName", seen, "remove one of the two")
    for name in _OF_ROCKSDB:
        if name in variables:
            seen = f"have {name}, which KubeRay sets itself"
            yield refuse(f"{at}.containers[0].env", seen, remove())
    yield from _volumes(view, at)


def _volumes(view: RayView, at: str) -> Iterator[Finding]:
    """Refuse volumes and mounts of the head that KubeRay adds for the autoscaler itself."""
    for index, mount in enumerate(map(mapping, sequence(view.head.container.get("volumeMounts")))):
        if mount.get("mountPath") == _MOUNT or mount.get("name") == _VOLUME:
            where = f"{at}.containers[0].volumeMounts[{index}]"
            seen = f"is of {_VOLUME}, or at {_MOUNT}, which KubeRay mounts itself"
            yield refuse(where, seen, either(remove(), "use another name and path"))
    for index, volume in enumerate(map(mapping, sequence(view.head.pod_spec.get("volumes")))):
        if volume.get("name") == _VOLUME:
            seen = f"is {_VOLUME}, which KubeRay adds itself"
            yield refuse(f"{at}.volumes[{index}].name", seen, "use another name")
