"""KubeRay's rules about every Ray cluster and about a RayService.

KubeRay creates no pods for a cluster that violates one. A rule's docstring documents it.
"""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, join_path, not_checked, part_of_rule, refuse
from kthena_components.core.naming import DNS_1035, dns_name, least_length
from kthena_components.core.remedies import at_most, either, or_more, remove, write
from kthena_components.core.schema.metadata import is_label_value, is_qualified
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.read import (
    first_unknown,
    mapping,
    name_of,
    require_known,
    text,
    unknown_in,
    unknown_inside,
    whole,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import known
from kthena_components.systems.ray.view import Group, RayView

_LONGEST = {"RayCluster": 53, "RayJob": 47, "RayService": 47}
"""Maximum length of a name: a job's or service's cluster is called `<name>-<5 characters>`."""
_AMOUNTS = ("num-cpus", "num-gpus", "memory", "resources")
_ORIGIN = "ray.io/originated-from-crd"


def ray_name(view: RayView) -> Iterator[Finding]:
    """The name of an object of KubeRay is a DNS-1035 label, short enough for generated names.

    Since 1.4: at most 53 characters for a RayCluster, 47 for a RayJob or a RayService.

    Pass: llama-70b.
    Fail: 70b-llama; a RayJob's name of 48 characters.
    Level: mandatory.
    Source: ray-project/kuberay v1.7.0 ray-operator/controllers/ray/utils/validation.go
    ValidateRayClusterMetadata, ValidateRayJobMetadata, ValidateRayServiceMetadata.
    """
    name, longest = view.object.name, _LONGEST.get(view.object.kind)
    name = known(name, "metadata.name")
    if name and longest is not None and view.has_since("1.4"):
        if least_length(name) > longest:
            seen = f"has {len(name)} characters, but a {view.object.kind} has at most {longest}"
            yield refuse("metadata.name", seen, "shorten it")
        elif not DNS_1035.fullmatch(name):
            seen = (
                f"is {display(name)}, but KubeRay accepts lower-case letters, digits and dashes, "
                "and a letter first"
            )
            near = dns_name(name)
            is_label = DNS_1035.fullmatch(near)
            yield refuse(
                "metadata.name", seen, f"write '{near}'" if is_label else "begin it with a letter"
            )


def ray_replicas(view: RayView) -> Iterator[Finding]:
    """In a group of workers, minReplicas and maxReplicas are at least 0 and in this order.

    Since 1.6, with and without an autoscaler.

    Pass: minReplicas 1, maxReplicas 4.
    Fail: minReplicas 4, maxReplicas 2; minReplicas -1.
    Level: mandatory.
    Source: ray-project/kuberay v1.7.0 ray-operator/controllers/ray/utils/validation.go
    ValidateRayClusterSpec.
    """
    for group in view.workers if view.has_since("1.6") else ():
        numbers = [whole(group.fields.get(name)) for name in ("minReplicas", "maxReplicas")]
        if gap := first_unknown(*numbers):
            yield not_checked(f"{group.path}.minReplicas", gap)
            continue
        least, most = numbers
        for name, number in zip(("minReplicas", "maxReplicas"), numbers, strict=True):
            if isinstance(number, int) and number < 0:
                path = f"{group.path}.{name}"
                floor = max(least, 0) if isinstance(least, int) and name == "maxReplicas" else 0
                yield refuse(path, f"is {number}, but must be at least {floor}", or_more(floor))
        if isinstance(least, int) and isinstance(most, int) and least > most >= 0:
            seen = f"is {least}, but maxReplicas is {most}"
            remedy = either(at_most(most), "raise maxReplicas")
            yield refuse(f"{group.path}.minReplicas", seen, remedy)


def ray_stated_once(view: RayView) -> Iterator[Finding]:
    """The resources of a group are either in rayStartParams or in resources.

    Labels must be in labels, and valid in Kubernetes. Since 1.5.

    Pass: rayStartParams num-gpus "8"; resources GPU "8"; labels ray.io/accelerator-type H100.
    Fail: rayStartParams num-gpus "8" beside resources GPU "8"; rayStartParams labels.
    Level: mandatory.
    Source: ray-project/kuberay v1.7.0 ray-operator/controllers/ray/utils/validation.go
    validateRayGroupResources, validateRayGroupLabels.
    """
    for group in view.groups if view.has_since("1.5") else ():
        params, resources = group.fields.get("rayStartParams"), group.fields.get("resources")
        labels = group.fields.get("labels")
        if gap := first_unknown(params, resources, labels):
            yield not_checked(group.path, gap)
            continue
        twice = [name for name in _AMOUNTS if group.params.get(name) not in (None, "")]
        if twice and mapping(resources):
            seen = f"is given beside rayStartParams {', '.join(twice)}, and KubeRay accepts one"
            yield refuse(f"{group.path}.resources", seen, "remove one of the two")
        if "labels" in group.params:
            path, seen = f"{group.path}.rayStartParams.labels", "is given, and KubeRay accepts none"
            yield refuse(path, seen, "write them as labels of the group")
        yield from _labels(group)


def _labels(group: Group) -> Iterator[Finding]:
    """Check the labels of a group, which become labels of Ray's nodes."""
    for key, value in mapping(group.fields.get("labels")).items():
        path = join_path(f"{group.path}.labels", key_text(key))
        if not unknown_in(key) and not is_qualified(str(key)):
            yield refuse(path, "is not a key of a label", "rename it")
        if isinstance(value, str) and not unknown_in(value) and not is_label_value(value):
            seen = f"is {display(value)}, which is not a label's value"
            remedy = "write at most 63 letters, digits, dashes, dots and underscores"
            yield refuse(path, seen, remedy)


def ray_cluster_upgrade(view: RayView) -> Iterator[Finding]:
    """A RayCluster that a RayJob or RayService created has no upgradeStrategy.

    Pass: upgradeStrategy.type Recreate.
    Fail: upgradeStrategy.type Recreate with the label ray.io/originated-from-crd RayJob.
    Level: mandatory, since 1.6.
    Source: ray-project/kuberay v1.7.0 ray-operator/controllers/ray/utils/validation.go
    ValidateRayClusterUpgradeOptions.
    """
    if view.object.kind != "RayCluster" or not view.has_since("1.6"):
        return
    stated = mapping(view.fields.get("upgradeStrategy")).get("type")
    origin = text(mapping(mapping(view.object.body.get("metadata")).get("labels")).get(_ORIGIN))
    require_known(f"{view.path}.upgradeStrategy", stated, origin)
    if stated is not None and origin in ("RayJob", "RayService"):
        seen = f"is given, but the label {_ORIGIN} says that a {origin} made this cluster"
        yield refuse(f"{view.path}.upgradeStrategy.type", seen, "remove one of them")


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
        yield refuse(path, seen, "write, for example, 30m, or seconds as in 1800")


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
    """Check the steps of an incremental upgrade."""
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
            yield refuse(f"{path}.{name}", seen, "write, for example, 10")
    if isinstance(step, int) and isinstance(most, int) and step > most:
        seen = f"is {step}, but maxSurgePercent is {most}"
        yield refuse(f"{path}.stepSizePercent", seen, at_most(most))
    if pause is None or _number(pause) <= 0:
        seen = "is missing" if pause is None else f"is {pause}"
        yield refuse(f"{path}.intervalSeconds", seen, or_more(1))
    if options.get("gatewayClassName") == "":
        yield refuse(f"{path}.gatewayClassName", "is empty", "write, for example, istio")


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
