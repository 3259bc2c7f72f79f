"""Compares our rule for the values in pods with the API server, on random pod templates.

Each template is valid, or has one or two values that may be wrong. A PodTemplate holds it, because
the API server validates it like the pod that a controller would create from it.
"""

import random
from collections import Counter
from http import HTTPStatus
from typing import Any

from conformance.kubernetes.pod_changes import CHANGES
from conformance.kubernetes.random_fields import Body, Change
from conformance.report import Part
from kthena_components.checker.manifest import check_manifest
from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import Level, SpecError

NUMBER, LEAST = 1_000, 200
_PATH = "/api/v1/namespaces/default"
_RULES = frozenset(
    {
        "length",
        "pod-values",
        "pod-schema",
        "template-fields",
        "container-image",
        "gpu-requests-equal-limits",
    }
)
"""Rules whose findings the API server must share."""

_TEXTS = ("engine", "A_B", "a.b", "-a", "a" * 63, "a" * 64, "x y", "8", "a--b", "http", "METRICS")
_NUMBERS = (0, 1, -1, 8000, 65_535, 65_536, 30, 31, 2**31 - 1)
_AMOUNTS = ("0", "1", "8", "7.5", "7500m", "-1", "1Gi", "500m", "3Mi", "1e3", 2, 0.5)
_RESOURCES = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "nvidia.com/gpu",
    "rdma/hca",
    "hugepages-2Mi",
    "gpu",
    "kubernetes.io/x",
    "requests.cpu",
    "nvidia.com/",
]
_FIELDS = [
    "limits.cpu",
    "limits.nvidia.com/gpu",
    "requests.memory",
    "requests.hugepages-2Mi",
    "memory",
    "limits.pods",
    "limits.ephemeral-storage",
]
_PATHS = [
    "metadata.name",
    "metadata.labels",
    "spec.nodeName",
    "status.podIP",
    "status.phase",
    "metadata.labels['a']",
    "metadata.annotations['b/c']",
    "metadata.labels['x_']",
    "spec.hostname",
]
_WORDS = ("Always", "Never", "IfNotPresent", "OnFailure", "File", "Default", "Exists", "TCP", "")
_ACTIONS: dict[str, Any] = {
    "exec": {"command": ["true"]},
    "httpGet": {"path": "/health", "port": 8000},
    "tcpSocket": {"port": "http"},
    "grpc": {"port": 8000},
    "sleep": {"seconds": 5},
}


def compare_values(part: Part, api: Cluster, seed: int, number: int) -> None:
    """Send random templates, and compare the verdicts with those of `check` and of components."""
    verdicts: Counter[str] = Counter()
    differ: list[str] = []
    for index in range(number):
        template = draw_template(random.Random(f"values {seed} {index}"))  # noqa: S311 - a test
        refusal, found, refused = theirs(api, template), checked(template), components(template)
        whole = refusal or of_deployment(api, template)
        verdicts["rejected by both" if whole and found else "accepted by both"] += 1
        if bool(whole) != bool(found) or bool(refusal) != bool(refused):
            differ.append(f"{template}\n  API: {whole}\n  check: {found}\n  component: {refused}")
    for verdict, times in verdicts.items():
        part.count(f"pod templates {verdict}", times)
    seen = "\n".join(differ[:3])
    part.check("values of pods are checked as by the API server", holds=not differ, seen=seen)


def theirs(api: Cluster, template: Body) -> str | None:
    """Return why the API server rejects a template, or a pod of it; None if it accepts both."""
    made = {"kind": "PodTemplate", "metadata": {"name": "a"}, "template": template}
    metadata = {"name": "a", **template.get("metadata", {})}
    pod = {"kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    bodies = ((f"{_PATH}/podtemplates", made), (f"{_PATH}/pods", pod))
    return next(filter(None, (_refusal(api, path, body) for path, body in bodies)), None)


def of_deployment(api: Cluster, template: Body) -> str | None:
    """Return why the API server rejects a Deployment with a template; None if it accepts it."""
    return _refusal(api, "/apis/apps/v1/namespaces/default/deployments", deployment(template))


def _refusal(api: Cluster, path: str, body: Body) -> str | None:
    try:
        api.ask("POST", path, {"apiVersion": "v1", **body}, {"dryRun": "All"})
    except ClusterError as error:
        if error.status in {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}:
            return str(error)
        if error.status != HTTPStatus.FORBIDDEN:  # a plugin, which asks for a PriorityClass
            raise
    return None


def deployment(template: Body) -> Body:
    """Return a Deployment with a template."""
    labels = {"app": "a"}
    metadata = template.get("metadata", {})
    named = {**metadata, "labels": {**metadata.get("labels", {}), **labels}}
    spec = {"selector": {"matchLabels": labels}, "template": {**template, "metadata": named}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}


def checked(template: Body) -> list[str]:
    """Return the findings of `check` about the values, in a Deployment."""
    found = check_manifest(deployment(template))
    return [str(f) for f in found if f.level is Level.MANDATORY and f.rule in _RULES]


def components(template: Body) -> list[str]:
    """Return the findings of a component about the values in a template of its own."""
    role = {"name": "server", "entry_template": template}
    try:
        compile_serving({"name": "a", "scheduler_name": "default-scheduler", "roles": [role]})
    except SpecError as error:
        return [str(f) for f in error.findings if f.rule in _RULES]
    return []


def draw_template(draw: random.Random) -> Body:
    """Generate a template: valid, or with one or two changes."""
    engine: Body = {
        "name": "engine",
        "image": draw.choice(("vllm/vllm-openai:v0.33.0", "busybox:1.37")),
        "ports": [{"containerPort": 8000, "name": "http"}],
        "env": [{"name": "A", "value": "b"}],
        "resources": {"limits": {"memory": "8Gi"}, "requests": {"memory": "4Gi"}},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108 - NCCL's memory
        "readinessProbe": {"httpGet": {"path": "/health", "port": 8000}},
    }
    volumes = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
    template: Body = {"spec": {"containers": [engine], "volumes": volumes}}
    for _ in range(draw.choice((0, 1, 1, 1, 2))):
        draw.choice(_CHANGES)(draw, template, engine)
    return template


def _resources(draw: random.Random, _: Body, engine: Body) -> None:
    engine["resources"] = _drawn_amounts(draw)


def _of_pod(draw: random.Random, template: Body, _: Body) -> None:
    template["spec"]["resources"] = _drawn_amounts(draw)
    if draw.random() < 0.1:
        template["spec"]["resources"]["claims"] = [{"name": "gpus"}]


def _drawn_amounts(draw: random.Random) -> Body:
    limits, requests = ({} for _ in range(2))
    for name in draw.sample(_RESOURCES, draw.choice((1, 1, 2))):
        if draw.random() < 0.8:
            limits[name] = draw.choice(_AMOUNTS)
        if draw.random() < 0.7:
            requests[name] = limits.get(name) if draw.random() < 0.4 else draw.choice(_AMOUNTS)
            requests[name] = draw.choice(_AMOUNTS) if requests[name] is None else requests[name]
    return {"limits": limits, "requests": requests}


def _names(draw: random.Random, template: Body, engine: Body) -> None:
    more = {"name": draw.choice(_TEXTS), "image": draw.choice(("a", "a ", " a", "b:1"))}
    place = draw.choice(("containers", "initContainers", "volumes", "self"))
    if place == "self":
        engine["name"] = draw.choice(_TEXTS)
    elif place == "volumes":
        name = draw.choice((*_TEXTS, "shm"))
        template["spec"]["volumes"].append({"name": name, "emptyDir": {}})
    else:
        template["spec"].setdefault(place, []).append(more)


def _sources(draw: random.Random, template: Body, _: Body) -> None:
    every: Body = {"emptyDir": {}, "hostPath": {"path": "/a"}, "configMap": {"name": "a"}}
    chosen = draw.sample(sorted(every), draw.choice((0, 1, 2)))
    template["spec"]["volumes"].append({"name": "more", **{key: every[key] for key in chosen}})


def _files(draw: random.Random, template: Body, _: Body) -> None:
    field = {"resource": draw.choice(_FIELDS)}
    if draw.random() < 0.7:
        field["containerName"] = "engine"
    items = {"items": [{"path": "a", "resourceFieldRef": field}]}
    source = draw.choice(
        ({"downwardAPI": items}, {"projected": {"sources": [{"downwardAPI": items}]}})
    )
    template["spec"]["volumes"].append({"name": "files", **source})


def _variables(draw: random.Random, _: Body, engine: Body) -> None:
    name = draw.choice(("B", "b.c", "b-c", "1A", "A=B", "A B", "", "é", "B"))
    every: Body = {
        "fieldRef": {"fieldPath": draw.choice(_PATHS)},
        "resourceFieldRef": {"resource": draw.choice(_FIELDS)},
        "secretKeyRef": {"name": "a", "key": "b"},
    }
    chosen = draw.sample(sorted(every), draw.choice((0, 1, 1, 1, 1, 2)))
    variable: Body = {"name": name, "valueFrom": {key: every[key] for key in chosen}}
    if draw.random() < 0.2:
        variable["value"] = draw.choice(("", "a"))
    engine["env"].append(variable)


def _ports(draw: random.Random, _: Body, engine: Body) -> None:
    port: Body = {"containerPort": draw.choice(_NUMBERS)}
    if draw.random() < 0.5:
        port["name"] = draw.choice(_TEXTS)
    if draw.random() < 0.3:
        port["hostPort"] = draw.choice(_NUMBERS)
    if draw.random() < 0.3:
        port["protocol"] = draw.choice(("TCP", "UDP", "tcp", "SCTP", "HTTP"))
    engine["ports"].append(port)


def _mounts(draw: random.Random, _: Body, engine: Body) -> None:
    mount: Body = {
        "name": draw.choice(("shm", "shm", "cache")),
        "mountPath": draw.choice(("/data", "/dev/shm", "data", "")),  # noqa: S108 - NCCL's memory
    }
    for field in ("subPath", "subPathExpr"):
        if draw.random() < 0.2:
            mount[field] = "a"
    engine["volumeMounts"].append(mount)


def _probes(draw: random.Random, _: Body, engine: Body) -> None:
    name = draw.choice(("startupProbe", "livenessProbe", "readinessProbe"))
    actions = draw.sample(("exec", "httpGet", "tcpSocket", "grpc"), draw.choice((0, 1, 1, 1, 1, 2)))
    probe: Body = {action: dict(_ACTIONS[action]) for action in actions}
    for action in set(actions) - {"exec"}:
        if draw.random() < 0.3:
            port = draw.choice(
                (*_NUMBERS, "http", "8000", "HTTP") if action != "grpc" else _NUMBERS
            )
            probe[action]["port"] = port
    if "exec" in probe and draw.random() < 0.3:
        probe["exec"] = draw.choice(({}, {"command": []}))
    if "httpGet" in probe and draw.random() < 0.3:
        probe["httpGet"]["scheme"] = draw.choice(("HTTP", "HTTPS", "http", ""))
    for field in ("periodSeconds", "timeoutSeconds", "successThreshold", "failureThreshold",
                  "initialDelaySeconds", "terminationGracePeriodSeconds"):  # fmt: skip
        if draw.random() < 0.15:
            probe[field] = draw.choice(_NUMBERS)
    engine[name] = probe


def _hooks(draw: random.Random, template: Body, engine: Body) -> None:
    actions = draw.sample(("exec", "httpGet", "sleep"), draw.choice((0, 1, 1, 2)))
    hook: Body = {action: dict(_ACTIONS[action]) for action in actions}
    if "sleep" in hook:
        hook["sleep"]["seconds"] = draw.choice(_NUMBERS)
    if draw.random() < 0.5:
        template["spec"]["terminationGracePeriodSeconds"] = draw.choice((0, 30, 600))
    if draw.random() < 0.2:
        first: Body = {"name": "first", "image": "a", "lifecycle": {"preStop": hook}}
        if draw.random() < 0.5:
            first["restartPolicy"] = "Always"
        template["spec"]["initContainers"] = [first]
    else:
        engine["lifecycle"] = {draw.choice(("preStop", "postStart")): hook}


def _choices(draw: random.Random, template: Body, engine: Body) -> None:
    if draw.random() < 0.5:
        engine[draw.choice(("imagePullPolicy", "terminationMessagePolicy"))] = draw.choice(_WORDS)
    else:
        template["spec"][draw.choice(("dnsPolicy", "preemptionPolicy"))] = draw.choice(_WORDS)


def _tolerations(draw: random.Random, template: Body, _: Body) -> None:
    every: dict[str, tuple[Any, ...]] = {
        "key": ("a", "nvidia.com/gpu", "x y", ""),
        "operator": ("Exists", "Equal", "exists", ""),
        "value": ("a", "x y", ""),
        "effect": ("NoSchedule", "NoExecute", "noexecute", ""),
        "tolerationSeconds": (0, 60),
    }
    chosen = draw.sample(sorted(every), draw.choice((1, 2, 3)))
    template["spec"]["tolerations"] = [{key: draw.choice(every[key]) for key in chosen}]


def _marks(draw: random.Random, template: Body, _: Body) -> None:
    labels = {draw.choice(("a", "a/b", "x y", "")): draw.choice(("a", "x y", "", "a" * 64))}
    if draw.random() < 0.5:
        template["spec"]["nodeSelector"] = labels
    else:
        template["metadata"] = {"labels": labels}


_CHANGES: tuple[Change, ...] = (
    _resources, _resources, _resources, _of_pod, _of_pod, _names, _sources, _files, _variables,
    _ports, _mounts,
    _probes, _probes, _hooks, _choices, _tolerations, _marks, *CHANGES,
)  # fmt: skip
