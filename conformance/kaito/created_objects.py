"""Compares what KAITO's controller creates with our calculation and with the backend's plan."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from conformance.kaito import expected
from conformance.kaito.expected import SPACE, Case, Outcome
from conformance.kthena import emission
from conformance.report import Part
from conformance.support.waiting import PERIOD, wait
from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.systems.kaito.inference_config import PORT
from kthena_components.systems.kaito.limits_preset import IMAGE
from kthena_components.systems.kaito.objects import SET_LABEL, WORKSPACE_LABEL

_VERSION = "kaito.sh/v1beta1"
_CLAIMS = ("karpenter.sh/v1", "NodeClaim")
_PATIENCE = 300
_SIZES = ("tensor", "pipeline", "data")
_FLAG = re.compile(r"--([a-z][\w.-]*)(?:=([^\s;]*))?")
_UNSEEN = "specified in 'config' not found"
_TOO_SMALL = "Insufficient total GPU memory"
Body = Mapping[str, Any]
Difference = tuple[str, object, object]


@dataclass(frozen=True, slots=True)
class World:
    """The objects in the namespace, by name."""

    workspaces: dict[str, Body]
    sets: dict[str, Body]
    pods: list[Body]
    services: dict[str, Body]
    claims: list[Body]

    def of_case(self, case: Case) -> list[str]:
        """Return the names of the Workspaces of a case."""
        found = self.workspaces.items()
        made = [name for name, one in found if _labels(one).get(SET_LABEL) == case.name]
        return made or [name for name, _ in found if name == case.name]


def compare_existing(part: Part, api: Cluster) -> None:
    """Create the cases on existing nodes, compare what KAITO makes of them, and delete them.

    One sort of nodes at a time, because a cluster has addresses for 254 Services.
    """
    emission.namespace(api, SPACE)
    for cases in expected.existing():
        found = [case for case in cases if _taken(part, api, case)]
        wait(partial(_ready, api, found), _PATIENCE)
        _compare(part, _read(api), found)
        _delete(part, api, found)


def _ready(api: Cluster, cases: Sequence[Case]) -> bool:
    return _complete(_read(api), cases)


def compare_created(part: Part, api: Cluster) -> None:
    """Compare the nodes that KAITO asks Azure for."""
    found = [case for case in expected.created() if _taken(part, api, case)]
    wait(lambda: all(_claimed(_read(api), case) for case in found), _PATIENCE)
    world = _read(api)
    for case in found:
        nodes = case.deployment.nodes if case.deployment else 0
        claims = nodes if case.outcome is Outcome.STARTS else 0
        seen = (_target(world, case.name), _claims(world, case.name))
        what = "nodes that KAITO calculates, and NodeClaims"
        part.check(f"{case.about}: {what}", holds=seen == (nodes, claims), seen=seen)
        part.count(f"on created nodes: {case.outcome}")


def _taken(part: Part, api: Cluster, case: Case) -> bool:
    """Create a case. Return whether KAITO accepts it."""
    said = ""
    for body in case.bodies:
        said = said or _created(api, body)
    small = case.outcome is Outcome.REJECTED
    holds = _TOO_SMALL in said if small else not said
    wanted = "is rejected, for too little memory" if small else "is accepted"
    part.check(f"{case.about}: {wanted}", holds=holds, seen=said or "accepted")
    if small:
        part.count(f"on existing nodes: {case.outcome}")
    return not said and not small


def _created(api: Cluster, body: Body) -> str:
    """Create an object. The webhook may see its ConfigMap later, so this tries again."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            api.create(body)
        except ClusterError as error:
            if _UNSEEN not in str(error) or time.monotonic() > until:
                return str(error)
            time.sleep(PERIOD)
        else:
            return ""


def _read(api: Cluster) -> World:
    def named(version: str, kind: str) -> dict[str, Body]:
        return {one["metadata"]["name"]: one for one in api.list(version, kind, SPACE)}

    return World(
        named(_VERSION, "Workspace"),
        named("apps/v1", "StatefulSet"),
        list(api.list("v1", "Pod", SPACE)),
        named("v1", "Service"),
        list(api.list(*_CLAIMS)),
    )


def _complete(world: World, cases: Sequence[Case]) -> bool:
    """Return whether everything that must come is there."""
    return all(
        len(names := world.of_case(case)) == case.engines
        and all(
            _target(world, name) if case.outcome is Outcome.TOO_MANY else _has_pods(world, name)
            for name in names
        )
        for case in cases
        if case.outcome is not Outcome.NOTHING
    )


def _has_pods(world: World, name: str) -> bool:
    body = world.sets.get(name)
    made = [pod for pod in world.pods if _owner(pod) == name]
    return body is not None and len(made) >= body["spec"]["replicas"]


def _compare(part: Part, world: World, cases: Iterable[Case]) -> None:
    for case in cases:
        part.count(f"on existing nodes: {case.outcome}")
        names = world.of_case(case)
        _check(part, case, [("Workspaces", case.engines, len(names))])
        for name in names:
            _check(part, case, _of_workspace(world, case, name))
        if case.serving is not None:
            part.count("servings of the backend compared")
            _check(part, case, _of_serving(world, case, case.serving.plan.pods))


def _check(part: Part, case: Case, differences: Iterable[Difference]) -> None:
    for what, wanted, seen in differences:
        told = f"calculated {wanted!r}, but KAITO has {seen!r}"
        part.check(f"{case.about}: {what}", holds=wanted == seen, seen=told)


def _of_workspace(world: World, case: Case, name: str) -> Iterator[Difference]:
    made, body = case.deployment, world.sets.get(name)
    nodes = 1 if case.serving is not None and made is None else made.nodes if made else 0
    yield "status.targetNodeCount", nodes, _target(world, name)
    yield "a StatefulSet", case.outcome is Outcome.STARTS, body is not None
    if body is None:
        return
    yield "its replicas", nodes, body["spec"]["replicas"]
    pod = body["spec"]["template"]["spec"]
    container = pod["containers"][0]
    limits = container["resources"]["limits"]
    yield "GPUs of a pod", str(case.gpus), limits.get("nvidia.com/gpu")
    yield "Services", {name, f"{name}-headless"}, {name, f"{name}-headless"} & set(world.services)
    if made is not None:
        flags = _flags(container)
        split = {size: int(flags.get(f"{size}-parallel-size", "1")) for size in _SIZES}
        wanted = {size: getattr(made, size) for size in _SIZES}
        yield "parallelism", wanted, split
        yield "gpu-memory-utilization", "0.84", flags.get("gpu-memory-utilization")
        yield "image", IMAGE.rpartition("/")[2], container["image"].rpartition("/")[2]
        ports = {each["targetPort"] for each in world.services[name]["spec"]["ports"]}
        yield "the Service's target", True, PORT in ports


def _of_serving(world: World, case: Case, pods: int) -> Iterator[Difference]:
    """Compare with the plan, and with what the backend wrote beside the set."""
    names = set(world.of_case(case))
    own = [pod for pod in world.pods if _owner(pod) in names]
    yield "pods", pods, len(own)
    front = next(body for body in case.bodies if body["kind"] == "Service")["spec"]
    chosen = [pod for pod in own if front["selector"].items() <= _labels(pod).items()]
    yield "pods behind the front Service", case.engines, len(chosen)
    made = next(b for b in case.bodies if b["kind"] in {"Workspace", "InferenceSet"})
    spec = made if made["kind"] == "Workspace" else made["spec"]["template"]
    inference = spec["inference"]
    for pod in own:
        if "template" in inference:
            (wanted,), (seen, *_) = inference["template"]["spec"]["containers"], _containers(pod)
            yield "the container", wanted, {key: seen.get(key) for key in wanted}
        else:
            volumes = {
                (volume.get("configMap") or {}).get("name") for volume in pod["spec"]["volumes"]
            }
            yield "the ConfigMap is mounted", True, inference["config"] in volumes


def _containers(pod: Body) -> list[Body]:
    """Return the containers without the defaults of ports."""
    found: list[Body] = []
    for one in pod["spec"]["containers"]:
        ports = [{"containerPort": port["containerPort"]} for port in one.get("ports", ())]
        found.append({**one, "ports": ports})
    return found


def _flags(container: Body) -> dict[str, str]:
    text = " ".join(container.get("command") or ())
    return {name: value for name, value in _FLAG.findall(text) if value}


def _claimed(world: World, case: Case) -> bool:
    if case.outcome is Outcome.NOTHING:
        return True
    target = _target(world, case.name)
    wanted = target if case.outcome is Outcome.STARTS else 0
    return target > 0 and _claims(world, case.name) >= wanted


def _claims(world: World, name: str) -> int:
    return sum(_labels(claim).get(WORKSPACE_LABEL) == name for claim in world.claims)


def _target(world: World, name: str) -> int:
    status = world.workspaces.get(name, {}).get("status") or {}
    return int(status.get("targetNodeCount") or 0)


def _owner(body: Body) -> str:
    owners = body["metadata"].get("ownerReferences") or [{}]
    return str(owners[0].get("name"))


def _labels(body: Body) -> dict[str, str]:
    return body["metadata"].get("labels") or {}


def _delete(part: Part, api: Cluster, cases: Iterable[Case]) -> None:
    """Delete all cases, and check that nothing of KAITO is left."""
    for case in cases:
        for body in case.bodies:
            api.delete(body)

    def left() -> list[str]:
        world = _read(api)
        return [*world.workspaces, *world.sets, *world.services]

    gone = wait(lambda: not left(), _PATIENCE)
    part.check("nothing is left after the deletion", holds=gone, seen=left()[:5])
