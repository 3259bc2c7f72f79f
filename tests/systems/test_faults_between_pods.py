"""Laws over systems: a fault between two pods of an engine is found, whoever creates the pods."""

from dataclasses import dataclass, field, replace
from typing import Any

from kthena_components.core.findings import Level
from tests.rules.cases import check_objects_together
from tests.support.for_each import for_each
from tests.support.two_pods import IMAGES, MODEL, SYSTEMS, Body, Pods, Said, written

_EVERY = frozenset(IMAGES)
_RANKED = frozenset({"vllm", "sglang"})
_VLLM, _SGLANG, _RAY = (frozenset({name}) for name in ("vllm", "sglang", "ray"))
_SERVE = (
    f"vllm serve {MODEL} --tensor-parallel-size 8 --pipeline-parallel-size 2 "
    "--distributed-executor-backend ray"
)
_HOSTNAME, _THESE = "kubernetes.io/hostname", {"matchLabels": {"app": "m"}}
_OWN = {"name": "OWN", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}


@dataclass(frozen=True)
class Fault:
    """Changes to a right engine."""

    both: dict[str, Any] = field(default_factory=dict)
    leader: dict[str, Any] = field(default_factory=dict)
    worker: dict[str, Any] = field(default_factory=dict)
    size: int = 2
    engines: frozenset[str] = _EVERY
    nodes: tuple[Body, ...] = ()
    """Nodes beside it."""


def _variables(**values: str) -> dict[str, Any]:
    env = [{"name": name, "value": value} for name, value in values.items()]
    return {"container": {"env": env}}


def _probe(port: int) -> dict[str, Any]:
    return {"container": {"readinessProbe": {"httpGet": {"path": "/health", "port": port}}}}


def _node(number: int, **labels: str) -> Body:
    name, amount = f"node-{number}", {"nvidia.com/gpu": "16", "pods": "110"}
    metadata = {"name": name, "labels": {_HOSTNAME: name, **labels}}
    body = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
    return {**body, "status": {"allocatable": amount}}


def _port(**fields: Any) -> dict[str, Any]:
    return {"container": {"ports": [{"containerPort": 9000, **fields}]}}


def _bound(kind: str) -> dict[str, Any]:
    term = {"topologyKey": _HOSTNAME, "labelSelector": _THESE}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def _spread(**fields: Any) -> dict[str, Any]:
    usual = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**usual, "labelSelector": _THESE, **fields}]}


_SPREAD = "topologySpreadConstraints"
_ONE, _TWO = (_node(1),), (_node(1), _node(2))
_ONE_RACK = (_node(1, rack="a"), _node(2, rack="a"))
_TWO_RACKS = (_node(1, rack="a"), _node(2, rack="b"))
_TAKEN = _port(hostPort=9000)
_ON_HOST = {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
FAULTS = {
    "address that is empty": Fault(worker={"address": ""}),
    "address that is the pod itself": Fault(worker={"address": "localhost"}),
    "address of loopback": Fault(worker={"address": "127.0.0.1"}),
    "address of loopback in both": Fault({"address": "127.0.0.1"}, engines=_RANKED),
    "address of all interfaces": Fault(worker={"address": "0.0.0.0"}),  # noqa: S104
    "address that nothing sets": Fault(worker={"address": "$(NOT_SET_HERE)"}),
    "address that is the pod's name": Fault(worker={"address": "$(HOSTNAME)"}),
    "address that is the pod's IP": Fault(
        worker={"address": "$(OWN)", "container": {"env": [_OWN]}}
    ),
    "address that is a URL": Fault(worker={"address": "http://host.ns.svc"}),
    "address with a port for a host": Fault({"address": "host.ns:5000"}, engines=_VLLM),
    "port that differs": Fault(worker={"port": 20001}),
    "port that is left out": Fault({"port": 0}, engines=_SGLANG),
    "port that is left out in the worker": Fault(worker={"port": 0}, engines=_SGLANG),
    "port that is too large": Fault({"port": 70000}),
    "port that is a word": Fault({"port": "abc"}),
    "port of vLLM's server": Fault({"port": 8000}, engines=_VLLM),
    "port of SGLang's server": Fault({"port": 30000}, engines=_SGLANG),
    "nodes that are too many": Fault({"nodes": "3"}, engines=_RANKED),
    "nodes that are too few": Fault({"nodes": "1"}, engines=_RANKED),
    "nodes that differ": Fault(worker={"nodes": "3"}, engines=_RANKED),
    "nodes that are left out": Fault({"nodes": ""}, engines=_RANKED),
    "nodes that are left out in the worker": Fault(worker={"nodes": ""}, engines=_RANKED),
    "rank that both have": Fault(worker={"rank": "0"}, engines=_RANKED),
    "rank that is too high": Fault(worker={"rank": "2"}, engines=_RANKED),
    "rank that is negative": Fault(worker={"rank": "-1"}, engines=_RANKED),
    "rank of the leader that is not the first": Fault({"rank": "1"}, engines=_RANKED),
    "rank that is left out": Fault(worker={"rank": ""}, engines=_RANKED),
    "tensor that is too small": Fault({"tensor": "4"}),
    "tensor that divides nothing": Fault({"tensor": "3"}),
    "tensor that differs": Fault(worker={"tensor": "4"}, engines=_RANKED),
    "model that differs": Fault(worker={"model": "meta-llama/Llama-3.1-70B"}, engines=_RANKED),
    "image of vLLM that differs": Fault(
        worker={"image": "vllm/vllm-openai:v0.12.0"}, engines=_VLLM | _RAY
    ),
    "image of SGLang that differs": Fault(
        worker={"image": "lmsysorg/sglang:v0.5.7"}, engines=_SGLANG
    ),
    "headless that is left out": Fault(worker={"headless": False}, engines=_VLLM),
    "headless leader": Fault(leader={"headless": True}, engines=_VLLM),
    "worker that sleeps": Fault(worker={"command": ["sleep", "infinity"]}),
    "worker that is missing": Fault(size=1),
    "worker too many": Fault(size=3),
    "worker that is a second head": Fault(
        worker={"command": ["sh", "-c", "ray start --head --block"]}, engines=_RAY
    ),
    "worker that ends": Fault(worker={"blocks": False}, engines=_RAY),
    "worker with fewer GPUs": Fault(worker={"gpus": 4}),
    "worker without GPUs": Fault(worker={"gpus": 0}),
    "worker with GPUs of another maker": Fault(worker={"gpu": "amd.com/gpu"}),
    "pods with fewer GPUs": Fault({"gpus": 4}),
    "head that blocks before the server": Fault(
        leader={"before": "ray start --head --block; "}, engines=_RAY
    ),
    "headless pods": Fault({"headless": True}, engines=_VLLM),
    "worker that is a copy of the head": Fault(
        worker={"command": ["sh", "-c", f"ray start --head --port=20000 && {_SERVE}"]}, engines=_RAY
    ),
    "address that is the API server's": Fault(worker={"address": "$(KUBERNETES_SERVICE_HOST)"}),
    "address that is the API server's name": Fault(worker={"address": "kubernetes.default.svc"}),
    "address of another object's pod": Fault(worker={"address": "leader-0.nowhere"}),
    "interface that is loopback": Fault(
        _variables(NCCL_SOCKET_IFNAME="lo", GLOO_SOCKET_IFNAME="lo")
    ),
    "host IP of loopback": Fault(_variables(VLLM_HOST_IP="127.0.0.1"), engines=_VLLM | _RAY),
    "host IP that both have": Fault(_variables(VLLM_HOST_IP="10.0.0.4"), engines=_VLLM | _RAY),
    "probe of a worker that does not answer": Fault(worker=_probe(8000), engines=_VLLM | _RAY),
    "probe of another port": Fault(leader=_probe(9999)),
    "option with a slip": Fault({"options": ["--gpu-memory-utilisation", "0.9"]}, engines=_VLLM),
    "value that is out of range": Fault(
        {"options": ["--mem-fraction-static", "1.9"]}, engines=_SGLANG
    ),
    "port of one Node": Fault(_TAKEN, nodes=_ONE),
    "port of one Node by its network": Fault(_port() | {"pod": _ON_HOST}, nodes=_ONE),
    "port of the Node of a selector": Fault(_TAKEN | {"pod": {"nodeSelector": {_HOSTNAME: "a"}}}),
    "port of the Node of a name": Fault(_TAKEN | {"pod": {"nodeName": "a"}}),
    "port of a shared Node": Fault(_TAKEN | {"pod": _bound("podAffinity")}),
    "spread over too few racks": Fault({"pod": _spread(minDomains=2)}, nodes=_ONE_RACK),
    "spread over no rack": Fault({"pod": _spread()}, nodes=_TWO),
    "spread over the rack of a selector": Fault(
        {"pod": _spread(minDomains=2) | {"nodeSelector": {"rack": "a"}}}
    ),
}
TWINS = {
    "port of two Nodes": Fault(_TAKEN, nodes=_TWO),
    "port of two Nodes by their network": Fault(_port() | {"pod": _ON_HOST}, nodes=_TWO),
    "port of Nodes elsewhere": Fault(_TAKEN),
    "port of Nodes that pods do not share": Fault(
        _TAKEN | {"pod": _bound("podAntiAffinity")}, nodes=_TWO
    ),
    "one port of the Node of a selector": Fault(
        {"pod": {"nodeSelector": {_HOSTNAME: "a"}}}, worker=_TAKEN
    ),
    "ports of one Node that differ": Fault(leader=_TAKEN, worker=_port(hostPort=9001), nodes=_ONE),
    "protocols of one Node that differ": Fault(
        leader=_TAKEN, worker=_port(hostPort=9000, protocol="UDP"), nodes=_ONE
    ),
    "spread over enough racks": Fault({"pod": _spread(minDomains=2)}, nodes=_TWO_RACKS),
    "spread over one rack": Fault({"pod": _spread()}, nodes=_ONE_RACK),
    "spread that may be missed": Fault(
        {"pod": _spread(whenUnsatisfiable="ScheduleAnyway")}, nodes=_TWO
    ),
    "spread of other pods": Fault(
        {"pod": _spread(minDomains=2, labelSelector={"matchLabels": {"app": "x"}})}, nodes=_ONE_RACK
    ),
    "spread with room for two": Fault({"pod": _spread(minDomains=2, maxSkew=2)}, nodes=_ONE_RACK),
    "address of another Service, in part": Fault(worker={"address": "$(LEADER_SERVICE_HOST)"}),
}
"""Right engines, each like one with a fault."""
REFUSED = {("grove", name) for name, twin in TWINS.items() if _SPREAD in str(twin.both)}
"""Where a twin is a fault: Grove spreads the pods itself."""
UNKNOWN = {("grove", "worker that is missing"): "Grove's webhook refuses replicas 0"}
"""What is not found, and why."""
PAIRS = [(system, engine) for system in SYSTEMS for engine in IMAGES]


def mandatory(bodies: list[Body]) -> list[str]:
    named = {f"{body['kind']}-{index}": body for index, body in enumerate(bodies)}
    return [str(f) for f in check_objects_together(named) if f.level is Level.MANDATORY]


@for_each("system, engine", PAIRS)
def test_an_engine_on_two_pods_is_right(system: str, engine: str) -> None:
    assert mandatory(written(SYSTEMS[system], engine, Pods(leader=Said(), worker=Said()))) == []


def _found(system: str, of: Fault) -> dict[str, list[str]]:
    leader, worker = Said(**of.both | of.leader), Said(**of.both | of.worker)
    pods = Pods(leader=leader, worker=worker, size=of.size)
    made = {engine: written(SYSTEMS[system], engine, pods) for engine in of.engines}
    return {engine: mandatory([*bodies, *of.nodes]) for engine, bodies in made.items()}


@for_each("system, twin", [(system, twin) for system in SYSTEMS for twin in TWINS])
def test_the_twin_of_a_fault_is_right_on_every_system(system: str, twin: str) -> None:
    if (system, twin) not in REFUSED:
        assert {*map(tuple, _found(system, TWINS[twin]).values())} == {()}


@for_each("system, fault", [(system, fault) for system in SYSTEMS for fault in FAULTS])
def test_a_fault_between_two_pods_is_found_on_every_system(system: str, fault: str) -> None:
    found = _found(system, FAULTS[fault])
    silent = sorted(engine for engine, findings in found.items() if not findings)
    assert not silent or (system, fault) in UNKNOWN
    assert silent or (system, fault) not in UNKNOWN


@for_each("system, engine", PAIRS)
def test_the_variable_of_another_controller_has_no_value(system: str, engine: str) -> None:
    own = SYSTEMS[system].told
    for name in {"ENTRY_ADDRESS", "LWS_LEADER_ADDRESS"} - {own}:
        right = Said()
        pods = Pods(leader=right, worker=replace(right, address=f"$({name})"))
        assert mandatory(written(SYSTEMS[system], engine, pods))
