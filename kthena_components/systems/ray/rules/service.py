"""KubeRay's rules about a RayService. A rule's docstring documents it."""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, join_path, part_of_rule, refuse
from kthena_components.core.remedies import at_most, or_more, remove, write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    mapping,
    name_of,
    require_known,
    text,
    unknown_inside,
    whole,
)
from kthena_components.core.values.regex import regex
from kthena_components.systems.ray.view import RayView

_TIMEOUT = "ray.io/initializing-timeout"
_DURATION = regex(r"\+?(?:[0-9]+|(?:[0-9]+\.?[0-9]*(?:h|ms|m|s|us|µs|ns))+)")
_GRADUAL = "NewClusterWithIncrementalUpgrade"
_TYPES = (_GRADUAL, "NewCluster", "None")
_ALL = 100


def ray_service(view: RayView) -> Iterator[Finding]:
    """In a RayService, headService has no name, and ray.io/initializing-timeout is a duration.

    The annotation ray.io/initializing-timeout is a duration of Go, or whole seconds, above 0.

    Pass: ray.io/initializing-timeout 30m.
    Fail: headService.metadata.name serve; ray.io/initializing-timeout 30 minutes.
    Level: mandatory. KubeRay starts nothing for it; for headService since 1.3.
    Source: ray-project/kuberay v1.7.0 ray-operator/controllers/ray/utils/validation.go
    ValidateRayServiceSpec, validateInitializingTimeout.
    """
    notes = mapping(mapping(view.object.body.get("metadata")).get("annotations"))
    metadata = mapping(mapping(view.head.fields.get("headService")).get("metadata"))
    name, wait = text(metadata.get("name"), ""), text(notes.get(_TIMEOUT), "")
    require_known("spec", name, wait)
    if name:
        path = f"{view.head.path}.headService.metadata.name"
        seen = f"is {display(name)}, but KubeRay names it itself since 1.3"
        own = f"{name_of(view.object.body)}-head-svc"
        yield refuse(path, seen, remove(f"remove it, and write '{own}' where others name it"))
    if wait and view.has_since("1.5") and not _is_wait(str(wait)):
        path = join_path("metadata.annotations", _TIMEOUT)
        seen = f"is {display(wait)}, which is no time above 0"
        yield refuse(path, seen, "write for example 30m, or seconds as in 1800")


def _is_wait(stated: str) -> bool:
    return _DURATION.fullmatch(stated) is not None and any(digit in stated for digit in "123456789")


def ray_service_upgrade(view: RayView) -> Iterator[Finding]:
    """An incremental upgrade of a RayService has valid steps and needs an autoscaler.

    stepSizePercent is at most maxSurgePercent, and both are at most 100.

    Pass: maxSurgePercent 50, stepSizePercent 10, intervalSeconds 30, gatewayClassName istio.
    Fail: NewClusterWithIncrementalUpgrade without clusterUpgradeOptions; stepSizePercent 60 of
    maxSurgePercent 50; upgradeStrategy.type Rolling.
    Level: mandatory. KubeRay starts nothing for it. Steps are checked since 1.7.
    Source: ray-project/kuberay v1.7.0 ray-operator/controllers/ray/utils/validation.go
    ValidateRayServiceSpec, ValidateClusterUpgradeOptions; pkg/features/features.go.
    """
    stated, path = view.object.spec.get("upgradeStrategy"), "spec.upgradeStrategy"
    scaled = view.fields.get("enableInTreeAutoscaling")
    if stated is None:
        return
    require_known(path, unknown_inside(stated), scaled)
    kind = mapping(stated).get("type")
    if kind is not None and kind not in _TYPES:
        seen = f"is {display(kind)}, but must be one of {', '.join(_TYPES)}"
        yield refuse(f"{path}.type", seen, write("NewCluster", "write NewCluster"))
    if kind != _GRADUAL or not view.has_since("1.7"):
        return
    if scaled is not True:
        seen = f"is {_GRADUAL}, but the cluster does not scale by itself"
        yield refuse(f"{path}.type", seen, "set enableInTreeAutoscaling: true")
    yield from _steps(mapping(stated).get("clusterUpgradeOptions"), f"{path}.clusterUpgradeOptions")


@part_of_rule
def _steps(stated: object, path: str) -> Iterator[Finding]:
    options = mapping(stated)
    require_known(path, unknown_inside(stated))
    if stated is None:
        yield refuse(path, "is missing", "write stepSizePercent and intervalSeconds")
        return
    most, step = whole(options.get("maxSurgePercent", _ALL)), whole(options.get("stepSizePercent"))
    pause = whole(options.get("intervalSeconds"))
    most = _ALL if most is None else most
    for name, number in (("maxSurgePercent", most), ("stepSizePercent", step)):
        if number is None or not 0 <= _number(number) <= _ALL:
            seen = "is missing" if number is None else f"is {number}, but must be from 0 to {_ALL}"
            yield refuse(f"{path}.{name}", seen, "write for example 10")
    if isinstance(step, int) and isinstance(most, int) and step > most:
        seen = f"is {step}, but maxSurgePercent is {most}"
        yield refuse(f"{path}.stepSizePercent", seen, at_most(most))
    if pause is None or _number(pause) <= 0:
        seen = "is missing" if pause is None else f"is {pause}"
        yield refuse(f"{path}.intervalSeconds", seen, or_more(1))
    if options.get("gatewayClassName") == "":
        yield refuse(f"{path}.gatewayClassName", "is empty", "write for example istio")


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
