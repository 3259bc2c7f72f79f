"""Growing numbers of objects, findings and lines: see `shapes`."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from bench.kinds import model_serving
from bench.shapes import Body, Shape, Work, config_map, container, custom, workload
from kthena_components.checker.check_cluster_objects import check_objects_together
from kthena_components.checker.cluster_rules import compare_objects
from kthena_components.checker.manifest import check_manifest
from kthena_components.cli.check.files import CheckOptions, check
from kthena_components.cli.check.results import Summary
from kthena_components.cli.review.comment import write_comment
from kthena_components.cli.review.preview import parse_preview
from kthena_components.cli.review.stack import reviewed
from kthena_components.core import naming
from kthena_components.core.facts.context import Context, gather
from kthena_components.core.topology.domains import read_domains
from kthena_components.rendering.templates import read_template

_SCHEDULING, _TOPOLOGY = "scheduling.volcano.sh/v1beta1", "topology.volcano.sh/v1alpha1"
_DAY = "2030-12-31 the new image is not there yet"


def together(make: Callable[[int], list[Body]]) -> Shape:
    """Check the objects of one cluster."""

    def shape(size: int) -> Work:
        bodies = make(size)
        paths = [f"[{i}]" for i in range(len(bodies))]
        return lambda: compare_objects(bodies, paths, budget=1, gpu_types=["amd.com/gpu"])

    return shape


def core(kind: str, name: str, spec: Body) -> Body:
    """Return an object of Kubernetes' own group."""
    return custom("v1", kind, spec, name)


def _services(n: int) -> list[Body]:
    selectors = ({"app": f"chat-{i}", "tier": "none"} for i in range(n))
    services = [core("Service", f"s{i}", {"selector": one}) for i, one in enumerate(selectors)]
    return [*services, *(workload(container("e"), name=f"chat-{i}") for i in range(n))]


def _servings(n: int) -> list[Body]:
    def service(i: int) -> Body:
        selector = {naming.NAME: f"chat-{i}"}
        return core("Service", f"s{i}", {"selector": selector, "ports": [{"port": 8000}]})

    return [*map(service, range(n)), *(model_serving(1, f"chat-{i}") for i in range(n))]


def _waiting(n: int) -> list[Body]:
    """Return workloads whose workers wait for the Service of their own first pods, and others."""

    def pods(i: int) -> Body:
        init = container("wait", "sh", "-c", f"until nc -z head-{i} 80; do sleep 1; done")
        inits = [{**init, "image": "busybox"}]
        return workload(container("e", "vllm", "serve"), name=f"chat-{i}", initContainers=inits)

    def service(i: int) -> Body:
        return core("Service", f"head-{i}", {"selector": {"app": f"chat-{i + 1}"}})

    return [*map(service, range(n)), *map(pods, range(n))]


def _waiting_for_themselves(n: int) -> list[Body]:
    services = (core("Service", f"head-{i}", {"selector": {"app": f"chat-{i}"}}) for i in range(n))
    return [*services, *(body for body in _waiting(n) if body["kind"] != "Service")]


def _waiting_for_one(n: int, *, themselves: bool = False) -> list[Body]:
    """Return workloads that wait for one Service, which selects them or as many others."""
    bodies = [body for body in _waiting(n if themselves else 2 * n) if body["kind"] != "Service"]
    for i, body in enumerate(bodies):
        template = body["spec"]["template"]
        template["metadata"]["labels"]["tier"] = "all" if themselves or i < n else "none"
        init = container("wait", "sh", "-c", "until nc -z all 80; do sleep 1; done")
        template["spec"]["initContainers"] = [{**init, "image": "busybox"}]
    return [core("Service", "all", {"selector": {"tier": "all"}}), *bodies]


def _waiting_for_sets(n: int) -> list[Body]:
    def pods(i: int) -> Body:
        body = _waiting(1)[-1]
        init = container(
            "wait", "sh", "-c", f"until nc -z chat-{i + 1}-0.set-{i + 1} 80; do :; done"
        )
        template = body["spec"]["template"]
        spec = {**template["spec"], "initContainers": [{**init, "image": "busybox"}]}
        named = {**body, "kind": "StatefulSet", "metadata": {"name": f"chat-{i}"}}
        return {
            **named,
            "spec": {"serviceName": f"set-{i}", "template": {**template, "spec": spec}},
        }

    return [*map(pods, range(n))]


def _autoscalers(n: int) -> list[Body]:
    def scaler(i: int) -> Body:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"chat-{i}"}
        spec = {"scaleTargetRef": target}
        return custom("autoscaling/v2", "HorizontalPodAutoscaler", spec, f"h{i}")

    pods = [workload(container("e"), name=f"chat-{i}") for i in range(n)]
    return [*pods, *map(scaler, range(n))]


def _claims(n: int) -> list[Body]:
    claims = [core("PersistentVolumeClaim", f"c{i}", {"accessModes": ["ReadWriteOnce"]})
              for i in range(n)]  # fmt: skip
    volumes = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"c{i}"}} for i in range(n)]
    pods = workload(container("e"), volumes=volumes)
    return [*claims, {**pods, "spec": {**pods["spec"], "replicas": 2}}]


def _secret(n: int) -> list[Body]:
    secret = {**core("Secret", "s", {}), "data": {f"k{i}": "" for i in range(n)}}
    env = [{"name": f"V{i}", "valueFrom": {"secretKeyRef": {"name": "s", "key": f"x{i}"}}}
           for i in range(n)]  # fmt: skip
    return [secret, workload(container("e", env=env))]


def _gang(i: int, pods: int = 2, **spec: Any) -> list[Body]:
    group = custom(_SCHEDULING, "PodGroup", {"minMember": pods, **spec}, f"gang-{i}")
    made = workload(container("e"), name=f"chat-{i}")
    metadata = made["spec"]["template"]["metadata"]
    metadata["annotations"] = {"scheduling.k8s.io/group-name": f"gang-{i}"}
    return [group, made]


def _racks(n: int) -> list[Body]:
    nodes = [{**core("Node", f"gpu-{i}", {}), "status": {"allocatable": {"nvidia.com/gpu": 8}}}
             for i in range(n)]  # fmt: skip
    return [*nodes, *(_rack(i, f"gpu-{i}") for i in range(n))]


def _rack(i: int, *nodes: str) -> Body:
    members = [{"type": "Node", "selector": {"exactMatch": {"name": node}}} for node in nodes]
    spec = {"tier": 1, "tierName": f"rack-{i}", "members": members}
    return custom(_TOPOLOGY, "HyperNode", spec, f"rack-{i}")


def _gangs(n: int) -> list[Body]:
    topology = {"mode": "hard", "highestTierName": "rack-1"}
    return [*_racks(n), *(body for i in range(n) for body in _gang(i, networkTopology=topology))]


def _subgroups(n: int) -> list[Body]:
    policies = [{"name": f"g{i}", "labelSelector": {"matchLabels": {"app": f"x-{i}"}},
                 "matchLabelKeys": ["app"], "minSubGroups": 1} for i in range(n)]  # fmt: skip
    (group, first) = _gang(0, n, subGroupPolicy=policies)
    return [group, *({**first, "metadata": {"name": f"chat-{i}"}} for i in range(n))]


def _queues(n: int) -> list[Body]:
    def queue(i: int) -> Body:
        spec = {"weight": 1, "parent": "all", "deserved": {f"example.com/r{i}": 2}}
        return custom(_SCHEDULING, "Queue", spec, f"q{i}")

    every = {f"example.com/r{i}": 1 for i in range(n)}
    parent = custom(_SCHEDULING, "Queue", {"weight": 1, "deserved": every}, "all")
    return [parent, *map(queue, range(n))]


def _resources(n: int) -> list[Body]:
    amounts = {f"example.com/r{i}": 2 for i in range(n)}
    (group, pods) = _gang(0, 1, minResources=amounts)
    containers = [{"name": f"c{i}", "resources": {"limits": {f"example.com/r{i}": 1}}}
                  for i in range(n)]  # fmt: skip
    pods["spec"]["template"]["spec"]["containers"] = containers
    return [group, pods]


def _twice(n: int) -> list[Body]:
    return [core("Service", "s", {}) for _ in range(n)]


def _policies(n: int) -> Work:
    bodies = {f"urn:{i}": workload(container("e", env=[_token(i)]), name=f"chat-{i}")
              for i in range(n)}  # fmt: skip
    for body in bodies.values():
        body["metadata"]["annotations"] = {"waive.kthena-components/secret-key-exists": _DAY}
    bodies["urn:secret"] = {**core("Secret", "hf", {}), "data": {"token": ""}}
    return lambda: check_objects_together(bodies)


def _token(i: int) -> Body:
    return {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": f"k{i}"}}}


def _namespaces(n: int) -> Work:
    maps = gather(config_map({"start": "vllm serve m"}, namespace=f"n{i}") for i in range(n))
    env = [{"configMapRef": {"name": "engine"}} for _ in range(99)]
    body = workload(*(container(f"e{i}", envFrom=env) for i in range(n // 99 + 1)))
    return lambda: check_manifest(body, context=Context(config_maps=maps))


TOGETHER: Final[Mapping[str, Shape]] = {
    "Services and pods": together(_services),
    "Services and ModelServings": together(_servings),
    "pods that wait for Services": together(_waiting),
    "pods that wait for their own Services": together(_waiting_for_themselves),
    "pods that wait for others of one Service": together(_waiting_for_one),
    "pods of one Service that wait for it": together(partial(_waiting_for_one, themselves=True)),
    "pods that wait for StatefulSets": together(_waiting_for_sets),
    "autoscalers and workloads": together(_autoscalers),
    "claims and volumes": together(_claims),
    "keys of a Secret and references": together(_secret),
    "gangs, HyperNodes and nodes": together(_gangs),
    "policies and pods of a gang": together(_subgroups),
    "queues below one": together(_queues),
    "resources of a gang": together(_resources),
    "objects of one name": together(_twice),
    "objects in the policies": _policies,
    "ConfigMaps of one name": _namespaces,
}


def checked(write: Callable[[int], str]) -> Shape:
    """Check a file like the command."""

    def shape(size: int) -> Work:
        text = write(size)
        return lambda: _check(text)

    return shape


def _check(text: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "objects.yaml")
        path.write_text(text)
        for _ in check([str(path)], CheckOptions(), Summary()):
            pass


def _split_engines(n: int) -> str:
    return "".join(yaml.dump_all(_pair(i), Dumper=yaml.CSafeDumper, explicit_start=True)
                   for i in range(n))  # fmt: skip


def _pair(i: int) -> list[Body]:
    """Return an engine whose head and worker are objects of their own."""
    command = ["vllm", "serve", "m", "-tp=8", "-pp=2", "--nnodes=2", f"--master-addr=head-{i}"]
    ranks = {"head": ["--node-rank=0"], "worker": ["--node-rank=1", "--headless"]}
    pods = [workload(container("e", *command, *rank), name=f"{part}-{i}")
            for part, rank in ranks.items()]  # fmt: skip
    service = {"selector": {"app": f"head-{i}"}, "clusterIP": "None", "ports": [{"port": 29501}]}
    bodies: list[Body] = json.loads(json.dumps([*pods, core("Service", f"head-{i}", service)]))
    return bodies


def _open_actions(n: int) -> Work:
    text = "kind: Deployment\n" + "{{ if .x " * n
    return lambda: read_template(text)


def _documents(n: int) -> str:
    return "".join(
        f"---\napiVersion: v1\nkind: Service\nmetadata: {{name: s{i}}}\n" for i in range(n)
    )


def _list(n: int) -> str:
    items = "".join(
        f"- {{apiVersion: v1, kind: Pod, metadata: {{name: p{i}}}}}\n" for i in range(n)
    )
    return f"apiVersion: v1\nkind: List\nitems:\n{items}"


def _in_one_map(n: int) -> str:
    spec = {"minMember": n, "minTaskMember": {f"t{i}": -1 for i in range(n)}}
    return yaml.dump(custom(_SCHEDULING, "PodGroup", spec), Dumper=yaml.CSafeDumper)


def _pods_in_one(n: int) -> str:
    body = workload(*(container(f"e{i}", *["vllm", "serve", "m", "-tp", "3"]) for i in range(n)))
    plain = json.loads(json.dumps(body))
    return yaml.dump(plain, Dumper=yaml.CSafeDumper)


def reviewed_text(write: Callable[[int], str]) -> Shape:
    """Review a preview like the command, up to the comment."""

    def shape(size: int) -> Work:
        text = write(size)
        return lambda: write_comment([reviewed(parse_preview("dev", text))])

    return shape


def _events(*events: Body) -> str:
    return "".join(json.dumps({"sequence": i, **event}) + "\n" for i, event in enumerate(events))


def _steps(n: int) -> str:
    def step(i: int) -> Body:
        of = f"urn:pulumi:dev::shop::kubernetes:apps/v1:Deployment::chat-{i}"
        body = {"inputs": workload(container("e"))}
        return {
            "resourcePreEvent": {"metadata": {"op": "update", "urn": of, "old": body, "new": body}}
        }

    return _events(*map(step, range(n)))


def _violations(n: int) -> str:
    return _events(*(
        {"policyEvent": {"resourceUrn": f"urn:pulumi:dev::shop::a:b:C::r{i % 100}",
                         "message": f"A policy.\nspec: is {i}, which is wrong. [shm-present]"}}
        for i in range(n)
    ))  # fmt: skip


def _message(text: str) -> str:
    return _events({"diagnosticEvent": {"severity": "error", "message": text}})


def _rows(n: int) -> str:
    rows = [{"serving": "a", "namespace": "b", "role": "c"} for _ in range(n)]
    of = "urn:pulumi:dev::shop::kthena:index:ModelServing::chat"
    step = {"op": "create", "urn": of, "new": {"inputs": {"shape": rows}}}
    return _events({"resourcePreEvent": {"metadata": step}})


def _domains(members: Callable[[int], Body]) -> Shape:
    def shape(n: int) -> Work:
        nodes: dict[str, dict[str, str]] = {f"rack-{i}-gpu": {} for i in range(n)}
        racks = [_rack(i) for i in range(n)]
        for i, rack in enumerate(racks):
            rack["spec"]["members"] = [{"type": "Node", "selector": members(i)}]
        return lambda: read_domains(racks, nodes)

    return shape


FILES: Final[Mapping[str, Shape]] = {
    "heads and workers": checked(_split_engines),
    "open actions": _open_actions,
    "documents of a file": checked(_documents),
    "objects of a List": checked(_list),
    "findings in one map": checked(_in_one_map),
    "findings in one object": checked(_pods_in_one),
    "steps of a preview": reviewed_text(_steps),
    "violations of a preview": reviewed_text(_violations),
    "lines of a message": reviewed_text(lambda n: _message("a: b. [shm-present]\n" * n)),
    "colours of a message": reviewed_text(lambda n: _message("<{%" * n)),
    "equal rows of a component": reviewed_text(_rows),
    "HyperNodes by name": _domains(lambda i: {"exactMatch": {"name": f"rack-{i}-gpu"}}),
    "HyperNodes by pattern": _domains(lambda i: {"regexMatch": {"pattern": f"^rack-{i}-.*$"}}),
}
