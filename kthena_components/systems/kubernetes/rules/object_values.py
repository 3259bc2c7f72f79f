"""The rule object-values: fields of Kubernetes' own kinds that must agree with one another."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, each_of, part_of_rule, refuse
from kthena_components.core.naming import is_dns_name
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import GroupKind, Object
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.values.display import display, listing
from kthena_components.core.values.quantity import is_budget, parse_quantity
from kthena_components.core.values.read import (
    is_map,
    mapping,
    require_known,
    sequence,
    unknown_inside,
)
from kthena_components.core.values.regex import regex

_REFUSES = "so the API server refuses the object"


def _with_values(cluster: ClusterObjects) -> Iterator[tuple[Object]]:
    for kind in _CHECKS:
        for found in cluster.of(kind):
            yield (found,)


@each_of(_with_values)
def object_values(found: Object) -> Iterator[Finding]:
    """Fields of claims, budgets, autoscalers, Jobs, Services, Ingresses and Secrets agree.

    A claim requests more than 0 of storage, and has no other access mode beside ReadWriteOncePod.
    A PodDisruptionBudget has either minAvailable or maxUnavailable: a count, or at most 100 %. A
    metric of an autoscaler has the source that its type names, and a target value for that source.
    An Indexed Job with parallelism has completions, and only it has limits for each index. With a
    podFailurePolicy, the pods of a Job have restartPolicy Never. A Service of type ExternalName has
    an externalName, and a headless one is no NodePort or LoadBalancer. A host of an Ingress is a
    DNS name, and a backend has either the name or the number of a port. A Secret has the keys that
    its type requires.

    Pass: requests.storage 500Gi; maxUnavailable 1 alone; type Resource with resource and
    averageUtilization; completionMode Indexed with completions 2.
    Fail: resources without requests; minAvailable 1 and maxUnavailable 1; minAvailable 120%; type
    Pods with resource; completionMode Indexed with parallelism 2 alone; port.name and port.number.
    Level: mandatory. The API server rejects the object.
    Source: kubernetes v1.34 pkg/apis/core/validation/validation.go (ValidateService,
    ValidatePersistentVolumeClaimSpec, ValidateSecret); ValidatePodDisruptionBudgetSpec in
    pkg/apis/policy/validation, validateMetricSpec in pkg/apis/autoscaling/validation,
    validateJobSpec in pkg/apis/batch/validation, SetDefaults_Job in pkg/apis/batch/v1/defaults.go,
    validateIngressRules and validateIngressBackend in pkg/apis/networking/validation.
    """
    yield from _CHECKS[found.group_kind](found)


def _claim(found: Object) -> Iterator[Finding]:
    yield from _claimed(found.at("spec"), found.spec)


def _claim_templates(found: Object) -> Iterator[Finding]:
    for index, claim in enumerate(sequence(found.spec.get("volumeClaimTemplates"))):
        path = found.at(f"spec.volumeClaimTemplates[{index}].spec")
        yield from _claimed(path, mapping(mapping(claim).get("spec")))


@part_of_rule
def _claimed(path: str, spec: Mapping[str, Any]) -> Iterator[Finding]:
    """Check what a claim asks for. Without access modes, it is a part of one."""
    modes, resources = spec.get("accessModes"), spec.get("resources")
    require_known(path, modes, unknown_inside(modes), resources)
    if not sequence(modes):
        return
    if _SINGLE in sequence(modes) and any(mode != _SINGLE for mode in sequence(modes)):
        seen = f"has {_SINGLE} and another mode, {_REFUSES}"
        yield refuse(f"{path}.accessModes", seen, write([_SINGLE]))
    requests = mapping(resources).get("requests")
    size, path = mapping(requests).get("storage"), f"{path}.resources.requests.storage"
    require_known(path, requests, size)
    if size is None and all(part is None or is_map(part) for part in (resources, requests)):
        yield refuse(path, f"is missing, {_REFUSES}", "add the size, for example 500Gi")
    elif (number := parse_quantity(size)) is not None and number <= 0:
        yield refuse(path, f"is {display(size)}, but must be above 0", "write, for example, 500Gi")


_SINGLE = "ReadWriteOncePod"


@part_of_rule
def _budget(found: Object) -> Iterator[Finding]:
    least, most = (found.spec.get(key) for key in ("minAvailable", "maxUnavailable"))
    require_known(found.at("spec"), least, most)
    if least is not None and most is not None:
        seen = f"is {display(most)}, and minAvailable is stated, too, {_REFUSES}"
        change = remove("remove minAvailable", at=found.at("spec.minAvailable"))
        yield refuse(found.at("spec.maxUnavailable"), seen, either(remove(), change))
    for key, value in (("minAvailable", least), ("maxUnavailable", most)):
        if isinstance(value, int | str) and not is_budget(value, _ALL):
            seen = f"is {display(value)}, but must be a count of 0 or more, or at most {_ALL}%"
            yield refuse(found.at(f"spec.{key}"), seen, "write, for example, 1 or 25%")


_ALL = 100
_VALUES = ("value", "averageValue")
_SHARES = ("averageUtilization", "averageValue")
_SOURCES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "ContainerResource": ("containerResource", _SHARES),
    "External": ("external", _VALUES),
    "Object": ("object", _VALUES),
    "Pods": ("pods", ("averageValue",)),
    "Resource": ("resource", _SHARES),
}
"""By type of a metric: the field of its source, and the values that its target may have."""


def _autoscaler(found: Object) -> Iterator[Finding]:
    for index, metric in enumerate(map(mapping, sequence(found.spec.get("metrics")))):
        yield from _metric(found.at(f"spec.metrics[{index}]"), metric)


@part_of_rule
def _metric(path: str, metric: Mapping[str, Any]) -> Iterator[Finding]:
    """Check one metric of an autoscaler: its source, and the values of its target."""
    kind = metric.get("type")
    require_known(path, kind, *metric.values())
    if not isinstance(kind, str) or kind not in _SOURCES:
        return  # crd-schema reports it.
    source, _ = _SOURCES[kind]
    others = [name for name in _SOURCES if name != kind and metric.get(_SOURCES[name][0])]
    if metric.get(source) is None:
        seen = f"is {kind}, but the metric has no {source}, {_REFUSES}"
        mend = write(others[0]) if others else f"add {source}"
        yield refuse(f"{path}.type", seen, mend)
        return
    for other in others:
        seen = f"is stated, but the type is {kind}, {_REFUSES}"
        yield refuse(f"{path}.{_SOURCES[other][0]}", seen, remove())
    target = mapping(metric.get(source)).get("target")
    if is_map(target):
        yield from _target(f"{path}.{source}.target", kind, target)


@part_of_rule
def _target(path: str, kind: str, target: Mapping[str, Any]) -> Iterator[Finding]:
    """Check the values of a metric's target: the source must have one, mostly only one."""
    values = _SOURCES[kind][1]
    require_known(path, *target.values())
    stated = [key for key in values if target.get(key) is not None]
    if not stated:
        seen = f"has no {listing(values, 'or')}, {_REFUSES}"
        yield refuse(path, seen, f"add {listing(values, 'or')}")
    elif len(stated) > 1 and kind != "Object":
        seen = f"has {listing(stated, 'and')}, {_REFUSES}"
        yield refuse(path, seen, "remove one of them")
    for key in _VALUES:
        if (number := parse_quantity(target.get(key))) is not None and number <= 0:
            seen = f"is {display(target[key])}, but must be above 0"
            yield refuse(f"{path}.{key}", seen, "write more than 0")


def _job(found: Object) -> Iterator[Finding]:
    yield from _run(found, "spec", found.spec)


def _cron_job(found: Object) -> Iterator[Finding]:
    spec = mapping(mapping(found.spec.get("jobTemplate")).get("spec"))
    yield from _run(found, "spec.jobTemplate.spec", spec)


@part_of_rule
def _run(found: Object, path: str, spec: Mapping[str, Any]) -> Iterator[Finding]:
    """Check the fields of an Indexed Job, and what its failure policy requires of its pods."""
    mode, template = spec.get("completionMode"), spec.get("template")
    number, ends = spec.get("parallelism"), spec.get("completions")
    require_known(found.at(path), mode, template, ends, *(spec.get(key) for key in _OF_INDEXES))
    if not is_map(template):
        return
    if mode == "Indexed" and ends is None and number is not None:  # without both, both are 1
        seen = f"is missing, but completionMode is Indexed and parallelism {display(number)}, "
        mend = write(number) if type(number) is int and number else "add the number of pods"
        yield refuse(found.at(f"{path}.completions"), f"{seen}{_REFUSES}", mend)
    for key in _OF_INDEXES if mode in (None, "", "NonIndexed") else ():
        if spec.get(key) is not None:
            seen = f"is stated, but only a Job with completionMode Indexed has it, {_REFUSES}"
            mend = write("Indexed", "write Indexed", at=found.at(f"{path}.completionMode"))
            yield refuse(found.at(f"{path}.{key}"), seen, either(remove(), mend))
    pods = mapping(template).get("spec")
    restart = mapping(pods).get("restartPolicy")
    require_known(found.at(f"{path}.template.spec"), pods, restart)
    if spec.get("podFailurePolicy") is not None and restart == "OnFailure":
        seen = f"is OnFailure, but the Job has a podFailurePolicy, {_REFUSES}"
        yield refuse(found.at(f"{path}.template.spec.restartPolicy"), seen, write("Never"))


_OF_INDEXES = ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy")


@part_of_rule
def _service(found: Object) -> Iterator[Finding]:
    kind, address, name = (found.spec.get(key) for key in ("type", "clusterIP", "externalName"))
    require_known(found.at("spec"), kind, address, name)
    if kind == "ExternalName" and name in (None, ""):
        seen = f"is missing, but the type is ExternalName, {_REFUSES}"
        yield refuse(found.at("spec.externalName"), seen, "add a host, such as llm.example.com")
    elif address == "None" and kind in ("NodePort", "LoadBalancer"):
        seen = f"is None, but the type is {kind}, {_REFUSES}"
        mend = write("ClusterIP", "write type ClusterIP", at=found.at("spec.type"))
        yield refuse(found.at("spec.clusterIP"), seen, either(remove(), mend))


def _ingress(found: Object) -> Iterator[Finding]:
    spec = found.spec
    yield from _backend(found.at("spec.defaultBackend"), mapping(spec.get("defaultBackend")))
    for index, rule in enumerate(map(mapping, sequence(spec.get("rules")))):
        yield from _host(found.at(f"spec.rules[{index}].host"), rule.get("host"))
        paths = sequence(mapping(rule.get("http")).get("paths"))
        for number, each in enumerate(map(mapping, paths)):
            path = found.at(f"spec.rules[{index}].http.paths[{number}].backend")
            yield from _backend(path, mapping(each.get("backend")))


@part_of_rule
def _backend(path: str, backend: Mapping[str, Any]) -> Iterator[Finding]:
    """Check that a backend of an Ingress has one service or resource, and one port."""
    service, other = backend.get("service"), backend.get("resource")
    require_known(path, service, other)
    if service is not None and other is not None:
        yield refuse(f"{path}.resource", f"is stated beside service, {_REFUSES}", remove())
    elif is_map(port := mapping(service).get("port")):
        name, number = port.get("name") or None, port.get("number") or None
        require_known(f"{path}.service.port", name, number)
        if name is None and number is None:
            seen = f"has no name and no number, {_REFUSES}"
            yield refuse(f"{path}.service.port", seen, "add the number of a port of the Service")
        elif name is not None and number is not None:
            seen = f"has the name {display(name)} and the number {display(number)}, {_REFUSES}"
            yield refuse(f"{path}.service.port", seen, "remove one of them")


@part_of_rule
def _host(path: str, host: object) -> Iterator[Finding]:
    """Check that a host is the name of one: no URL, no port, and no IP address."""
    require_known(path, host)
    if not isinstance(host, str) or not host or _TO_WRITE.search(host):
        return
    name = host.removeprefix("*.")
    if not is_dns_name(name) or _ADDRESS.fullmatch(name):
        seen = f"is {display(host)}, which is not a DNS name, {_REFUSES}"
        yield refuse(path, seen, "write a host without scheme, port and path: llm.example.com")


_ADDRESS = regex(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
_TO_WRITE = regex(r"[<>{}$%@]|[A-Z][A-Z0-9]*_[A-Z]")
"""A part that a reader or sed replaces: <domain>, INGRESS_HOST."""
_KEY = regex(r"(?!\.\.)[-._a-zA-Z0-9]{1,253}")
_KEYS: Mapping[str, tuple[str, ...]] = {
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
"""Keys that a Secret of a type must have."""


@part_of_rule
def _secret(found: Object) -> Iterator[Finding]:
    """Check the keys of a Secret; what is in them is neither read nor shown."""
    kind, *parts = (found.body.get(key) for key in ("type", "data", "stringData"))
    require_known(found.at("data"), kind, *parts)
    keys = {key: at for at, part in zip(("data", "stringData"), parts, strict=True)
            for key in mapping(part)}  # fmt: skip
    for key, at in keys.items():
        if key == "." or not _KEY.fullmatch(str(key)):
            seen = f"has the key {display(key)}, which has other characters than letters, digits, "
            yield refuse(found.at(at), f"{seen}'-', '_' and '.', or begins with '..'", "rename it")
    for key in _KEYS.get(kind, ()) if isinstance(kind, str) else ():
        if key not in keys:
            seen = f"has no key {key}, which a Secret of type {kind} must have"
            yield refuse(found.at("data"), seen, f"add {key}")


_CHECKS: Mapping[GroupKind, Callable[[Object], Iterator[Finding]]] = {
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Secret"): _secret,
    ("", "Service"): _service,
    ("apps", "StatefulSet"): _claim_templates,
    ("autoscaling", "HorizontalPodAutoscaler"): _autoscaler,
    ("batch", "CronJob"): _cron_job,
    ("batch", "Job"): _job,
    ("networking.k8s.io", "Ingress"): _ingress,
    ("policy", "PodDisruptionBudget"): _budget,
}
