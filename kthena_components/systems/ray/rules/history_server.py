"""KubeRay's rules about the collector for a history server. A rule's docstring documents it."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, refuse
from kthena_components.core.remedies import remove
from kthena_components.core.values.read import (
    mapping,
    require_known,
    sequence,
    text,
    unknown_inside,
    unknown_within,
)
from kthena_components.systems.ray.view import RayView

_CONTAINER = "ray-history-collector"
_OWN = frozenset(
    {
        "POD_IP", "FQ_RAY_IP", "RAY_CLUSTER_NAME", "RAY_CLUSTER_NAMESPACE", "RAY_ROLE",
        "OWNER_KIND", "OWNER_NAME", "EVENTS_PORT",
    }
)  # fmt: skip
_BACKEND, _MODE = "STORAGE_BACKEND", "AZURE_STORAGE_AUTH_MODE"
_CONNECTION, _ACCOUNT = "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ACCOUNT_URL"
_NEEDS = {
    "GCS": ("GCS_BUCKET",),
    "S3": ("S3_REGION",),
    "ALIYUNOSS": ("OSS_BUCKET", "OSS_ENDPOINT", "OSS_REGION"),
}
_OF_AZURE = {
    "connection_string": (_CONNECTION,),
    "workload_identity": (_ACCOUNT,),
    "default": (_ACCOUNT,),
}


def ray_history_server(view: RayView) -> Iterator[Finding]:
    """The collector for a history server has an image and the variables of its storage.

    KubeRay sets the variables of the cluster and the container's name itself. It accepts
    historyServerOptions since 1.7, if the feature gate RayClusterHistoryServer is on, which
    `check` does not know.

    Pass: image collector:1.7, env STORAGE_BACKEND S3 and S3_REGION eu-central-1.
    Fail: no image; STORAGE_BACKEND GCS without GCS_BUCKET; a variable POD_IP.
    Level: mandatory. KubeRay creates no pods for it.
    Source: ray-project/kuberay v1.7.0 ray-operator/controllers/ray/utils/validation.go
    ValidateRayClusterSpec, validateCollectorOptions.
    """
    stated = view.fields.get("historyServerOptions")
    path = f"{view.path}.historyServerOptions.collectorOptions"
    if stated is None or not view.has_since("1.7"):
        return
    require_known(path, unknown_inside(stated))
    options = mapping(mapping(stated).get("collectorOptions"))
    if mapping(stated).get("collectorOptions") is None:
        yield refuse(path, "is missing", "add the collector's image and env")
        return
    if options.get("image") in (None, ""):
        yield refuse(f"{path}.image", "is missing", "write the collector's image")
    require_known(f"{path}.env", unknown_within(options.get("env")))
    listed = [mapping(item) for item in sequence(options.get("env"))]
    variables = {text(item.get("name")): item for item in listed}
    for index, item in enumerate(listed):
        name = text(item.get("name"))
        if name in _OWN:
            seen = f"have {name}, which KubeRay sets itself"
            yield refuse(f"{path}.env", seen, remove(at=f"{path}.env[{index}]"))
    for name in _missing(variables):
        yield refuse(f"{path}.env", f"lack {name}", "add it")
    yield from _named_alike(view)


def _named_alike(view: RayView) -> Iterator[Finding]:
    for group in view.groups:
        for index, container in enumerate(map(mapping, sequence(group.pod_spec.get("containers")))):
            if container.get("name") == _CONTAINER:
                at = f"{group.path}.template.spec.containers[{index}].name"
                seen = f"is {_CONTAINER}, as that of the container that KubeRay adds"
                yield refuse(at, seen, "rename it")


def _missing(variables: Mapping[Any, Mapping[str, Any]]) -> list[str]:
    backend = str(mapping(variables.get(_BACKEND)).get("value") or "").upper()
    if backend == "":
        return [f"{_BACKEND} with a value"]
    needed = _NEEDS.get(backend, ())
    if backend == "AZUREBLOB":
        mode = str(mapping(variables.get(_MODE)).get("value") or "").strip().lower()
        needed = _OF_AZURE.get(mode, ())
        if not needed and not any(_has(variables, name) for name in (_CONNECTION, _ACCOUNT)):
            return [f"{_CONNECTION} or {_ACCOUNT}"]
    return [name for name in needed if not _has(variables, name)]


def _has(variables: Mapping[Any, Mapping[str, Any]], name: str) -> bool:
    item = mapping(variables.get(name))
    return item.get("value") not in (None, "") or item.get("valueFrom") is not None
